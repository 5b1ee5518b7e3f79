package chunked

import (
	"errors"
	"fmt"
	"math"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/op"
)

// Ops is a batch of operations in device memory, in the order in which they are
// to be done.
type Ops struct {
	N     int
	Keys  device.Ptr // Apply changes them
	Vals  device.Ptr // values to set; 0 where none are set
	Kinds device.Ptr // kinds (u8), as package bplus numbers them; 0 where all are of one kind
	Kind  op.Kind
	// Old and Had (u8) get the value just before each operation, and whether
	// there was one; 0 where the caller does not ask.
	Old, Had device.Ptr
	// Sorted says that keys ascend.
	Sorted bool
	// Effects asks for the effects of the batch: the last change of each key,
	// in key order.
	Effects *Effects
	// Bring, unless nil, brings Vals and Kinds, and returns when they are there, or
	// when the tree's stream will wait for them. It is called while keys are sorted,
	// and, where nobody needs either before, while it is found out what each does.
	Bring func() error
	// Early, unless nil, is called when the kernels that set Old, Had and Effects are
	// queued: copies that it queues in the tree's stream are done when Apply returns.
	// The number of effects is not known then. It may be called again, and then its
	// first copies do not count. Where it returns an error, so does Apply, and
	// nothing has been done.
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

// resultBytes is the size of the numbers that kernels tell the host at once.
const resultBytes = 64

// Apply does all operations of a batch, as if one after the other, or none if
// there is an error. It returns when the answers are there, and it is certain that
// there is room for everything: writes may still be queued in the tree's stream. Until
// Wait, or until the next batch has returned, Ops stays as it is. If the device fails
// meanwhile, the next call that uses it returns the error.
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
// be room for all of it beside the present version.
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

// longest returns the most numbers that a batch of n operations adds up at once: a
// table ahead has room for some more chunks, and a flat merge makes four of three that
// were full.
func (t *Tree[C]) longest(n int) int { return 2*n + t.roomAhead() + int(t.now.version.Count)/2 }

// applying is a batch on its way.
type applying struct {
	kernel.Batch
	effects *Effects
	bring   func() error // nil when it was called
	early   func() error
	fetch   func() error
	acts    device.Ptr
	owned   *kernel.Owned // where memory for it has been cleared
	freed   device.Ptr    // counts of freed slots, 0
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
		Keys: ops.Keys, Vals: ops.Vals, Kinds: ops.Kinds, Old: ops.Old, Had: ops.Had, N: uint32(n), Kind: uint32(ops.Kind),
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

// listEffects lists the effects of a batch, if the caller asks for them.
func (t *Tree[C]) listEffects(a *applying) error {
	if err := t.queued(StepProbe); err != nil || a.effects == nil {
		return err
	}
	e, b := a.effects, a.Batch
	if b.Vals == 0 {
		b.Vals = b.Keys // acts may be anything, also sets, where a flat merge is in vain
	}
	if err := t.run.Effects(&b, a.acts, e.Keys, e.Vals, e.Kinds, t.told+4*toldEffects, t.scans.next(int(a.N))); err != nil {
		return err
	}
	return t.queued(StepEffects)
}

// decide returns n of the numbers that kernels tell, from one on, among them those
// that decide about the batch. Values arrive until then, and the caller may copy
// the answers of the batch: all kernels for that are queued. For after see askAnd.
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

// reserve makes sure that the given numbers of new leaves and chunks can be taken.
func (t *Tree[C]) reserve(leaves, chunks int) error {
	if err := t.leaves.reserve(leaves); err != nil {
		return err
	}
	return t.chunks.reserve(chunks)
}

// newVersion returns a table of count chunks, and room for lists of freed
// slots: at most the given leaves and chunks.
func (t *Tree[C]) newVersion(a *applying, count, leaves, chunks int) (*table, *kernel.Freed, error) {
	b, err := t.newTable(count)
	if err != nil {
		return nil, nil, err
	}
	freed, err := t.newFreed(a, leaves, chunks)
	return b, freed, err
}

// newFreed returns room for lists of the slots that a batch frees. Where a
// snapshot may need it, it is memory of its own.
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

// outcome is the number of entries after a batch, and of leaves and chunks that it
// has freed.
type outcome struct{ entries, leaves, chunks int }

// publish makes a table, of which everything is queued, the newest version. The
// answers of the batch are fetched meanwhile; leaves have been written, so that the
// version is published also if that fails, or panics. Where the outcome is not known
// before, it waits for it.
func (t *Tree[C]) publish(a *applying, b *table, freed *kernel.Freed, leaves, chunks int, known *outcome) (err error) {
	if err := t.queued(StepTable); err != nil {
		return begun(err)
	}
	t.queuing = true
	defer func() { err = begun(errors.Join(t.replace(b, freed, leaves, chunks, known), err)) }()
	if a.fetch != nil {
		return a.fetch()
	}
	return nil
}

// begun wraps the error of a batch that is being written, so that it never is one
// after which the tree is as it was.
func begun(err error) error {
	if errors.Is(err, device.ErrOutOfMemory) {
		return fmt.Errorf("%w: a batch is half done: %v", device.ErrLaunchFailed, err)
	}
	return err
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
