package chunked

import (
	"encoding/binary"
	"math"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// Ops is a batch of operations in device memory, in the order in which they are
// to be done.
type Ops struct {
	N     int
	Keys  device.Ptr // Apply changes them
	Vals  device.Ptr // what is to be set; 0 where nothing is
	Kinds device.Ptr // kinds (u8), as package bplus numbers them; 0 where all are of one kind
	Kind  uint32
	// Old and Had (u8) get what was there just before each operation; 0 where
	// nobody asks.
	Old, Had device.Ptr
	// Sorted says that keys ascend.
	Sorted bool
	// Effects asks for what the batch comes to: the last change of each key, in
	// key order.
	Effects *Effects
}

// Effects is the changes that a batch comes to, each key once, in key order, in
// device memory. Each array has room for all operations.
type Effects struct {
	Keys, Vals, Kinds device.Ptr
	N                 int // set by Apply
}

// Kinds of operations.
const (
	Get = iota
	Set
	Delete
)

// resultBytes is the size of what kernels tell the host.
const resultBytes = 64

// Apply does all operations of a batch, as if one after the other, or none if
// there is an error. It returns when the answers are there.
func (t *Tree[C]) Apply(ops *Ops) error {
	if ops.N == 0 {
		return nil
	}
	if ops.N >= math.MaxInt32 || uint64(t.entries)+uint64(ops.N) >= math.MaxUint32 {
		return errTooLarge
	}
	if err := t.ensure(t.workBytes(ops.N), ops.N+int(t.now.version.Count)); err != nil {
		return err
	}
	a, err := t.begin(ops)
	if err != nil {
		return err
	}
	if err := t.queued(StepProbe); err != nil {
		return err
	}
	if ops.Effects != nil {
		if err := t.effects(a, ops.Effects); err != nil {
			return err
		}
		if err := t.queued(StepEffects); err != nil {
			return err
		}
	}
	if t.flat >= 0 && ops.N*16 >= t.now.leaves*t.flat && t.flatFits(ops.N) {
		return t.merge(a)
	}
	return t.own(a)
}

// flatFits reports whether all of the tree can be written anew beside what there
// is.
func (t *Tree[C]) flatFits(n int) bool {
	leaves := (t.entries + n + kernel.LeafFill - 1) / kernel.LeafFill
	return leaves <= t.leaves.free+t.leaves.most-t.leaves.next
}

// workBytes returns the memory that a batch of n operations takes at most.
func (t *Tree[C]) workBytes(n int) int {
	chunks := int(t.now.version.Count) + 1
	perOp := 2*aligned(n*t.run.Bits/8) + 17*aligned(4*(n+2))
	perChunk := 10*aligned(4*(chunks+2)) + aligned(4*(chunks+n+2))
	return perOp + perChunk + aligned(4*t.now.leaves) + 4096 + t.primitiveBytes(n, 2*n+chunks)
}

// applying is a batch on its way.
type applying struct {
	kernel.Batch
	homes, acts device.Ptr
	spare       [3]device.Ptr // n numbers each, for flags
}

// begin sorts a batch, answers its operations, and finds out what they do.
func (t *Tree[C]) begin(ops *Ops) (*applying, error) {
	w, n := &t.work, ops.N
	a := &applying{Batch: kernel.Batch{
		Keys: ops.Keys, Vals: ops.Vals, Kinds: ops.Kinds, Old: ops.Old, Had: ops.Had, N: uint32(n), Kind: ops.Kind,
	}}
	var err error
	if a.Keys, a.Places, err = t.sort(ops); err != nil {
		return nil, err
	}
	if err := t.queued(StepSort); err != nil {
		return nil, err
	}
	for i := range a.spare {
		a.spare[i] = w.words(n + 1)
	}
	if ops.Kinds != 0 {
		a.Changes, a.Change = w.words(n+1), w.words(n)
		if err := t.run.IsChange(&a.Batch, a.spare[0]); err != nil {
			return nil, err
		}
		if err := t.sum(a.spare[0], a.Changes, n); err != nil {
			return nil, err
		}
		if err := t.run.ListChanges(&a.Batch, a.Change); err != nil {
			return nil, err
		}
	}
	a.homes, a.acts = w.words(n), w.words(n)
	return a, t.run.Probe(&t.now.version, &a.Batch, a.homes, a.acts)
}

// effects lists what a batch comes to.
func (t *Tree[C]) effects(a *applying, e *Effects) error {
	n := int(a.N)
	if err := t.run.IsEffect(a.acts, n, a.spare[0]); err != nil {
		return err
	}
	if err := t.sum(a.spare[0], a.spare[1], n); err != nil {
		return err
	}
	if err := t.run.Effects(&a.Batch, a.acts, a.spare[1], e.Keys, e.Vals, e.Kinds); err != nil {
		return err
	}
	got, err := t.told(a.spare[1] + device.Ptr(4*n))
	if err == nil {
		e.N = got[0]
	}
	return err
}

// told returns numbers of the device, when all before is done.
func (t *Tree[C]) told(at ...device.Ptr) ([]int, error) {
	to := t.work.words(len(at))
	if err := t.run.Tell(at, to); err != nil {
		return nil, err
	}
	bytes := t.results[:4*len(at)]
	if err := t.run.Stream.CopyOut(bytes, to); err != nil {
		return nil, err
	}
	if err := t.run.Stream.Synchronize(); err != nil {
		return nil, err
	}
	out := make([]int, len(at))
	for i := range at {
		out[i] = int(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return out, nil
}

// own makes the changes leaf by leaf.
func (t *Tree[C]) own(a *applying) error {
	o, next, err := t.plan(a)
	if err != nil {
		return err
	}
	n, chunks := int(a.N), int(t.now.version.Count)
	end := func(p device.Ptr, n int) device.Ptr { return p + device.Ptr(4*n) }
	got, err := t.told(end(o.Heads, n), end(o.Need, n), end(next.Become, chunks), end(next.Fresh, chunks))
	if err != nil {
		return err
	}
	if err := t.queued(StepPlan); err != nil {
		return err
	}
	touched, leaves, become, fresh := got[0], got[1], got[2], got[3]
	// From here on it is known what is needed; nothing has been written.
	if err := t.leaves.reserve(leaves); err != nil {
		return err
	}
	if err := t.chunks.reserve(fresh); err != nil {
		return err
	}
	b, err := t.newTable(become)
	if err != nil {
		return err
	}
	to := b.next()
	to.Become, to.Fresh, to.Totals = next.Become, next.Fresh, t.work.words(become+1)
	freed, err := t.newFreed(touched, chunks)
	if err != nil {
		return err
	}
	if err := t.write(a, o, touched, &to, b, freed); err != nil {
		return err
	}
	return t.publish(b, freed, leaves, fresh)
}

// plan finds out what a batch needs, leaf by leaf and chunk by chunk.
func (t *Tree[C]) plan(a *applying) (*kernel.Owned, *kernel.Next, error) {
	w, n, v := &t.work, int(a.N), &t.now.version
	o := &kernel.Owned{Homes: a.homes, Acts: a.acts, Heads: w.words(n + 1), Inserts: w.words(n + 1), N: a.N}
	if len(t.held) > 0 {
		o.Copy = 1
	}
	if err := t.run.Mark(a.homes, a.acts, n, a.spare[0], a.spare[1], 0); err != nil {
		return nil, nil, err
	}
	if err := t.sum(a.spare[0], o.Heads, n); err != nil {
		return nil, nil, err
	}
	if err := t.sum(a.spare[1], o.Inserts, n); err != nil {
		return nil, nil, err
	}
	o.Home, o.Size, o.Begin, o.Need = a.spare[0], a.spare[1], w.words(n+1), w.words(n+1)
	count := int(v.Count)
	zero := w.used
	o.Removed = w.words(n)
	o.ChunkBegin, o.ChunkEnd, o.Grow, o.Changed = w.words(count), w.words(count), w.words(count), w.words(count)
	if err := t.run.Stream.Fill(w.at+device.Ptr(zero), 0, w.used-zero); err != nil {
		return nil, nil, err
	}
	if err := t.run.Touch(o); err != nil {
		return nil, nil, err
	}
	needs := *o
	needs.Need = a.spare[2]
	if err := t.run.Plan(v, &needs); err != nil {
		return nil, nil, err
	}
	if err := t.sum(a.spare[2], o.Need, n); err != nil {
		return nil, nil, err
	}
	next := &kernel.Next{Become: w.words(count + 1), Fresh: w.words(count + 1)}
	become, fresh := w.words(count), w.words(count)
	if err := t.run.PlanChunks(v, o, become, fresh); err != nil {
		return nil, nil, err
	}
	if err := t.sum(become, next.Become, count); err != nil {
		return nil, nil, err
	}
	return o, next, t.sum(fresh, next.Fresh, count)
}

// write writes what was planned.
func (t *Tree[C]) write(a *applying, o *kernel.Owned, touched int, next *kernel.Next, b *table, freed *kernel.Freed) error {
	v, leaves, chunks := &t.now.version, t.leaves.slots(), t.chunks.slots()
	if err := t.run.Give(v, o, touched, next, freed); err != nil {
		return err
	}
	if err := t.run.Move(v, o, touched, a.Keys, leaves); err != nil {
		return err
	}
	if err := t.run.Store(v, &a.Batch, o, leaves); err != nil {
		return err
	}
	if err := t.queued(StepWrite); err != nil {
		return err
	}
	if err := t.pad(b); err != nil {
		return err
	}
	if err := t.run.Rechunk(v, o, leaves, chunks, next); err != nil {
		return err
	}
	return t.raise(b, next.Totals)
}

// newFreed returns room for what a batch frees. Where a snapshot may need it, it
// is memory of its own.
func (t *Tree[C]) newFreed(leaves, chunks int) (*kernel.Freed, error) {
	f := &kernel.Freed{Counts: t.work.words(2)}
	if err := t.run.Stream.Fill(f.Counts, 0, 8); err != nil {
		return nil, err
	}
	if len(t.held) == 0 {
		f.Leaves, f.Chunks = t.work.words(leaves), t.work.words(chunks)
		return f, nil
	}
	at, err := t.dev.Alloc(aligned(4*leaves) + aligned(4*chunks))
	f.Leaves, f.Chunks = at, at+device.Ptr(aligned(4*leaves))
	return f, err
}

// publish makes a table the newest version.
func (t *Tree[C]) publish(b *table, freed *kernel.Freed, leaves, chunks int) error {
	if err := t.queued(StepTable); err != nil {
		return err
	}
	count := int(b.version.Count)
	got, err := t.told(b.version.First+device.Ptr(4*count), freed.Counts, freed.Counts+4)
	if err != nil {
		return err
	}
	t.leaves.took(leaves)
	t.chunks.took(chunks)
	old := t.now
	b.entries, b.leaves, b.seq = got[0], old.leaves+leaves-got[1], old.seq+1
	t.now, t.entries = b, got[0]
	if len(t.held) > 0 {
		t.limbo = append(t.limbo, limbo{old.seq, freed.Leaves, freed.Chunks, got[1], got[2]})
		if t.held[old] == 0 {
			t.tables = append(t.tables, old)
		}
		return nil
	}
	t.tables = append(t.tables, old)
	if err := t.leaves.give(t.run.Stream, freed.Leaves, got[1]); err != nil {
		return err
	}
	return t.chunks.give(t.run.Stream, freed.Chunks, got[2])
}

// merge makes the changes by writing all of the tree anew.
func (t *Tree[C]) merge(a *applying) error {
	w, n, v := &t.work, int(a.N), &t.now.version
	f := &kernel.Flat{Homes: a.homes, Acts: a.acts, Inserts: w.words(n + 1), Removes: w.words(n + 1)}
	if err := t.run.Mark(a.homes, a.acts, n, 0, a.spare[0], a.spare[1]); err != nil {
		return err
	}
	if err := t.sum(a.spare[0], f.Inserts, n); err != nil {
		return err
	}
	if err := t.sum(a.spare[1], f.Removes, n); err != nil {
		return err
	}
	end := device.Ptr(4 * n)
	got, err := t.told(f.Inserts+end, f.Removes+end)
	if err != nil {
		return err
	}
	if err := t.queued(StepPlan); err != nil {
		return err
	}
	entries := t.entries + got[0] - got[1]
	leaves := max(1, (entries+kernel.LeafFill-1)/kernel.LeafFill)
	chunks := (leaves + kernel.ChunkFill - 1) / kernel.ChunkFill
	f.Leaves, f.Entries = uint32(leaves), uint32(entries)
	if err := t.leaves.reserve(leaves); err != nil {
		return err
	}
	if err := t.chunks.reserve(chunks); err != nil {
		return err
	}
	b, err := t.newTable(chunks)
	if err != nil {
		return err
	}
	to := b.next()
	to.Totals = w.words(chunks)
	freed, err := t.newFreed(t.now.leaves, int(v.Count))
	if err != nil {
		return err
	}
	if err := t.writeFlat(a, f, &to, b, freed, chunks); err != nil {
		return err
	}
	return t.publish(b, freed, leaves, chunks)
}

func (t *Tree[C]) writeFlat(a *applying, f *kernel.Flat, next *kernel.Next, b *table, freed *kernel.Freed, count int) error {
	v, leaves, chunks := &t.now.version, t.leaves.slots(), t.chunks.slots()
	if err := t.run.FlatMove(v, &a.Batch, f, leaves); err != nil {
		return err
	}
	if err := t.run.FlatStore(v, &a.Batch, f, leaves); err != nil {
		return err
	}
	if err := t.queued(StepWrite); err != nil {
		return err
	}
	if err := t.pad(b); err != nil {
		return err
	}
	if err := t.run.FlatChunks(v, count, f, leaves, chunks, next); err != nil {
		return err
	}
	if err := t.run.GiveAll(v, freed); err != nil {
		return err
	}
	return t.raise(b, next.Totals)
}
