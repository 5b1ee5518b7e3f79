package pandocluster

import (
	"slices"
	"time"

	"github.com/pando-index/pando/pandocluster/internal/planner"
)

// Planned returns an Options.Plan that keeps replicas votes of each range, on nodes of which none is missed or
// to hold nothing: it makes replicas anew that were on a node of which nothing was heard for down, two minutes if 0;
// it spreads replicas and leads evenly, and splits ranges that are too large. Package planner has the promises that it keeps.
func Planned(replicas int, down time.Duration) func(Picture) []Step {
	o := planner.Defaults()
	o.Replicas = replicas
	o.MinSize = 0 // ranges cannot be merged yet
	if down == 0 {
		down = 2 * time.Minute
	}
	p := &planning{planner: planner.New(o), down: down, nodes: map[string]planner.Node{}, ranges: map[uint64]planner.Range{}}
	return p.plan
}

// planning tells a planner what has changed from one picture to the next.
type planning struct {
	planner *planner.Planner
	down    time.Duration
	nodes   map[string]planner.Node
	ranges  map[uint64]planner.Range
}

// silent is how long nothing was heard of a node to which nothing is moved.
const silent = 5 * time.Second

// room is what a node is taken to have room for: nodes do not say yet.
const room = 1 << 50

func (p *planning) plan(pic Picture) (steps []Step) {
	there := map[string]bool{}
	for _, n := range pic.Nodes {
		x := planner.Node{Name: n.ID, Capacity: room}
		switch {
		case n.Gone:
			x.State = planner.Removed
		case n.Silent > p.down:
			x.State = planner.Down
		case n.Silent > silent:
			x.State = planner.Silent
		case n.Draining:
			x.State = planner.Draining
		}
		if there[n.ID] = true; p.nodes[n.ID] != x {
			p.nodes[n.ID] = x
			p.planner.SetNode(x)
		}
	}
	for id := range p.nodes {
		if !there[id] {
			delete(p.nodes, id)
			p.planner.RemoveNode(id)
		}
	}
	is := map[uint64]bool{}
	for i := range pic.Ranges {
		x := rangeOf(&pic.Ranges[i])
		is[x.ID] = true
		if old, ok := p.ranges[x.ID]; !ok || !same(&old, &x) {
			p.ranges[x.ID] = x
			p.planner.SetRange(x)
		}
	}
	for id := range p.ranges {
		if !is[id] {
			delete(p.ranges, id)
			p.planner.RemoveRange(id)
		}
	}
	for _, s := range p.planner.Steps() {
		steps = append(steps, Step{Kind: kinds[s.Kind], Range: s.Range, Node: s.Node})
	}
	return steps
}

// kinds are the planner's in words of this package. It merges nothing.
var kinds = [...]StepKind{planner.Add: AddReplica, planner.Promote: Promote, planner.Remove: RemoveReplica, planner.Lead: MoveLead, planner.Split: Split}

func rangeOf(r *RangeInfo) planner.Range {
	x := planner.Range{ID: r.ID, Lo: r.Lo, Size: r.Bytes, Leader: r.Leader, Whole: r.ID == mapRange || r.Keys < 2, Apart: true}
	for _, s := range r.Replicas {
		// Promote waits until a replica has caught up: so it may be asked for at once.
		x.Replicas = append(x.Replicas, planner.Replica{Node: s.Node, Votes: s.Voter, Ready: !s.Voter})
	}
	return x
}

// same reports whether two pictures of a range differ in nothing that a plan may depend on. Sizes within an eighth are taken for
// the same.
func same(a, b *planner.Range) bool {
	return a.Lo == b.Lo && a.Leader == b.Leader && a.Whole == b.Whole && slices.Equal(a.Replicas, b.Replicas) &&
		a.Size/8*7 <= b.Size && b.Size/8*7 <= a.Size
}
