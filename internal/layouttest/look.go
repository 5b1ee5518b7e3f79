package layouttest

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// looksLike returns an error unless the look of a tree shows just these keys: each
// level's nodes stand over all of the last level, children belong to their
// parents, the keys of the last level are the keys, and the way of each that is
// asked ends where a search finds it.
func looksLike(tree any, keys, asked []order.Probe) error {
	s, ok := tree.(layout.Shown)
	if !ok {
		return fmt.Errorf("a %T cannot be looked at", tree)
	}
	look := s.Look()
	levels := look.Levels()
	if len(keys) == 0 {
		lookAround(tree, asked)
		return nil
	}
	for level := range levels {
		if err := standsOver(look, levels, level); err != nil {
			return fmt.Errorf("level %d of %d: %w", level, len(levels), err)
		}
	}
	var all []order.Probe
	for i := range levels[len(levels)-1].Nodes {
		in := look.Inside(len(levels)-1, i)
		if !in.Entries {
			return fmt.Errorf("node %d of the last level does not hold entries", i)
		}
		all = append(all, in.Keys...)
	}
	if len(all) != len(keys) {
		return fmt.Errorf("%d keys are shown, there are %d", len(all), len(keys))
	}
	for i, k := range keys {
		if k.Text = k.Text[:min(len(k.Text), 256)]; all[i] != k {
			return fmt.Errorf("key %d is shown as %v, want %v", i, all[i], k)
		}
	}
	return ways(look, keys, asked)
}

// standsOver checks the nodes of a level against those of the next and the last.
func standsOver(look layout.Look, levels []layout.Level, level int) error {
	first, child := 0, 0
	last := levels[len(levels)-1].Nodes
	for i := range levels[level].Nodes {
		n := look.Node(level, i)
		switch {
		case n.First != first || n.End <= n.First:
			return fmt.Errorf("node %d stands over %d to %d, the one before ended at %d", i, n.First, n.End, first)
		case n.Used < 0 || n.Used > n.Room:
			return fmt.Errorf("node %d has %d keys of %d", i, n.Used, n.Room)
		case level+1 < len(levels) && (n.Child != child || n.Children < 1):
			return fmt.Errorf("node %d has %d children from %d on, want them from %d on", i, n.Children, n.Child, child)
		case level+1 == len(levels) && n.Children != 0:
			return fmt.Errorf("node %d of the last level has %d children", i, n.Children)
		case look.Over(level, n.First) != i || look.Over(level, n.End-1) != i:
			return fmt.Errorf("node %d does not stand over %d and %d", i, n.First, n.End-1)
		}
		in := look.Inside(level, i)
		if len(in.Keys) != n.Used || in.Partials != nil && len(in.Partials) != n.Used {
			return fmt.Errorf("node %d shows %d keys and %d partial ones, has %d", i, len(in.Keys), len(in.Partials), n.Used)
		}
		if !slices.IsSortedFunc(in.Keys, compareProbes) {
			return fmt.Errorf("node %d of level %d: its keys are not in order", i, level)
		}
		first, child = n.End, n.Child+n.Children
	}
	if first != last || level+1 < len(levels) && child != levels[level+1].Nodes {
		return fmt.Errorf("nodes end at %d of %d, their children at %d", first, last, child)
	}
	return nil
}

// ways checks the ways of keys: each node is a child of the one before, and the
// last has the key's place.
func ways(look layout.Look, keys, asked []order.Probe) error {
	for _, key := range asked {
		rank, equal := slices.BinarySearchFunc(keys, key, compareProbes)
		for rank > 0 && keys[rank-1] == key {
			rank--
		}
		way := look.Way(key)
		for i, v := range way {
			if v.Level != i {
				return fmt.Errorf("the way of %v has level %d at step %d", key, v.Level, i)
			}
			if n := look.Node(v.Level, v.Node); i+1 < len(way) && n.Child+v.Slot != way[i+1].Node && key.Text == "" {
				return fmt.Errorf("the way of %v goes from child %d of node %d to node %d", key, v.Slot, v.Node, way[i+1].Node)
			}
		}
		end := way[len(way)-1]
		if at := look.Node(end.Level, end.Node).Entry + end.Slot; at != rank || end.Found != equal {
			return fmt.Errorf("the way of %v ends at entry %d (there: %v), want %d (%v)", key, at, end.Found, rank, equal)
		}
	}
	return nil
}

func compareProbes(a, b order.Probe) int {
	switch {
	case a.Code < b.Code || a.Code == b.Code && a.Text < b.Text:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// lookAround reads all that a look shows of a tree whose bytes may be anything.
func lookAround(tree any, asked []order.Probe) {
	look := tree.(layout.Shown).Look()
	for level, l := range look.Levels() {
		for i := range l.Nodes {
			look.Node(level, i)
			look.Inside(level, i)
		}
		if l.Nodes > 0 {
			look.Over(level, 0)
		}
	}
	for _, key := range asked {
		look.Way(key)
	}
}

// probes returns codes as keys without a type.
func probes[C layout.Code](codes []C) []order.Probe {
	out := make([]order.Probe, len(codes))
	for i, c := range codes {
		out[i].Code = uint64(c)
	}
	return out
}

// textProbes returns strings as keys without a type.
func textProbes(texts []string) []order.Probe {
	out := make([]order.Probe, len(texts))
	for i, s := range texts {
		out[i].Text = s
	}
	return out
}
