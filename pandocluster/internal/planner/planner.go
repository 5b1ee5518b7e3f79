package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
)

// class is what a range lacks most, in the order in which it is seen to.
type class uint8

const (
	urgent  class = iota // fewer votes than wanted, and none of them may fail
	few                  // fewer votes than wanted
	begun                // a replica without a vote, or a vote too many
	leaving              // a vote on a node that is to have none
	wished               // somebody asked for a move
	shared               // replicas share a rack or a zone, and need not
	pending              // a step is being done
	stuck                // no leader, or no majority
	whole                // nothing
)

// overhead is what a replica costs a node beside its bytes: so empty ranges are spread, too.
const overhead = 1 << 20

// leading is what a range costs its leader beside its load.
const leading = 10

// node is what a plan knows of a node.
type node struct {
	Node
	known bool // it is in the picture, and not only named by ranges
	group      // where it is

	ranges   []*rng // that have a replica here, by ID
	used     int64  // bytes of these, with overhead
	load     int64  // of the ranges that it leads
	in, out  int    // replicas that it receives and sends
	stepping int    // ranges that it leads with a step pending

	plan planned
}

// group is a rack and its zone. A node without a name of its rack has one to itself.
type group struct{ zone, rack string }

func (n *node) usable() bool { return n.State == Up || n.State == Silent }
func (n *node) there() bool  { return n.State == Up || n.State == Draining }

// filled returns what part of a node is used, and full what part will be when all is done that
// is under way or in the plan.
func (n *node) filled() float64 { return float64(n.used) / float64(max(n.Capacity, 1)) }
func (n *node) full() float64 {
	return float64(n.used+n.plan.used-n.plan.less) / float64(max(n.Capacity, 1))
}

// leads returns the load of what a node will lead.
func (n *node) leads() int64 { return n.load + n.plan.load }

// rng is what a plan knows of a range.
type rng struct {
	Range
	on      []*node // of Replicas
	leader  *node   // nil without one
	adding  *node   // of a pending Add
	class   class
	at      int  // in the list of its class
	place   int  // in key order
	gone    bool // from the picture
	atSmall int  // in the list of small ranges, or -1
	atLarge int  // in the list of large ranges, or -1

	stepped bool // it got a step in this plan
	partner *rng // the range before it, with which it is to be merged
	paired  bool // it is to be merged with that, or with the one behind it
}

func (r *rng) weight() int64 { return max(r.Size, 0) + overhead }
func (r *rng) cost() int64   { return max(r.Load, 0) + leading }

// Planner is a picture that is kept up to date, sorted by what is to be done.
type Planner struct {
	o      Options
	nodes  map[string]*node
	sorted []*node // by name
	ranges map[uint64]*rng

	lists [whole][]*rng
	small []*rng
	large []*rng
	count [whole + 1]int

	order []*rng // in key order, but for those that are gone or fresh
	fresh []*rng
	stale bool // some of order are gone

	want  int       // votes of a range, with the nodes that there are
	apart []sharing // by number of replicas, what they share at least
}

// New returns a planner without nodes and ranges.
func New(o Options) *Planner {
	o.check()
	return &Planner{o: o, nodes: map[string]*node{}, ranges: map[uint64]*rng{}, want: 1}
}

// SetNode says what a node is now.
func (p *Planner) SetNode(n Node) {
	x := p.node(n.Name)
	was, wasIn := x.State, x.group
	x.Node, x.known = n, true
	x.group = groupOf(n)
	if x.State == was && x.group == wasIn {
		return
	}
	p.survey()
	if mutant.On && mutant.Is("planner: ranges of a node") {
		return
	}
	for _, r := range x.ranges {
		p.classify(r)
	}
}

// RemoveNode says that a node is no longer in the picture.
func (p *Planner) RemoveNode(name string) {
	if x := p.nodes[name]; x != nil && x.known {
		p.SetNode(Node{Name: name, State: Removed})
		x.known = false
		p.tidy(x)
	}
}

// node returns a node, and makes one that is Removed if the picture has none.
func (p *Planner) node(name string) *node {
	x := p.nodes[name]
	if x == nil {
		x = &node{Node: Node{Name: name, State: Removed}}
		x.group = groupOf(x.Node)
		p.nodes[name] = x
		i, _ := slices.BinarySearchFunc(p.sorted, name, func(n *node, name string) int { return strings.Compare(n.Name, name) })
		p.sorted = slices.Insert(p.sorted, i, x)
	}
	return x
}

// tidy forgets a node that nothing names.
func (p *Planner) tidy(x *node) {
	if x.known || len(x.ranges) > 0 || x.load != 0 || x.in != 0 || x.out != 0 || x.stepping != 0 {
		return
	}
	delete(p.nodes, x.Name)
	p.sorted = slices.DeleteFunc(p.sorted, func(n *node) bool { return n == x })
}

func groupOf(n Node) group {
	g := group{n.Zone, n.Zone + "\x00" + n.Rack}
	if n.Rack == "" {
		g.rack = n.Zone + "\x00\x00" + n.Name
	}
	if n.Zone == "" {
		g.zone = "\x00" + g.rack
	}
	return g
}

// SetRange says what a range is now.
func (p *Planner) SetRange(x Range) {
	r := p.ranges[x.ID]
	if r != nil && r.Lo != x.Lo {
		p.RemoveRange(x.ID)
		r = nil
	}
	if r == nil {
		r = &rng{class: whole, at: -1, atSmall: -1, atLarge: -1}
		p.ranges[x.ID] = r
		p.count[whole]++
		p.fresh = append(p.fresh, r)
	} else {
		p.leave(r)
	}
	x.Replicas = slices.Clone(x.Replicas)
	r.Range = x
	p.enter(r)
	p.classify(r)
	p.small = enlist(p.small, r, (*rng).smallAt, p.isSmall(r))
	p.large = enlist(p.large, r, (*rng).largeAt, p.reason(r) != none)
}

// RemoveRange says that a range is no longer in the picture.
func (p *Planner) RemoveRange(id uint64) {
	r := p.ranges[id]
	if r == nil {
		return
	}
	p.leave(r)
	p.file(r, whole)
	p.count[whole]--
	p.small = enlist(p.small, r, (*rng).smallAt, false)
	p.large = enlist(p.large, r, (*rng).largeAt, false)
	delete(p.ranges, id)
	r.gone, p.stale = true, true
}

// enter counts a range at its nodes.
func (p *Planner) enter(r *rng) { p.tally(r, 1) }

// leave takes back what enter has counted.
func (p *Planner) leave(r *rng) {
	p.tally(r, -1)
	for _, n := range r.on {
		p.tidy(n)
	}
	if r.leader != nil {
		p.tidy(r.leader)
	}
	if r.adding != nil {
		p.tidy(r.adding)
	}
}

func (p *Planner) tally(r *rng, by int) {
	if by > 0 {
		r.on, r.leader, r.adding = r.on[:0], nil, nil
		for _, x := range r.Replicas {
			r.on = append(r.on, p.node(x.Node))
		}
		if i := r.replica(r.Leader); i >= 0 {
			r.leader = r.on[i]
		}
		if r.Pending.Kind == Add && r.replica(r.Pending.Node) < 0 {
			r.adding = p.node(r.Pending.Node)
		}
	}
	onWay := 0
	for i, n := range r.on {
		at, had := slices.BinarySearchFunc(n.ranges, r.ID, func(x *rng, id uint64) int { return cmp.Compare(x.ID, id) })
		switch {
		case by > 0 && !had:
			n.ranges = slices.Insert(n.ranges, at, r)
		case by < 0 && had:
			n.ranges = slices.Delete(n.ranges, at, at+1)
		}
		n.used += int64(by) * r.weight()
		if !r.Replicas[i].Votes && !r.Replicas[i].Ready {
			n.in += by
			onWay += by
		}
	}
	if n := r.adding; n != nil {
		n.used += int64(by) * r.weight()
		n.in += by
		onWay += by
	}
	if n := r.leader; n != nil {
		n.load += int64(by) * r.cost()
		n.out += onWay
		if r.Pending.Kind != None {
			n.stepping += by
		}
	}
}

// replica returns which replica a node has, and -1 if it has none.
func (r *rng) replica(name string) int {
	return slices.IndexFunc(r.Replicas, func(x Replica) bool { return x.Node == name })
}

// votes counts the votes of a range: all, those of nodes that are there, and those that are to stay.
func (r *rng) votes() (all, live, good int) {
	for i, n := range r.on {
		if !r.Replicas[i].Votes {
			continue
		}
		all++
		if n.there() {
			live++
		}
		if n.usable() {
			good++
		}
	}
	return all, live, good
}

// tolerance returns how many of the votes that are there may fail; below zero if they are no majority.
func tolerance(all, live int) int { return live - (all/2 + 1) }

// classify finds out what a range lacks.
func (p *Planner) classify(r *rng) { p.file(r, p.lacks(r)) }

func (p *Planner) lacks(r *rng) class {
	all, live, good := r.votes()
	switch {
	case r.leader == nil || !r.leader.there() || tolerance(all, live) < 0:
		return stuck
	case r.Pending.Kind != None:
		return pending
	case good < p.want && tolerance(all, live) == 0:
		return urgent
	case good < p.want:
		return few
	case all < len(r.on) || good > p.o.Replicas:
		return begun
	case good < all:
		return leaving
	case r.Wish.To != "" && !r.Fulfilled():
		return wished
	case p.sharesMore(r):
		return shared
	}
	return whole
}

// file puts a range into the list of its class.
func (p *Planner) file(r *rng, c class) {
	p.count[r.class]--
	p.count[c]++
	if r.class < whole && r.class != c {
		p.lists[r.class] = enlist(p.lists[r.class], r, (*rng).classAt, false)
	}
	r.class = c
	if c < whole {
		p.lists[c] = enlist(p.lists[c], r, (*rng).classAt, true)
	}
}

func (r *rng) classAt() *int { return &r.at }
func (r *rng) smallAt() *int { return &r.atSmall }
func (r *rng) largeAt() *int { return &r.atLarge }

// enlist puts a range into a list without order, or takes it out. A range knows its place there, or -1.
func enlist(list []*rng, r *rng, place func(*rng) *int, in bool) []*rng {
	switch at := place(r); {
	case in && *at < 0:
		*at = len(list)
		list = append(list, r)
	case !in && *at >= 0:
		last := list[len(list)-1]
		list[*at] = last
		*place(last) = *at
		*at = -1
		list = list[:len(list)-1]
	}
	return list
}

// isSmall reports whether a range may be merged with a neighbour.
func (p *Planner) isSmall(r *rng) bool {
	return r.Size < p.o.MinSize && !r.Whole && (p.o.MaxLoad == 0 || r.Load < p.o.MaxLoad/2)
}

// none is the reason for nothing.
const none Reason = 255

// reason returns why a range is to be split, or none.
func (p *Planner) reason(r *rng) Reason {
	switch {
	case r.Whole:
		return none
	case r.Size > p.o.MaxSize:
		return Size
	case p.o.MaxLoad > 0 && r.Load > p.o.MaxLoad:
		return Busy
	}
	return none
}

// sort puts the ranges into key order again.
func (p *Planner) sort() {
	if len(p.fresh) == 0 && !p.stale {
		return
	}
	alive := func(list []*rng) []*rng { return slices.DeleteFunc(list, func(r *rng) bool { return r.gone }) }
	order, fresh := alive(p.order), alive(p.fresh)
	byKey := func(a, b *rng) int { return cmp.Or(strings.Compare(a.Lo, b.Lo), cmp.Compare(a.ID, b.ID)) }
	slices.SortFunc(fresh, byKey)
	merged := make([]*rng, 0, len(order)+len(fresh))
	for len(fresh) > 0 {
		i, _ := slices.BinarySearchFunc(order, fresh[0], byKey)
		merged = append(append(merged, order[:i]...), fresh[0])
		order, fresh = order[i:], fresh[1:]
	}
	p.order, p.fresh, p.stale = append(merged, order...), nil, false
	for i, r := range p.order {
		r.place = i
	}
}

// Counts returns how many ranges there are in each state.
func (p *Planner) Counts() Counts {
	return Counts{
		Ranges: len(p.ranges), Stuck: p.count[stuck], Urgent: p.count[urgent], Few: p.count[few], Begun: p.count[begun],
		Leaving: p.count[leaving], Shared: p.count[shared], Pending: p.count[pending],
	}
}
