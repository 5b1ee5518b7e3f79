// Package chunked is the mutable layout of a GPU: an ordered map in its memory
// that takes batches of operations, each batch as a chain of kernels.
//
//	leaf    32 keys, 32 values; entries in order, no gaps          a slot of leaves
//	chunk   pivots, separators, references, counts of 256 leaves   a slot of chunks
//	table   the chunks in order, separators above, first ranks     a version of the tree
//
// A separator is the greatest key that may be below it, so the number of
// separators below a key is the child to go on to. Kernels are in
// device/kernel/chunked.cu; docs/updates.md says how a batch runs.
//
// The host knows sizes and which slots were never used. It looks at what a batch
// needs before anything of the tree is written, so a batch that does not fit
// leaves the tree as it was.
package chunked

import (
	"errors"
	"fmt"
	"math"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/room"
	"github.com/pando-index/pando/internal/order"
)

// Tree is a map from codes to codes in a device's memory. Its methods must not
// be called at the same time.
type Tree[C order.Code] struct {
	dev            device.Device
	run            kernel.Chunked
	leaves, chunks space
	tables         []*table // not in use
	now            *table
	making         *table     // the last one that newTable returned: a batch that failed leaves it behind
	freeing        device.Ptr // a list of slots that a batch frees, in memory of its own, until it is in limbo
	entries        int        // of the newest version
	held           map[*table]int
	limbo          []limbo
	work           room.Work
	scans          scans      // of the batch that is on its way
	told           device.Ptr // numbers about it that kernels tell the host
	params         kernel.Params
	results        []byte       // page-locked
	decided        device.Event // that they are there
	budget         budget
	flat           int  // operations, per leaf times 16, from which on a batch is merged with everything
	shortcut       int  // operations from which on it is tried to sort by a part of the key
	sortTo         int  // bit below which keys differ, as far as is known; 0 is not at all
	luck           luck // with that
	few            int  // operations up to which kernels are launched together
	crowded        int  // operations of a block on a chunk from which on there is no flat merge
	careful        bool // tests: nothing is queued before its need is known
	queuing        bool // writes of the last batch are queued, as far as the host knows
	watch          func(Step) error
}

// table is a version of the tree, in one piece of device memory.
type table struct {
	at      device.Ptr
	room    int // chunks that it has room for
	version kernel.Version
	seq     int // number of the version
	entries int
	leaves  int
}

// limbo is slots that older versions, which snapshots have, still need.
type limbo struct {
	seq                   int        // the last version that has them
	leaves, chunks        device.Ptr // lists of them, in one piece of memory
	leafCount, chunkCount int
}

// Options are the settings of a tree.
type Options struct {
	// Room is the most memory that leaves and chunks may take; 0 means all of
	// the device's memory.
	Room int64
	// Flat is the number of operations per sixteen leaves from which on a batch is
	// merged with everything instead of leaf by leaf; 0 is a default, below 0 never.
	Flat int
}

// New returns an empty tree on a device. The device stays the caller's.
func New[C order.Code](dev device.Device, opts Options) (t *Tree[C], err error) {
	t = &Tree[C]{dev: dev, held: map[*table]int{}, flat: opts.Flat, shortcut: shortcutFrom, few: kernel.FewOps, crowded: crowdedFrom, budget: budget{opts.Room}}
	if t.flat == 0 {
		t.flat = FlatFrom
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	t.run.Bits = codeBits[C]()
	if t.run.Set, err = kernel.LoadOnly(dev, kernel.ChunkedSource, kernel.Sorting); err != nil {
		return t, err
	}
	if t.run.Stream, err = dev.NewStream(); err != nil {
		return t, err
	}
	if t.results, err = dev.HostAlloc(resultBytes); err != nil {
		return t, err
	}
	if t.decided, err = dev.NewEvent(); err != nil {
		return t, err
	}
	if opts.Room == 0 {
		if t.budget.left, err = dev.FreeBytes(); err != nil {
			return t, err
		}
	}
	if err := t.leaves.open(dev, kernel.LeafBytes(t.run.Bits), &t.budget, 6); err != nil {
		return t, err
	}
	if err := t.chunks.open(dev, kernel.ChunkBytes(t.run.Bits), &t.budget, 1); err != nil {
		return t, err
	}
	return t, t.clear()
}

// FlatFrom is the default of Options.Flat: nine operations for four leaves. On an
// H200 leaf by leaf takes 0.9 times as long at seven for four, whether the tree has
// 64M or 1G entries, and 1.4 times as long at seven a leaf.
const FlatFrom = 36

func codeBits[C order.Code]() int {
	if uint64(^C(0)) == math.MaxUint32 {
		return 32
	}
	return 64
}

// clear makes the first version: one chunk with one leaf, without entries.
func (t *Tree[C]) clear() error {
	if err := t.leaves.reserve(1); err != nil {
		return err
	}
	if err := t.chunks.reserve(1); err != nil {
		return err
	}
	next, err := t.newTable(1)
	if err != nil {
		return err
	}
	f := kernel.Flat{Leaves: 1}
	to := next.next()
	if err := t.start(4096+scanBytes(1), 1); err != nil {
		return err
	}
	freed := t.work.Words(2)
	if err := t.clearWork(0); err != nil {
		return err
	}
	to.Totals = t.work.Words(1)
	if err := t.run.FlatChunks(&next.version, 1, &f, t.leaves.slots(), t.chunks.slots(), &to); err != nil {
		return err
	}
	if err := t.run.Finish(&next.version, to.Totals, freed, t.told+4*toldEntries, t.scans.next(1)); err != nil {
		return err
	}
	t.leaves.took(1)
	t.chunks.took(1)
	if err := t.run.Stream.Synchronize(); err != nil {
		return err
	}
	next.leaves = 1
	t.now = next
	return nil
}

// unmade takes back the table of a batch that failed, and its list of freed
// slots.
func (t *Tree[C]) unmade() error {
	if t.making != nil && t.making != t.now {
		t.tables = append(t.tables, t.making)
	}
	list := t.freeing
	t.making, t.freeing = nil, 0
	if list == 0 {
		return nil
	}
	return t.dev.Free(list)
}

// newTable returns a table for the given number of chunks, which are not there yet.
func (t *Tree[C]) newTable(chunks int) (*table, error) {
	if err := t.unmade(); err != nil {
		return nil, err
	}
	for i, b := range t.tables {
		if b.room >= chunks {
			t.tables = append(t.tables[:i], t.tables[i+1:]...)
			t.layOut(b, chunks)
			t.making = b
			return b, nil
		}
	}
	if n := len(t.tables); n > 0 { // too small from now on
		old := t.tables[n-1]
		t.tables = t.tables[:n-1]
		if err := errors.Join(t.Wait(), t.dev.Free(old.at)); err != nil {
			return nil, err
		}
	}
	b := &table{room: chunks + chunks/4 + 16}
	var err error
	if b.at, err = t.dev.Alloc(tableBytes(b.room, t.run.Bits)); err != nil {
		return nil, err
	}
	t.layOut(b, chunks)
	t.making = b
	return b, nil
}

// tableBytes returns the bytes of a table for the given number of chunks.
func tableBytes(chunks, bits int) (bytes int) {
	for _, n := range kernel.SepLevels(chunks, bits) {
		bytes += sepBytes(n, bits)
	}
	return device.Aligned(bytes) + device.Aligned(headBytes(chunks, bits)) + 3*device.Aligned(4*(chunks+1))
}

func headBytes(n, bits int) int { return n * kernel.HeadKeys * bits / 8 }

// sepBytes returns the memory of a level. Levels lie one behind the other.
func sepBytes(n, bits int) int { return kernel.SepRoom(n, bits) * bits / 8 }

// layOut sets the addresses of the parts of a table of the given number of chunks.
func (t *Tree[C]) layOut(b *table, chunks int) {
	at := b.at
	take := func(bytes int) (p device.Ptr) {
		p, at = at, at+device.Ptr(device.Aligned(bytes))
		return p
	}
	v := kernel.Version{Leaves: t.leaves.base, Chunks: t.chunks.base, Count: uint32(chunks)}
	sizes := kernel.SepLevels(chunks, t.run.Bits)
	v.Levels = uint32(len(sizes))
	for l, n := range sizes {
		v.Seps[l] = at
		at += device.Ptr(sepBytes(n, t.run.Bits))
	}
	at = b.at + device.Ptr(device.Aligned(int(at-b.at)))
	v.Heads = take(headBytes(chunks, t.run.Bits))
	v.Slots, v.Used, v.First = take(4*chunks), take(4*chunks), take(4*(chunks+1))
	b.version = v
}

// next returns the table as kernels fill it.
func (b *table) next() kernel.Next {
	v := &b.version
	return kernel.Next{Seps: v.Seps[v.Levels-1], Heads: v.Heads, Slots: v.Slots, Used: v.Used}
}

// Len returns the number of entries.
func (t *Tree[C]) Len() int { return t.entries }

// Bytes returns the device memory that leaves and chunks take.
func (t *Tree[C]) Bytes() int64 { return t.leaves.bytes() + t.chunks.bytes() }

// Wait waits until all that Apply has queued is done.
func (t *Tree[C]) Wait() error {
	if !t.queuing {
		return nil
	}
	t.queuing = false
	return t.run.Stream.Synchronize()
}

// Close gives all memory back.
func (t *Tree[C]) Close() (err error) {
	if t.run.Stream != nil {
		err = errors.Join(t.Wait(), t.run.Stream.Close())
	}
	err = errors.Join(err, t.unmade())
	for b := range t.held {
		if b != t.now {
			t.tables = append(t.tables, b)
		}
	}
	for _, l := range t.limbo {
		err = errors.Join(err, t.dev.Free(l.leaves))
	}
	for _, b := range append(t.tables, t.now) {
		if b != nil {
			err = errors.Join(err, t.dev.Free(b.at))
		}
	}
	if t.decided != nil {
		err = errors.Join(err, t.decided.Close())
	}
	if t.results != nil {
		err = errors.Join(err, t.dev.HostFree(t.results))
	}
	if t.run.Set != nil {
		err = errors.Join(err, t.run.Set.Unload())
	}
	return errors.Join(err, t.leaves.close(), t.chunks.close(), t.work.Free())
}

var errTooLarge = fmt.Errorf("%w: a tree on a GPU has at most %d entries", kernel.ErrTooLarge, uint32(math.MaxUint32-1))
