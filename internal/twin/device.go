package twin

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// onDevice is the twin on the GPU, and the memory through which it is spoken to.
type onDevice[C order.Code] struct {
	sync.Mutex
	dev     device.Device
	tree    *chunked.Tree[C]
	buffers [bufferCount]buffer
	staging [2]*segment[C]
	bits    []byte // page-locked, for what a search has found
	values  vector.OnDevice
}

// buffer is device memory that grows.
type buffer struct {
	at   device.Ptr
	room int
}

// What buffers hold.
const (
	keysBuffer = iota
	valsBuffer
	kindsBuffer
	oldBuffer
	hadBuffer
	effectKeys
	effectVals
	effectKinds
	bufferCount
)

// buffer returns device memory of at least so many bytes. What it held is gone.
// Where there is not so much memory, the buffer stays, for what is smaller.
func (g *onDevice[C]) buffer(which, bytes int) (device.Ptr, error) {
	b := &g.buffers[which]
	if bytes <= b.room {
		return b.at, nil
	}
	old := *b
	if *b = (buffer{}); old.at != 0 {
		if err := g.dev.Free(old.at); err != nil {
			return 0, err
		}
	}
	at, err := g.dev.Alloc(bytes)
	if err == nil {
		*b = buffer{at, bytes}
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
	if _, err := g.buffer(hadBuffer, stageOps); err != nil {
		return err
	}
	if _, err := g.stage(0); err != nil {
		return err
	}
	return g.foundBits()
}

// foundBits makes sure that there is memory for what a search has found.
func (g *onDevice[C]) foundBits() (err error) {
	if g.bits == nil {
		g.bits, err = g.dev.HostAlloc(stageOps / 8)
	}
	return err
}

// batch is operations on their way to the GPU.
type batch[C order.Code] struct {
	n      int
	kinds  bool // there are several kinds
	kind   bplus.Kind
	sorted bool
	// fill sets keys, vals and kinds to those of operations from lo on. Several
	// goroutines call it.
	fill func(lo int, keys, vals []C, kinds []uint8)
	// answer, unless nil, gets what operations from lo on have found. Several
	// goroutines call it.
	answer func(lo int, old []C, had []uint8)
	// effects asks for what the batch comes to: see segments.
	effects *chunked.Effects
	workers int
}

// sizeOf returns the bytes of a code.
func sizeOf[C order.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}

// newSegment returns page-locked memory for so many operations.
func newSegment[C order.Code](dev device.Device, ops int) (*segment[C], error) {
	width := sizeOf[C]()
	memory, err := dev.HostAlloc(ops * (2*width + 1))
	if err != nil {
		return nil, err
	}
	return &segment[C]{
		memory: memory,
		keys:   arena.As[C](memory[:ops*width]),
		vals:   arena.As[C](memory[ops*width : 2*ops*width]),
		kinds:  arena.As[bplus.Kind](memory[2*ops*width:]),
	}, nil
}

// stage returns page-locked memory of which nothing is under way.
func (g *onDevice[C]) stage(i int) (*segment[C], error) {
	s := &g.staging[i%len(g.staging)]
	if *s == nil {
		var err error
		if *s, err = newSegment[C](g.dev, stageOps); err != nil {
			return nil, err
		}
	} else if i >= len(g.staging) {
		if err := g.tree.Stream().Synchronize(); err != nil {
			return nil, err
		}
	}
	return *s, nil
}

// stageOps is the number of operations that travel at a time.
const stageOps = 256 << 10

// send copies a batch to the GPU.
func (g *onDevice[C]) send(b *batch[C]) (*chunked.Ops, error) {
	width := sizeOf[C]()
	ops := &chunked.Ops{N: b.n, Kind: uint32(b.kind), Sorted: b.sorted}
	var err error
	if ops.Keys, err = g.buffer(keysBuffer, b.n*width); err != nil {
		return nil, err
	}
	if ops.Vals, err = g.buffer(valsBuffer, b.n*width); err != nil {
		return nil, err
	}
	if b.kinds {
		if ops.Kinds, err = g.buffer(kindsBuffer, b.n); err != nil {
			return nil, err
		}
	}
	st := g.tree.Stream()
	for i, lo := 0, 0; lo < b.n; i, lo = i+1, lo+stageOps {
		s, err := g.stage(i)
		if err != nil {
			return nil, err
		}
		n := min(stageOps, b.n-lo)
		b.fillAll(s, lo, n)
		if err := st.CopyIn(ops.Keys+device.Ptr(lo*width), arena.Bytes(s.keys[:n])); err != nil {
			return nil, err
		}
		if err := st.CopyIn(ops.Vals+device.Ptr(lo*width), arena.Bytes(s.vals[:n])); err != nil {
			return nil, err
		}
		if b.kinds {
			if err := st.CopyIn(ops.Kinds+device.Ptr(lo), arena.Bytes(s.kinds[:n])); err != nil {
				return nil, err
			}
		}
	}
	return ops, st.Synchronize()
}

// fillPiece is the number of operations that a goroutine fills in at a time.
const fillPiece = 16 << 10

// fillAll fills n operations from lo on in.
func (b *batch[C]) fillAll(s *segment[C], lo, n int) {
	par.Run(max(1, b.workers), (n+fillPiece-1)/fillPiece, par.Func(func(p int) {
		from, to := p*fillPiece, min((p+1)*fillPiece, n)
		var kinds []uint8
		if b.kinds {
			kinds = arena.As[uint8](arena.Bytes(s.kinds[from:to]))
		}
		b.fill(lo+from, s.keys[from:to], s.vals[from:to], kinds)
	}))
}

// apply does a batch on the GPU.
func (g *onDevice[C]) apply(b *batch[C]) error {
	ops, err := g.send(b)
	if err != nil {
		return err
	}
	width := sizeOf[C]()
	if b.answer != nil {
		if ops.Old, err = g.buffer(oldBuffer, b.n*width); err != nil {
			return err
		}
		if ops.Had, err = g.buffer(hadBuffer, b.n); err != nil {
			return err
		}
	}
	if e := b.effects; e != nil {
		if e.Keys, err = g.buffer(effectKeys, b.n*width); err != nil {
			return err
		}
		if e.Vals, err = g.buffer(effectVals, b.n*width); err != nil {
			return err
		}
		if e.Kinds, err = g.buffer(effectKinds, b.n); err != nil {
			return err
		}
		ops.Effects = e
	}
	if err := g.tree.Apply(ops); err != nil {
		return err
	}
	if b.answer == nil {
		return nil
	}
	return g.receive(b, ops.Old, ops.Had)
}

// receive hands out what a batch has found.
func (g *onDevice[C]) receive(b *batch[C], old, had device.Ptr) error {
	width, st := sizeOf[C](), g.tree.Stream()
	for lo := 0; lo < b.n; lo += stageOps {
		s, err := g.stage(0)
		if err != nil {
			return err
		}
		n := min(stageOps, b.n-lo)
		if err := st.CopyOut(arena.Bytes(s.vals[:n]), old+device.Ptr(lo*width)); err != nil {
			return err
		}
		if err := st.CopyOut(arena.Bytes(s.kinds[:n]), had+device.Ptr(lo)); err != nil {
			return err
		}
		if err := st.Synchronize(); err != nil {
			return err
		}
		b.answerAll(s, lo, n)
	}
	return nil
}

// answerAll hands out what n operations from lo on have found.
func (b *batch[C]) answerAll(s *segment[C], lo, n int) {
	par.Run(max(1, b.workers), (n+fillPiece-1)/fillPiece, par.Func(func(p int) {
		from, to := p*fillPiece, min((p+1)*fillPiece, n)
		b.answer(lo+from, s.vals[from:to], arena.As[uint8](arena.Bytes(s.kinds[from:to])))
	}))
}

// version is a tree on the GPU that can be read: the newest, or as it was.
type version interface {
	Len() int
	Find(keys device.Ptr, n int, vals, found device.Ptr) error
	Rank(keys device.Ptr, n int, after bool, ranks device.Ptr) error
	Entries(first, offsets device.Ptr, ranges, n int, keys, vals device.Ptr) error
}

// find looks keys up.
func (g *onDevice[C]) find(v version, b *batch[C]) error {
	width, st := sizeOf[C](), g.tree.Stream()
	keys, err := g.buffer(keysBuffer, stageOps*width)
	if err != nil {
		return err
	}
	vals, err := g.buffer(valsBuffer, stageOps*width)
	if err != nil {
		return err
	}
	found, err := g.buffer(hadBuffer, stageOps)
	if err != nil {
		return err
	}
	if err := g.foundBits(); err != nil {
		return err
	}
	for lo := 0; lo < b.n; lo += stageOps {
		s, err := g.stage(0)
		if err != nil {
			return err
		}
		n := min(stageOps, b.n-lo)
		b.fillAll(s, lo, n)
		if err := st.CopyIn(keys, arena.Bytes(s.keys[:n])); err != nil {
			return err
		}
		if err := v.Find(keys, n, vals, found); err != nil {
			return err
		}
		if err := st.CopyOut(arena.Bytes(s.vals[:n]), vals); err != nil {
			return err
		}
		if err := st.CopyOut(g.bits[:(n+31)/32*4], found); err != nil {
			return err
		}
		if err := st.Synchronize(); err != nil {
			return err
		}
		for i := range n {
			s.kinds[i] = bplus.Kind(g.bits[i/8] >> (i % 8) & 1)
		}
		b.answerAll(s, lo, n)
	}
	return nil
}

// close gives the device back.
func (g *onDevice[C]) close() (err error) {
	for _, s := range g.staging {
		if s != nil {
			err = errors.Join(err, g.dev.HostFree(s.memory))
		}
	}
	if g.bits != nil {
		err = errors.Join(err, g.dev.HostFree(g.bits))
	}
	for _, b := range g.buffers {
		if b.at != 0 {
			err = errors.Join(err, g.dev.Free(b.at))
		}
	}
	err = errors.Join(err, g.values.Close())
	if g.tree != nil {
		err = errors.Join(err, g.tree.Close())
	}
	return errors.Join(err, g.dev.Close())
}
