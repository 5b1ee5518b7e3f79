package exec

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Image is a tree as it lies in memory, to be copied to a GPU byte for byte.
type Image struct {
	Tree   *simd.Tree
	Memory []byte
	Vals   int // byte of Memory where a column of values starts; 0 for none
	Bytes  int // of a value in the tree; 0 for none
}

// Buckets on a GPU. A bucket is what travels at once: large enough to hide a
// launch, small enough to stay in the CPU's cache on both ways. Experiment
// gpu-endtoend.
const (
	gpuBucket    = 64 << 10
	gpuBucketMin = 4 << 10
	minFeeders   = 2 // goroutines that send buckets, at least
	ahead        = 2 // buckets that each has on their way
)

// GPU runs batches on a GPU that holds a copy of the tree: each bucket is
// copied into page-locked memory, sent, searched, sent back, copied out. Each
// of several goroutines has two buckets on their way, so that it copies one
// while the GPU works on the other. What the GPU cannot do, for whatever reason,
// the CPU does; from then on the CPU does everything.
type GPU[K order.Key, C order.Code] struct {
	*CPU[K, C]
	dev    device.Device
	set    *kernel.Set
	tree   kernel.Tree
	image  Image
	feed   int // goroutines that send buckets
	slots  chan *slot
	closed chan struct{}
	once   sync.Once
	down   atomic.Pointer[error]
	jobs   sync.Pool // *gpuJob[K, C]
	forget runtime.Cleanup
}

// slot is what one bucket needs while it is on its way.
type slot struct {
	stream  device.Stream
	params  kernel.Params
	in, out []byte // page-locked
	bits    []byte
	devIn   device.Ptr
	devOut  device.Ptr
	devBits device.Ptr
	ranks   []int

	lo, hi int   // the queries on their way
	err    error // what went wrong when they were sent
}

// NewGPU copies a tree to a GPU. The device is the schedule's from then on,
// also if there is an error: Close, or the failing NewGPU, closes it.
func NewGPU[K order.Key, C order.Code](cpu *CPU[K, C], dev device.Device, image Image) (*GPU[K, C], error) {
	g := &GPU[K, C]{CPU: cpu, dev: dev, image: image, feed: max(cpu.workers, minFeeders), closed: make(chan struct{})}
	g.jobs.New = func() any { return &gpuJob[K, C]{gpu: g} }
	if err := g.prepare(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	g.forget = runtime.AddCleanup(g, func(d device.Device) { d.Close() }, dev)
	return g, nil
}

// need is the device memory for tree and buckets.
func (g *GPU[K, C]) need() int64 {
	return int64(len(g.image.Memory)) + int64(g.feed*ahead)*(gpuBucket*(8+8)+gpuBucket/8)
}

// prepare takes what is needed, after a look whether there is room for it.
func (g *GPU[K, C]) prepare() error {
	free, err := g.dev.FreeBytes()
	if err != nil {
		return err
	}
	if need := g.need(); need > free {
		return fmt.Errorf("%w: needs %d bytes, %d are free", device.ErrOutOfMemory, need, free)
	}
	if g.set, err = kernel.Load(g.dev); err != nil {
		return err
	}
	g.slots = make(chan *slot, g.feed*ahead)
	for range cap(g.slots) {
		s, err := g.newSlot()
		if err != nil {
			return err
		}
		g.slots <- s
	}
	return g.upload()
}

func (g *GPU[K, C]) newSlot() (s *slot, err error) {
	s = &slot{ranks: make([]int, gpuBucket)}
	if s.stream, err = g.dev.NewStream(); err != nil {
		return nil, err
	}
	for _, host := range []struct {
		at    *[]byte
		bytes int
	}{{&s.in, gpuBucket * 8}, {&s.out, gpuBucket * 8}, {&s.bits, gpuBucket / 8}} {
		if *host.at, err = g.dev.HostAlloc(host.bytes); err != nil {
			return nil, err
		}
	}
	for _, dev := range []struct {
		at    *device.Ptr
		bytes int
	}{{&s.devIn, gpuBucket * 8}, {&s.devOut, gpuBucket * 8}, {&s.devBits, gpuBucket / 8}} {
		if *dev.at, err = g.dev.Alloc(dev.bytes); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// upload copies the tree, page-locked for the time of the copy if the system
// allows it.
func (g *GPU[K, C]) upload() error {
	base, err := g.dev.Alloc(len(g.image.Memory))
	if err != nil {
		return err
	}
	if g.tree, err = kernel.NewTree(g.image.Tree, base, base+device.Ptr(g.image.Vals)); err != nil {
		return err
	}
	s := <-g.slots
	defer func() { g.slots <- s }()
	registered := g.dev.Register(g.image.Memory) == nil
	err = s.stream.CopyIn(base, g.image.Memory)
	if err == nil {
		err = s.stream.Synchronize()
	}
	if registered {
		err = errors.Join(err, g.dev.Unregister(g.image.Memory))
	}
	return err
}

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (g *GPU[K, C]) Rank(keys []K, ranks []int) {
	g.run(batch[K, C]{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of entries with a key up to keys[i].
func (g *GPU[K, C]) RankAfter(keys []K, ranks []int) {
	g.run(batch[K, C]{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks keys up and hands the places found to sink.
func (g *GPU[K, C]) FindEach(keys []K, sink Sink) (hits int) {
	return g.run(batch[K, C]{ask: findEach, keys: keys, sink: sink})
}

// FindVals is FindEach for values in a column of the tree: the GPU sets them
// (raw is the memory of the results) and found, which may be nil, by itself;
// sink serves the CPU.
func (g *GPU[K, C]) FindVals(keys []K, sink Sink, raw []byte, found []bool) (hits int) {
	return g.run(batch[K, C]{ask: findEach, keys: keys, sink: sink, raw: raw, found: found})
}

// GetPairs looks keys up in a layout of pairs. found may be nil.
func (g *GPU[K, C]) GetPairs(keys []K, vals []C, found []bool) (hits int) {
	var c C
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vals))), len(vals)*int(unsafe.Sizeof(c)))
	return g.run(batch[K, C]{ask: getPairs, keys: keys, vals: vals, raw: raw, found: found})
}

// Down gives the reason why the GPU is no longer used, or nil.
func (g *GPU[K, C]) Down() error {
	if e := g.down.Load(); e != nil {
		return *e
	}
	return nil
}

// fail gives the GPU up, and says so the first time.
func (g *GPU[K, C]) fail(err error) {
	if g.down.CompareAndSwap(nil, &err) {
		slog.Warn("pando: the GPU failed, the CPU answers from now on", "device", g.dev.Info().Name, "error", err)
	}
}

// Close frees what the schedule holds on the device. Buckets on their way are
// waited for; batches under way go on on the CPU.
func (g *GPU[K, C]) Close() error {
	var err error
	g.once.Do(func() {
		g.forget.Stop()
		close(g.closed)
		for range cap(g.slots) {
			<-g.slots
		}
		err = g.dev.Close()
	})
	return err
}

// gpuJob is a batch under way: its feeders take buckets in turn.
type gpuJob[K order.Key, C order.Code] struct {
	batch[K, C]
	gpu    *GPU[K, C]
	bucket int
	next   atomic.Int64
	hits   atomic.Int64
}

func (g *GPU[K, C]) run(what batch[K, C]) (hits int) {
	n := len(what.keys)
	if n == 0 {
		return 0
	}
	if g.down.Load() != nil {
		return g.CPU.run(what)
	}
	j := g.jobs.Get().(*gpuJob[K, C])
	j.batch = what
	j.bucket = min(max(n/(2*ahead*g.feed), gpuBucketMin), gpuBucket) &^ 31
	j.next.Store(0)
	j.hits.Store(0)
	par.Run(g.feed, min(g.feed, (n+j.bucket-1)/j.bucket), j)
	hits = int(j.hits.Load())
	j.batch = batch[K, C]{} // the caller's slices are not ours to keep
	g.jobs.Put(j)
	return hits
}

// Do is one feeder: it sends a bucket, and takes back the one before.
func (j *gpuJob[K, C]) Do(int) {
	var sent *slot
	for {
		lo := int(j.next.Add(1)-1) * j.bucket
		if lo >= len(j.keys) {
			break
		}
		s := j.gpu.take(sent == nil)
		if s == nil && sent != nil { // others have the slots: give back before waiting for one
			j.finish(sent)
			sent = nil
			s = j.gpu.take(true)
		}
		hi := min(lo+j.bucket, len(j.keys))
		if s == nil {
			j.onCPU(lo, hi)
			continue
		}
		s.lo, s.hi = lo, hi
		s.err = j.gpu.send(s, &j.batch)
		if sent != nil {
			j.finish(sent)
		}
		sent = s
	}
	if sent != nil {
		j.finish(sent)
	}
}

// finish takes the results of a bucket that was sent, or lets the CPU answer
// it, and gives the slot back.
func (j *gpuJob[K, C]) finish(s *slot) {
	g := j.gpu
	hits, err := 0, s.err
	if err == nil {
		hits, err = g.receive(s, &j.batch)
	} else {
		s.stream.Synchronize() // what was sent of it must be over before the slot is used again
	}
	lo, hi := s.lo, s.hi
	g.slots <- s
	if err == nil {
		j.hits.Add(int64(hits))
		return
	}
	g.fail(err)
	j.onCPU(lo, hi)
}

// onCPU answers queries [lo, hi).
func (j *gpuJob[K, C]) onCPU(lo, hi int) {
	for ; lo < hi; lo += maxBucket {
		j.hits.Add(int64(j.gpu.CPU.answer(&j.batch, lo, min(lo+maxBucket, hi))))
	}
}

// take gives a slot; nil where the GPU is not to be used any more, or none is
// free and wait is false.
func (g *GPU[K, C]) take(wait bool) *slot {
	if g.down.Load() != nil {
		return nil
	}
	select {
	case <-g.closed:
		return nil
	default:
	}
	if !wait {
		select {
		case s := <-g.slots:
			return s
		default:
			return nil
		}
	}
	select {
	case <-g.closed:
		return nil
	case s := <-g.slots:
		return s
	}
}

// send puts a bucket on its way: keys in, search, results out.
func (g *GPU[K, C]) send(s *slot, b *batch[K, C]) error {
	n := s.hi - s.lo
	codes := unsafe.Slice((*C)(unsafe.Pointer(&s.in[0])), n)
	g.codec.EncodeTo(codes, b.keys[s.lo:s.hi])
	if b.ask == rankAfter {
		for i := range codes {
			codes[i]++
		}
	}
	var c C
	size := int(unsafe.Sizeof(c))
	if err := s.stream.CopyIn(s.devIn, s.in[:n*size]); err != nil {
		return err
	}
	if err := g.launch(s, b, 8*size, n); err != nil {
		return err
	}
	if b.raw == nil {
		return s.stream.CopyOut(s.out[:4*n], s.devOut)
	}
	if err := s.stream.CopyOut(s.out[:n*g.image.Bytes], s.devOut); err != nil {
		return err
	}
	return s.stream.CopyOut(s.bits[:(n+31)/32*4], s.devBits)
}

// receive waits for a bucket and takes its results.
func (g *GPU[K, C]) receive(s *slot, b *batch[K, C]) (hits int, err error) {
	if err := s.stream.Synchronize(); err != nil {
		return 0, err
	}
	if b.raw != nil {
		return g.takeVals(s, b), nil
	}
	return g.takeRanks(s, b), nil
}

func (g *GPU[K, C]) launch(s *slot, b *batch[K, C], bits, n int) error {
	switch {
	case b.ask == getPairs:
		return g.set.Pairs(s.stream, &s.params, &g.tree, bits, s.devIn, n, s.devOut, s.devBits)
	case b.raw != nil:
		return g.set.Apart(s.stream, &s.params, &g.tree, bits, 8*g.image.Bytes, s.devIn, n, s.devOut, s.devBits)
	case b.ask == findEach:
		return g.set.Find(s.stream, &s.params, &g.tree, bits, s.devIn, n, s.devOut)
	}
	return g.set.Rank(s.stream, &s.params, &g.tree, bits, s.devIn, n, s.devOut)
}

// takeVals copies values and found bits out.
func (g *GPU[K, C]) takeVals(s *slot, b *batch[K, C]) (hits int) {
	n, size := s.hi-s.lo, g.image.Bytes
	copy(b.raw[s.lo*size:s.hi*size], s.out)
	bits := s.bits[:(n+31)/32*4]
	if b.found == nil {
		return countBits(bits)
	}
	return spreadBits(b.found[s.lo:s.hi], bits)
}

// takeRanks hands places on.
func (g *GPU[K, C]) takeRanks(s *slot, b *batch[K, C]) (hits int) {
	n := s.hi - s.lo
	places := unsafe.Slice((*uint32)(unsafe.Pointer(&s.out[0])), n)
	if b.ask == findEach {
		for i, p := range places {
			s.ranks[i] = int(p)
			if p == kernel.NotFound {
				s.ranks[i] = -1
			}
		}
		return b.sink.Take(s.lo, s.ranks[:n])
	}
	ranks := b.ranks[s.lo:s.hi]
	for i, p := range places {
		ranks[i] = int(p)
	}
	if b.ask == rankAfter { // nothing is above the greatest code
		for i, c := range unsafe.Slice((*C)(unsafe.Pointer(&s.in[0])), n) {
			if c == 0 {
				ranks[i] = g.entries
			}
		}
	}
	return 0
}

// Crossover finds the least batch from which on the GPU is faster than the
// CPU, by ranking some of the sample both ways; 0 if it never is.
func (g *GPU[K, C]) Crossover(sample []K) (least int) {
	ranks := make([]int, len(sample))
	for n := len(sample); n >= 256; n /= 4 {
		if bestOf(func() { g.Rank(sample[:n], ranks) }) >= bestOf(func() { g.CPU.Rank(sample[:n], ranks) }) {
			break
		}
		least = n
	}
	return least
}

// bestOf times a few runs and gives the fastest.
func bestOf(run func()) (best time.Duration) {
	for i := range 4 {
		start := time.Now()
		run()
		if took := time.Since(start); i == 0 || took < best {
			best = took
		}
	}
	return best
}
