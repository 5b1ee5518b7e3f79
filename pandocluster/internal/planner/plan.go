package planner

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
)

const (
	mostFull = 0.9  // part of a node's capacity above which it gets nothing
	margin   = 0.05 // part of the mean by which nodes may differ without anything being moved
)

// planned is what a plan that is being made changes at a node.
type planned struct {
	used, less        int64 // bytes that it gets, and that it will have less when all is done
	load              int64
	in, out, stepping int
}

// plan is one that is being made.
type plan struct {
	*Planner
	steps   []Step
	racks   []*rack // those with a node that may get replicas; the emptiest first
	of      map[string]*rack
	zones   []string // of racks
	waiting bool     // a repair waits for its turn
}

// rack is the nodes of a rack that may get replicas: those that may get one now first, the emptiest of them first.
type rack struct {
	group
	nodes []*node
}

// Steps returns what is to be done now, the most urgent first. They do not depend on each other, and may be done in any order.
func (p *Planner) Steps() []Step {
	p.sort()
	for _, n := range p.sorted {
		n.plan = planned{}
	}
	pl := &plan{Planner: p, of: map[string]*rack{}}
	pairs := pl.pairs()
	pl.foresee()
	pl.arrange()
	for c := range pending {
		for _, r := range byID(p.lists[c]) {
			pl.next(r)
		}
	}
	for _, r := range byID(p.large) {
		if r.class != pending && r.class != stuck {
			pl.step(r, Step{Kind: Split, Reason: p.reason(r)})
		}
	}
	for _, l := range pairs {
		pl.merge(l, p.order[l.place+1])
	}
	if !pl.waiting || mutant.On && mutant.Is("planner: repair first") {
		pl.balance()
	}
	pl.spreadLeaders()
	for _, s := range pl.steps {
		p.ranges[s.Range].stepped = false
		if s.Kind == Merge {
			p.ranges[s.Other].stepped = false
		}
	}
	for _, l := range pairs {
		r := p.order[l.place+1]
		l.paired, r.paired, r.partner = false, false, nil
	}
	return pl.steps
}

func byID(list []*rng) []*rng {
	return slices.SortedFunc(slices.Values(list), func(a, b *rng) int { return cmp.Compare(a.ID, b.ID) })
}

// step notes a step of a range, unless the range has one or its leader has no turn for it.
func (p *plan) step(r *rng, s Step) bool {
	if r.stepped || !p.turn(r.leader) {
		return false
	}
	s.Range, s.Version = r.ID, r.Version
	p.steps = append(p.steps, s)
	r.stepped = true
	r.leader.plan.stepping++
	return true
}

// turn reports whether a node may take part in one more step of a range that it leads.
func (p *plan) turn(n *node) bool {
	return n.stepping+n.plan.stepping < p.o.Steps
}

// sends reports whether a node may send one more replica, and receives whether it may receive one.
func (p *plan) sends(n *node) bool { return n.out+n.plan.out < p.o.Transfers && p.turn(n) }
func (p *plan) receives(n *node) bool {
	return n.in+n.plan.in < p.o.Transfers || mutant.On && mutant.Is("planner: transfers")
}

// next finds the step of a range that lacks something.
func (p *plan) next(r *rng) {
	if p.learner(r) || p.shrink(r) {
		return
	}
	_, live, good := r.votes()
	switch {
	case good < p.want:
		why := Repair
		if live >= p.want {
			why = Drain
		}
		p.add(r, why)
	case r.Wish.To != "" && !r.Fulfilled():
		if to := p.nodes[r.Wish.To]; to != nil && to.State == Up && r.replica(to.Name) < 0 && p.fits(to, r) && p.sends(r.leader) && p.receives(to) {
			p.addTo(r, to, Wished)
		}
	case r.class == shared:
		p.untangle(r)
	}
}

// learner sees to replicas without votes: it reports whether there is one.
func (p *plan) learner(r *rng) bool {
	all, live, good := r.votes()
	for i, n := range r.on {
		x := r.Replicas[i]
		if x.Votes {
			continue
		}
		switch ready := x.Ready || mutant.On && mutant.Is("planner: ready"); {
		case n.State == Silent:
		case !n.usable() || good > p.o.Replicas:
			p.step(r, Step{Kind: Remove, Node: n.Name, Reason: Surplus})
		case ready && tolerance(all+1, live+1) >= 0:
			p.step(r, Step{Kind: Promote, Node: n.Name, Reason: Surplus})
		}
		return true
	}
	return false
}

// shrink removes a vote that is too many, or on a node that is to have none. It reports whether there is one
// that may go now.
func (p *plan) shrink(r *rng) bool {
	v, why := p.victim(r)
	if v == nil {
		return false
	}
	if v != r.leader {
		return p.step(r, Step{Kind: Remove, Node: v.Name, Reason: why})
	}
	return p.leadOther(r, v, why)
}

// leadOther has another node lead than one that is to go.
func (p *plan) leadOther(r *rng, v *node, why Reason) bool {
	var best *node
	for i, n := range r.on {
		if n != v && r.Replicas[i].Votes && n.State == Up && (best == nil || n.leads() < best.leads()) {
			best = n
		}
	}
	return best != nil && p.lead(r, best, why)
}

func (p *plan) lead(r *rng, to *node, why Reason) bool {
	from := r.leader
	if !p.step(r, Step{Kind: Lead, Node: to.Name, Reason: why}) {
		return false
	}
	from.plan.load -= r.cost()
	to.plan.load += r.cost()
	return true
}

// victim returns whose vote is to be taken, and nil if nobody's may.
func (p *Planner) victim(r *rng) (*node, Reason) {
	all, live, good := r.votes()
	for _, s := range []State{Removed, Down, Draining} {
		for i, n := range r.on {
			if !r.Replicas[i].Votes || n.State != s {
				continue
			}
			switch {
			case s == Removed && good >= p.want, s == Down && good >= p.o.Replicas:
				if mayLose(all, live, false, p.o.Replicas) {
					return n, Repair
				}
			case s == Draining && good >= p.want && mayLose(all, live, true, p.o.Replicas):
				return n, Drain
			}
		}
	}
	var worst *node
	why := Surplus
	switch from := p.nodes[r.Wish.From]; {
	case r.Wish.To != "" && p.granted(r):
		worst, why = from, Wished
	case good > p.o.Replicas:
		worst = p.worst(r, nil)
	}
	if worst != nil && mayLose(all, live, worst.there(), p.o.Replicas) {
		return worst, why
	}
	return nil, Surplus
}

// granted reports whether the one part of a wish is done, and the vote that it takes is still there.
func (p *Planner) granted(r *rng) bool {
	to, from := r.replica(r.Wish.To), r.replica(r.Wish.From)
	return to >= 0 && from >= 0 && r.Replicas[to].Votes && r.Replicas[from].Votes && r.on[to].State == Up
}

// mayLose reports whether a range may lose a vote, one of a node that is there or not.
func mayLose(all, live int, there bool, wanted int) bool {
	if mutant.On && mutant.Is("planner: majority") {
		return true
	}
	after := live
	if there {
		after--
	}
	return tolerance(all, live) >= 0 && after > 0 && tolerance(all-1, after) >= min(tolerance(all, live), wanted/2)
}

// worst returns which node of a range, and one more, should go: one that a neighbour to merge with does not have,
// else the one that shares most with others, else the fullest.
func (p *Planner) worst(r *rng, more *node) (worst *node) {
	var cost sharing
	var strange bool
	see := func(n *node) {
		if !n.usable() {
			return
		}
		odd := r.partner != nil && r.partner.replica(n.Name) < 0
		c := r.share(n.group, n)
		if more != nil && more != n {
			c = c.with(n.group, more.group)
		}
		better := worst == nil
		if !better {
			switch {
			case odd != strange:
				better = odd
			case c != cost:
				better = cost.less(c)
			default:
				better = n.filled() > worst.filled()
			}
		}
		if better {
			worst, cost, strange = n, c, odd
		}
	}
	for i, n := range r.on {
		if r.Replicas[i].Votes {
			see(n)
		}
	}
	if more != nil {
		see(more)
	}
	return worst
}

// with adds what two groups share.
func (s sharing) with(a, b group) sharing {
	if a.rack == b.rack {
		s.racks++
	}
	if a.zone == b.zone {
		s.zones++
	}
	return s
}

// add has the best node get a replica.
func (p *plan) add(r *rng, why Reason) {
	if !p.sends(r.leader) {
		p.waiting = true
		return
	}
	to, later := p.find(r, nil, sharing{len(r.on) + 1, 0}, math.Inf(1))
	if later || to != nil && !p.addTo(r, to, why) {
		p.waiting = true
	}
}

func (p *plan) addTo(r *rng, to *node, why Reason) bool {
	if !p.step(r, Step{Kind: Add, Node: to.Name, Reason: why}) {
		return false
	}
	r.leader.plan.out++
	to.plan.in++
	to.plan.used += r.weight()
	p.settle(to)
	return true
}

// untangle has a range get a replica where it shares less than one that it has, which goes then.
func (p *plan) untangle(r *rng) {
	worst := p.worst(r, nil)
	if worst == nil || !p.sends(r.leader) {
		return
	}
	now := r.share(worst.group, worst)
	if to, _ := p.find(r, worst, now, math.Inf(1)); to != nil {
		p.addTo(r, to, Spread)
	}
}

// fits reports whether a node has room for a range.
func (p *plan) fits(n *node, r *rng) bool {
	return float64(n.used+n.plan.used+r.weight()) <= mostFull*float64(n.Capacity)
}

// find returns the node for one more replica of a range, one of whose nodes leaves unless that is nil: of those that
// share least the emptiest. It shares less than under, and no more than below of it is used. If later is set, there is a better
// one which has no turn now.
func (p *plan) find(r *rng, leaves *node, under sharing, below float64) (best *node, later bool) {
	var cost, all sharing
	any := false
	least := p.leastShared(r, leaves)
	for _, k := range p.racks {
		s := r.share(k.group, leaves)
		if mutant.On && mutant.Is("planner: racks") {
			s = sharing{}
		}
		if k.nodes[0].full() >= below && p.receives(k.nodes[0]) {
			break // as all that come
		}
		if !s.less(under) || any && all.less(s) || best != nil && !s.less(cost) {
			continue
		}
		for _, n := range k.nodes {
			if n.full() >= below {
				break
			}
			if r.replica(n.Name) >= 0 || !p.fits(n, r) {
				continue
			}
			if !any || s.less(all) {
				all, any = s, true
			}
			if p.receives(n) {
				best, cost = n, s
			}
			break // the others of the rack are fuller, or have no turn either
		}
		if best != nil && !least.less(cost) {
			break
		}
	}
	if best != nil && all.less(cost) {
		return nil, true
	}
	return best, best == nil && any
}

// leastShared returns what one more replica of a range shares in the best case, as far as zones tell.
func (p *plan) leastShared(r *rng, leaves *node) (s sharing) {
	for i, z := range p.zones {
		in := 0
		for _, n := range r.on {
			if n != leaves && n.usable() && n.zone == z {
				in++
			}
		}
		if i == 0 || in < s.zones {
			s.zones = in
		}
		if in == 0 {
			break
		}
	}
	return s
}

// arrange sorts the nodes that may get replicas.
func (p *plan) arrange() {
	for _, n := range p.sorted {
		if n.State != Up || n.Capacity <= 0 {
			continue
		}
		k := p.of[n.rack]
		if k == nil {
			k = &rack{group: n.group}
			p.of[n.rack] = k
			p.racks = append(p.racks, k)
		}
		k.nodes = append(k.nodes, n)
	}
	for _, k := range p.racks {
		slices.SortFunc(k.nodes, p.emptier)
		if !slices.Contains(p.zones, k.zone) && len(p.zones) < 16 {
			p.zones = append(p.zones, k.zone)
		}
	}
	slices.SortFunc(p.racks, p.rackEmptier)
}

func (p *plan) emptier(a, b *node) int {
	turn := func(n *node) int {
		if p.receives(n) {
			return 0
		}
		return 1
	}
	return cmp.Or(turn(a)-turn(b), cmp.Compare(a.full(), b.full()), strings.Compare(a.Name, b.Name))
}

func (p *plan) rackEmptier(a, b *rack) int { return p.emptier(a.nodes[0], b.nodes[0]) }

// settle puts a node, and its rack, in order again when it has got more.
func (p *plan) settle(n *node) {
	k := p.of[n.rack]
	sink(k.nodes, slices.Index(k.nodes, n), p.emptier)
	sink(p.racks, slices.Index(p.racks, k), p.rackEmptier)
}

// sink moves an element of a sorted list behind those that are less than it now.
func sink[E any](list []E, at int, compare func(a, b E) int) {
	for ; at+1 < len(list) && compare(list[at], list[at+1]) > 0; at++ {
		list[at], list[at+1] = list[at+1], list[at]
	}
}
