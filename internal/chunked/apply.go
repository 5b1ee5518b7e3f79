package chunked

import (
	"errors"
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
	// Bring, unless nil, brings Vals and Kinds, and returns when they are there, or
	// when the tree's stream will wait for them. It is called while keys are sorted,
	// and, where nobody needs either before, while it is found out what each does.
	Bring func() error
	// Early, unless nil, is called when the kernels that set Old, Had and Effects are
	// queued: what it copies in the tree's stream is there when Apply returns. The
	// number of effects is not known then. It may be called again, and what it copied
	// first counts for nothing. Where it returns an error, so does Apply, and nothing
	// has been done.
	Early func() error
	// Fetch, unless nil, is called when Old, Had and Effects are there, while the
	// tree is being written. The batch is done also where it returns an error,
	// which then Apply returns.
	Fetch func() error
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

// resultBytes is the size of what kernels tell the host at once.
const resultBytes = 64

// Apply does all operations of a batch, as if one after the other, or none if
// there is an error. It returns when the answers are there, and it is certain that
// there is room for everything: what is to be written may still be queued in the
// tree's stream. Until Wait, or until the next batch has returned, Ops stays as it is.
// A device that fails meanwhile says so to whoever uses it next.
func (t *Tree[C]) Apply(ops *Ops) error {
	if ops.N == 0 {
		return nil
	}
	if ops.N >= math.MaxInt32 || uint64(t.entries)+uint64(ops.N) >= math.MaxUint32 {
		return errTooLarge
	}
	flat := t.wantsFlat(ops.N)
	a, err := t.begin(ops, flat)
	if err != nil {
		return err
	}
	if ops.Kinds != 0 || ops.Old != 0 || ops.Effects != nil {
		if err := t.bring(a); err != nil {
			return err
		}
	}
	err = t.carryOut(a, flat)
	if errors.Is(err, errUnsorted) {
		if err = t.sortAgain(a); err != nil {
			return err
		}
		err = t.carryOut(a, flat)
	}
	return err
}

// bring waits for values and kinds, unless they are there. Where they do not come,
// nothing of the batch is under way when it returns.
func (t *Tree[C]) bring(a *applying) (err error) {
	bring := a.bring
	if a.bring = nil; bring == nil {
		return nil
	}
	there := false
	defer func() { // also where it panics
		if !there {
			err = errors.Join(err, t.run.Stream.Synchronize())
		}
	}()
	err = bring()
	there = err == nil
	return err
}

// errUnsorted is the error for a batch that is not in order, of which nothing has
// been done.
var errUnsorted = errors.New("chunked: the batch is not sorted")

// carryOut does a batch that is sorted.
func (t *Tree[C]) carryOut(a *applying, flat bool) error {
	w, n := &t.work, int(a.N)
	a.acts = w.Words(n)
	if a.Kinds != 0 {
		a.Changes, a.Change = w.Words(n+1), w.Words(n)
		if err := t.run.Changes(&a.Batch, t.scans.next(n)); err != nil {
			return err
		}
	}
	if flat {
		used := w.Used
		if err := t.merge(a); !errors.Is(err, errCrowded) {
			return err
		}
		w.Used = used // the stream is done with it
	}
	return t.own(a)
}

// wantsFlat reports whether all of the tree is written anew for a batch of n
// operations: since there are many, or since leaves have become thin. There must
// be room for all of it beside what there is.
func (t *Tree[C]) wantsFlat(n int) bool {
	if t.flat < 0 || n*16 < t.now.leaves*t.flat && !t.thin() {
		return false
	}
	leaves := (t.entries + n + kernel.LeafFill - 1) / kernel.LeafFill
	return leaves <= t.leaves.list.N+t.leaves.most-t.leaves.next
}

// thin reports whether leaves, or chunks, have become so empty that they are
// better written anew: a quarter full. That costs as much as reading and writing
// all entries, and comes only after three times as many were deleted.
func (t *Tree[C]) thin() bool {
	leaves, chunks := t.now.leaves, int(t.now.version.Count)
	return leaves > thinLeaves && t.entries < leaves*kernel.LeafEntries/4 || chunks > thinChunks && leaves < chunks*kernel.ChunkLeaves/4
}

// Few leaves, or chunks, may be as thin as they are.
const thinLeaves, thinChunks = 64, 4

// workBytes returns the memory that a batch of n operations takes at most.
func (t *Tree[C]) workBytes(n int) int {
	chunks := int(t.now.version.Count) + 1
	perOp := 2*device.Aligned(n*t.run.Bits/8) + 16*device.Aligned(4*(n+2))
	perChunk := 10*device.Aligned(4*(chunks+2)) + device.Aligned(4*(chunks+n+2)) + device.Aligned(4*chunks*kernel.ChunkLeaves)
	return perOp + perChunk + device.Aligned(4*t.now.leaves) + 4096 + device.Aligned(kernel.SortTemp(n, t.run.Bits)) + scanBytes(t.longest(n))
}

// longest returns the most numbers that a batch of n operations adds up at once.
func (t *Tree[C]) longest(n int) int { return 2*n + int(t.now.version.Count) + 1 }

// applying is a batch on its way.
type applying struct {
	kernel.Batch
	effects *Effects
	bring   func() error // nil when it was called
	early   func() error
	fetch   func() error
	acts    device.Ptr
	owned   *kernel.Owned // where memory for it has been cleared
	freed   device.Ptr    // counts of what is freed, 0
	job     kernel.SortJob
	cleared int // bytes of the work memory that had to be 0 at first
	used    int // and bytes of it that were in use when the batch was sorted
}

// begin sorts a batch.
func (t *Tree[C]) begin(ops *Ops, flat bool) (*applying, error) {
	w, n := &t.work, ops.N
	if err := t.start(t.workBytes(n), t.longest(n)); err != nil {
		return nil, err
	}
	a := &applying{effects: ops.Effects, bring: ops.Bring, early: ops.Early, fetch: ops.Fetch, freed: w.Words(2), Batch: kernel.Batch{
		Keys: ops.Keys, Vals: ops.Vals, Kinds: ops.Kinds, Old: ops.Old, Had: ops.Had, N: uint32(n), Kind: ops.Kind,
	}}
	if !flat {
		a.owned = t.newOwned(a)
	}
	temp := w.Bytes(kernel.SortTemp(n, t.run.Bits))
	a.cleared = int(temp-w.At) + kernel.SortHead
	a.job = kernel.SortJob{
		KeyBits: t.run.Bits, To: t.run.Bits, N: n, Implicit: true, Cleared: true, Temp: temp, Clear: w.At, ClearBytes: a.cleared,
		Keys: ops.Keys, Keys2: w.Bytes(n * t.run.Bits / 8), Places: w.Words(n), Places2: w.Words(n),
	}
	a.used = w.Used
	if err := t.sort(a, ops.Sorted); err != nil {
		return nil, err
	}
	return a, t.queued(StepSort)
}

// newOwned takes memory for what must be 0 before a batch is done leaf by leaf.
func (t *Tree[C]) newOwned(a *applying) *kernel.Owned {
	w, count := &t.work, int(t.now.version.Count)
	o := &kernel.Owned{Told: t.told, Removed: w.Words(int(a.N)), N: a.N}
	o.ChunkBegin, o.ChunkEnd, o.Grow, o.Changed = w.Words(count), w.Words(count), w.Words(count), w.Words(count)
	return o
}

// listEffects lists what a batch comes to, if somebody asks.
func (t *Tree[C]) listEffects(a *applying) error {
	if err := t.queued(StepProbe); err != nil || a.effects == nil {
		return err
	}
	e := a.effects
	if err := t.run.Effects(&a.Batch, a.acts, e.Keys, e.Vals, e.Kinds, t.told+4*toldEffects, t.scans.next(int(a.N))); err != nil {
		return err
	}
	return t.queued(StepEffects)
}

// decide returns n of the numbers that kernels tell, from one on, among them what
// is needed to decide about the batch. Values come until then, and whoever asks may
// copy what the batch has found: all kernels for that are queued. For after see
// askAnd.
func (t *Tree[C]) decide(a *applying, from, n int, after func() error) ([]int, error) {
	if err := t.bring(a); err != nil {
		return nil, err
	}
	if a.early != nil {
		if err := a.early(); err != nil {
			return nil, err
		}
	}
	told, err := t.askAnd(from, n, after)
	if err != nil {
		return nil, err
	}
	if told[toldFailed-from] != 0 {
		return nil, errUnsorted
	}
	if a.effects != nil {
		a.effects.N = told[toldEffects-from]
	}
	return told, nil
}

// own makes the changes leaf by leaf. What is written is queued at once where there
// seems to be room for it, and is not written where there is not: so the GPU has no
// pause until the host knows.
func (t *Tree[C]) own(a *applying) error {
	next, err := t.plan(a)
	if err != nil {
		return err
	}
	ahead, err := t.ahead(a, next)
	if err != nil {
		return err
	}
	told, err := t.decide(a, 0, toldEffects+1, ahead)
	if err != nil {
		return err
	}
	leaves, chunks := told[kernel.ToldLeaves], told[kernel.ToldNewChunks]
	known := &outcome{entries: t.entries + int(int32(told[kernel.ToldGrowth]))}
	if ahead != nil && a.owned.Goes(told) {
		b := t.making
		b.version.Count = uint32(told[kernel.ToldChunks])
		return t.publish(a, b, &kernel.Freed{}, leaves, chunks, known)
	}
	if err := t.queued(StepPlan); err != nil {
		return err
	}
	// From here on it is known what is needed; nothing has been written.
	if err := t.reserve(leaves, chunks); err != nil {
		return err
	}
	b, freed, err := t.newVersion(a, told[kernel.ToldChunks], told[kernel.ToldTouched], int(t.now.version.Count))
	if err != nil {
		return err
	}
	if told[kernel.ToldFreed] != 0 {
		known = nil
		if err := t.run.Give(&t.now.version, a.owned, told[kernel.ToldTouched], next, freed); err != nil {
			return err
		}
	}
	a.owned.Certain = 1
	if err := t.write(a, told[kernel.ToldTouched], next, b); err != nil {
		return err
	}
	return t.publish(a, b, freed, leaves, chunks, known)
}

// ahead returns what queues all that writes the batch, before it is known what it
// needs; nil where it would hardly be written, or where something must be known.
func (t *Tree[C]) ahead(a *applying, next *kernel.Next) (func() error, error) {
	n, count, o := int(a.N), int(t.now.version.Count), a.owned
	o.Leaves, o.Chunks, o.Room = uint32(t.leaves.free()), uint32(t.chunks.free()), uint32(count+count/64+8)
	likely := n/16 + 4 // new leaves: half of a leaf's entries are new before it splits
	if t.careful || o.Copy != 0 || int(o.Leaves) < likely || int(o.Chunks) < likely/64+2 {
		return nil, nil
	}
	b, err := t.newTable(int(o.Room))
	if short := errors.Is(err, device.ErrOutOfMemory); err != nil {
		if short {
			err = nil // for what is needed there may be room
		}
		return nil, err
	}
	return func() error {
		if err := t.queued(StepPlan); err != nil {
			return err
		}
		return t.write(a, min(n, t.now.leaves), next, b)
	}, nil
}

// reserve makes sure that so many new leaves and chunks can be taken.
func (t *Tree[C]) reserve(leaves, chunks int) error {
	if err := t.leaves.reserve(leaves); err != nil {
		return err
	}
	return t.chunks.reserve(chunks)
}

// newVersion returns a table of so many chunks, and room for what is freed: at
// most so many leaves, and so many chunks.
func (t *Tree[C]) newVersion(a *applying, count, leaves, chunks int) (*table, *kernel.Freed, error) {
	b, err := t.newTable(count)
	if err != nil {
		return nil, nil, err
	}
	freed, err := t.newFreed(a, leaves, chunks)
	return b, freed, err
}

// plan answers a batch, and finds out what it needs, leaf by leaf and chunk by
// chunk.
func (t *Tree[C]) plan(a *applying) (*kernel.Next, error) {
	w, n, v := &t.work, int(a.N), &t.now.version
	o := a.owned
	if o == nil { // it was to be a flat merge
		from := w.Used
		o = t.newOwned(a)
		a.owned = o
		if err := t.clearWork(from); err != nil {
			return nil, err
		}
	}
	o.Homes, o.Acts = w.Words(n), a.acts
	if err := t.run.Probe(v, &a.Batch, o.Homes, a.acts); err != nil {
		return nil, err
	}
	if len(t.held) > 0 {
		o.Copy = 1
	}
	o.Heads, o.Inserts, o.Home, o.Begin = w.Words(n+1), w.Words(n+1), w.Words(n), w.Words(n+1)
	o.Refs, o.Counts, o.Base, o.Size, o.Need = w.Words(n), w.Words(n), w.Words(n), w.Words(n), w.Words(n)
	next := &kernel.Next{Become: w.Words(int(v.Count) + 1), Fresh: w.Words(int(v.Count) + 1)}
	if n <= t.few {
		return next, t.planFew(a, next)
	}
	if err := t.listEffects(a); err != nil {
		return nil, err
	}
	if err := t.run.Owns(o, t.scans.next(n)); err != nil {
		return nil, err
	}
	if err := t.run.Plan(v, o); err != nil {
		return nil, err
	}
	return next, t.run.Sums(v, o, next, t.scans.next(n), t.scans.next(int(v.Count)))
}

// planFew is the rest of plan for a few operations, with what they come to.
func (t *Tree[C]) planFew(a *applying, next *kernel.Next) error {
	if err := t.queued(StepProbe); err != nil {
		return err
	}
	e, v := a.effects, &t.now.version
	if e == nil {
		e = &Effects{}
	}
	err := t.run.PlanFew(v, &a.Batch, a.owned, next, e.Keys, e.Vals, e.Kinds, t.told+4*toldEffects, t.scans.next(int(a.N)), t.scans.next(int(v.Count)))
	if err != nil || a.effects == nil {
		return err
	}
	return t.queued(StepEffects)
}

// write writes what was planned, of so many leaves that are touched at most, and a
// table.
func (t *Tree[C]) write(a *applying, touched int, next *kernel.Next, b *table) error {
	v, o, leaves, chunks := &t.now.version, a.owned, t.leaves.slots(), t.chunks.slots()
	to := b.next()
	to.Become, to.Fresh, to.Totals = next.Become, next.Fresh, t.work.Words(int(b.version.Count)+1)
	if err := t.move(a, touched, leaves); err != nil {
		return err
	}
	if err := t.queued(StepWrite); err != nil {
		return err
	}
	if err := t.run.Rechunk(v, o, leaves, chunks, &to); err != nil {
		return err
	}
	return t.run.FinishOwn(&b.version, o, to.Totals, a.freed, t.told+4*toldEntries, t.scans.next(int(b.version.Count)))
}

// move writes the leaves that are touched.
func (t *Tree[C]) move(a *applying, touched int, leaves *kernel.Slots) error {
	v, o := &t.now.version, a.owned
	if int(a.N) <= t.few {
		return t.run.MoveFew(v, &a.Batch, o, touched, leaves)
	}
	if err := t.run.Move(v, &a.Batch, o, touched, leaves); err != nil {
		return err
	}
	return t.run.Store(v, &a.Batch, o, leaves)
}

// newFreed returns room for what a batch frees. Where a snapshot may need it, it
// is memory of its own.
func (t *Tree[C]) newFreed(a *applying, leaves, chunks int) (*kernel.Freed, error) {
	f := &kernel.Freed{Counts: a.freed}
	if len(t.held) == 0 {
		f.Leaves, f.Chunks = t.work.Words(leaves), t.work.Words(chunks)
		return f, nil
	}
	at, err := t.dev.Alloc(device.Aligned(4*leaves) + device.Aligned(4*chunks))
	if err != nil {
		return nil, err
	}
	t.freeing = at
	f.Leaves, f.Chunks = at, at+device.Ptr(device.Aligned(4*leaves))
	return f, nil
}

// outcome is what there is after a batch: entries, and leaves and chunks that it has
// freed.
type outcome struct{ entries, leaves, chunks int }

// publish makes a table, of which everything is queued, the newest version. What
// the batch has found is fetched meanwhile; leaves have been written, so that the
// version is published also if that fails, or panics. Where the outcome is not known
// before, it waits for it.
func (t *Tree[C]) publish(a *applying, b *table, freed *kernel.Freed, leaves, chunks int, known *outcome) (err error) {
	if err := t.queued(StepTable); err != nil {
		return err
	}
	t.queuing = true
	defer func() { err = errors.Join(t.replace(b, freed, leaves, chunks, known), err) }()
	if a.fetch != nil {
		return a.fetch()
	}
	return nil
}

// replace makes a table the newest version.
func (t *Tree[C]) replace(b *table, freed *kernel.Freed, leaves, chunks int, now *outcome) error {
	if now == nil {
		got, err := t.ask(toldEntries, 3)
		if err != nil {
			return err
		}
		now = &outcome{got[0], got[1], got[2]}
	}
	t.leaves.took(leaves)
	t.chunks.took(chunks)
	old := t.now
	b.entries, b.leaves, b.seq = now.entries, old.leaves+leaves-now.leaves, old.seq+1
	t.now, t.entries = b, now.entries
	if len(t.held) > 0 {
		t.limbo = append(t.limbo, limbo{old.seq, freed.Leaves, freed.Chunks, now.leaves, now.chunks})
		t.freeing = 0
		if t.held[old] == 0 {
			t.tables = append(t.tables, old)
		}
		return nil
	}
	t.tables = append(t.tables, old)
	if err := t.leaves.give(t.run.Stream, freed.Leaves, now.leaves); err != nil {
		return err
	}
	return t.chunks.give(t.run.Stream, freed.Chunks, now.chunks)
}
