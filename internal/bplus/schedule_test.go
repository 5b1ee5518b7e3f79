//go:build stalls

package bplus

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Each test here is one order of events that must not do harm: while a goroutine
// is at a point of the protocol, something else happens.

// patience is how long a goroutine is held up for others that may be waiting
// for it.
const patience = 100 * time.Millisecond

// unhurried keeps memory from being reused until the test ends, so that no read
// is repeated for that.
func unhurried(t *testing.T) {
	t.Cleanup(epoch.SetPace(math.MaxInt64))
}

// meanwhile makes f run, on a goroutine of its own, when somebody first comes to
// a point. Whoever came there goes on when f is done, or waits for something. The
// function that it returns waits for the end of f; it fails the test if nobody
// came there.
func meanwhile(t *testing.T, point string, f func()) (wait func()) {
	t.Helper()
	return meanwhileNth(t, point, 1, f)
}

// meanwhileNth does so when somebody comes to the point for the nth time.
func meanwhileNth(t *testing.T, point string, nth int64, f func()) (wait func()) {
	t.Helper()
	return meanwhileAll(t, map[string]func(){point: f}, nth)
}

// meanwhileEach does so at several points.
func meanwhileEach(t *testing.T, at map[string]func()) (wait func()) {
	t.Helper()
	return meanwhileAll(t, at, 1)
}

func meanwhileAll(t *testing.T, at map[string]func(), nth int64) (wait func()) {
	t.Helper()
	if !epoch.Optimistic {
		t.Skip("a lock guards the tree")
	}
	type event struct {
		f    func()
		come atomic.Int64
		done chan struct{}
	}
	events := map[string]*event{}
	for point, f := range at {
		events[point] = &event{f: f, done: make(chan struct{})}
	}
	plain := simd.Use(simd.Go)
	undo := stall.Use(func(point string) {
		e := events[point]
		if e == nil || e.come.Add(1) != nth {
			return
		}
		go func() {
			defer close(e.done)
			e.f()
		}()
		select {
		case <-e.done:
		case <-time.After(patience):
		}
	})
	t.Cleanup(func() { undo(); plain() })
	return func() {
		t.Helper()
		for point, e := range events {
			if e.come.Load() < nth {
				t.Fatalf("nobody came to %q", point)
			}
			select {
			case <-e.done:
			case <-time.After(20 * time.Second):
				t.Fatalf("what happens at %q does not end", point)
			}
		}
	}
}

// twoLeaves returns a tree of keys 0, 10, 20, … in two leaves, the left one
// with so many entries, the right one with so many.
func twoLeaves(t *testing.T, left, right int) (tree *Tree[uint64], model map[uint64]uint64) {
	t.Helper()
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	model = map[uint64]uint64{}
	put := func(k uint64) {
		if _, _, err := tree.Set(k, k+1); err != nil {
			t.Fatal(err)
		}
		model[k] = k + 1
	}
	n := 0
	for ; tree.leaf(tree.first).info().next == nothing; n++ {
		put(uint64(n) * 10)
	}
	first := simd.Entries(tree.leaf(tree.first).loadWord())
	for ; n < first+right; n++ {
		put(uint64(n) * 10)
	}
	for i := left; i < first; i++ {
		k := uint64(i) * 10
		tree.Delete(k)
		delete(model, k)
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	a := tree.leaf(tree.first)
	if n := simd.Entries(a.loadWord()); n != left || tree.entries(a.info().next) != right {
		t.Fatalf("leaves with %d and %d entries", n, tree.entries(a.info().next))
	}
	return tree, model
}

// lastOf returns the greatest key.
func lastOf(model map[uint64]uint64) (last uint64) {
	for k := range model {
		last = max(last, k)
	}
	return last
}

func check(t *testing.T, tree *Tree[uint64], model map[uint64]uint64) {
	t.Helper()
	checkModel(t, tree, model, seedless())
}

// A leaf that was split after it was chosen to take another's entries does not
// take them: between the two there is another leaf now.
func TestSplitBesideMerge(t *testing.T) {
	for _, point := range []string{"held: merge chosen", "held: merge, parent told", "held: merge, sealed", "held: merge, entries read"} {
		t.Run(point, func(t *testing.T) {
			tree, model := twoLeaves(t, 130, 57)
			wait := meanwhile(t, point, func() {
				for k := uint64(1); k < 1000; k += 2 {
					tree.Set(k, k)
				}
			})
			last := lastOf(model)
			tree.Delete(last)
			delete(model, last)
			wait()
			for k := uint64(1); k < 1000; k += 2 {
				model[k] = k
			}
			check(t, tree, model)
		})
	}
}

// A cursor that has read a leaf while it was sealed does not go on with it when
// another leaf has taken its entries.
func TestCursorBesideMerge(t *testing.T) {
	for _, down := range []bool{false, true} {
		tree, model := twoLeaves(t, 130, 57)
		from := tree.leaf(tree.leaf(tree.first).info().next).info().low + 100
		var c *Cursor[uint64]
		var k, v uint64
		wait := meanwhileEach(t, map[string]func(){
			"held: merge, sealed": func() {
				if c = tree.Ascend(from); down {
					c = tree.Descend(from)
				}
				k, _, _ = c.Next()
			},
			"held: merge, absorbed": func() {
				k += 10
				if down {
					k -= 20
				}
				tree.Set(k, 7)
				model[k] = 7
				k, v, _ = c.Next()
			},
		})
		last := lastOf(model)
		tree.Delete(last)
		delete(model, last)
		wait()
		if v != model[k] {
			t.Errorf("down %t: the cursor returns %d → %d, which is %d", down, k, v, model[k])
		}
		check(t, tree, model)
	}
}

// A search that comes late to memory that was used again, where side links may
// lead in circles, begins anew.
func TestSearchBesideReuse(t *testing.T) {
	for _, read := range []struct {
		name string
		do   func(tree *Tree[uint64], key uint64)
	}{
		{"Get", func(tree *Tree[uint64], key uint64) { tree.Get(key) }},
		{"Rank", func(tree *Tree[uint64], key uint64) { tree.rank(key, false) }},
		{"At", func(tree *Tree[uint64], _ uint64) { tree.At(185) }},
	} {
		t.Run(read.name, func(t *testing.T) {
			hasty(t)
			tree, model := twoLeaves(t, 130, 57)
			tree.Rank(0, false)
			last := lastOf(model)
			x, _, _ := tree.seek(last)
			point := "seek: leaf found"
			if read.name != "Get" {
				point = "rank: leaf found"
			}
			wait := meanwhile(t, point, func() {
				tree.Delete(last)
				delete(model, last)
				tree.tidy(0)
				tree.tidy(0)
				l := tree.leaf(x)
				if l.loadWord()&unread != unread {
					t.Errorf("leaf %d is in use", x)
				}
				clear(unsafe.Slice((*byte)(l.pilot), simd.RegularPilot[uint64]())) // as if given back to the system, where that is leaf 0
				l.info().next = x
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				read.do(tree, last)
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatal("the search does not end")
			}
			wait()
			check(t, tree, model)
		})
	}
}

// A leaf that is not part of the tree yet, but has the number of one that was, is
// not counted.
func TestRecountBesideSplit(t *testing.T) {
	hasty(t)
	tree, model := twoLeaves(t, 130, 200)
	for k := lastOf(model) + 10; len(model) < 800; k += 10 { // more leaves to the right
		tree.Set(k, k)
		model[k] = k
	}
	low := tree.leaf(tree.leaf(tree.first).info().next).info().low
	for k := low + 10; tree.entries(tree.first) == 130; k += 10 { // until the first two are merged
		tree.Delete(k)
		delete(model, k)
	}
	tree.tidy(0) // two generations later the memory of the second is used again; it is still noted as one to be counted
	tree.tidy(0)
	for k := uint64(1); tree.entries(tree.first) < capacity[uint64]()*7/8; k += 2 {
		tree.Set(k, k)
		model[k] = k
	}
	wait := meanwhile(t, "split: right leaf filled", func() {
		tree.Rank(500, false)
		tree.Set(10, 99) // the split has to begin anew
		model[10] = 99
	})
	for k := uint64(501); k < 1000; k += 2 {
		tree.Set(k, k)
		model[k] = k
	}
	wait()
	check(t, tree, model)
}

// A snapshot of a tree that is closed meanwhile is refused: its memory may be
// another's.
func TestSnapshotBesideClose(t *testing.T) {
	tree, _ := twoLeaves(t, 130, 57)
	wait := meanwhile(t, "snapshot: tree is open", tree.Close)
	s, err := tree.Snapshot()
	wait()
	if !errors.Is(err, op.ErrClosed) {
		t.Errorf("Snapshot of a tree closed meanwhile: %v, %v", s, err)
	}
}

// A change that is given up puts a leaf's word back. A state that was being kept
// meanwhile is not kept, so the change that it is for begins anew.
func TestStateBesideChangeGivenUp(t *testing.T) {
	tree, model := twoLeaves(t, 130, 57)
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	x, _, word := tree.seek(20)
	l := tree.leaf(x)
	lock := func() { atomic.CompareAndSwapUint64(l.word(), word, word|simd.WordLocked) }
	unlock := func() { atomic.CompareAndSwapUint64(l.word(), word|simd.WordLocked, word) }
	var locked atomic.Bool
	plain := simd.Use(simd.Go)
	undo := stall.Use(func(point string) {
		switch {
		case point == "held: state copied" && !locked.Swap(true):
			lock()
			time.AfterFunc(patience, unlock)
		case point == "touch: state kept":
			unlock()
		}
	})
	tree.Set(20, 2)
	undo()
	plain()
	if tree.Kept() == 0 {
		t.Fatal("nothing is kept")
	}
	checkView(t, s, model, seedless())
	s.Close()
}

// A leaf is split between the two looks of a search that a mirror has brought
// there: the key has gone to another leaf, and is found there.
func TestSplitWhilePlacedReads(t *testing.T) {
	for _, point := range []string{"get placed: word read", "get placed: value read"} {
		t.Run(point, func(t *testing.T) {
			tree, err := New[uint64](0)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			const n = 256
			for i := range uint64(n) {
				tree.Set(10*i, i)
			}
			key := uint64(10 * (n - 20))
			x, line, word := tree.seek(key)
			wait := meanwhile(t, point, func() {
				for i := range uint64(n) {
					tree.Set(10*i+5, i)
				}
			})
			vals, found := make([]uint64, 1), make([]bool, 1)
			hits, stale := tree.GetPlaced([]uint64{key}, []uint64{uint64(x)<<8 | uint64(line)}, []uint64{word}, vals, found)
			wait()
			if hits != 1 || stale != 1 || !found[0] || vals[0] != key/10 {
				t.Fatalf("key %d is %d, %t; %d hits, %d repeated", key, vals[0], found[0], hits, stale)
			}
		})
	}
}
