package radix

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// drawOps returns a batch, and what it must report; the model is changed.
func drawOps(rng *rand.Rand, n int, m model, draw func(*rand.Rand) string) (o *Ops, old []uint64, found []bool) {
	o = &Ops{Keys: make([]string, n), Vals: make([]uint64, n), Old: make([]uint64, n), Found: make([]bool, n), Workers: 1 + rng.IntN(4)}
	if rng.IntN(2) == 0 {
		o.Kind = op.Kind(1 + rng.IntN(2))
	} else {
		o.Kinds = make([]op.Kind, n)
		for i := range o.Kinds {
			o.Kinds[i] = op.Kind(rng.IntN(3))
		}
	}
	for i := range o.Keys {
		k, v := draw(rng), rng.Uint64()
		o.Keys[i], o.Vals[i] = k, v
		was, had := m[k]
		old, found = append(old, was), append(found, had)
		switch o.kind(i) {
		case op.Set:
			m[k] = v
		case op.Delete:
			delete(m, k)
		}
	}
	return o, old, found
}

func TestBatches(t *testing.T) {
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) {
			rng := seed.Rand(t)
			tree, m := New(0), model{}
			defer tree.Close()
			var snap *Snapshot
			var kept model
			for round := range 40 {
				if round%10 == 5 { // the next batches go to a fork
					snap, kept = mustSnapshot(t, tree), maps.Clone(m)
				}
				o, old, found := drawOps(rng, rng.IntN(1200), m, draw)
				if err := tree.Apply(o); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(o.Old, old) || !slices.Equal(o.Found, found) {
					t.Fatal("a batch reports something else")
				}
				mustCheck(t, tree)
				if round%10 == 9 {
					compare(t, rng, snap, kept, draw)
					getBatch(t, rng, snap.GetBatch, kept, draw)
					snap.Close()
				}
			}
			getBatch(t, rng, func(keys []string, vals []uint64, found []bool, workers int) int {
				return tree.GetBatch(keys, vals, found, workers, nil)
			}, m, draw)
			compare(t, rng, tree, m, draw)
			empty(t, tree, m)
		})
	}
}

func mustSnapshot(t *testing.T, tree *Tree) *Snapshot {
	t.Helper()
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// getBatch looks up keys by the batch.
func getBatch(t *testing.T, rng *rand.Rand, get func([]string, []uint64, []bool, int) int, m model, draw func(*rand.Rand) string) {
	t.Helper()
	for _, n := range []int{0, 1, bucketKeys - 1, bucketKeys, bucketKeys + 1, 3000} {
		keys, vals, found := make([]string, n), make([]uint64, n), make([]bool, n)
		for i := range keys {
			keys[i] = draw(rng)
		}
		hits := get(keys, vals, found, 2)
		for i, k := range keys {
			v, ok := m[k]
			if vals[i] != v || found[i] != ok {
				t.Fatalf("key %q: %d, %t; want %d, %t", k, vals[i], found[i], v, ok)
			}
			if ok {
				hits--
			}
		}
		if hits != 0 {
			t.Fatalf("of %d keys %d hits too many", n, hits)
		}
	}
}

// A snapshot that is closed hands over what it has in pieces, and the tree is right between any two of
// them, also if others are closed meanwhile, or ages are dealt out anew.
func TestSnapshotsEndInPieces(t *testing.T) {
	fewAges(t)
	defer func(n int) { endPiece = n }(endPiece)
	endPiece = 3
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) {
			rng := seed.Rand(t)
			tree, m := New(0), model{}
			defer tree.Close()
			for range 8 {
				var snaps []*Snapshot
				var kept []model
				for range 4 {
					for range 30 {
						step1(t, rng, tree, m, draw)
					}
					snaps, kept = append(snaps, mustSnapshot(t, tree)), append(kept, maps.Clone(m))
				}
				for range 30 {
					step1(t, rng, tree, m, draw)
				}
				for _, i := range []int{3, 1, 2} {
					tree.detach(snaps[i].moment)
				}
				for more := true; more; {
					more = false
					for _, i := range []int{1, 2, 3} {
						more = tree.endSome(snaps[i].moment) || more
					}
					mustCheck(t, tree)
					if rng.IntN(3) == 0 { // the next age
						mustSnapshot(t, tree).Close()
					}
					step1(t, rng, tree, m, draw)
				}
				tree.ending = nil
				compare(t, rng, snaps[0], kept[0], draw)
				snaps[0].Close()
				mustCheck(t, tree)
			}
			if tree.Kept() != 0 {
				t.Errorf("%d bytes kept for no snapshot", tree.Kept())
			}
		})
	}
}

// Snapshots that overlap keep what they have, whatever order they are closed in.
func TestSnapshots(t *testing.T) {
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) {
			rng := seed.Rand(t)
			tree, m := New(0), model{}
			var snaps []*Snapshot
			var kept []model
			for range 60 {
				for range rng.IntN(120) {
					step1(t, rng, tree, m, draw)
				}
				snaps, kept = append(snaps, mustSnapshot(t, tree)), append(kept, maps.Clone(m))
				mustCheck(t, tree)
				for len(snaps) > rng.IntN(6) {
					i := rng.IntN(len(snaps))
					compare(t, rng, snaps[i], kept[i], draw)
					snaps[i].Close()
					snaps, kept = slices.Delete(snaps, i, i+1), slices.Delete(kept, i, i+1)
					mustCheck(t, tree)
				}
			}
			for _, s := range snaps {
				s.Close()
			}
			if tree.Kept() != 0 {
				t.Errorf("%d bytes kept for no snapshot", tree.Kept())
			}
			empty(t, tree, m)
			last := mustSnapshot(t, tree)
			tree.Close()
			compare(t, rng, last, model{}, draw)
			last.Close()
		})
	}
}

// A batch over the limit changes nothing, wherever it fails; so does a single
// operation.
func TestMemoryLimit(t *testing.T) {
	rng := seed.Rand(t)
	draw := keyMakers["one prefix"]
	part := int64(7)
	if !seed.Long() {
		part = 2
	}
	for limit := int64(200); limit < 60_000; limit += 1 + limit/part {
		tree, m := New(limit), model{}
		for range 30 {
			before := maps.Clone(m)
			o, _, _ := drawOps(rng, rng.IntN(100), m, draw)
			if err := tree.Apply(o); err != nil {
				m = before
			}
			k := draw(rng)
			if _, _, err := tree.Set(k, 1); err == nil {
				m[k] = 1
			}
			if !(o.Kinds == nil && o.Kind == op.Delete) && tree.Bytes() > limit {
				t.Fatalf("%d bytes, and the limit is %d", tree.Bytes(), limit)
			}
			settle(tree)
		}
		mustCheck(t, tree)
		compare(t, rng, tree, m, draw)
		empty(t, tree, m)
		tree.Close()
	}
}

// Allocation is denied at every place in turn.
func TestAllocationFails(t *testing.T) {
	s := seed.Of(t)
	fails := 60
	if !seed.Long() {
		fails = 20
	}
	for _, snapshot := range []bool{false, true} {
		for fail := range fails {
			rng := rand.New(rand.NewPCG(s, 1))
			tree, m := New(0), model{}
			draw := keyMakers["wide"]
			var snap *Snapshot
			calls := 0
			deny := func() bool { calls++; return calls-1 == fail }
			for _, p := range pools[node2:] {
				p.Deny(deny)
			}
			for round := range 60 {
				if snapshot && round%8 == 3 {
					snap = mustSnapshot(t, tree)
				}
				before := maps.Clone(m)
				k := draw(rng)
				if _, _, err := tree.Set(k, 5); err == nil {
					m[k], before[k] = 5, 5
				}
				o, _, _ := drawOps(rng, 50, m, draw)
				if err := tree.Apply(o); err != nil {
					m = before
				}
				if snapshot && round%8 == 7 {
					snap.Close()
				}
			}
			for _, p := range pools[node2:] {
				p.Deny(nil)
			}
			mustCheck(t, tree)
			compare(t, rng, tree, m, draw)
			tree.Close()
		}
	}
}

// What a batch was promised is not taken by others who write between its rows, and find
// that there is no more memory.
func TestPromiseIsKept(t *testing.T) {
	rng := seed.Rand(t)
	draw := func(rng *rand.Rand) string { return letters(rng, 6, "abcdefghijklmnopqrstuvwxyz") }
	tree, m := New(0), model{}
	defer tree.Close()
	for len(m) < 3000 { // so that writers take many slots at a time
		key := draw(rng)
		m[key] = rng.Uint64()
		if _, _, err := tree.Set(key, m[key]); err != nil {
			t.Fatal(err)
		}
	}
	o := &Ops{Kind: op.Set}
	for range 40_000 {
		key := "batch" + draw(rng)
		m[key] = rng.Uint64()
		o.Keys, o.Vals = append(o.Keys, key), append(o.Vals, m[key])
	}
	if err := tree.promise(nil, o); err != nil {
		t.Fatal(err)
	}
	for _, p := range pools[node2:] {
		p.Deny(func() bool { return true })
		defer p.Deny(nil)
	}
	own, denied := new(stock), 0
	for lo := 0; lo < len(o.Keys); lo += warmKeys {
		var rows []int32
		for i := lo; i < min(lo+warmKeys, len(o.Keys)); i++ {
			rows = append(rows, int32(i))
		}
		if err := tree.applyRows(o, rows, own); err != nil {
			t.Fatalf("after %d rows: %v", lo, err)
		}
		for range 200 {
			key, val := "other"+draw(rng), rng.Uint64()
			if _, _, err := tree.Set(key, val); err == nil {
				m[key] = val
			} else {
				denied++
			}
		}
	}
	tree.memory.empty(own)
	tree.unpromise()
	if denied == 0 {
		t.Error("nobody was denied memory")
	}
	mustCheck(t, tree)
	compare(t, rng, tree, m, draw)
}

// What was promised and is not used is promised still.
func TestUntakeKeepsPromise(t *testing.T) {
	tree := New(0)
	defer tree.Close()
	o := &Ops{Kind: op.Set, Keys: []string{strings.Repeat("x", mostShort+1)}, Vals: []uint64{1}}
	if err := tree.promise(nil, o); err != nil {
		t.Fatal(err)
	}
	promised := tree.slots[longClass].Promised()
	d := tree.enter()
	d.prepaid = true
	l, err := d.newLeaf(o.Keys[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := tree.slots[longClass].Promised(); n != promised-1 {
		t.Errorf("%d slots are promised after one was taken, want %d", n, promised-1)
	}
	d.untake(l)
	if n := tree.slots[longClass].Promised(); n != promised {
		t.Errorf("%d slots are promised after it was given back, want %d", n, promised)
	}
	d.prepaid = false
	tree.leave(d)
	tree.unpromise()
	mustCheck(t, tree)
}

// A batch whose Seen panics leaves a tree that is whole, and promises nothing.
func TestSeenPanics(t *testing.T) {
	for _, way := range []string{"beside", "small", "alone", "fork"} {
		t.Run(way, func(t *testing.T) {
			rng := seed.Rand(t)
			limit := int64(0)
			if way == "alone" {
				limit = 1 << 30
			}
			tree := New(limit)
			defer tree.Close()
			n := 3000
			if way == "small" {
				n = 50
			}
			o := &Ops{Workers: 4, Seen: func(int, uint64) { panic("seen") }}
			for i := range n {
				o.Keys = append(o.Keys, letters(rng, 5, "abcdefgh"))
				o.Vals = append(o.Vals, 1)
				o.Kinds = append(o.Kinds, []op.Kind{op.Set, op.Get}[i%2])
				if _, _, err := tree.Set(o.Keys[i], 1); err != nil {
					t.Fatal(err)
				}
			}
			if way == "fork" {
				defer mustSnapshot(t, tree).Close()
			}
			before := tree.Len()
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				tree.Apply(o)
			}()
			if mustCheck(t, tree); tree.Len() != before { // all keys were there
				t.Errorf("%d entries, want %d", tree.Len(), before)
			}
			if _, _, err := tree.Set("after", 1); err != nil {
				t.Fatal(err)
			}
			mustCheck(t, tree)
		})
	}
}

// Workers that change the same nodes of a fork lose nothing.
func TestForksBesideWorkers(t *testing.T) {
	hurry(t)
	rng := seed.Rand(t)
	draw := keyMakers["tree of prefixes"]
	tree, m := New(0), model{}
	defer tree.Close()
	for range 60 {
		snap := mustSnapshot(t, tree)
		o, old, found := drawOps(rng, 1200, m, draw)
		o.Workers = 4
		if err := tree.Apply(o); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.Old, old) || !slices.Equal(o.Found, found) {
			t.Fatal("a batch reports something else")
		}
		snap.Close()
	}
	mustCheck(t, tree)
	compare(t, rng, tree, m, draw)
}
