package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
)

var gpuTreeEndToEnd = &contest.Experiment{
	Name:     "gpu-tree-endtoend",
	About:    "SetBatch, GetBatch and Apply of a pando.Tree on the GPU, from host slices and back, beside the tree on the CPU",
	Per:      "one operation, of batches done one after the other",
	CaseName: "batch",
	Sizes:    []int{64 * contest.Mega},
	Queries:  64 * contest.Mega,
	Threads:  []int{contest.AllCores()},
	Extra:    append(contest.GigaColumns[:2:2], contest.ExtraColumn{Name: contest.ColBatchMicros, Format: contest.Number}),
	Run:      runGPUTreeEndToEnd,
}

func runGPUTreeEndToEnd(s *contest.Session) error {
	if there, err := rig.HasGPU(s); !there {
		return err
	}
	err := data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		for _, threads := range s.Threads {
			if err := faceContests(s, d, threads); err != nil {
				return err
			}
		}
		return nil
	})
	s.SetGigas()
	return err
}

func faceContests(s *contest.Session, d *data.Dataset[uint64], threads int) error {
	var trees []*ours.FaceTree[uint64]
	defer func() {
		for _, t := range trees {
			t.Tree.Close()
		}
	}()
	for i, w := range ours.FaceWays(s) {
		if i > 0 && !s.Named(w.Name) {
			continue
		}
		t, err := ours.OpenFace(s, d.Keys, d.Vals, w, threads)
		if err != nil {
			return err
		}
		if t == nil {
			return nil // without a GPU there is set-batch
		}
		trees = append(trees, t)
	}
	batches := s.UpTo(faceBatches)
	if s.Asked { // one size, for a machine that is there for a minute
		batches = []int{s.Queries}
	}
	for _, batch := range batches {
		if err := faceBatchContests(s, d, batch, threads, trees); err != nil {
			return err
		}
	}
	return nil
}

// faceBatches are the operations of a batch: few enough that a tree on the CPU may
// be faster, too.
var faceBatches = append([]int{contest.Kilo, 4 * contest.Kilo, 16 * contest.Kilo}, gpuBatches[1:]...)

func faceBatchContests(s *contest.Session, d *data.Dataset[uint64], batch, threads int, trees []*ours.FaceTree[uint64]) error {
	const several, most = 16, 8 * contest.Mega
	ops := min(several*batch, most)
	if !s.Asked {
		ops = min(ops, s.Queries)
	}
	f, err := newFaceBatch(s, d, batch, max(batch, ops))
	if err != nil {
		return err
	}
	defer f.locked.Close()
	for _, k := range []struct {
		name string
		do   faceWork
		own  faceWork // from page-locked memory; nil for none
	}{{"SetBatch", (*faceBatch).set, (*faceBatch).setLocked}, {"GetBatch", (*faceBatch).get, nil}, {"Apply", (*faceBatch).apply, nil}} {
		if err := f.compete(k.name, threads, trees, k.do, k.own); err != nil {
			return err
		}
	}
	return nil
}

// faceWork does operations [lo, hi) in one batch.
type faceWork func(f *faceBatch, t *pando.Tree[uint64, uint64], lo, hi int) error

// faceBatch is operations that are done in batches, one after the other: half of
// the keys are new. For Apply every other operation is a lookup of a key that is
// there.
type faceBatch struct {
	s     *contest.Session
	d     *data.Dataset[uint64]
	batch int
	b     *treeBatch[uint64]
	added []uint64
	there []uint64 // keys, and their values before
	were  []uint64
	ops   []pando.Op
	asked []uint64 // keys of lookups
	keys  []uint64 // of Apply
	got   []uint64
	found []bool

	locked *pando.Buffer[uint64] // keys, and values behind them
}

func newFaceBatch(s *contest.Session, d *data.Dataset[uint64], batch, ops int) (_ *faceBatch, err error) {
	f := &faceBatch{s: s, d: d, batch: batch, b: drawUpserts(s.Seed, d, ops),
		ops: make([]pando.Op, ops), asked: make([]uint64, ops), keys: make([]uint64, ops), got: make([]uint64, ops), found: make([]bool, ops)}
	step := strideOf(len(d.Keys))
	contest.Spread(contest.AllCores(), ops, func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			f.asked[i] = d.Keys[(i+7)*step%len(d.Keys)]
			if f.keys[i], f.ops[i] = f.b.keys[i], pando.OpSet; i%4 >= 2 {
				f.keys[i], f.ops[i] = f.asked[i], pando.OpGet
			}
		}
		return 0
	})
	for i, k := range f.b.keys {
		if f.b.fresh[i] {
			f.added = append(f.added, k)
		} else {
			f.there, f.were = append(f.there, k), append(f.were, before(k))
		}
	}
	if f.locked, err = pando.NewBuffer[uint64](2 * ops); err != nil {
		return nil, err
	}
	copy(f.locked.Slice(), f.b.keys)
	copy(f.locked.Slice()[ops:], f.b.vals)
	return f, nil
}

func (f *faceBatch) set(t *pando.Tree[uint64, uint64], lo, hi int) error {
	return t.SetBatch(f.b.keys[lo:hi], f.b.vals[lo:hi])
}

// setLocked is set from page-locked memory.
func (f *faceBatch) setLocked(t *pando.Tree[uint64, uint64], lo, hi int) error {
	keys, vals := f.locked.Slice()[:len(f.b.keys)], f.locked.Slice()[len(f.b.keys):]
	return t.SetBatch(keys[lo:hi], vals[lo:hi])
}

func (f *faceBatch) get(t *pando.Tree[uint64, uint64], lo, hi int) error {
	if hits := t.GetBatch(f.asked[lo:hi], f.got[lo:hi], f.found[lo:hi]); hits != hi-lo {
		return fmt.Errorf("%d hits where there should be %d", hits, hi-lo)
	}
	return nil
}

func (f *faceBatch) apply(t *pando.Tree[uint64, uint64], lo, hi int) error {
	return t.Apply(f.ops[lo:hi], f.keys[lo:hi], f.got[lo:hi], f.found[lo:hi])
}

// compete measures one kind of batch on all trees: for those on the GPU until
// each batch has returned, with nothing of earlier ones under way, and in a row,
// until everything is in host memory. Each is done once before: allocations that
// later ones reuse are not timed.
func (f *faceBatch) compete(kind string, threads int, trees []*ours.FaceTree[uint64], do, own faceWork) error {
	c := &contest.Contest{N: len(f.d.Keys), Threads: threads, Label: kind + ", " + contest.SizeText(f.batch), Ops: len(f.b.keys)}
	for _, t := range trees {
		work := func(lo, hi int) error { return do(f, t.Tree, lo, hi) }
		rows := t.Rows()
		if kind == "GetBatch" {
			rows = []ours.FaceRow{{Name: t.Name, Apart: false}}
		}
		for _, r := range rows {
			c.Subjects = append(c.Subjects, f.subject(t, r, kind, work))
		}
		if t.GPU && own != nil {
			r := ours.FaceRow{Name: rows[0].Name + ", from a Buffer", Apart: rows[0].Apart}
			c.Subjects = append(c.Subjects, f.subject(t, r, kind, func(lo, hi int) error { return own(f, t.Tree, lo, hi) }))
		}
	}
	c.Subjects[0].Reference = true
	for _, sub := range c.Subjects {
		if err := errors.Join(sub.Do(c.Ops), sub.Check(c.Ops)); err != nil {
			return c.Wrong(sub, err)
		}
	}
	if err := f.s.Compete(c); err != nil {
		return err
	}
	for _, r := range f.s.Latest(c) {
		r.Set(contest.ColBatchMicros, r.Median*float64(min(f.batch, len(f.b.keys)))/1e3)
	}
	return nil
}

// subject does all batches; see ours.FaceTree.Batches.
func (f *faceBatch) subject(t *ours.FaceTree[uint64], r ours.FaceRow, kind string, work func(lo, hi int) error) *contest.Subject {
	var took time.Duration
	return &contest.Subject{
		System: r.Name, Whole: true,
		Do: func(ops int) (err error) {
			copy(f.got, f.b.vals)
			took, err = t.Batches(ops, f.batch, r.Apart, work)
			return err
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error { return errors.Join(f.check(t, kind, ops), f.undo(t)) },
	}
}

// check looks at all keys that were set, and at all lookups.
func (f *faceBatch) check(t *ours.FaceTree[uint64], kind string, ops int) error {
	if kind != "SetBatch" {
		if err := f.checkLookups(kind, ops); err != nil {
			return err
		}
	}
	sets, want := f.b.keys[:ops], f.b.added
	switch kind {
	case "GetBatch":
		return nil
	case "Apply":
		sets, want = nil, 0
		for i, op := range f.ops[:ops] {
			if op == pando.OpSet {
				sets = append(sets, f.keys[i])
				if f.b.fresh[i] {
					want++
				}
			}
		}
	}
	if got := t.Tree.Len(); got != len(f.d.Keys)+want {
		return fmt.Errorf("%d entries; there should be %d", got, len(f.d.Keys)+want)
	}
	hits := t.Tree.GetBatch(sets, f.got[:len(sets)], f.found[:len(sets)])
	if hits != len(sets) {
		return fmt.Errorf("%d of %d keys are there", hits, len(sets))
	}
	for i, k := range sets {
		if f.got[i] != data.ValueOf(k) {
			return fmt.Errorf("key %d has %d; it should have %d", k, f.got[i], data.ValueOf(k))
		}
	}
	return nil
}

// checkLookups looks at what lookups found: a key may have been set meanwhile.
func (f *faceBatch) checkLookups(kind string, ops int) error {
	for i := range ops {
		k := f.asked[i]
		if kind == "Apply" && f.ops[i] == pando.OpSet {
			continue
		}
		if v := f.got[i]; !f.found[i] || v != data.ValueOf(k) && v != before(k) {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v", k, v, f.found[i])
		}
		f.got[i], f.found[i] = 0, false
	}
	return nil
}

// undo takes out what was added, and gives the others other values.
func (f *faceBatch) undo(t *ours.FaceTree[uint64]) error {
	t.Tree.DeleteBatch(f.added, nil)
	err := t.Tree.SetBatch(f.there, f.were)
	t.Wait()
	if n := t.Tree.Len(); n != len(f.d.Keys) {
		err = errors.Join(err, fmt.Errorf("%d entries after the batch was undone; there should be %d", n, len(f.d.Keys)))
	}
	return err
}
