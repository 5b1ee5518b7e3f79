package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/op"
)

// The names of ways to take a batch.
const (
	nameByLeaf = ours.NameGPUTree + ", leaf by leaf"
	nameFlat   = ours.NameGPUTree + ", flat merge"
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
type liveTree[W data.Word] struct {
	g    *rig.Rig
	tree *chunked.Tree[W]
	d    *data.Dataset[W]
	b    *treeBatch[W]
	took time.Duration

	pristine, scratch, vals rig.Ptr // keys, keys that Apply may change, what is set
	kinds, old, had         rig.Ptr // 0 where there are none
	wiped, undoing          rig.Ptr // values and kinds of the batch that undoes it
	out, bits               rig.Ptr // results of the search afterwards
}

// openResident makes a tree with the entries of a dataset.
func openResident[W data.Word](g *rig.Rig, d *data.Dataset[W]) (*liveTree[W], error) {
	tree, err := chunked.New[W](g.Dev, chunked.Options{})
	if err != nil {
		return nil, err
	}
	t := &liveTree[W]{g: g, tree: tree, d: d}
	if err := t.load(d.Keys, d.Vals); err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	return t, nil
}

// loadPart is the number of entries that are loaded at a time.
const loadPart = 64 * contest.Mega

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
	p := rig.Placing{G: t.g}
	ops := &chunked.Ops{N: len(keys), Keys: rig.Place(&p, keys), Vals: rig.Place(&p, vals), Kind: op.Set, Sorted: sorted}
	if p.Err == nil {
		p.Err = errors.Join(t.tree.Apply(ops), t.tree.Wait())
	}
	return errors.Join(p.Err, p.Free())
}

func (t *liveTree[W]) close() error { return t.tree.Close() }

// bytes returns what an entry takes.
func (t *liveTree[W]) bytes() float64 {
	return float64(t.tree.Bytes()) / float64(max(1, t.tree.Len()))
}

// take takes a batch; its memory is the rig's, and clear frees it.
func (t *liveTree[W]) take(b *treeBatch[W]) error {
	p, n := rig.Placing{G: t.g}, len(b.keys)
	width := data.BitsOf[W]() / 8
	t.b = b
	t.pristine, t.vals = rig.Place(&p, b.keys), rig.Place(&p, b.vals)
	t.scratch, t.out, t.bits = p.Room(width*n), p.Room(width*n), p.Room(rig.BitBytes(n))
	wiped, undoing := b.undo()
	t.wiped, t.undoing = rig.Place(&p, wiped), rig.Place(&p, undoing)
	t.kinds, t.old, t.had = 0, 0, 0
	if b.kinds != nil {
		t.kinds, t.old, t.had = rig.Place(&p, b.kinds), p.Room(width*n), p.Room((n+3)/4*4)
	}
	t.g.Memory = append(t.g.Memory, p.Memory...)
	return p.Err
}

// run does the batch in one way until the GPU is warm, and then as often as fits
// into the time of a round, at most the given times, timed by the host's clock
// from the call of Apply until the stream is empty. The last one stays done.
func (t *liveTree[W]) run(way, times int) error {
	for start := time.Now(); ; {
		if err := errors.Join(t.apply(way), t.undo()); err != nil {
			return err
		}
		if time.Since(start) >= t.g.S.WarmUp {
			break
		}
	}
	t.took = 0
	for done := 1; ; done++ {
		if err := t.apply(way); err != nil {
			return err
		}
		if done == times || t.took.Seconds() > t.g.S.Seconds {
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
	width := data.BitsOf[W]() / 8
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
	if err := st.CopyDevice(t.scratch, t.pristine, data.BitsOf[W]()/8*n); err != nil {
		return err
	}
	t.tree.SetFlat(flatAlways)
	ops := &chunked.Ops{N: n, Keys: t.scratch, Vals: t.wiped, Kinds: t.undoing}
	return errors.Join(t.tree.Apply(ops), st.Synchronize())
}

// subject is the batch done in one way.
func (t *liveTree[W]) subject(name string, way int) *contest.Subject {
	const several = 16
	times := max(1, min(several, work.LeastBatched/len(t.b.keys)))
	return &contest.Subject{
		System: name, Bytes: t.bytes(), OnGPU: true, Whole: true,
		Do:    func(int) error { return t.run(way, times) },
		Clock: func() time.Duration { return t.took },
		Check: func(int) error { return errors.Join(t.check(), t.undo()) },
	}
}

// check looks at the number of entries, at all keys of the batch, and at its
// answers.
func (t *liveTree[W]) check() error {
	b, n, st := t.b, len(t.b.keys), t.tree.Stream()
	if got, want := t.tree.Len(), len(t.d.Keys)+b.added; got != want {
		return fmt.Errorf("%d entries; there should be %d", got, want)
	}
	err := errors.Join(st.Fill(t.bits, 0x55555555, rig.BitBytes(n)), t.tree.Find(t.pristine, n, t.out, t.bits), st.Synchronize())
	if err != nil {
		return err
	}
	if err := rig.ReadBack(t.g, t.out, n, equalTo("key", b.want)); err != nil {
		return err
	}
	err = rig.ReadBack(t.g, t.bits, rig.BitBytes(n)/4, func(first int, part []uint32) error { return rig.AllSet(first, part, n) })
	if err != nil || t.kinds == 0 {
		return err
	}
	if err := rig.ReadBack(t.g, t.old, n, equalTo("answer", b.old)); err != nil {
		return err
	}
	had := make([]uint8, n)
	if err := errors.Join(t.g.Stream.CopyOut(had, t.had), t.g.Stream.Synchronize()); err != nil {
		return err
	}
	if !bytes.Equal(had, b.had) {
		return errors.New("what the operations found should be something else")
	}
	return nil
}

// equalTo compares values that came back with what they should be.
func equalTo[W data.Word](what string, want []W) func(first int, part []W) error {
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
	var events [chunked.Steps + 1]rig.Event
	for i := range events {
		if events[i], err = t.g.Dev.NewEvent(); err != nil {
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
