package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando"
)

var gpuTreeEndToEnd = &experiment{
	name:     "gpu-tree-endtoend",
	about:    "SetBatch, GetBatch and Apply of a pando.Tree on the GPU, from host slices and back, beside the tree on the CPU",
	per:      "one operation, of batches done one after the other",
	caseName: "batch",
	sizes:    []int{64 * mega},
	queries:  64 * mega,
	threads:  []int{allCores()},
	extra:    append(gigaColumns[:2:2], extraColumn{colBatchMicros, number}),
	run:      runGPUTreeEndToEnd,
}

// colBatchMicros is the median time of one batch.
const colBatchMicros = "µs a batch"

// faceWay is a tree of Pando's face in one place. Another way to be on the GPU
// is one more of them.
type faceWay struct {
	name string
	opts []pando.Option
	gpu  bool
	twin bool // there is a tree in host memory, too, that follows
}

func faceWays(s *session) []faceWay {
	return []faceWay{
		{namePandoGPUTree, []pando.Option{pando.On(pando.GPU(s.gpu))}, true, true},
		{namePandoGPUTree + ", DeviceOnly", []pando.Option{pando.On(pando.GPU(s.gpu)), pando.DeviceOnly()}, true, false},
		{namePandoTree + ", CPU", []pando.Option{pando.On(pando.CPU)}, false, false},
	}
}

// faceTree is a tree of Pando's face with the entries of a dataset.
type faceTree[K pando.Key] struct {
	faceWay
	tree *pando.Tree[K, uint64]
}

// openFace returns nil, and prints a line with the reason, if the tree is not
// where it should be.
func openFace[K pando.Key](s *session, keys []K, vals []uint64, w faceWay, threads int) (*faceTree[K], error) {
	s.say("filling %s, %s ...", w.name, sizeText(len(keys)))
	tree, err := pando.TreeOf(keys, vals, append(w.opts[:len(w.opts):len(w.opts)], pando.Workers(threads))...)
	if err != nil {
		return nil, err
	}
	if st := tree.Stats(); w.gpu && st.Device != pando.GPU(s.gpu) {
		tree.Close()
		s.skipOnce("%s: the tree is on %v: %s", w.name, st.Device, st.Reason)
		return nil, nil
	}
	return &faceTree[K]{w, tree}, nil
}

// wait waits until everything is in host memory, as every read in order does.
func (t *faceTree[K]) wait() { t.tree.Min() }

// strayed returns an error if the GPU has been given up.
func (t *faceTree[K]) strayed() error {
	if st := t.tree.Stats(); t.gpu && st.Device.String() == pando.CPU.String() {
		return errors.New(st.Reason)
	}
	return nil
}

// batches does operations in batches, one after the other, and returns what they
// took. apart says that each begins when the one before is in host memory, and
// that this is not timed.
func (t *faceTree[K]) batches(ops, batch int, apart bool, work func(lo, hi int) error) (took time.Duration, err error) {
	for lo := 0; lo < ops; lo += batch {
		start := time.Now()
		if err := work(lo, min(lo+batch, ops)); err != nil {
			return 0, err
		}
		took += time.Since(start)
		if apart {
			t.wait()
		}
	}
	start := time.Now()
	t.wait()
	if !apart {
		took += time.Since(start)
	}
	return took, t.strayed()
}

// faceRow is a row of a tree where it is changed; for apart see batches.
type faceRow struct {
	name  string
	apart bool
}

func (t *faceTree[K]) rows() []faceRow {
	if !t.twin {
		return []faceRow{{t.name, false}}
	}
	return []faceRow{{t.name + ", until it returns", true}, {t.name + ", until in host memory", false}}
}

func runGPUTreeEndToEnd(s *session) error {
	if there, err := s.hasGPU(); !there {
		return err
	}
	err := forEachSize(s, func(d *dataset[uint64]) error {
		for _, threads := range s.threads {
			if err := faceContests(s, d, threads); err != nil {
				return err
			}
		}
		return nil
	})
	s.setGigas()
	return err
}

func faceContests(s *session, d *dataset[uint64], threads int) error {
	var trees []*faceTree[uint64]
	defer func() {
		for _, t := range trees {
			t.tree.Close()
		}
	}()
	for i, w := range faceWays(s) {
		if i > 0 && !s.named(w.name) {
			continue
		}
		t, err := openFace(s, d.keys, d.vals, w, threads)
		if err != nil {
			return err
		}
		if t == nil {
			return nil // without a GPU there is set-batch
		}
		trees = append(trees, t)
	}
	batches := s.upTo(faceBatches)
	if s.asked { // one size, for a machine that is there for a minute
		batches = []int{s.queries}
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
var faceBatches = append([]int{kilo, 4 * kilo, 16 * kilo}, gpuBatches[1:]...)

func faceBatchContests(s *session, d *dataset[uint64], batch, threads int, trees []*faceTree[uint64]) error {
	const several, most = 16, 8 * mega
	ops := min(several*batch, most)
	if !s.asked {
		ops = min(ops, s.queries)
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
	s     *session
	d     *dataset[uint64]
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

func newFaceBatch(s *session, d *dataset[uint64], batch, ops int) (_ *faceBatch, err error) {
	f := &faceBatch{s: s, d: d, batch: batch, b: drawUpserts(s.seed, d, ops),
		ops: make([]pando.Op, ops), asked: make([]uint64, ops), keys: make([]uint64, ops), got: make([]uint64, ops), found: make([]bool, ops)}
	step := strideOf(len(d.keys))
	spread(allCores(), ops, func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			f.asked[i] = d.keys[(i+7)*step%len(d.keys)]
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
func (f *faceBatch) compete(kind string, threads int, trees []*faceTree[uint64], do, own faceWork) error {
	c := &contest{n: len(f.d.keys), threads: threads, label: kind + ", " + sizeText(f.batch), ops: len(f.b.keys)}
	for _, t := range trees {
		work := func(lo, hi int) error { return do(f, t.tree, lo, hi) }
		rows := t.rows()
		if kind == "GetBatch" {
			rows = []faceRow{{t.name, false}}
		}
		for _, r := range rows {
			c.subjects = append(c.subjects, f.subject(t, r, kind, work))
		}
		if t.gpu && own != nil {
			r := faceRow{rows[0].name + ", from a Buffer", rows[0].apart}
			c.subjects = append(c.subjects, f.subject(t, r, kind, func(lo, hi int) error { return own(f, t.tree, lo, hi) }))
		}
	}
	c.subjects[0].reference = true
	for _, sub := range c.subjects {
		if err := errors.Join(sub.do(c.ops), sub.check(c.ops)); err != nil {
			return c.wrong(sub, err)
		}
	}
	if err := f.s.compete(c); err != nil {
		return err
	}
	for _, r := range f.s.latest(c) {
		r.set(colBatchMicros, r.Median*float64(min(f.batch, len(f.b.keys)))/1e3)
	}
	return nil
}

// subject does all batches; see faceTree.batches.
func (f *faceBatch) subject(t *faceTree[uint64], r faceRow, kind string, work func(lo, hi int) error) *subject {
	var took time.Duration
	return &subject{
		system: r.name, whole: true,
		do: func(ops int) (err error) {
			copy(f.got, f.b.vals)
			took, err = t.batches(ops, f.batch, r.apart, work)
			return err
		},
		clock: func() time.Duration { return took },
		check: func(ops int) error { return errors.Join(f.check(t, kind, ops), f.undo(t)) },
	}
}

// check looks at all keys that were set, and at all lookups.
func (f *faceBatch) check(t *faceTree[uint64], kind string, ops int) error {
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
	if got := t.tree.Len(); got != len(f.d.keys)+want {
		return fmt.Errorf("%d entries; there should be %d", got, len(f.d.keys)+want)
	}
	hits := t.tree.GetBatch(sets, f.got[:len(sets)], f.found[:len(sets)])
	if hits != len(sets) {
		return fmt.Errorf("%d of %d keys are there", hits, len(sets))
	}
	for i, k := range sets {
		if f.got[i] != valueOf(k) {
			return fmt.Errorf("key %d has %d; it should have %d", k, f.got[i], valueOf(k))
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
		if v := f.got[i]; !f.found[i] || v != valueOf(k) && v != before(k) {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v", k, v, f.found[i])
		}
		f.got[i], f.found[i] = 0, false
	}
	return nil
}

// undo takes out what was added, and gives the others other values.
func (f *faceBatch) undo(t *faceTree[uint64]) error {
	t.tree.DeleteBatch(f.added, nil)
	err := t.tree.SetBatch(f.there, f.were)
	t.wait()
	if n := t.tree.Len(); n != len(f.d.keys) {
		err = errors.Join(err, fmt.Errorf("%d entries after the batch was undone; there should be %d", n, len(f.d.keys)))
	}
	return err
}
