package twin

import (
	"sort"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
)

// stringRun is operations of a batch that the GPU has done, or is about to do, in
// page-locked memory: they travel from there, and are folded into the tree in host
// memory from there.
//
//	offsets, u32: n+1 │ values │ kinds, u8 │ bytes of all keys │ slots, u32 │ operations in their order, u32
//
// The last two are the GPU's order of the batch, by slot: that is how one key is
// found. There are no values where nothing is set, and no kinds where all are alike.
// Of a key that is too long for the GPU there are as many bytes as tell so.
type stringRun struct {
	f          *Strings
	memory     []byte
	n          int
	kind       op.Kind
	place      cuart.Place // by which slots were found
	offsets    []uint32
	vals       []byte
	kinds      []op.Kind
	bytes      []byte
	slots, ops []uint32
	layout     runLayout
}

// runLayout is where parts of a run begin.
type runLayout struct{ vals, kinds, bytes, slots, ops, end int }

// layOut returns the layout of n operations, with values of width bytes and keys of
// bytes together.
func layOut(n, width int, kinds bool, bytes int) (l runLayout) {
	l.vals = device.Aligned(4 * (n + 1))
	l.kinds = l.vals + device.Aligned(n*width)
	if l.bytes = l.kinds; kinds {
		l.bytes += device.Aligned(n)
	}
	l.slots = l.bytes + device.Aligned(bytes+8) // kernels read whole words
	l.ops = l.slots + device.Aligned(4*n)
	l.end = l.ops + device.Aligned(4*n)
	return l
}

// newRun returns memory for operations [p.lo, p.hi) of a batch.
func (f *Strings) newRun(b *StringBatch, p *stringPart) (*stringRun, error) {
	n, l := p.hi-p.lo, p.layout
	memory, err := f.locked.take(l.end)
	if err != nil {
		return nil, err
	}
	r := &stringRun{f: f, memory: memory, n: n, kind: b.Kind, layout: l}
	r.offsets = arena.As[uint32](memory[:4*(n+1)])
	if b.sets() {
		r.vals = memory[l.vals:][:n*f.ValBytes()]
	}
	if b.Kinds != nil {
		r.kinds = arena.As[op.Kind](memory[l.kinds:][:n])
	}
	r.bytes = memory[l.bytes:][:p.bytes]
	r.slots, r.ops = arena.As[uint32](memory[l.slots:][:4*n]), arena.As[uint32](memory[l.ops:][:4*n])
	return r, nil
}

func (r *stringRun) key(i int) string {
	part := r.bytes[r.offsets[i]:r.offsets[i+1]]
	return unsafe.String(unsafe.SliceData(part), len(part))
}

func (r *stringRun) kindOf(i int) op.Kind {
	if r.kinds != nil {
		return r.kinds[i]
	}
	return r.kind
}

func (r *stringRun) val(i int) uint64 {
	switch {
	case r.vals == nil:
		return 0
	case r.f.ValBytes() == 4:
		return uint64(arena.As[uint32](r.vals)[i])
	}
	return arena.As[uint64](r.vals)[i]
}

// Get returns the outcome of the run's last operation on a key. known is
// whether there is one.
func (r *stringRun) Get(key string) (val uint64, ok, known bool) {
	if len(key) > r.f.tree.Longest() { // host memory has it
		return 0, false, false
	}
	slot := uint32(r.place.Slot(key))
	end := sort.Search(r.n, func(i int) bool { return r.slots[i] > slot })
	for i := end - 1; i >= 0 && r.slots[i] == slot; i-- {
		at := int(r.ops[i])
		if kind := r.kindOf(at); kind != op.Get && r.key(at) == key {
			if kind == op.Set {
				return r.val(at), true, true
			}
			return 0, false, true
		}
	}
	return 0, false, false
}

// foldPiece is how many operations are folded at a time.
const foldPiece = 256 << 10

// Fold folds all operations into the tree in host memory, in their order.
func (r *stringRun) Fold() {
	for lo := 0; lo < r.n; lo += foldPiece {
		if ops := r.changes(lo, min(lo+foldPiece, r.n)); len(ops.Keys) > 0 {
			backlog.Insist(func() error { return r.f.cpu.Apply(ops) })
		}
	}
}

// changes returns those of operations [lo, hi) that change something in the GPU's
// tree, as the tree in host memory takes them. Keys stay where they are.
func (r *stringRun) changes(lo, hi int) *radix.Ops {
	o := &radix.Ops{Kind: r.kind, Workers: r.f.opts.Workers, Keys: make([]string, 0, hi-lo)}
	for i := lo; i < hi; i++ {
		kind, key := r.kindOf(i), r.key(i)
		if kind == op.Get || len(key) > r.f.tree.Longest() {
			continue
		}
		o.Keys = append(o.Keys, key)
		if r.kinds != nil {
			o.Kinds = append(o.Kinds, kind)
		}
		if r.vals != nil {
			o.Vals = append(o.Vals, r.val(i))
		}
	}
	return o
}

// Free keeps the memory for later.
func (r *stringRun) Free() { r.f.locked.give(r.memory) }

// Size returns the bytes of page-locked memory.
func (r *stringRun) Size() int { return lockedBytes(r.layout.end) }

var _ backlog.Run[string, uint64] = (*stringRun)(nil)
