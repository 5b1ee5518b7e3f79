package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pando-index/pando"
)

var gpuRadixEndToEnd = &experiment{
	name:     "gpu-radix-endtoend",
	about:    "SetBatch and Apply of a pando.Tree of strings on the GPU, from Go strings and back, beside the tree on the CPU",
	per:      "one operation, of batches done one after the other",
	caseName: "keys, work, batch",
	sizes:    []int{16 * mega},
	queries:  4 * mega,
	threads:  []int{allCores()},
	extra:    append(gigaColumns[:2:2], extraColumn{colBatchMicros, number}),
	run:      runGPURadixEndToEnd,
}

// radixFaceBatches are the operations of a batch.
var radixFaceBatches = []int{4 * kilo, 16 * kilo, 64 * kilo, mega, 4 * mega}

func runGPURadixEndToEnd(s *session) error {
	if there, err := s.hasGPU(); !there {
		return err
	}
	for _, n := range s.sizes {
		for _, kind := range radixKinds {
			debug.FreeOSMemory() // frees the memory of the previous ones
			if !s.room(kind.label, n, 4*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
				continue
			}
			for _, threads := range s.threads {
				if err := radixFaceContests(s, kind, n, threads); err != nil {
					return err
				}
			}
		}
	}
	s.setGigas()
	return nil
}

// radixFace is trees of strings, and strings that they have or are to get.
type radixFace struct {
	s     *session
	label string
	there []string // in the trees
	fresh []string // not in them
	trees []*faceTree[string]
}

func radixFaceContests(s *session, kind textKind, n, threads int) error {
	const step = 8 // of eight keys one comes with the batches
	f := &radixFace{s: s, label: kind.label}
	for i, k := range kind.keys(n+n/(step-1), s.seed) {
		if i%step == 0 {
			f.fresh = append(f.fresh, k)
		} else {
			f.there = append(f.there, k)
		}
	}
	defer func() {
		for _, t := range f.trees {
			t.tree.Close()
		}
	}()
	vals := make([]uint64, len(f.there))
	for i := range vals {
		vals[i] = valueOf(uint64(i))
	}
	for _, w := range faceWays(s) {
		if w.gpu && !w.twin {
			continue // strings are in host memory, too
		}
		t, err := openFace(s, f.there, vals, w, threads)
		if t == nil || err != nil {
			return err
		}
		f.trees = append(f.trees, t)
	}
	most := 2 * len(f.fresh)
	for _, size := range s.upTo(radixFaceBatches) {
		if err := f.contests(min(size, most), threads); err != nil {
			return err
		}
		if size >= most {
			break
		}
	}
	return nil
}

// radixFaceBatch is operations that are done in batches: half of the keys are new. In
// Apply every other one is a lookup of a key that is there.
type radixFaceBatch struct {
	f         *radixFace
	batch     int
	keys      []string
	at        []int // of those that are there, or -1
	vals, got []uint64
	ops       []pando.Op
	found     []bool
	added     []string
	old       []string // those that are there, and their values
	were      []uint64
}

func (f *radixFace) contests(batch, threads int) error {
	const several = 16
	n := max(batch, min(several*batch, f.s.queries, 2*len(f.fresh)))
	b := &radixFaceBatch{f: f, batch: batch, keys: make([]string, n), at: make([]int, n), vals: make([]uint64, n), got: make([]uint64, n),
		ops: make([]pando.Op, n), found: make([]bool, n)}
	rng := newRand(f.s.seed, streamTexts-8)
	for i := range b.keys {
		if b.ops[i] = pando.OpSet; i%2 == 0 {
			b.keys[i], b.at[i] = f.fresh[i/2%len(f.fresh)], -1
			b.added = append(b.added, b.keys[i])
		} else {
			at := rng.IntN(len(f.there))
			b.keys[i], b.at[i] = f.there[at], at
			b.old, b.were = append(b.old, b.keys[i]), append(b.were, valueOf(uint64(at)))
		}
		b.vals[i] = uint64(i) + 1
	}
	if err := b.compete("SetBatch", threads, func(t *pando.Tree[string, uint64], lo, hi int) error {
		return t.SetBatch(b.keys[lo:hi], b.vals[lo:hi])
	}); err != nil {
		return err
	}
	for i := range b.ops {
		if b.at[i] >= 0 {
			b.ops[i] = pando.OpGet
		}
	}
	return b.compete("Apply", threads, func(t *pando.Tree[string, uint64], lo, hi int) error {
		return t.Apply(b.ops[lo:hi], b.keys[lo:hi], b.got[lo:hi], b.found[lo:hi])
	})
}

// compete measures one kind of batch on all trees, as faceBatch.compete does.
func (b *radixFaceBatch) compete(kind string, threads int, do func(t *pando.Tree[string, uint64], lo, hi int) error) error {
	f := b.f
	c := &contest{n: len(f.there), threads: threads, label: fmt.Sprintf("%s, %s, %s", f.label, kind, sizeText(b.batch)), ops: len(b.keys)}
	for _, t := range f.trees {
		for _, r := range t.rows() {
			var took time.Duration
			c.subjects = append(c.subjects, &subject{
				system: r.name, whole: true,
				do: func(ops int) (err error) {
					copy(b.got, b.vals)
					took, err = t.batches(ops, b.batch, r.apart, func(lo, hi int) error { return do(t.tree, lo, hi) })
					return err
				},
				clock: func() time.Duration { return took },
				check: func(ops int) error { return errors.Join(b.check(t, kind, ops), b.undo(t)) },
			})
		}
	}
	c.subjects[0].reference = true
	for _, sub := range c.subjects { // allocations that later batches reuse are not timed
		if err := errors.Join(sub.do(c.ops), sub.check(c.ops)); err != nil {
			return c.wrong(sub, err)
		}
	}
	if err := f.s.compete(c); err != nil {
		return err
	}
	for _, r := range f.s.latest(c) {
		r.set(colBatchMicros, r.Median*float64(min(b.batch, len(b.keys)))/1e3)
	}
	return nil
}

// check looks at what operations have found, and at all keys that were set.
func (b *radixFaceBatch) check(t *faceTree[string], kind string, ops int) error {
	last := make(map[string]uint64, ops)
	for i, k := range b.keys[:ops] {
		want, had := last[k]
		if b.at[i] >= 0 && !had {
			want, had = valueOf(uint64(b.at[i])), true
		}
		if kind == "Apply" && (b.found[i] != had || b.got[i] != want) {
			return fmt.Errorf("operation %d, on %q, has found %d, %t; it should be %d, %t", i, k, b.got[i], b.found[i], want, had)
		}
		if b.ops[i] == pando.OpSet {
			last[k] = b.vals[i]
		}
	}
	if hits := t.tree.GetBatch(b.keys[:ops], b.got[:ops], b.found[:ops]); hits != ops {
		return fmt.Errorf("%d of %d keys are there", hits, ops)
	}
	for i, k := range b.keys[:ops] {
		want, set := last[k]
		if !set {
			want = valueOf(uint64(b.at[i]))
		}
		if b.got[i] != want {
			return fmt.Errorf("key %q has %d; it should have %d", k, b.got[i], want)
		}
	}
	return nil
}

// undo takes out what was added, and gives the others what they had.
func (b *radixFaceBatch) undo(t *faceTree[string]) error {
	t.tree.DeleteBatch(b.added, nil)
	err := t.tree.SetBatch(b.old, b.were)
	t.wait()
	if n := t.tree.Len(); n != len(b.f.there) {
		err = errors.Join(err, fmt.Errorf("%d entries after the batch was undone; there should be %d", n, len(b.f.there)))
	}
	return err
}
