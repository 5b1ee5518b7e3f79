package radix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// A look shows just the keys of the tree; nodes of a level are in order and stand
// over their own entries, and every way ends at its key.
func TestLookShowsTheTree(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 2, 300, 20_000} {
		tree, model := New(0), map[string]bool{}
		for i := range n {
			k := fmt.Sprintf("%x", rng.Uint64N(uint64(16*n)))
			switch i % 5 {
			case 1:
				k = k[:1+rng.IntN(len(k))] // a prefix of others
			case 2:
				k = "https://www.example.org/" + k
			case 3:
				k = strings.Repeat(k, 1+rng.IntN(40)) // some long ones
			}
			if _, _, err := tree.Set(k, 1); err != nil {
				t.Fatal(err)
			}
			model[k] = true
		}
		keys := slices.Sorted(maps.Keys(model))
		s, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		lookShows(t, tree.Look(), keys)
		lookShows(t, s.Look(), keys)
		if p := tree.Pulse(64); p.Entries != int64(len(keys)) || len(keys) > 1 && len(p.Sample) != min(64, len(keys)) {
			t.Errorf("%d entries, pulse of %d with %d nodes", len(keys), p.Entries, len(p.Sample))
		}
		s.Close()
		tree.Close()
	}
}

func lookShows(t *testing.T, look layout.Look, keys []string) {
	t.Helper()
	levels := look.Levels()
	leaves := len(levels) - 1
	if levels[leaves].Nodes != len(keys) {
		t.Fatalf("%d leaves are shown, there are %d", levels[leaves].Nodes, len(keys))
	}
	nodes := 0
	for level := range leaves {
		end, child := 0, 0
		for i := range levels[level].Nodes {
			n := look.Node(level, i)
			if n.First < end || n.End <= n.First || n.End > len(keys) || n.Entries != n.End-n.First {
				t.Fatalf("level %d, node %d stands over %d to %d, the one before up to %d", level, i, n.First, n.End, end)
			}
			if look.Over(level, n.First) != i || look.Over(level, n.End-1) != i || n.State != layout.Free || n.Used > n.Room {
				t.Fatalf("level %d, node %d: %+v", level, i, n)
			}
			if level+1 < leaves && n.Child != child {
				t.Fatalf("level %d, node %d: its first child is %d, not %d", level, i, n.Child, child)
			}
			if in := look.Inside(level, i); len(in.Keys) < 2 || len(in.Keys) < n.Used {
				t.Fatalf("level %d, node %d: %d links, and it says %d", level, i, len(in.Keys), n.Used)
			}
			end, child, nodes = n.End, child+n.Children, nodes+1
		}
	}
	for _, x := range look.(layout.Typed).Types() {
		nodes -= x.Nodes
		if x.Used > x.Room || x.Bytes == 0 {
			t.Errorf("%+v", x)
		}
	}
	if nodes != 0 {
		t.Errorf("%d nodes are of no type", nodes)
	}
	for i, key := range keys {
		shown := look.Inside(leaves, i).Keys[0].Text
		if shown != key[:min(len(key), mostShown)] {
			t.Fatalf("leaf %d has %q, not %q", i, shown, key)
		}
		way := look.Way(order.Probe{Text: key})
		if end := way[len(way)-1]; !end.Found || end.Node != i || end.Level != leaves {
			t.Fatalf("the way of %q ends at %+v", key, end)
		}
		for level, v := range way[:len(way)-1] {
			if n := look.Node(v.Level, v.Node); v.Level != level || i < n.First || i >= n.End {
				t.Fatalf("the way of %q, entry %d, passes %+v over %d to %d", key, i, v, n.First, n.End)
			}
		}
	}
	if way := look.Way(order.Probe{Text: "none such"}); len(keys) > 0 && way[len(way)-1].Found {
		t.Error("a key that is not there is found")
	}
}

// Looks and pulses of a tree that others change end, and do not fault.
func TestLookBesideWriters(t *testing.T) {
	rng := seed.Rand(t)
	tree := New(0)
	defer tree.Close()
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for i := uint64(1); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			tree.Set(fmt.Sprint(i*2654435761%50_000), i)
			tree.Delete(fmt.Sprint(i * 7919 % 50_000))
		}
	})
	for range 40 {
		look := tree.Look()
		levels := look.Levels()
		for range 20 {
			level := rng.IntN(len(levels))
			if n := levels[level].Nodes; n > 0 {
				i := rng.IntN(n)
				look.Node(level, i)
				look.Over(level, rng.IntN(levels[len(levels)-1].Nodes+1))
				look.Inside(level, i)
			}
			look.Way(order.Probe{Text: fmt.Sprint(rng.IntN(50_000))})
		}
		if p := tree.Pulse(64); len(p.Sample) > 64 {
			t.Fatalf("%d nodes of 64", len(p.Sample))
		}
	}
	close(stop)
	writer.Wait()
}
