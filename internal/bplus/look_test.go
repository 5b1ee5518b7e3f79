package bplus

import (
	"slices"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// A look shows just the keys of the tree, each level's nodes stand over all
// leaves, and every way ends at its key.
func TestLookShowsTheTree(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 300, 40_000} {
		tree, err := New[uint64](0)
		if err != nil {
			t.Fatal(err)
		}
		model := map[uint64]bool{}
		for range n {
			k := rng.Uint64N(uint64(4*n + 4))
			tree.Set(k, k)
			model[k] = true
		}
		var keys []uint64
		for k := range model {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		s, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		view, err := s.View(1)
		if err != nil {
			t.Fatal(err)
		}
		lookShows(t, tree.Look(), keys)
		lookShows(t, view.Look(), keys)
		view.Release()
		tree.Close()
	}
}

func lookShows(t *testing.T, look layout.Look, keys []uint64) {
	t.Helper()
	levels := look.Levels()
	leaves := len(levels) - 1
	for level := range levels {
		first := 0
		for i := range levels[level].Nodes {
			n := look.Node(level, i)
			if n.First != first || n.End <= first || look.Over(level, n.First) != i || look.Over(level, n.End-1) != i {
				t.Fatalf("level %d, node %d stands over %d to %d, not from %d on", level, i, n.First, n.End, first)
			}
			if level == leaves && (n.Hops != 0 || n.State != layout.Free) {
				t.Fatalf("leaf %d at rest: %+v", i, n)
			}
			first = n.End
		}
		if first != levels[leaves].Nodes {
			t.Fatalf("level %d stands over %d leaves of %d", level, first, levels[leaves].Nodes)
		}
	}
	var all []uint64
	for i := range levels[leaves].Nodes {
		for _, k := range look.Inside(leaves, i).Keys {
			all = append(all, k.Code)
		}
	}
	if !slices.Equal(all, keys) {
		t.Fatalf("%d keys are shown, there are %d", len(all), len(keys))
	}
	for i := 0; i < len(keys); i += 1 + len(keys)/500 {
		way := look.Way(order.Probe{Code: keys[i]})
		if end := way[len(way)-1]; !end.Found || look.Inside(leaves, end.Node).Keys[end.Slot].Code != keys[i] {
			t.Fatalf("the way of %d ends at %+v", keys[i], end)
		}
	}
}

// Looks and pulses of a tree that others change end, and do not fault.
func TestLookBesideWriters(t *testing.T) {
	rng := seed.Rand(t)
	tree, err := New[uint32](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		from := rng.Uint32()
		writers.Go(func() {
			for k := from; ; k += 2654435761 {
				select {
				case <-stop:
					return
				default:
				}
				tree.Set(k%200_000, k)
				tree.Delete((k >> 7) % 200_000)
			}
		})
	}
	last := uint64(0)
	for range 60 {
		look := tree.Look()
		levels := look.Levels()
		leaves := levels[len(levels)-1].Nodes
		for range 20 {
			look.Node(len(levels)-1, rng.IntN(leaves))
			look.Inside(len(levels)-1, rng.IntN(leaves))
			look.Way(order.Probe{Code: rng.Uint64N(200_000)})
		}
		p := tree.Pulse(64)
		if len(p.Sample) > 64 || p.Epoch == 0 || p.Leaves == 0 {
			t.Fatalf("%+v", p)
		}
		sum := uint64(0)
		for _, b := range p.Sample {
			sum += b.Version
		}
		last = max(last, sum)
	}
	close(stop)
	writers.Wait()
	if last == 0 {
		t.Error("no leaf has a version")
	}
}

// A recording of inserts that split a leaf has the steps of the protocol in their
// order, and its nodes make up the tree as it is in the end.
func TestRecordedSplit(t *testing.T) {
	n := 63 * fill[uint64]()
	tree, err := Load(n, func(lo int, keys, vals []uint64) {
		for i := range keys {
			keys[i], vals[i] = uint64(lo+i)*16, 1
		}
	}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	r := NewRecorder(10_000, true)
	tree.Record(r)
	tree.Note(StepStart, 0)
	for i := range 300 {
		k := uint64(n)*8 + uint64(i)
		tree.NoteSearch(k)
		tree.Set(k, 2)
		tree.Note(StepWrite, k)
	}
	tree.Record(nil)
	tree.Set(1, 1) // not recorded
	tree.Delete(1)
	events, dropped := r.Events()
	if dropped > 0 {
		t.Fatalf("%d events were dropped", dropped)
	}
	known := map[NodeID]Recorded{}
	splits, parents, roots := 0, 0, map[NodeID]bool{}
	var steps []Step
	for i, e := range events {
		for _, x := range e.Nodes {
			known[x.NodeID] = x
		}
		for _, id := range e.Gone {
			delete(known, id)
		}
		roots[e.Root] = true
		steps = append(steps, e.Step)
		switch e.Step {
		case StepSplit:
			splits++
			if right := known[e.At[1]]; right.Told || known[e.At[0]].Next != e.At[1].Number {
				t.Fatalf("event %d: the new leaf is known to a parent, or not to its neighbour: %+v", i, right)
			}
		case StepParent:
			parents++
		}
	}
	if splits < 3 || parents < 3 || len(roots) < 2 || !slices.Contains(steps, StepFill) || !slices.Contains(steps, StepCarry) {
		t.Errorf("%d splits, %d parents told, %d roots", splits, parents, len(roots))
	}
	entries := 0
	for id, x := range known {
		if !id.Upper {
			entries += x.Used
		}
		if !x.Told {
			t.Errorf("%+v is not part of the tree in the end", x)
		}
	}
	if entries != tree.Len() {
		t.Errorf("recorded leaves have %d entries, the tree %d", entries, tree.Len())
	}
}

// A look that is older than a split shows the leaf that came since as one that its
// parent knows of.
func TestOldLook(t *testing.T) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for k := range uint64(1000) {
		tree.Set(k*8, k)
	}
	look := tree.Look()
	for k := range uint64(8000) {
		tree.Set(k, k)
	}
	levels := look.Levels()
	for i := range levels[len(levels)-1].Nodes {
		if n := look.Node(len(levels)-1, i); n.Hops != 0 {
			t.Errorf("leaf %d: %d leaves are said to be unknown to their parents", i, n.Hops)
		}
	}
}

// A recorder takes no more than it has room for.
func TestRecorderIsBounded(t *testing.T) {
	tree, err := New[uint32](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	r := NewRecorder(100, false)
	tree.Record(r)
	for k := range uint32(50_000) {
		tree.Set(k*2654435761, k)
	}
	events, dropped := r.Events()
	if len(events) != 100 || dropped == 0 {
		t.Errorf("%d events kept, %d dropped", len(events), dropped)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// BenchmarkRecorder measures random inserts, single ones and batches, without a
// recorder, which is what everybody has. Beside one that is full it counts the places
// where it is looked for, per key; place/off is what one of them costs where there is
// none. The product of both is what the recorder costs when it is off.
func BenchmarkRecorder(b *testing.B) {
	for _, name := range []string{"off", "full"} {
		var r *Recorder
		with := func(b *testing.B) *Tree[uint64] {
			tree, err := New[uint64](0)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(tree.Close)
			if name == "full" {
				r = NewRecorder(0, false)
				tree.Record(r)
			}
			b.ReportAllocs()
			return tree
		}
		report := func(b *testing.B, keys int) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
			if r != nil {
				_, places := r.Events()
				b.ReportMetric(float64(places)/float64(b.N*keys), "places/key")
			}
		}
		b.Run("set/"+name, func(b *testing.B) {
			tree, rng := with(b), seed.Rand(b)
			for b.Loop() {
				tree.Set(rng.Uint64N(1<<20), 1)
			}
			report(b, 1)
		})
		b.Run("batch/"+name, func(b *testing.B) {
			tree, rng := with(b), seed.Rand(b)
			const batch = 4096
			ops := &Ops[uint64]{Kind: op.Set, Keys: make([]uint64, batch), Vals: make([]uint64, batch)}
			for b.Loop() {
				for i := range ops.Keys {
					ops.Keys[i] = rng.Uint64N(1 << 20)
				}
				slices.Sort(ops.Keys)
				if err := tree.Apply(ops, 1); err != nil {
					b.Fatal(err)
				}
			}
			report(b, batch)
		})
	}
	b.Run("place/off", func(b *testing.B) {
		tree, err := New[uint64](0)
		if err != nil {
			b.Fatal(err)
		}
		defer tree.Close()
		for b.Loop() {
			tree.Note(StepPiece, 0)
		}
	})
}
