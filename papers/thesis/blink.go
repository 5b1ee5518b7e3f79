package thesis

import (
	"errors"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -I../../internal/device/kernel -S testdata/blinkparts.cu -o testdata/blinkparts.ptx

// Blink is the thesis' latched tree on a device (docs/latches.md): keys, and
// values of the same width. Its methods must not be called at once; only the
// operations of a batch run at once.
type Blink[C simd.Code] struct {
	Tree    BlinkMemory
	Shape   BlinkShape
	Kernels Kernels

	d      device.Device
	st     device.Stream
	params Params
	lent   []device.Ptr // for the batch under way
	own    bool         // the kernels
}

// NewBlink returns an empty tree with nodes of order pairs, 16 or 32, and memory
// for the given number of nodes. It loads the kernels, which takes a driver
// seconds, and unloads them at the end.
func NewBlink[C simd.Code](d device.Device, order, nodes int) (*Blink[C], error) {
	set, err := kernel.LoadOnly(d, BlinkSource)
	if err != nil {
		return nil, err
	}
	b, err := NewBlinkOf[C](d, set, order, nodes)
	if err != nil {
		return nil, errors.Join(err, set.Unload())
	}
	b.own = true
	return b, nil
}

// NewBlinkOf is NewBlink with kernels that are loaded (BlinkSource), and
// stay so.
func NewBlinkOf[C simd.Code](d device.Device, set *kernel.Set, order, nodes int) (*Blink[C], error) {
	var c C
	b := &Blink[C]{d: d, Kernels: Kernels{set}, Shape: BlinkShape{Bits: 8 * int(unsafe.Sizeof(c)), Order: order}}
	b.Tree.Capacity, b.Tree.How = uint32(nodes), BlinkLinks
	err := b.open()
	if err == nil {
		err = b.Load(nil, nil, order)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Blink[C]) open() (err error) {
	if b.st, err = b.d.NewStream(); err != nil {
		return err
	}
	if b.Tree.Nodes, err = b.d.Alloc(int(b.Tree.Capacity) * b.Shape.NodeBytes()); err != nil {
		return err
	}
	b.Tree.State, err = b.d.Alloc(8)
	return err
}

// Close frees the tree's memory.
func (b *Blink[C]) Close() (err error) {
	for _, p := range append(b.lent, b.Tree.Nodes, b.Tree.State) {
		if p != 0 {
			err = errors.Join(err, b.d.Free(p))
		}
	}
	if b.own {
		err = errors.Join(err, b.Kernels.Set.Unload())
	}
	if b.st != nil {
		err = errors.Join(err, b.st.Close())
	}
	return err
}

// lend returns device memory with a copy of a slice, until the batch ends.
func lend[C simd.Code, T any](b *Blink[C], s []T) (device.Ptr, error) {
	bytes := arena.Bytes(s)
	p, err := b.d.Alloc(max(len(bytes), 4))
	if err != nil {
		return 0, err
	}
	b.lent = append(b.lent, p)
	return p, b.st.CopyIn(p, bytes)
}

// end waits for a batch and frees its memory.
func (b *Blink[C]) end(err error) error {
	err = errors.Join(err, b.st.Synchronize())
	for _, p := range b.lent {
		err = errors.Join(err, b.d.Free(p))
	}
	b.lent = nil
	return err
}

// Load replaces the tree's contents by ascending, distinct keys, with fill of
// them a node.
func (b *Blink[C]) Load(keys, vals []C, fill int) error {
	k, err := lend(b, keys)
	v, errv := lend(b, vals)
	if err = errors.Join(err, errv); err == nil {
		_, err = b.Kernels.Build(b.st, &b.params, &b.Tree, b.Shape, k, v, len(keys), fill)
	}
	return b.end(err)
}

// Apply carries out operations at once, in no order but that of 16 that stand
// side by side. vals has the values to set, and gets those that were there.
func (b *Blink[C]) Apply(ops []BlinkOp, keys, vals []C) ([]BlinkOutcome, error) {
	return b.batch(false, ops, keys, vals)
}

// Put sets values, by the kernel that does nothing else.
func (b *Blink[C]) Put(keys, vals []C) ([]BlinkOutcome, error) {
	return b.batch(false, nil, keys, vals)
}

// Get sets vals to the values of keys, by the kernel that does nothing else.
func (b *Blink[C]) Get(keys, vals []C) ([]BlinkOutcome, error) {
	return b.batch(true, nil, keys, vals)
}

// One carries out one operation by one tile, in one launch, and returns the value
// that was there.
func (b *Blink[C]) One(op BlinkOp, key, val C) (was C, outcome BlinkOutcome, err error) {
	vals, outcomes := []C{val}, []BlinkOutcome{0}
	kinds, err := lend(b, []BlinkOp{op})
	k, errk := lend(b, []C{key})
	v, errv := lend(b, vals)
	o, erro := lend(b, outcomes)
	if err = errors.Join(err, errk, errv, erro); err == nil {
		err = errors.Join(b.Kernels.One(b.st, &b.params, &b.Tree, b.Shape, kinds, k, v, 1, o),
			b.st.CopyOut(arena.Bytes(vals), v), b.st.CopyOut(arena.Bytes(outcomes), o))
	}
	err = b.end(err)
	return vals[0], outcomes[0], err
}

// batch launches the kernel of gets, of sets if there are no ops, or of the
// given ops.
func (b *Blink[C]) batch(get bool, ops []BlinkOp, keys, vals []C) ([]BlinkOutcome, error) {
	outcomes := make([]BlinkOutcome, len(keys))
	var kinds device.Ptr
	var err error
	if ops != nil {
		kinds, err = lend(b, ops)
	}
	k, errk := lend(b, keys)
	v, errv := lend(b, vals)
	o, erro := lend(b, outcomes)
	if err = errors.Join(err, errk, errv, erro); err == nil {
		err = errors.Join(b.Kernels.Batch(b.st, &b.params, &b.Tree, b.Shape, get, kinds, k, v, len(keys), o),
			b.st.CopyOut(arena.Bytes(vals), v), b.st.CopyOut(arena.Bytes(outcomes), o))
	}
	return outcomes, b.end(err)
}

// BlinkRange is a range of keys, both bounds inclusive.
type BlinkRange[C simd.Code] struct{ Low, High C }

// Ranges returns the entries of each range, at most limit of them.
func (b *Blink[C]) Ranges(of []BlinkRange[C], limit int) (keys, vals [][]C, err error) {
	low, high := make([]C, len(of)), make([]C, len(of))
	for i, r := range of {
		low[i], high[i] = r.Low, r.High
	}
	counts, ks, vs := make([]uint32, len(of)), make([]C, limit*len(of)), make([]C, limit*len(of))
	var at [5]device.Ptr
	for i, s := range [][]byte{arena.Bytes(low), arena.Bytes(high), arena.Bytes(ks), arena.Bytes(vs), arena.Bytes(counts)} {
		p, e := lend(b, s)
		at[i], err = p, errors.Join(err, e)
	}
	if err == nil {
		err = errors.Join(b.Kernels.Range(b.st, &b.params, &b.Tree, b.Shape, at[0], at[1], len(of), limit, at[2], at[3], at[4]),
			b.st.CopyOut(arena.Bytes(ks), at[2]), b.st.CopyOut(arena.Bytes(vs), at[3]), b.st.CopyOut(arena.Bytes(counts), at[4]))
	}
	if err = b.end(err); err != nil {
		return nil, nil, err
	}
	for i, n := range counts {
		keys = append(keys, ks[i*limit:i*limit+int(n)])
		vals = append(vals, vs[i*limit:i*limit+int(n)])
	}
	return keys, vals, nil
}

// state returns how many nodes were asked for, and whether one was missing.
func (b *Blink[C]) state() ([]uint32, error) {
	state := make([]uint32, 2)
	return state, errors.Join(b.st.CopyOut(arena.Bytes(state), b.Tree.State), b.st.Synchronize())
}

// Nodes returns how many nodes are in use.
func (b *Blink[C]) Nodes() (int, error) {
	state, err := b.state()
	return int(min(state[0], b.Tree.Capacity)), err
}

// Image returns a copy of the tree.
func (b *Blink[C]) Image() (*BlinkImage[C], error) {
	state, err := b.state()
	if err != nil {
		return nil, err
	}
	im := newBlinkImage[C](b.Shape.Order, state, b.Tree.Capacity)
	im.Memory = make([]byte, im.Used*b.Shape.NodeBytes())
	return im, errors.Join(b.st.CopyOut(im.Memory, b.Tree.Nodes), b.st.Synchronize())
}

// newBlinkImage returns an image that has no memory yet. A root that grows asks
// for two nodes at once, so that one may be lost when only one is left.
func newBlinkImage[C simd.Code](order int, state []uint32, capacity uint32) *BlinkImage[C] {
	im := &BlinkImage[C]{Order: order, Used: int(min(state[0], capacity)), NoRoom: state[1] != 0}
	if state[0] > capacity {
		im.Lost = 1
	}
	return im
}
