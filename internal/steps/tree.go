// Package steps records operations step by step, for people to look at: changes
// of a mutable tree on the CPU, and kernels on the interpreter under a seed. What
// is changed is always a small tree of its own, made of keys of the index at
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
	Note    string // what the tree was made of
}

// Insert records n inserts of keys that are not there, from one on upwards, into
// a tree of the given codes, which are in order. greatest is the greatest code.
func Insert(bits int, codes []uint64, key, greatest uint64, n int) (Tree, error) {
	if bits == 32 {
		return insert[uint32](codes, key, greatest, n)
	}
	return insert[uint64](codes, key, greatest, n)
}

func insert[C bplus.Code](codes []uint64, key, greatest uint64, n int) (Tree, error) {
	t, r, err := scratch[C](codes)
	if err != nil {
		return Tree{}, err
	}
	defer t.Close()
	fresh := absent(codes, key, greatest, min(n, MostInserts))
	for _, k := range fresh {
		t.NoteSearch(C(k))
		if _, _, err := t.Set(C(k), 0); err != nil {
			return Tree{}, err
		}
		t.Note(bplus.StepWrite, C(k))
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

// Batch records a batch of n random keys around the given codes. A seed chooses
// them.
func Batch(bits int, codes []uint64, greatest uint64, n int, seed uint64) (Tree, error) {
	if bits == 32 {
		return batch[uint32](codes, greatest, n, seed)
	}
	return batch[uint64](codes, greatest, n, seed)
}

func batch[C bplus.Code](codes []uint64, greatest uint64, n int, seed uint64) (Tree, error) {
	t, r, err := scratch[C](codes)
	if err != nil {
		return Tree{}, err
	}
	defer t.Close()
	lo, hi := uint64(0), greatest
	if len(codes) > 0 {
		lo, hi = codes[0], codes[len(codes)-1]
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	ops := &bplus.Ops[C]{Kind: bplus.Set}
	for range min(n, MostBatch) {
		ops.Keys = append(ops.Keys, C(within(rng, lo, hi)))
	}
	slices.Sort(ops.Keys)
	ops.Vals = make([]C, len(ops.Keys))
	t.Note(bplus.StepSort, 0)
	if err := t.Apply(ops, 1); err != nil {
		return Tree{}, err
	}
	rec := finish(t, r)
	rec.Note = fmt.Sprintf("A batch of %d keys into a tree of %d keys of the index.", len(ops.Keys), len(codes))
	return rec, nil
}

// within returns a number from lo to hi.
func within(rng *rand.Rand, lo, hi uint64) uint64 {
	if hi-lo == 1<<64-1 {
		return rng.Uint64()
	}
	return lo + rng.Uint64N(hi-lo+1)
}

// scratch makes a tree of codes that records.
func scratch[C bplus.Code](codes []uint64) (*bplus.Tree[C], *bplus.Recorder, error) {
	t, err := bplus.Load(len(codes), func(lo int, keys, vals []C) {
		for i := range keys {
			keys[i], vals[i] = C(codes[lo+i]), 0
		}
	}, 0, 1)
	if err != nil {
		return nil, nil, err
	}
	r := bplus.NewRecorder(MostEvents, true)
	t.Record(r)
	t.Note(bplus.StepStart, 0)
	return t, r, nil
}

// finish ends a recording.
func finish[C bplus.Code](t *bplus.Tree[C], r *bplus.Recorder) (rec Tree) {
	t.Note(bplus.StepFinished, 0)
	t.Record(nil)
	rec.Events, rec.Dropped = r.Events()
	return rec
}
