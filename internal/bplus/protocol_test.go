//go:build stalls

package bplus

import (
	"testing"

	"github.com/pando-index/pando/internal/op"
)

// The tests of this file each need one part of the protocol: without it they
// fail, which tests/mutants shows.

// A reader that has found a line, and not read it yet, finds its key even if the
// key moves to another line.
func TestReadWhileLinesMove(t *testing.T) {
	unhurried(t)
	get := func(tree *Tree[uint64], k uint64) bool { _, ok := tree.Get(k); return ok }
	batch := func(tree *Tree[uint64], k uint64) bool {
		return tree.GetBatch([]uint64{k}, make([]uint64, 1), nil, 1, nil) == 1
	}
	for _, c := range []struct {
		point string
		get   func(tree *Tree[uint64], k uint64) bool
	}{{"seek: word read", get}, {"get: leaf found", get}, {"seek: word read", batch}, {"get batch: line found", batch}} {
		t.Run(c.point, func(t *testing.T) {
			for k := uint64(0); k < 1300; k += 130 {
				tree, _ := twoLeaves(t, 130, 100)
				wait := meanwhile(t, c.point, func() {
					for i := uint64(1); i < 1300; i += 2 {
						tree.Set(i, i)
					}
				})
				ok := c.get(tree, k)
				wait()
				if !ok {
					t.Errorf("key %d is not found", k)
				}
			}
		})
	}
}

// Keys of a leaf that was split off another are found before any upper node
// knows of it.
func TestReadBeforeParentKnows(t *testing.T) {
	tree, model := twoLeaves(t, 130, 57)
	lost := 0
	wait := meanwhile(t, "split: parent not told", func() {
		for k := range model {
			if _, ok := tree.Get(k); !ok {
				lost++
			}
		}
	})
	for k := uint64(1); k < 1000; k += 2 {
		tree.Set(k, k)
	}
	wait()
	if lost > 0 {
		t.Errorf("%d keys are not found", lost)
	}
}

// A reader in an upper node finds its key even if the node's memory is used for
// another one before it goes on.
func TestReadWhileNodesAreReused(t *testing.T) {
	hasty(t)
	for round := range uint64(20) {
		tree, model := twoLeaves(t, 130, 57)
		for k := lastOf(model) + 10; len(model) < 40_000; k += 10 {
			tree.Set(k, k)
			model[k] = k
		}
		key := uint64(100_000) + round*10_000
		spread := func(from uint64, do func(k uint64)) { // nodes are replaced again and again
			for k := from + 1; k < from+20_000; k += 3 {
				do(k)
			}
		}
		wait := meanwhileNth(t, "seek: child found", 2, func() {
			for _, from := range []uint64{key - 10_000, 0, 300_000} {
				spread(from, func(k uint64) { tree.Set(k, k) })
			}
			spread(300_000, func(k uint64) {
				if k%10 != 0 {
					tree.Delete(k)
				}
			})
		})
		_, ok := tree.Get(key)
		wait()
		if !ok {
			t.Errorf("key %d is not found", key)
		}
		tree.Close()
	}
}

// A change that was computed before a snapshot was taken, and is made after, is
// not in it.
func TestSnapshotBesideWrite(t *testing.T) {
	tree, model := twoLeaves(t, 130, 57)
	tree.Set(20, 1)
	model[20] = 1
	var s *Snapshot[uint64]
	wait := meanwhile(t, "commit: computed", func() {
		var err error
		if s, err = tree.Snapshot(); err != nil {
			t.Error(err)
		}
	})
	tree.Set(20, 2)
	wait()
	checkView(t, s, model, seedless())
	s.Close()
}

// What a snapshot has is kept when the tree changes.
func TestSnapshotIsKept(t *testing.T) {
	tree, model := twoLeaves(t, 130, 57)
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tree.Set(20, 2)
	if tree.Kept() == 0 {
		t.Fatal("nothing is kept")
	}
	checkView(t, s, model, seedless())
	s.Close()
}

// Lines of a leaf that a snapshot takes from the leaf itself are those of its
// moment, even if they change while it puts them together with those kept.
func TestSnapshotReadBesideWrite(t *testing.T) {
	tree, model := twoLeaves(t, 130, 57)
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tree.Set(20, 2)
	// First the leaves of the moment are looked for, then they are read.
	wait := meanwhileNth(t, "held: kept lines read", 2, func() { tree.Set(1000, 2) })
	checkView(t, s, model, seedless())
	wait()
	s.Close()
}

// A writer that has found a leaf which dies before the change is made changes
// the one that has taken its entries.
func TestWriteBesideMerge(t *testing.T) {
	for _, point := range []string{"seek: leaf found", "seek: word read", "write: line read", "write: decided", "commit: computed"} {
		tree, model := twoLeaves(t, 130, 57)
		last := lastOf(model)
		key := last - 100
		wait := meanwhile(t, point, func() {
			tree.Delete(last)
			delete(model, last)
		})
		tree.Set(key, 5)
		model[key] = 5
		wait()
		check(t, tree, model)
	}
}

// Two changes of one line at the same time are both there afterwards.
func TestWritesOfOneLine(t *testing.T) {
	for _, point := range []string{"commit: computed", "commit: locked", "commit: checked", "commit: lines stored"} {
		tree, model := twoLeaves(t, 130, 57)
		wait := meanwhile(t, point, func() {
			for k := uint64(0); k < 100; k += 10 {
				if k != 50 {
					tree.Set(k, 6)
				}
			}
		})
		tree.Set(50, 5)
		wait()
		for k := uint64(0); k < 100; k += 10 {
			model[k] = 6
		}
		model[50] = 5
		check(t, tree, model)
	}
}

// Leaves are merged only if there is memory for the parent that forgets one of
// them.
func TestMergeWithoutMemory(t *testing.T) {
	tree, model := twoLeaves(t, 130, 200)
	for k := lastOf(model) + 10; len(model) < 800; k += 10 { // more leaves, so that the parent remains
		tree.Set(k, k)
		model[k] = k
	}
	tree.uppers.deny = func() bool { return true }
	for k := uint64(1400); k < 4700; k += 10 {
		tree.Delete(k)
		delete(model, k)
	}
	tree.uppers.deny = nil
	check(t, tree, model)
}

// A change of a leaf whose entries another is taking over is not lost.
func TestWriteIntoMergedLeaf(t *testing.T) {
	for _, point := range []string{"held: merge, parent told", "held: merge, sealed", "held: merge, entries read", "held: merge, absorbed"} {
		tree, model := twoLeaves(t, 130, 57)
		last := lastOf(model)
		key := last - 100
		wait := meanwhile(t, point, func() { tree.Set(key, 5) })
		tree.Delete(last)
		wait()
		delete(model, last)
		model[key] = 5
		check(t, tree, model)
	}
}

// A cursor returns what is there, though its leaf changes between two steps.
func TestCursorBesideWrite(t *testing.T) {
	tree, _ := twoLeaves(t, 130, 57)
	c := tree.Ascend(0)
	c.Next()
	tree.Delete(10)
	tree.Set(15, 3)
	if k, v, ok := c.Next(); k != 15 || v != 3 || !ok {
		t.Errorf("the cursor returns %d → %d, %t", k, v, ok)
	}
}

// A batch that goes from a leaf to the next by its side link sets all of its keys,
// and no others, though the next is split, or dies, and a snapshot is taken before it
// gets there.
func TestBatchBesideStructure(t *testing.T) {
	changes := map[string]func(tree *Tree[uint64], model map[uint64]uint64){
		"split": func(tree *Tree[uint64], model map[uint64]uint64) {
			for k := uint64(1302); k < 2600; k += 2 {
				tree.Set(k, k)
				model[k] = k
			}
		},
		"merge": func(tree *Tree[uint64], model map[uint64]uint64) {
			for k := uint64(1310); k < 5000; k += 10 {
				tree.Delete(k)
				delete(model, k)
			}
		},
	}
	for name, change := range changes {
		for point, nth := range map[string]int64{"batch: side link read": 1, "batch: places found": 1, "batch: leaf read": 2} {
			t.Run(name+", "+point, func(t *testing.T) {
				tree, model := twoLeaves(t, 130, 240)
				ops := &Ops[uint64]{Kind: op.Set}
				for k := uint64(401); k < 5000; k += 4 {
					ops.Keys, ops.Vals = append(ops.Keys, k), append(ops.Vals, k+7)
				}
				wait := meanwhileNth(t, point, nth, func() {
					change(tree, model)
					if s, err := tree.Snapshot(); err == nil {
						t.Cleanup(s.Close)
					}
				})
				if err := tree.Apply(ops, 1); err != nil {
					t.Fatal(err)
				}
				wait()
				for i, k := range ops.Keys {
					model[k] = ops.Vals[i]
				}
				check(t, tree, model)
			})
		}
	}
}
