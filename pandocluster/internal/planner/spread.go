package planner

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// sharing is what replicas share: pairs of one rack, and pairs of one zone. Fewer racks count
// before fewer zones.
type sharing struct{ racks, zones int }

func (a sharing) less(b sharing) bool {
	return a.racks < b.racks || a.racks == b.racks && a.zones < b.zones
}

// share returns what one more node would share with nodes of a range, but for one that leaves, which may be nil.
// Those that are to have nothing do not count.
func (r *rng) share(g group, leaves *node) (s sharing) {
	for _, n := range r.on {
		if n == leaves || !n.usable() {
			continue
		}
		if n.rack == g.rack {
			s.racks++
		}
		if n.zone == g.zone {
			s.zones++
		}
	}
	return s
}

// shares returns what the replicas of a range share.
func (r *rng) shares() (s sharing) {
	for i, a := range r.on {
		for _, b := range r.on[:i] {
			if !a.usable() || !b.usable() {
				continue
			}
			if a.rack == b.rack {
				s.racks++
			}
			if a.zone == b.zone {
				s.zones++
			}
		}
	}
	return s
}

// racks returns the racks of nodes that may have replicas, and how many each has.
func (p *Planner) racks() map[group]int {
	out := map[group]int{}
	for _, n := range p.sorted {
		if n.usable() {
			out[n.group]++
		}
	}
	return out
}

// survey computes what depends on how many nodes there are and where. Where that changes,
// all ranges are looked at again: it does so in small clusters alone.
func (p *Planner) survey() {
	racks, nodes := p.racks(), 0
	for _, n := range racks {
		nodes += n
	}
	want := min(p.o.Replicas, nodes)
	want = max(1, want-(1-want%2))
	apart := least(racks, p.o.Replicas+1)
	if want == p.want && slices.Equal(apart, p.apart) {
		return
	}
	p.want, p.apart = want, apart
	for _, r := range p.ranges {
		p.classify(r)
	}
}

// least returns, by number of replicas, what they share in the best case: each in its turn goes where it
// shares least.
func least(racks map[group]int, most int) []sharing {
	type rack struct {
		zone      string
		room, has int
	}
	in := map[string]int{} // by zone
	var all []*rack
	for _, g := range slices.SortedFunc(maps.Keys(racks), group.compare) {
		all = append(all, &rack{zone: g.zone, room: racks[g]})
	}
	out := make([]sharing, 1, most+1)
	for len(out) <= most {
		var best *rack
		var cost sharing
		for _, r := range all {
			if c := (sharing{r.has, in[r.zone]}); r.has < r.room && (best == nil || c.less(cost)) {
				best, cost = r, c
			}
		}
		if best == nil {
			break
		}
		best.has++
		in[best.zone]++
		last := out[len(out)-1]
		out = append(out, sharing{last.racks + cost.racks, last.zones + cost.zones})
	}
	return out
}

// sharesMore reports whether replicas of a range share more than they would have to.
func (p *Planner) sharesMore(r *rng) bool {
	usable := 0
	for _, n := range r.on {
		if n.usable() {
			usable++
		}
	}
	return usable < len(p.apart) && p.apart[usable].less(r.shares())
}

func (g group) compare(h group) int {
	return cmp.Or(strings.Compare(g.zone, h.zone), strings.Compare(g.rack, h.rack))
}
