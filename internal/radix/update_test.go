package radix

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// ledger is the values that were put into a tree, each of them once, and those that
// were told to be no longer there.
type ledger struct {
	next   atomic.Uint64
	mu     sync.Mutex
	in     map[uint64]string
	gone   map[uint64]string
	wanted func(format string, args ...any)
}

// fresh returns a value that no other key has had.
func (l *ledger) fresh() uint64 { return l.next.Add(1) }

// entry is a value that somebody has put in, or taken out, at a key.
type entry struct {
	key string
	val uint64
}

// book notes what one goroutine has put in, and what it has taken out.
func (l *ledger) book(in, out []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range in {
		l.in[e.val] = e.key
	}
	for _, e := range out {
		if _, twice := l.gone[e.val]; twice {
			l.wanted("value %d of %q was taken out twice", e.val, e.key)
		}
		l.gone[e.val] = e.key
	}
}

// settle compares the books with what is in the tree when nobody writes any more.
func (l *ledger) settle(tree *Tree) {
	c := tree.Cursor()
	for key, val, ok := c.Next(); ok; key, val, ok = c.Next() {
		l.book(nil, []entry{{key, val}})
	}
	for val, key := range l.in {
		if at, ok := l.gone[val]; !ok || at != key {
			l.wanted("value %d of %q was put in, and nobody has found it: %q, %t", val, key, at, ok)
		}
	}
	if len(l.in) != len(l.gone) {
		l.wanted("%d values were put in, and %d are there or were taken out", len(l.in), len(l.gone))
	}
}

// Each value that is put in is taken out once, whoever does what beside: no change is
// lost, and none is made to a leaf that is no longer part of the tree.
func TestUpdatesBesidePops(t *testing.T) {
	for _, with := range []string{"", "snapshots", "crowd"} {
		t.Run(with, func(t *testing.T) { updatesBesidePops(t, with) })
	}
}

func updatesBesidePops(t *testing.T, with string) {
	hurry(t)
	s := seed.Of(t)
	tree := New(0)
	defer tree.Close()
	books := &ledger{in: map[uint64]string{}, gone: map[uint64]string{}, wanted: t.Errorf}
	crowdDesks(tree)
	var stop atomic.Bool
	var wg sync.WaitGroup
	start := func(n int, f func(rng *rand.Rand)) {
		for g := range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for rng := rand.New(rand.NewPCG(s, uint64(g))); !stop.Load() && !t.Failed(); {
					f(rng)
				}
			}()
		}
	}
	start(6, func(rng *rand.Rand) {
		var in, out []entry
		for range 100 {
			i, o := booked(t, tree, rng, books)
			in, out = append(in, i...), append(out, o...)
		}
		books.book(in, out)
	})
	switch with {
	case "snapshots":
		start(1, func(rng *rand.Rand) {
			snap := mustSnapshot(t, tree)
			time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
			snap.Close()
			time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
		})
	case "crowd": // nodes around grow, shrink and give way
		start(2, func(rng *rand.Rand) {
			if k := keyNear(rng) + letters(rng, 1, "abcdefghijklmnopqrstuvwxyz"); rng.IntN(2) == 0 {
				in := []entry{{k, books.fresh()}}
				old, had, _ := tree.Set(k, in[0].val)
				books.book(in, takenOut(k, old, had))
			} else {
				old, had, _ := tree.Delete(k)
				books.book(nil, takenOut(k, old, had))
			}
		})
	}
	time.Sleep(besideTime() / 2)
	stop.Store(true)
	wg.Wait()
	mustCheck(t, tree)
	books.settle(tree)
}

// crowdDesks makes as many desks as a tree may have.
func crowdDesks(tree *Tree) {
	tree.lockWrite()
	defer tree.unlockWrite()
	tree.writers(mostDesks())
}

func takenOut(key string, val uint64, had bool) []entry {
	if !had {
		return nil
	}
	return []entry{{key, val}}
}

// keyNear returns one of a few keys, some of which are prefixes of others.
func keyNear(rng *rand.Rand) string { return "common" + letters(rng, rng.IntN(4), "ab") }

// booked does something, and returns what it has put in and taken out.
func booked(t *testing.T, tree *Tree, rng *rand.Rand, books *ledger) (in, out []entry) {
	k := keyNear(rng)
	switch rng.IntN(10) {
	case 0, 1:
		in = []entry{{k, books.fresh()}}
		old, had, err := tree.Set(k, in[0].val)
		if out = takenOut(k, old, had); err != nil {
			t.Error(err)
		}
	case 2:
		old, had, err := tree.Delete(k)
		if out = takenOut(k, old, had); err != nil {
			t.Error(err)
		}
	case 3, 4, 5:
		return updated(t, tree, rng, books, k)
	case 6, 7:
		k, old, had, err := tree.Pop(rng.IntN(2) == 0)
		if out = takenOut(k, old, had); err != nil {
			t.Error(err)
		}
	case 8:
		return applied(t, tree, rng, books)
	case 9:
		tree.Get(k)
		runtime.Gosched()
	}
	return in, out
}

// updated is an Update whose function adds, deletes or keeps.
func updated(t *testing.T, tree *Tree, rng *rand.Rand, books *ledger, k string) (in, out []entry) {
	was, there, calls, keep := uint64(0), false, 0, rng.IntN(4) > 0
	val := books.fresh()
	old, had, err := tree.Update(k, func(old uint64, had bool, _ uint64) (uint64, bool) {
		was, there = old, had
		if calls++; rng.IntN(8) == 0 {
			runtime.Gosched()
		}
		return val, keep
	})
	if err != nil || calls == 0 || old != was || had != there {
		t.Errorf("Update(%q) was %d, %t, %v; its function was told %d, %t in call %d", k, old, had, err, was, there, calls)
	}
	if keep {
		in = []entry{{k, val}}
	}
	return in, takenOut(k, old, had)
}

// applied is a batch of a few operations.
func applied(t *testing.T, tree *Tree, rng *rand.Rand, books *ledger) (in, out []entry) {
	n := 1 + rng.IntN(4)
	o := &Ops{Keys: make([]string, n), Kinds: make([]op.Kind, n), Vals: make([]uint64, n), Old: make([]uint64, n), Found: make([]bool, n)}
	for i := range n {
		o.Keys[i], o.Kinds[i], o.Vals[i] = keyNear(rng), op.Kind(rng.IntN(3)), books.fresh()
		if o.Kinds[i] == op.Set {
			in = append(in, entry{o.Keys[i], o.Vals[i]})
		}
	}
	if err := tree.Apply(o); err != nil {
		t.Error(err)
	}
	for i, k := range o.Keys {
		if o.Kinds[i] != op.Get {
			out = append(out, takenOut(k, o.Old[i], o.Found[i])...)
		}
	}
	return in, out
}
