package cuart

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
)

var gpuRadixEndToEnd = &contest.Experiment{
	Name:     "gpu-radix-endtoend",
	About:    "SetBatch and Apply of a pando.Tree of strings on the GPU, from Go strings and back, beside the tree on the CPU",
	Per:      "one operation, of batches done one after the other",
	CaseName: "keys, work, batch",
	Sizes:    []int{16 * contest.Mega},
	Queries:  4 * contest.Mega,
	Threads:  []int{contest.AllCores()},
	Extra:    append(contest.GigaColumns[:2:2], contest.ExtraColumn{Name: contest.ColBatchMicros, Format: contest.Number}),
	Run:      runGPURadixEndToEnd,
}

// radixFaceBatches are the operations of a batch.
var radixFaceBatches = []int{4 * contest.Kilo, 16 * contest.Kilo, 64 * contest.Kilo, contest.Mega, 4 * contest.Mega}

func runGPURadixEndToEnd(s *contest.Session) error {
	if there, err := rig.HasGPU(s); !there {
		return err
	}
	for _, n := range s.Sizes {
		for _, kind := range radixKinds {
			debug.FreeOSMemory() // frees the memory of the previous ones
			if !s.Room(kind.Label, n, 4*(kind.Bytes+data.StringHeader+data.TextValue), "use a smaller --n") {
				continue
			}
			for _, threads := range s.Threads {
				if err := radixFaceContests(s, kind, n, threads); err != nil {
					return err
				}
			}
		}
	}
	s.SetGigas()
	return nil
}

// radixFace is trees of strings, and strings that they have or are to get.
type radixFace struct {
	s     *contest.Session
	label string
	there []string // in the trees
	fresh []string // not in them
	trees []*ours.FaceTree[string]
}

func radixFaceContests(s *contest.Session, kind data.TextKind, n, threads int) error {
	const step = 8 // of eight keys one comes with the batches
	f := &radixFace{s: s, label: kind.Label}
	for i, k := range kind.Keys(n+n/(step-1), s.Seed) {
		if i%step == 0 {
			f.fresh = append(f.fresh, k)
		} else {
			f.there = append(f.there, k)
		}
	}
	defer func() {
		for _, t := range f.trees {
			t.Tree.Close()
		}
	}()
	vals := make([]uint64, len(f.there))
	for i := range vals {
		vals[i] = data.ValueOf(uint64(i))
	}
	for _, w := range ours.FaceWays(s) {
		if w.GPU && !w.Twin {
			continue // strings are in host memory, too
		}
		t, err := ours.OpenFace(s, f.there, vals, w, threads)
		if t == nil || err != nil {
			return err
		}
		f.trees = append(f.trees, t)
	}
	most := 2 * len(f.fresh)
	for _, size := range s.UpTo(radixFaceBatches) {
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
	n := max(batch, min(several*batch, f.s.Queries, 2*len(f.fresh)))
	b := &radixFaceBatch{f: f, batch: batch, keys: make([]string, n), at: make([]int, n), vals: make([]uint64, n), got: make([]uint64, n),
		ops: make([]pando.Op, n), found: make([]bool, n)}
	rng := data.NewRand(f.s.Seed, data.StreamTexts-8)
	for i := range b.keys {
		if b.ops[i] = pando.OpSet; i%2 == 0 {
			b.keys[i], b.at[i] = f.fresh[i/2%len(f.fresh)], -1
			b.added = append(b.added, b.keys[i])
		} else {
			at := rng.IntN(len(f.there))
			b.keys[i], b.at[i] = f.there[at], at
			b.old, b.were = append(b.old, b.keys[i]), append(b.were, data.ValueOf(uint64(at)))
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

// compete measures one kind of batch on all trees: until it has returned, and until
// everything is in host memory.
func (b *radixFaceBatch) compete(kind string, threads int, do func(t *pando.Tree[string, uint64], lo, hi int) error) error {
	f := b.f
	c := &contest.Contest{N: len(f.there), Threads: threads, Label: fmt.Sprintf("%s, %s, %s", f.label, kind, contest.SizeText(b.batch)), Ops: len(b.keys)}
	for _, t := range f.trees {
		for _, r := range t.Rows() {
			var took time.Duration
			c.Subjects = append(c.Subjects, &contest.Subject{
				System: r.Name, Whole: true,
				Do: func(ops int) (err error) {
					copy(b.got, b.vals)
					took, err = t.Batches(ops, b.batch, r.Apart, func(lo, hi int) error { return do(t.Tree, lo, hi) })
					return err
				},
				Clock: func() time.Duration { return took },
				Check: func(ops int) error { return errors.Join(b.check(t, kind, ops), b.undo(t)) },
			})
		}
	}
	c.Subjects[0].Reference = true
	for _, sub := range c.Subjects { // allocations that later batches reuse are not timed
		if err := errors.Join(sub.Do(c.Ops), sub.Check(c.Ops)); err != nil {
			return c.Wrong(sub, err)
		}
	}
	if err := f.s.Compete(c); err != nil {
		return err
	}
	for _, r := range f.s.Latest(c) {
		r.Set(contest.ColBatchMicros, r.Median*float64(min(b.batch, len(b.keys)))/1e3)
	}
	return nil
}

// check looks at what operations have found, and at all keys that were set.
func (b *radixFaceBatch) check(t *ours.FaceTree[string], kind string, ops int) error {
	last := make(map[string]uint64, ops)
	for i, k := range b.keys[:ops] {
		want, had := last[k]
		if b.at[i] >= 0 && !had {
			want, had = data.ValueOf(uint64(b.at[i])), true
		}
		if kind == "Apply" && (b.found[i] != had || b.got[i] != want) {
			return fmt.Errorf("operation %d, on %q, has found %d, %t; it should be %d, %t", i, k, b.got[i], b.found[i], want, had)
		}
		if b.ops[i] == pando.OpSet {
			last[k] = b.vals[i]
		}
	}
	if hits := t.Tree.GetBatch(b.keys[:ops], b.got[:ops], b.found[:ops]); hits != ops {
		return fmt.Errorf("%d of %d keys are there", hits, ops)
	}
	for i, k := range b.keys[:ops] {
		want, set := last[k]
		if !set {
			want = data.ValueOf(uint64(b.at[i]))
		}
		if b.got[i] != want {
			return fmt.Errorf("key %q has %d; it should have %d", k, b.got[i], want)
		}
	}
	return nil
}

// undo takes out what was added, and gives the others what they had.
func (b *radixFaceBatch) undo(t *ours.FaceTree[string]) error {
	t.Tree.DeleteBatch(b.added, nil)
	err := t.Tree.SetBatch(b.old, b.were)
	t.Wait()
	if n := t.Tree.Len(); n != len(b.f.there) {
		err = errors.Join(err, fmt.Errorf("%d entries after the batch was undone; there should be %d", n, len(b.f.there)))
	}
	return err
}
