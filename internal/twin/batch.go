package twin

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/order"
)

// Batch is operations as the caller has them, and where their answers go.
type Batch[C order.Code] struct {
	N     int
	Kinds bool // there are several kinds
	Kind  bplus.Kind
	// Fill sets keys, vals and kinds (nil where there is one kind) to those of
	// operations from lo on. Several goroutines call it, and it may be asked again.
	Fill func(lo int, keys, vals []C, kinds []uint8)
	// Answer, unless nil, gets what operations from lo on have found, when all is
	// done.
	Answer func(lo int, old []C, had []uint8)
	// CPU does all operations from lo to hi on the tree in host memory, and returns
	// their keys. It is called where the GPU cannot.
	CPU func(lo, hi int) (changed []C, err error)
}

// Apply does a batch: on the GPU, if it takes it. What the GPU has not done the
// CPU does.
func (t *Twin[C]) Apply(b *Batch[C]) (err error) {
	if t.opts.Changes == 0 || b.N < t.opts.Changes || t.down.Load() != nil {
		t.Alone(func() (changed []C) {
			changed, err = b.CPU(0, b.N)
			return changed
		})
		return err
	}
	t.gpu.Lock()
	defer t.gpu.Unlock()
	for lo := 0; lo < b.N; { // as much as the log holds at a time
		hi := min(lo+t.opts.Log, b.N)
		if err := t.applyPart(b, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// applyPart does operations [lo, hi).
func (t *Twin[C]) applyPart(b *Batch[C], lo, hi int) error {
	t.log.begin(hi - lo)
	r, err := t.onGPU(b, lo, hi)
	if err == nil {
		t.log.accept(r, t.gpu.tree.Len())
		return nil
	}
	t.fail(err)
	t.log.alone()
	defer t.log.end()
	_, err = b.CPU(lo, hi)
	return err
}

// onGPU does operations [lo, hi) on the GPU, and returns what they come to. The
// stripes are held.
func (t *Twin[C]) onGPU(b *Batch[C], lo, hi int) (*run[C], error) {
	if err := t.Down(); err != nil {
		return nil, err
	}
	if err := t.catchUp(); err != nil {
		return nil, err
	}
	part := &batch[C]{n: hi - lo, kinds: b.Kinds, kind: b.Kind, effects: new(chunked.Effects), workers: t.workers}
	part.fill = func(at int, keys, vals []C, kinds []uint8) { b.Fill(lo+at, keys, vals, kinds) }
	var old []C
	var had []uint8
	if b.Answer != nil { // handed out at the end: they may go where values came from, and the CPU may still need those
		old, had = make([]C, hi-lo), make([]uint8, hi-lo)
		part.answer = func(at int, o []C, h []uint8) {
			copy(old[at:], o)
			copy(had[at:], h)
		}
	}
	if err := t.gpu.apply(part); err != nil {
		return nil, err
	}
	r, err := t.fetch(part.effects)
	if err == nil && b.Answer != nil {
		b.Answer(lo, old, had)
	}
	return r, err
}

// fetch copies what a batch comes to into the log's memory.
func (t *Twin[C]) fetch(e *chunked.Effects) (*run[C], error) {
	r := &run[C]{n: e.N}
	err := t.fetchInto(r, e)
	if err != nil {
		t.log.back(r.parts)
	}
	return r, err
}

func (t *Twin[C]) fetchInto(r *run[C], e *chunked.Effects) error {
	st, width := t.gpu.tree.Stream(), sizeOf[C]()
	for lo := 0; lo < e.N; {
		s, err := t.log.segment()
		if err != nil {
			return err
		}
		r.parts = append(r.parts, s)
		s.n = min(len(s.keys), e.N-lo)
		if err := st.CopyOut(arena.Bytes(s.keys[:s.n]), e.Keys+device.Ptr(lo*width)); err != nil {
			return err
		}
		if err := st.CopyOut(arena.Bytes(s.vals[:s.n]), e.Vals+device.Ptr(lo*width)); err != nil {
			return err
		}
		if err := st.CopyOut(arena.Bytes(s.kinds[:s.n]), e.Kinds+device.Ptr(lo)); err != nil {
			return err
		}
		lo += s.n
	}
	return st.Synchronize()
}

// Find looks n keys up on the GPU, and reports whether it could: fill sets keys
// from lo on, answer gets their values. Several goroutines call both.
func (t *Twin[C]) Find(n int, fill func(lo int, keys []C), answer func(lo int, vals []C, found []uint8)) bool {
	b := &batch[C]{n: n, workers: t.workers, answer: answer}
	b.fill = func(lo int, keys, _ []C, _ []uint8) { fill(lo, keys) }
	return t.read(func() error { return t.gpu.find(t.gpu.tree, b) })
}

// refresh brings the GPU up to date for a search.
func (t *Twin[C]) refresh() error {
	if t.dirty.Load() == 0 {
		return nil
	}
	t.log.begin(0)
	defer t.log.end()
	if t.Pending() { // the stripes are held since before: nothing was noted
		return nil
	}
	return t.catchUp()
}
