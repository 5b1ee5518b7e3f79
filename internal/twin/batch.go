package twin

import (
	"errors"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Batch is operations as the caller has them, and where their answers go.
type Batch[C order.Code] struct {
	N     int
	Kinds bool // there are several kinds
	Kind  op.Kind
	// Fill sets keys, vals and kinds to those of operations from lo on. Any of them
	// is nil where it is not asked for: keys and vals may be asked for apart. Several
	// goroutines call it, and it may be asked again.
	Fill func(lo int, keys, vals []C, kinds []uint8)
	// Own is operations that are in page-locked memory just as Fill would set them:
	// they may travel from there. Other columns are nil.
	Own Columns[C]
	// Answer, unless nil, gets the results of operations from lo on, when Fill will
	// not be asked again: had alone where Old is false. Several goroutines call it.
	Answer func(lo int, old []C, had []uint8)
	Old    bool
	// Deleted, unless nil, is increased by the number of entries that there are less
	// after the batch.
	Deleted *int
	// CPU does all operations from lo to hi on the tree in host memory, or none, and
	// returns their keys. It is called where the GPU cannot, and again after an error.
	CPU func(lo, hi int) (changed []C, err error)
}

// less notes how many entries there are less than before.
func (b *Batch[C]) less(before, now int) {
	if b.Deleted != nil {
		*b.Deleted += before - now
	}
}

// Apply does all operations of a batch or none: on the GPU, if it takes the batch, else
// on the CPU, which also does the operations that a failing GPU leaves undone.
func (t *Twin[C]) Apply(b *Batch[C]) (err error) {
	if !t.TakesChanges(b.N) {
		t.Alone(func() (changed []C) {
			changed, err = b.CPU(0, b.N)
			return changed
		})
		return err
	}
	t.gpu.Lock()
	defer t.gpu.Unlock()
	for lo := 0; lo < b.N; { // as much as the log holds at a time
		hi := min(lo+t.most, b.N)
		t.Log.Begin(hi - lo)
		r, err := t.onGPU(b, lo, hi)
		if err != nil {
			t.Fail(err)
			return t.Instead(lo > 0, func() error {
				_, err := b.CPU(lo, b.N)
				return err
			})
		}
		t.Log.Accept(r, t.gpu.tree.Len())
		lo = hi
	}
	return nil
}

// onGPU does operations [lo, hi) on the GPU, and returns their effects. The
// caller holds all stripes.
func (t *Twin[C]) onGPU(b *Batch[C], lo, hi int) (*run[C], error) {
	if err := t.Down(); err != nil {
		return nil, err
	}
	if err := t.CatchUp(); err != nil {
		return nil, err
	}
	before := t.gpu.tree.Len()
	r, answers := &run[C]{t: t}, new(run[C])
	var effects *chunked.Effects
	part := &batch[C]{n: hi - lo, kinds: b.Kinds, kind: b.Kind, asks: b.Answer != nil, workers: t.workers}
	part.own = b.Own.slice(lo, hi)
	part.fill = func(at int, keys, vals []C, kinds []uint8) { b.Fill(lo+at, keys, vals, kinds) }
	part.fetch = func(ops *chunked.Ops) error {
		effects = ops.Effects
		return t.fetch(ops, b.Old, r, answers)
	}
	if err := t.gpu.apply(part); err != nil {
		t.spare.keep(r.parts)
		t.spare.keep(answers.parts)
		return nil, err
	}
	t.spare.keep(r.cut(effects.N))
	t.handOut(b, lo, answers)
	b.less(before, t.gpu.tree.Len())
	return r, nil
}

// handOut hands out the results of operations from lo on. They may overwrite the
// batch's values, which are no longer needed.
func (t *Twin[C]) handOut(b *Batch[C], lo int, answers *run[C]) {
	piece := t.gpu.staging.piece
	for _, s := range answers.parts {
		par.Run(t.workers, (s.n+piece-1)/piece, par.Func(func(p int) {
			from, to := p*piece, min((p+1)*piece, s.n)
			b.Answer(lo+from, part(s.vals, from, to), arena.As[uint8](arena.Bytes(s.kinds[from:to])))
		}))
		lo += s.n
	}
	t.spare.keep(answers.parts)
}

// fetch copies the effects of a batch into the log's memory, and its answers if
// the caller asks for them. All are there when it returns. A batch that travels
// all together does not wait for that, and does not know yet how many effects it
// has: it copies as many as there may be.
func (t *Twin[C]) fetch(ops *chunked.Ops, asksOld bool, r, answers *run[C]) error {
	e, st, whole := ops.Effects, t.gpu.side, ops.N <= t.gpu.staging.together
	n := e.N
	if whole {
		st, n = t.gpu.tree.Stream(), ops.N
		t.spare.keep(r.parts) // of the first time, if it is asked again
		t.spare.keep(answers.parts)
		r.parts, answers.parts = nil, nil
	}
	err := t.fetchRun(st, whole, r, ops.N, n, e.Keys, e.Vals, e.Kinds)
	if err == nil && ops.Old != 0 {
		old := ops.Old
		if !asksOld {
			old = 0
		}
		err = t.fetchRun(st, whole, answers, ops.N, ops.N, 0, old, ops.Had)
	}
	if whole {
		return err
	}
	return errors.Join(err, st.Synchronize())
}

// fetchRun queues copies of n keys and vals, unless these are 0, and kinds, of a
// batch of ops operations: one copy where all lie one behind the other on both
// sides.
func (t *Twin[C]) fetchRun(st device.Stream, whole bool, r *run[C], ops, n int, keys, vals, kinds device.Ptr) error {
	width := sizeOf[C]()
	r.n = n
	for lo := 0; lo < n; {
		s, err := t.spare.segment(n - lo)
		if err != nil {
			return err
		}
		r.parts = append(r.parts, s)
		s.n = min(s.room, n-lo)
		if column := device.Aligned(ops * width); whole && vals != 0 && s.lay(ops, column, keys != 0) {
			at, bytes := vals, column+n
			if keys != 0 {
				at, bytes = keys, 2*column+n
			}
			return st.CopyOut(s.memory[:bytes], at)
		}
		s.lay(s.room, s.room*width, true)
		if keys != 0 {
			if err := st.CopyOut(arena.Bytes(s.keys[:s.n]), keys+device.Ptr(lo*width)); err != nil {
				return err
			}
		}
		if vals == 0 {
			s.vals = nil
		} else if err := st.CopyOut(arena.Bytes(s.vals[:s.n]), vals+device.Ptr(lo*width)); err != nil {
			return err
		}
		if err := st.CopyOut(arena.Bytes(s.kinds[:s.n]), kinds+device.Ptr(lo)); err != nil {
			return err
		}
		lo += s.n
	}
	return nil
}

// Find looks n keys up on the GPU, and reports whether it could: fill sets keys
// from lo on, answer gets their values, and whether they were found, a bit each and
// the lowest first. Several goroutines call both; lo is a multiple of 8.
func (t *Twin[C]) Find(n int, fill func(lo int, keys []C), answer func(lo int, vals []C, found []byte)) bool {
	return t.read(func() error { return t.gpu.find(t.gpu.tree, n, t.workers, fill, answer) })
}
