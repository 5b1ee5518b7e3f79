package twin

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

// onDevice is the twin on the GPU, and the memory through which it is spoken to.
type onDevice[C order.Code] struct {
	sync.Mutex
	dev      device.Device
	tree     *chunked.Tree[C]
	buffers  [bufferCount]buffer
	latest   int // the buffer whose operations the tree may still be writing
	staging  staging
	stageMem []byte        // page-locked, for batches that do not travel in buckets
	side     device.Stream // in which values of a large batch come, and runs of the log go back
	brought  device.Event  // that values are there
	values   vector.OnDevice
}

// buffer is device memory that grows.
type buffer struct {
	at   device.Ptr
	room int
}

// free gives its memory back, which nobody uses.
func (b *buffer) free(dev device.Device) error {
	at := b.at
	if *b = (buffer{}); at == 0 {
		return nil
	}
	return dev.Free(at)
}

// The buffers, by contents.
const (
	opsBuffer  = iota // keys, vals and kinds of a batch, one behind the other
	nextBuffer        // the same, of a large batch that comes while the one before is written
	oldBuffer         // its answers: old, then had
	keysBuffer        // for ranks and ranges
	valsBuffer
	runsBuffer
	effectBuffer // its effects: keys, vals and kinds
	bufferCount
)

// buffer returns device memory of at least the given bytes. Its contents are
// lost. Where there is not so much memory, the buffer stays as it is, for
// smaller batches.
func (g *onDevice[C]) buffer(which, bytes int) (device.Ptr, error) {
	b := &g.buffers[which]
	if bytes <= b.room {
		return b.at, nil
	}
	old := *b
	if old.at != 0 {
		if err := errors.Join(g.tree.Wait(), b.free(g.dev)); err != nil {
			return 0, err
		}
	}
	at, room, err := device.AllocMore(g.dev, bytes)
	if err == nil {
		*b = buffer{at, room}
		return at, nil
	}
	if old.at == 0 {
		return 0, err
	}
	again, lost := g.dev.Alloc(old.room)
	if lost == nil {
		*b = buffer{again, old.room}
	}
	return 0, errors.Join(err, lost)
}

// prepare takes all that reading takes, so that reading never lacks memory.
func (g *onDevice[C]) prepare() error {
	for _, which := range []int{keysBuffer, valsBuffer} {
		if _, err := g.buffer(which, stageOps*sizeOf[C]()); err != nil {
			return err
		}
	}
	if _, err := g.buffer(runsBuffer, stageOps); err != nil {
		return err
	}
	if _, err := g.stage(); err != nil {
		return err
	}
	return g.staging.ensure(8*g.staging.bucket, sizeOf[C]()) // all slots, as large as they become
}

// batch is operations on their way to the GPU.
type batch[C order.Code] struct {
	n      int
	kinds  bool // there are several kinds
	kind   op.Kind
	sorted bool
	// fill sets keys, vals and kinds to those of operations from lo on, where they
	// are not nil. Several goroutines call it.
	fill func(lo int, keys, vals []C, kinds []uint8)
	// own is operations in page-locked memory of the caller: those of them that are.
	own Columns[C]
	// answer, unless nil, gets the results of operations from lo on: had alone where
	// old is false. Several goroutines call it.
	answer func(lo int, old []C, had []uint8)
	old    bool
	// fetch, unless nil, fetches the effects of the batch, and its answers if asks
	// is true, instead of answer: see chunked.Ops.
	fetch   func(ops *chunked.Ops) error
	asks    bool
	workers int
	in      int // the buffer that it is in on the GPU
}

// sets reports whether there may be values among the operations.
func (b *batch[C]) sets() bool { return b.kinds || b.kind == op.Set }

// direct reports whether all operations travel from the caller's own memory.
func (b *batch[C]) direct() bool {
	return b.own.Keys != nil && b.ownRest()
}

// ownRest reports whether all but keys does.
func (b *batch[C]) ownRest() bool {
	return (!b.sets() || b.own.Vals != nil) && (!b.kinds || b.own.Kinds != nil)
}

// sizeOf returns the bytes of a code.
func sizeOf[C order.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}

// stage returns page-locked memory of which nothing is under way: for keys, vals
// and kinds of stageOps operations.
func (g *onDevice[C]) stage() (_ []byte, err error) {
	if g.stageMem == nil {
		g.stageMem, err = g.dev.HostAlloc(stageOps * (2*sizeOf[C]() + 1))
	}
	return g.stageMem, err
}

// stageOps is the number of keys or entries that travel at a time where they do not
// in buckets; or half as many operations, with their results.
const stageOps = 256 << 10

// place returns a batch with device memory for it, and for its results.
func (g *onDevice[C]) place(b *batch[C]) (*chunked.Ops, error) {
	column := device.Aligned(b.n * sizeOf[C]())
	ops := &chunked.Ops{N: b.n, Kind: b.kind, Sorted: b.sorted}
	bytes := column
	if b.sets() {
		bytes += column
	}
	if b.kinds {
		bytes += b.n
	}
	var err error
	if ops.Keys, err = g.opsBuffer(b, bytes); err != nil {
		return nil, err
	}
	if b.sets() {
		ops.Vals = ops.Keys + device.Ptr(column)
	}
	if b.kinds {
		ops.Kinds = ops.Vals + device.Ptr(column)
	}
	if b.answer != nil || b.asks {
		if ops.Old, err = g.buffer(oldBuffer, column+b.n); err != nil {
			return nil, err
		}
		ops.Had = ops.Old + device.Ptr(column)
	}
	return ops, nil
}

// opsBuffer returns device memory for the operations of a batch. Few travel in the
// tree's stream, behind the work queued there. Others come in other streams while
// the batch before is being written, and must leave that alone: where there is
// memory for both. Where there is not, one of them has all that there is.
func (g *onDevice[C]) opsBuffer(b *batch[C], bytes int) (device.Ptr, error) {
	which := opsBuffer
	if b.n > g.staging.together && g.latest == opsBuffer {
		which = nextBuffer
	}
	at, err := g.buffer(which, bytes)
	if next := &g.buffers[nextBuffer]; err != nil && short(err) && (which == nextBuffer || next.at != 0) {
		if err := errors.Join(g.tree.Wait(), next.free(g.dev)); err != nil {
			return 0, err
		}
		which = opsBuffer
		at, err = g.buffer(which, bytes)
	}
	b.in = which
	return at, err
}

// placeEffects takes device memory for the effects of a batch.
func (g *onDevice[C]) placeEffects(ops *chunked.Ops) (err error) {
	column := device.Ptr(device.Aligned(ops.N * sizeOf[C]()))
	at, err := g.buffer(effectBuffer, 2*int(column)+ops.N)
	if err != nil {
		return err
	}
	ops.Effects = &chunked.Effects{Keys: at, Vals: at + column, Kinds: at + 2*column}
	return g.openSide()
}

// openSide makes the stream beside the tree's.
func (g *onDevice[C]) openSide() (err error) {
	if g.side == nil {
		if g.side, err = g.dev.NewStream(); err != nil {
			return err
		}
	}
	if g.brought == nil {
		g.brought, err = g.dev.NewEvent()
	}
	return err
}

// apply does a batch on the GPU: all of it, or nothing if there was no memory for
// it. All memory is there before anything is done.
func (g *onDevice[C]) apply(b *batch[C]) error {
	ops, err := g.place(b)
	if err != nil {
		return err
	}
	if b.fetch != nil {
		if err := g.placeEffects(ops); err != nil {
			return err
		}
		fetch := func() error { return b.fetch(ops) }
		if b.n <= g.staging.together {
			ops.Early = fetch
		} else {
			ops.Fetch = fetch
		}
	}
	if b.n <= g.staging.together || b.direct() {
		err = g.applyTogether(b, ops)
	} else {
		err = g.applyMany(b, ops)
	}
	if err == nil {
		g.latest = b.in
	}
	return err
}

// version is a tree on the GPU that can be read: the newest, or as it was.
type version interface {
	Len() int
	FindIn(st device.Stream, keys device.Ptr, n int, vals, found device.Ptr) error
	Rank(keys device.Ptr, n int, after bool, ranks device.Ptr) error
	Entries(first, offsets device.Ptr, ranges, n int, keys, vals device.Ptr) error
}

// find looks n keys up: see Twin.Find.
func (g *onDevice[C]) find(v version, n, workers int, fill func(lo int, keys []C), answer func(lo int, vals []C, found []byte)) error {
	if err := errors.Join(g.tree.Wait(), g.staging.ensure(n, sizeOf[C]())); err != nil {
		return err
	}
	return g.staging.run(&finding[C]{g.staging.course(n), v, fill, answer}, n, workers)
}

// close gives the device back, with the staging's memory.
func (g *onDevice[C]) close() (err error) {
	if g.tree != nil {
		err = g.tree.Wait()
	}
	if g.stageMem != nil {
		err = errors.Join(err, g.dev.HostFree(g.stageMem))
	}
	if g.brought != nil {
		err = errors.Join(err, g.brought.Close())
	}
	if g.side != nil {
		err = errors.Join(err, g.side.Close())
	}
	for i := range g.buffers {
		err = errors.Join(err, g.buffers[i].free(g.dev))
	}
	err = errors.Join(err, g.values.Close())
	if g.tree != nil {
		err = errors.Join(err, g.tree.Close())
	}
	return errors.Join(err, g.dev.Close())
}
