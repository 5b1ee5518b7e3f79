package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
)

// foresee counts as gone what will go. Where a replica is on its way and nothing lacks one, another one goes when it is
// there; and a lead may be on its way. Otherwise a node would be emptied by all that can begin before the first
// move has ended.
func (p *plan) foresee() {
	for _, c := range []class{begun, pending} {
		for _, r := range p.lists[c] {
			if v := p.going(r); v != nil {
				v.plan.less += r.weight()
			}
			if r.Pending.Kind == Lead {
				if to := p.nodes[r.Pending.Node]; to != nil {
					r.leader.plan.load -= r.cost()
					to.plan.load += r.cost()
				}
			}
		}
	}
}

// going returns the node whose replica of a range is to go, and nil if there is none.
func (p *plan) going(r *rng) *node {
	_, _, good := r.votes()
	more := r.adding
	for i, n := range r.on {
		if !r.Replicas[i].Votes {
			more = n
		}
	}
	switch {
	case r.Pending.Kind == Remove:
		if i := r.replica(r.Pending.Node); i >= 0 {
			return r.on[i]
		}
	case more != nil && r.Wish.To == more.Name:
		if i := r.replica(r.Wish.From); i >= 0 {
			return r.on[i]
		}
	case more != nil && good >= p.o.Replicas:
		return p.worst(r, more)
	case more == nil && good > p.o.Replicas:
		return p.worst(r, nil)
	}
	return nil
}

// balance moves replicas from full nodes to empty ones. A move never makes the one that gets more fuller than the
// one that has less then, so it comes to an end.
func (p *plan) balance() {
	var used, capacity int64
	var donors []*node
	for _, k := range p.racks {
		for _, n := range k.nodes {
			used, capacity = used+n.used+n.plan.used-n.plan.less, capacity+n.Capacity
			donors = append(donors, n)
		}
	}
	if capacity == 0 {
		return
	}
	least := margin * float64(used) / float64(capacity)
	slices.SortFunc(donors, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.full(), a.full()), strings.Compare(a.Name, b.Name))
	})
	for _, d := range donors {
		p.relieve(d, least)
	}
}

// relieve moves ranges away from a node to such that have less of their capacity used, by more than least.
func (p *plan) relieve(d *node, least float64) {
	for _, r := range d.ranges {
		if first := p.racks[0].nodes[0]; !p.receives(first) || d.full()-first.full() <= least {
			return
		}
		if r.class != whole || r.stepped || r.paired || r.Wish.To != "" || !p.sends(r.leader) {
			continue
		}
		w := float64(r.weight())
		below := d.full() - max(least, w/float64(d.Capacity))
		if mutant.On && mutant.Is("planner: no further than even") {
			below = d.full() + least
		}
		now := r.share(d.group, d)
		now.zones++ // no more than now
		to, _ := p.find(r, d, now, below)
		if to == nil || p.worst(r, to) != d {
			continue
		}
		if to.full()+w/float64(to.Capacity) <= below || mutant.On && mutant.Is("planner: no further than even") {
			if p.addTo(r, to, Balance) {
				d.plan.less += r.weight()
			}
		}
	}
}

// spreadLeaders evens out what nodes lead: those with more than the mean hand leads over, and
// those with less get some.
func (p *plan) spreadLeaders() {
	var up []*node
	var sum int64
	for _, n := range p.sorted {
		if n.State == Up {
			up = append(up, n)
			sum += n.leads()
		}
	}
	if len(up) < 2 {
		return
	}
	mean := sum / int64(len(up))
	least := int64(margin * float64(mean))
	slices.SortFunc(up, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.leads(), a.leads()), strings.Compare(a.Name, b.Name))
	})
	for _, n := range up {
		for _, r := range n.ranges {
			if n.leads() <= mean+least {
				break
			}
			if r.leader == n {
				p.handOver(r, nil)
			}
		}
	}
	slices.Reverse(up)
	for _, n := range up {
		for _, r := range n.ranges {
			if n.leads() >= mean-least {
				break
			}
			if r.leader != nil && r.leader != n {
				p.handOver(r, n)
			}
		}
	}
}

// handOver has another node lead a range, the one given or the one with the least to lead, if that makes the
// difference less.
func (p *plan) handOver(r *rng, to *node) {
	if r.class == pending || r.class == stuck || r.stepped || r.paired {
		return
	}
	best := to
	for i, n := range r.on {
		switch {
		case n == r.leader || !r.Replicas[i].Votes || n.State != Up:
			if n == to {
				return
			}
		case to == nil && (best == nil || n.leads() < best.leads()):
			best = n
		}
	}
	if best != nil && r.leader.leads()-best.leads() > 2*r.cost() {
		p.lead(r, best, Balance)
	}
}

// pairs returns the first of each two neighbours that are to be merged.
func (p *plan) pairs() (pairs []*rng) {
	small := slices.SortedFunc(slices.Values(p.small), func(a, b *rng) int { return cmp.Compare(a.place, b.place) })
	for i := 0; i+1 < len(small); i++ {
		l, r := small[i], small[i+1]
		if r.place != l.place+1 || l.class != whole || r.class != whole && r.class != begun || r.Apart || r.Wish.To != "" ||
			l.Size+r.Size > p.o.MaxSize/2 || p.o.MaxLoad > 0 && l.Load+r.Load > p.o.MaxLoad/2 {
			continue
		}
		l.paired, r.paired, r.partner = true, true, l
		pairs = append(pairs, l)
		i++
	}
	return pairs
}

// merge brings the replicas of a range to the nodes of the one before it, then its lead, then merges both.
func (p *plan) merge(l, r *rng) {
	if r.class != whole || l.stepped || r.stepped {
		return
	}
	for _, n := range l.on {
		if r.replica(n.Name) >= 0 {
			continue
		}
		if !p.waiting && n.State == Up && p.fits(n, r) && p.sends(r.leader) && p.receives(n) {
			p.addTo(r, n, Size)
		}
		return
	}
	switch {
	case len(r.on) != len(l.on):
	case r.leader != l.leader:
		p.lead(r, l.leader, Size)
	default:
		l.stepped = p.step(l, Step{Kind: Merge, Other: r.ID, Reason: Size})
		r.stepped = l.stepped
	}
}
