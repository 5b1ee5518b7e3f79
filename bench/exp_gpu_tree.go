package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
)

// Names of the GPU's own mutable tree, and of its ways to take a batch.
const (
	namePandoGPUTree = "Pando GPU tree"
	nameByLeaf       = namePandoGPUTree + ", leaf by leaf"
	nameFlat         = namePandoGPUTree + ", flat merge"
)

// Arguments of chunked.Tree.SetFlat for these ways.
const (
	flatNever  = -1
	flatAlways = 0
	flatBySize = chunked.FlatFrom
)

// liveTree is a mutable tree in the GPU's memory, with the entries of a
// dataset, and a batch that changes it. After each batch the tree is written
// anew, so that all batches find it as it was loaded.
type liveTree[W word] struct {
	g    *gpuRig
	tree *chunked.Tree[W]
	d    *dataset[W]
	b    *treeBatch[W]
	took time.Duration

	pristine, scratch, vals device.Ptr // keys, keys that Apply may change, what is set
	kinds, old, had         device.Ptr // 0 where there are none
	wiped, undoing          device.Ptr // values and kinds of the batch that undoes it
	out, bits               device.Ptr // results of the search afterwards
}

// openResident makes a tree with the entries of a dataset.
func openResident[W word](g *gpuRig, d *dataset[W]) (*liveTree[W], error) {
	tree, err := chunked.New[W](g.dev, chunked.Options{})
	if err != nil {
		return nil, err
	}
	t := &liveTree[W]{g: g, tree: tree, d: d}
	if err := t.load(d.keys, d.vals); err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	return t, nil
}

// loadPart is the number of entries that are loaded at a time.
const loadPart = 64 * mega

// load sets sorted pairs.
func (t *liveTree[W]) load(keys, vals []W) error {
	t.tree.SetFlat(flatAlways)
	for lo := 0; lo < len(keys); lo += loadPart {
		hi := min(lo+loadPart, len(keys))
		if err := t.set(keys[lo:hi], vals[lo:hi], true); err != nil {
			return err
		}
	}
	return nil
}

// set sets pairs of host memory.
func (t *liveTree[W]) set(keys, vals []W, sorted bool) error {
	p := placing{g: t.g}
	ops := &chunked.Ops{N: len(keys), Keys: place(&p, keys), Vals: place(&p, vals), Kind: op.Set, Sorted: sorted}
	if p.err == nil {
		p.err = errors.Join(t.tree.Apply(ops), t.tree.Wait())
	}
	return errors.Join(p.err, p.free())
}

func (t *liveTree[W]) close() error { return t.tree.Close() }

// bytes returns what an entry takes.
func (t *liveTree[W]) bytes() float64 {
	return float64(t.tree.Bytes()) / float64(max(1, t.tree.Len()))
}

// take takes a batch; its memory is the rig's, and clear frees it.
func (t *liveTree[W]) take(b *treeBatch[W]) error {
	p, n := placing{g: t.g}, len(b.keys)
	width := bitsOf[W]() / 8
	t.b = b
	t.pristine, t.vals = place(&p, b.keys), place(&p, b.vals)
	t.scratch, t.out, t.bits = p.room(width*n), p.room(width*n), p.room(bitBytes(n))
	wiped, undoing := b.undo()
	t.wiped, t.undoing = place(&p, wiped), place(&p, undoing)
	t.kinds, t.old, t.had = 0, 0, 0
	if b.kinds != nil {
		t.kinds, t.old, t.had = place(&p, b.kinds), p.room(width*n), p.room((n+3)/4*4)
	}
	t.g.memory = append(t.g.memory, p.memory...)
	return p.err
}

// run does the batch in one way until the GPU is warm, and then as often as fits
// into the time of a round, at most the given times, timed by the host's clock
// from the call of Apply until the stream is empty. The last one stays done.
func (t *liveTree[W]) run(way, times int) error {
	for start := time.Now(); ; {
		if err := errors.Join(t.apply(way), t.undo()); err != nil {
			return err
		}
		if time.Since(start) >= t.g.s.warmUp {
			break
		}
	}
	t.took = 0
	for done := 1; ; done++ {
		if err := t.apply(way); err != nil {
			return err
		}
		if done == times || t.took.Seconds() > t.g.s.seconds {
			t.took /= time.Duration(done)
			return nil
		}
		if err := t.undo(); err != nil {
			return err
		}
	}
}

// apply does the batch once, and adds the time to what it took.
func (t *liveTree[W]) apply(way int) error {
	st, n := t.tree.Stream(), len(t.b.keys)
	width := bitsOf[W]() / 8
	errs := []error{st.CopyDevice(t.scratch, t.pristine, width*n)}
	if t.kinds != 0 {
		errs = append(errs, st.Fill(t.old, 0x55555555, width*n), st.Fill(t.had, 0x55555555, (n+3)/4*4))
	}
	if err := errors.Join(append(errs, st.Synchronize())...); err != nil {
		return err
	}
	t.tree.SetFlat(way)
	ops := &chunked.Ops{N: n, Keys: t.scratch, Vals: t.vals, Kinds: t.kinds, Kind: op.Set, Old: t.old, Had: t.had}
	start := time.Now()
	err := errors.Join(t.tree.Apply(ops), st.Synchronize())
	t.took += time.Since(start)
	return err
}

// undo takes out what the batch has added, gives what it has changed other
// values, and writes all leaves anew.
func (t *liveTree[W]) undo() error {
	st, n := t.tree.Stream(), len(t.b.keys)
	if err := st.CopyDevice(t.scratch, t.pristine, bitsOf[W]()/8*n); err != nil {
		return err
	}
	t.tree.SetFlat(flatAlways)
	ops := &chunked.Ops{N: n, Keys: t.scratch, Vals: t.wiped, Kinds: t.undoing}
	return errors.Join(t.tree.Apply(ops), st.Synchronize())
}

// subject is the batch done in one way.
func (t *liveTree[W]) subject(name string, way int) *subject {
	const several = 16
	times := max(1, min(several, leastBatched/len(t.b.keys)))
	return &subject{
		system: name, bytes: t.bytes(), onGPU: true, whole: true,
		do:    func(int) error { return t.run(way, times) },
		clock: func() time.Duration { return t.took },
		check: func(int) error { return errors.Join(t.check(), t.undo()) },
	}
}

// check looks at the number of entries, at all keys of the batch, and at its
// answers.
func (t *liveTree[W]) check() error {
	b, n, st := t.b, len(t.b.keys), t.tree.Stream()
	if got, want := t.tree.Len(), len(t.d.keys)+b.added; got != want {
		return fmt.Errorf("%d entries; there should be %d", got, want)
	}
	err := errors.Join(st.Fill(t.bits, 0x55555555, bitBytes(n)), t.tree.Find(t.pristine, n, t.out, t.bits), st.Synchronize())
	if err != nil {
		return err
	}
	if err := readBack(t.g, t.out, n, equalTo("key", b.want)); err != nil {
		return err
	}
	err = readBack(t.g, t.bits, bitBytes(n)/4, func(first int, part []uint32) error { return allSet(first, part, n) })
	if err != nil || t.kinds == 0 {
		return err
	}
	if err := readBack(t.g, t.old, n, equalTo("answer", b.old)); err != nil {
		return err
	}
	had := make([]uint8, n)
	if err := errors.Join(t.g.stream.CopyOut(had, t.had), t.g.stream.Synchronize()); err != nil {
		return err
	}
	if !bytes.Equal(had, b.had) {
		return errors.New("what the operations found should be something else")
	}
	return nil
}

// equalTo compares values that came back with what they should be.
func equalTo[W word](what string, want []W) func(first int, part []W) error {
	return func(first int, part []W) error {
		for i, v := range part {
			if v != want[first+i] {
				return fmt.Errorf("%s %d: value %d; it should be %d", what, first+i, v, want[first+i])
			}
		}
		return nil
	}
}

// steps returns the milliseconds that the GPU takes for each step of the batch,
// done in one way, between events. They include the host's time where the GPU
// waits for it.
func (t *liveTree[W]) steps(way int) (ms [chunked.Steps]float64, err error) {
	st := t.tree.Stream()
	var events [chunked.Steps + 1]device.Event
	for i := range events {
		if events[i], err = t.g.dev.NewEvent(); err != nil {
			return ms, err
		}
		defer func() { err = errors.Join(err, events[i].Close()) }()
	}
	if err := errors.Join(t.apply(way), t.undo()); err != nil { // warm
		return ms, err
	}
	last := events[chunked.Steps]
	if err := st.Record(last); err != nil {
		return ms, err
	}
	passed := map[chunked.Step]bool{}
	t.tree.Watch(func(s chunked.Step) error {
		passed[s] = true
		return st.Record(events[s])
	})
	err = t.apply(way)
	t.tree.Watch(nil)
	if err != nil {
		return ms, err
	}
	for s := range chunked.Steps {
		if !passed[s] {
			continue
		}
		if ms[s], err = events[s].Since(last); err != nil {
			return ms, err
		}
		last = events[s]
	}
	return ms, errors.Join(t.check(), t.undo())
}

// placing puts things into the GPU's memory until there is an error.
type placing struct {
	g      *gpuRig
	memory []device.Ptr
	err    error
}

// room returns memory.
func (p *placing) room(bytes int) (at device.Ptr) {
	if p.err != nil {
		return 0
	}
	if at, p.err = p.g.dev.Alloc(max(bytes, 4)); p.err == nil {
		p.memory = append(p.memory, at)
	}
	return at
}

// place returns a copy of a slice.
func place[T any](p *placing, s []T) device.Ptr {
	var t T
	at := p.room(len(s) * int(unsafe.Sizeof(t)))
	if p.err == nil && len(s) > 0 {
		p.err = errors.Join(p.g.stream.CopyIn(at, arena.Bytes(s)), p.g.stream.Synchronize())
	}
	return at
}

// free frees all of it.
func (p *placing) free() error {
	var errs []error
	for _, at := range p.memory {
		errs = append(errs, p.g.dev.Free(at))
	}
	return errors.Join(errs...)
}

// clearTree is clear for what may have found no room in a tree, either.
func (g *gpuRig) clearTree(n int, err error) error {
	if errors.Is(err, op.ErrLimit) {
		err = fmt.Errorf("%w: %w", device.ErrOutOfMemory, err)
	}
	return g.clear(n, err)
}
