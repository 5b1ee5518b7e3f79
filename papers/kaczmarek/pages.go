package kaczmarek

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/simd"
)

// Pages is Kaczmarek's tree on a device (docs/latches.md): large pages, single
// inserts, all values visited at once. Keys and values have the same width.
type Pages[C simd.Code] struct {
	Tree    PagesMemory
	Bits    int
	Threads int // of a block that works on a page
	Blocks  int // that visit all values
	Kernels Kernels

	d      device.Device
	st     device.Stream
	params Params
	lent   []device.Ptr
	own    bool // the kernels
}

// NewPages returns an empty tree with pages of order pairs, and memory for the
// given number of pages. It loads the kernels, and unloads them at the end.
func NewPages[C simd.Code](d device.Device, order, pages, threads int) (*Pages[C], error) {
	set, err := kernel.LoadOnly(d, PagesSource)
	if err != nil {
		return nil, err
	}
	p, err := NewPagesOf[C](d, set, order, pages, threads)
	if err != nil {
		return nil, errors.Join(err, set.Unload())
	}
	p.own = true
	return p, nil
}

// NewPagesOf is NewPages with kernels that are loaded (PagesSource), and
// stay so.
func NewPagesOf[C simd.Code](d device.Device, set *kernel.Set, order, pages, threads int) (*Pages[C], error) {
	var c C
	p := &Pages[C]{d: d, Kernels: Kernels{set}, Bits: 8 * int(unsafe.Sizeof(c)), Threads: threads, Blocks: 1024}
	p.Tree.Capacity, p.Tree.Order = uint32(pages), uint32(order)
	err := p.open()
	if err == nil {
		err = errors.Join(p.Kernels.Clear(p.st, &p.Tree), p.st.Synchronize())
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pages[C]) open() (err error) {
	if p.st, err = p.d.NewStream(); err != nil {
		return err
	}
	if p.Tree.Memory, err = p.d.Alloc(int(p.Tree.Capacity) * PageBytes(p.Bits, int(p.Tree.Order))); err != nil {
		return err
	}
	p.Tree.State, err = p.d.Alloc(8)
	return err
}

// Close frees the tree's memory.
func (p *Pages[C]) Close() (err error) {
	for _, at := range append(p.lent, p.Tree.Memory, p.Tree.State) {
		if at != 0 {
			err = errors.Join(err, p.d.Free(at))
		}
	}
	if p.own {
		err = errors.Join(err, p.Kernels.Set.Unload())
	}
	if p.st != nil {
		err = errors.Join(err, p.st.Close())
	}
	return err
}

func (p *Pages[C]) lend(bytes []byte) (device.Ptr, error) {
	at, err := p.d.Alloc(max(len(bytes), 4))
	if err != nil {
		return 0, err
	}
	p.lent = append(p.lent, at)
	return at, p.st.CopyIn(at, bytes)
}

func (p *Pages[C]) end(err error) error {
	err = errors.Join(err, p.st.Synchronize())
	for _, at := range p.lent {
		err = errors.Join(err, p.d.Free(at))
	}
	p.lent = nil
	return err
}

// Load replaces the tree's contents by ascending, distinct keys, with fill of
// them a page.
func (p *Pages[C]) Load(keys, vals []C, fill int) error {
	k, err := p.lend(arena.Bytes(keys))
	v, errv := p.lend(arena.Bytes(vals))
	if err = errors.Join(err, errv); err == nil {
		err = p.Kernels.Build(p.st, &p.params, &p.Tree, p.Bits, p.Blocks, p.Threads, k, v, len(keys), fill)
	}
	return p.end(err)
}

// Insert inserts pairs one after the other, in one launch. vals gets the values
// that were there.
func (p *Pages[C]) Insert(keys, vals []C) ([]Outcome, error) {
	return p.batch(p.Kernels.Insert, keys, vals)
}

// Get sets vals to the values of keys.
func (p *Pages[C]) Get(keys, vals []C) ([]Outcome, error) {
	return p.batch(p.Kernels.Get, keys, vals)
}

// pagesLaunch is Kernels.Insert or Kernels.Get.
type pagesLaunch = func(st device.Stream, p *Params, t *PagesMemory, bits, threads int, keys, vals device.Ptr, n int, outcomes device.Ptr) error

func (p *Pages[C]) batch(launch pagesLaunch, keys, vals []C) ([]Outcome, error) {
	outcomes := make([]Outcome, len(keys))
	k, err := p.lend(arena.Bytes(keys))
	v, errv := p.lend(arena.Bytes(vals))
	o, erro := p.lend(arena.Bytes(outcomes))
	if err = errors.Join(err, errv, erro); err == nil {
		err = errors.Join(launch(p.st, &p.params, &p.Tree, p.Bits, p.Threads, k, v, len(keys), o),
			p.st.CopyOut(arena.Bytes(vals), v), p.st.CopyOut(arena.Bytes(outcomes), o))
	}
	return outcomes, p.end(err)
}

// Sum returns the sum of all values, which wraps.
func (p *Pages[C]) Sum() (uint64, error) {
	sum := []uint64{0}
	at, err := p.lend(arena.Bytes(sum))
	if err == nil {
		err = errors.Join(p.Kernels.Sum(p.st, &p.params, &p.Tree, p.Bits, p.Blocks, p.Threads, at), p.st.CopyOut(arena.Bytes(sum), at))
	}
	return sum[0], p.end(err)
}

// Add adds a number to every value.
func (p *Pages[C]) Add(x C) error {
	return p.end(p.Kernels.Add(p.st, &p.params, &p.Tree, p.Bits, p.Blocks, p.Threads, uint64(x)))
}

// Check copies the tree out, looks at every page, and returns all entries in
// order.
func (p *Pages[C]) Check() (keys, vals []C, err error) {
	state := make([]uint32, 2)
	if err := errors.Join(p.st.CopyOut(arena.Bytes(state), p.Tree.State), p.st.Synchronize()); err != nil {
		return nil, nil, err
	}
	w := &pagesWalk[C]{order: int(p.Tree.Order), size: PageBytes(p.Bits, int(p.Tree.Order)), used: int(state[0]), leaf: -1}
	w.memory = make([]byte, w.used*w.size)
	if err := errors.Join(p.st.CopyOut(w.memory, p.Tree.Memory), p.st.Synchronize()); err != nil {
		return nil, nil, err
	}
	_, level, _ := w.head(0)
	if err := w.visit(0, level, ^C(0)); err != nil {
		return nil, nil, err
	}
	if w.met != w.used || w.due != 0 {
		return nil, nil, fmt.Errorf("%d pages of %d are in the tree, and the last leaf links to %d", w.met, w.used, w.due)
	}
	return w.keys, w.vals, nil
}

// pagesWalk is a walk over a tree in key order.
type pagesWalk[C simd.Code] struct {
	order, size, used int
	memory            []byte
	met               int // pages
	leaf, due         int // the last leaf, -1 for none, and the one it links to
	low               C   // the greatest key that it might have
	keys, vals        []C
}

func (w *pagesWalk[C]) head(at int) (count, level, next int) {
	m := w.memory[at*w.size:]
	return int(binary.LittleEndian.Uint32(m)), int(binary.LittleEndian.Uint32(m[4:])), int(binary.LittleEndian.Uint32(m[8:]))
}

// column returns n keys or values of a page.
func (w *pagesWalk[C]) column(at, from, n int) []C {
	var c C
	size := int(unsafe.Sizeof(c))
	out := make([]C, n)
	copy(arena.Bytes(out), w.memory[at*w.size+16+from*size:])
	return out
}

// visit walks over a page and the pages below it.
func (w *pagesWalk[C]) visit(at, level int, high C) error {
	if at >= w.used {
		return fmt.Errorf("page %d of %d", at, w.used)
	}
	count, l, next := w.head(at)
	w.met++
	if l != level || count > w.order || w.met > w.used {
		return fmt.Errorf("page %d: level %d, want %d; %d pairs", at, l, level, count)
	}
	keys, vals := w.column(at, 0, count), w.column(at, w.order, count)
	for i, k := range keys {
		if i > 0 && k <= keys[i-1] || k > high || w.leaf >= 0 && k <= w.low {
			return fmt.Errorf("page %d: keys %v, want them above %d and up to %d", at, keys, w.low, high)
		}
		if level > 0 {
			if err := w.visit(int(vals[i]), level-1, k); err != nil {
				return err
			}
		}
	}
	if level > 0 {
		if count == 0 || keys[count-1] != high {
			return fmt.Errorf("page %d: separators %v, want %d as the last", at, keys, high)
		}
		return nil
	}
	if w.leaf >= 0 && w.due != at {
		return fmt.Errorf("leaf %d links to %d, not to %d", w.leaf, w.due, at)
	}
	w.leaf, w.due, w.low = at, next, high
	w.keys, w.vals = append(w.keys, keys...), append(w.vals, vals...)
	return nil
}
