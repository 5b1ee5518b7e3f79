// Package steps records operations step by step, for people to look at: changes
// of a mutable tree on the CPU, and kernels on the interpreter under a seed. The
// recorded tree is always a small one of its own, made of keys of the index at
// hand, so that looking at an index never changes it.
package steps

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/internal/bplus"
)

// Limits of a recording.
const (
	MostEvents  = 5000  // of a recording, then it ends
	MostInserts = 2000  // keys that are inserted one by one
	MostBatch   = 20000 // operations of a batch
)

// leaves is how many leaves a tree to be changed begins with: one less than a
// root can have, so that a few splits split the root, too.
const leaves = 63

// ScratchEntries is the number of entries that the tree of a recording begins
// with, for codes of a width.
func ScratchEntries(bits int) int {
	if bits == 32 {
		return leaves * 504
	}
	return leaves * 252
}

// Tree is a recording of changes of a mutable tree.
type Tree struct {
	Events  []bplus.Event
	Dropped int    // events that there was no room for
	Note    string // where the tree's keys come from
}

// Insert records n inserts of keys that are not there, from one on upwards, into
// a tree of the given codes, which are in order, and closes it. greatest is the greatest
// code.
func Insert(t bplus.Scratch, codes []uint64, key, greatest uint64, n int) (Tree, error) {
	defer t.Close()
	r := start(t)
	fresh := absent(codes, key, greatest, min(n, MostInserts))
	for _, k := range fresh {
		t.NoteSearch(k)
		if err := t.Set(k); err != nil {
			return Tree{}, err
		}
		t.Note(bplus.StepWrite, k)
	}
	rec := finish(t, r)
	rec.Note = fmt.Sprintf("%d keys, one by one, into a tree of %d keys of the index.", len(fresh), len(codes))
	return rec, nil
}

// absent returns at most n keys that are not among codes, from key on upwards; and
// below it, where there is no room above.
func absent(codes []uint64, key, greatest uint64, n int) (out []uint64) {
	at, _ := slices.BinarySearch(codes, key)
	for k := key; len(out) < n; k++ {
		if at < len(codes) && codes[at] == k {
			at++
		} else {
			out = append(out, k)
		}
		if k == greatest {
			break
		}
	}
	at, _ = slices.BinarySearch(codes, key)
	for k := key; len(out) < n && k > 0; {
		k--
		if at > 0 && codes[at-1] == k {
			at--
		} else {
			out = append(out, k)
		}
	}
	return out
}

// Batch records a batch of n random keys around the given codes, which a tree has, and
// closes it. A seed chooses them.
func Batch(t bplus.Scratch, codes []uint64, greatest uint64, n int, seed uint64) (Tree, error) {
	defer t.Close()
	r := start(t)
	lo, hi := uint64(0), greatest
	if len(codes) > 0 {
		lo, hi = codes[0], codes[len(codes)-1]
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	keys := make([]uint64, min(n, MostBatch))
	for i := range keys {
		keys[i] = within(rng, lo, hi)
	}
	slices.Sort(keys)
	t.Note(bplus.StepSort, 0)
	if err := t.Apply(keys); err != nil {
		return Tree{}, err
	}
	rec := finish(t, r)
	rec.Note = fmt.Sprintf("A batch of %d keys into a tree of %d keys of the index.", len(keys), len(codes))
	return rec, nil
}

// within returns a number from lo to hi.
func within(rng *rand.Rand, lo, hi uint64) uint64 {
	if hi-lo == 1<<64-1 {
		return rng.Uint64()
	}
	return lo + rng.Uint64N(hi-lo+1)
}

// start begins a recording.
func start(t bplus.Scratch) *bplus.Recorder {
	r := bplus.NewRecorder(MostEvents, true)
	t.Record(r)
	t.Note(bplus.StepStart, 0)
	return r
}

// finish ends a recording.
func finish(t bplus.Scratch, r *bplus.Recorder) (rec Tree) {
	t.Note(bplus.StepFinished, 0)
	t.Record(nil)
	rec.Events, rec.Dropped = r.Events()
	return rec
}
