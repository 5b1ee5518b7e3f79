//go:build stalls

package bplus

import (
	"maps"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/stall"
)

// severalLeaves returns a tree of keys 0, 10, 20, … in a dozen leaves, more than are handed over
// at a time.
func severalLeaves(t *testing.T) (tree *Tree[uint64], model map[uint64]uint64) {
	t.Helper()
	tree, model = twoLeaves(t, 130, 57)
	for k := lastOf(model) + 10; len(model) < 2500; k += 10 {
		tree.Set(k, k+1)
		model[k] = k + 1
	}
	return tree, model
}

func snapshotOf(t *testing.T, tree *Tree[uint64]) *Snapshot[uint64] {
	t.Helper()
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// setEach sets some keys of each leaf: from first on, each 500th up to a key.
func setEach(tree *Tree[uint64], model map[uint64]uint64, first, to, val uint64) {
	for k := first; k < to; k += 500 {
		tree.Set(k, val)
		model[k] = val
	}
}

// closeWith closes a snapshot, and calls f when some of its states are handed over, or all.
func closeWith(t *testing.T, s *Snapshot[uint64], f func()) {
	t.Helper()
	begun := false
	undo := stall.Use(func(point string) {
		if point == "snapshot: some are handed over" && !begun {
			begun = true
			f()
		}
	})
	defer undo()
	s.Close()
	if !begun {
		f()
	}
}

// mustHaveStates fails the test unless a snapshot still has states that were not handed over.
func mustHaveStates(t *testing.T, s *Snapshot[uint64]) {
	t.Helper()
	for range s.moment.saved.all {
		return
	}
	t.Fatal("all states are handed over at once")
}

// While a snapshot is being closed, and some of its states are handed to an older one, others
// change the same leaves: the older one stays as it was.
func TestWritersBesideClosedSnapshot(t *testing.T) {
	const end = 25_000
	for name, change := range map[string]func(tree *Tree[uint64], model map[uint64]uint64){
		"lines": func(tree *Tree[uint64], model map[uint64]uint64) { setEach(tree, model, 250, end, 3) },
		"splits": func(tree *Tree[uint64], model map[uint64]uint64) {
			for k := uint64(5); k < end; k += 10 {
				tree.Set(k, 4)
				model[k] = 4
			}
		},
		"merges": func(tree *Tree[uint64], model map[uint64]uint64) {
			for k := uint64(500); k < end-1000; k += 10 {
				tree.Delete(k)
				delete(model, k)
			}
		},
		"batch": func(tree *Tree[uint64], model map[uint64]uint64) {
			applyBoth(t, tree, model, seedless(), 3000, end, 1)
		},
		"later snapshot": func(tree *Tree[uint64], model map[uint64]uint64) {
			later, was := snapshotOf(t, tree), maps.Clone(model)
			setEach(tree, model, 250, end, 5)
			checkView(t, later, was, seedless())
			later.Close()
			setEach(tree, model, 370, end, 6)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, model := severalLeaves(t)
			older, was := snapshotOf(t, tree), maps.Clone(model)
			setEach(tree, model, 0, end/2, 1) // the older one has lines of half of the leaves
			closed := snapshotOf(t, tree)
			setEach(tree, model, 120, end, 2) // and needs others of all
			closeWith(t, closed, func() {
				mustHaveStates(t, closed)
				change(tree, model)
				checkView(t, older, was, seedless())
			})
			checkView(t, older, was, seedless())
			check(t, tree, model)
			older.Close()
			nothingKept(t, tree)
			check(t, tree, model)
		})
	}
}

func nothingKept(t *testing.T, tree *Tree[uint64]) {
	t.Helper()
	if n := tree.Kept(); n != 0 {
		t.Errorf("%d bytes are kept without a snapshot", n)
	}
}

// Snapshots that are closed at once, in any order, leave the states that an older one needs,
// and nothing else.
func TestSnapshotsClosedTogether(t *testing.T) {
	const end = 25_000
	// Snapshots 1, 2 and 3 are closed, each while the one before it in this list is halfway.
	for _, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}, {0, 1, 2, 3}, {1, 0, 2, 3}, {3, 0, 2, 1}} {
		tree, model := severalLeaves(t)
		var all []*Snapshot[uint64]
		var models []map[uint64]uint64
		for i := range uint64(5) {
			all, models = append(all, snapshotOf(t, tree)), append(models, maps.Clone(model))
			if i > 0 { // so that the states of the first are those that others had
				setEach(tree, model, 60*i, end, i)
				setEach(tree, model, 400, end, i)
			}
		}
		checkOpen := func() {
			for i, s := range all {
				if !s.closed.Load() {
					checkView(t, s, models[i], seedless())
				}
			}
		}
		var closeFrom func(i int)
		closeFrom = func(i int) {
			if i == len(order) {
				return
			}
			closeWith(t, all[order[i]], func() {
				if i == 0 && order[0] > 0 { // the first has no states of its own
					mustHaveStates(t, all[order[i]])
				}
				checkOpen()
				closeFrom(i + 1)
				checkOpen()
			})
			checkOpen()
		}
		closeFrom(0)
		setEach(tree, model, 440, end, 9)
		checkOpen()
		for i, s := range all {
			if !slices.Contains(order, i) {
				s.Close()
				checkOpen()
			}
		}
		nothingKept(t, tree)
		check(t, tree, model)
	}
}

// A tree that is closed while snapshots of it are being closed gives its memory back when the
// last of them is, and not before.
func TestTreeClosedBesideSnapshots(t *testing.T) {
	const end = 25_000
	tree, model := severalLeaves(t)
	over := 0
	tree.OnFree(func([]uint64) {})
	tree.OnOver(func() { over++ })
	var all []*Snapshot[uint64]
	models := []map[uint64]uint64{}
	for i := range uint64(3) {
		all, models = append(all, snapshotOf(t, tree)), append(models, maps.Clone(model))
		setEach(tree, model, 60*i, end, i)
	}
	closeWith(t, all[2], func() {
		closeWith(t, all[1], func() {
			tree.Close()
			checkView(t, all[0], models[0], seedless())
			all[0].Close()
			if over > 0 {
				t.Error("memory is given back while snapshots have it")
			}
		})
		if over > 0 {
			t.Error("memory is given back while a snapshot is being closed")
		}
	})
	if over != 1 || tree.leaves.inUse()+tree.uppers.inUse()+tree.keeps.inUse() != 0 {
		t.Errorf("memory is given back %d times, with %d leaves, %d upper nodes and %d pieces left",
			over, tree.leaves.inUse(), tree.uppers.inUse(), tree.keeps.inUse())
	}
}
