package twin

import (
	"math/bits"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/order"
)

// staging is the page-locked memory through which operations and answers travel,
// a bucket at a time: workers fill some while others are on their way, or are
// searched, and hand out the results of others. There is no CPU that could answer
// instead: where a bucket fails, the batch does, and run returns why.
type staging struct {
	flow.Schedule[bucket]
	flow    flow.Flow[bucket]
	slots   int // number of slots
	in, out int // bytes of each slot
	failed  atomic.Pointer[error]
	sizes
}

// sizes are numbers of operations.
type sizes struct {
	few      int // enough for a goroutine's work
	direct   int // from this number on, operations in the caller's page-locked memory travel from there
	together int // up to this number, changes travel all together: see stageOps
	bucket   int // most operations of a bucket
	piece    int // that a goroutine fills, or hands out, at a time: a multiple of 32
	bring    int // from this number on, values travel in buckets behind the keys, while these are sorted
}

// usual are the sizes outside of tests. Copies and launches of a bucket cost some
// 20 µs (experiment gpu-endtoend), a piece takes a core some 10 µs; a copy more takes
// as long as a core for the bytes of 3K operations.
var usual = sizes{few: 16 << 10, direct: 4 << 10, together: stageOps / 2, bucket: 256 << 10, piece: 8 << 10, bring: 256 << 10}

// bucket is operations [lo, lo+n) of a batch.
type bucket struct{ lo, n int }

// of returns the operations of a bucket, for a batch of n: a power of two, so that
// memory for it is seldom too small, and a small part of the batch, since the
// first and the last bucket overlap with no other.
func (z *sizes) of(n int) int {
	if n <= z.few {
		return 1 << bits.Len(uint(max(n, 1024)-1))
	}
	return min(max(1<<bits.Len(uint(n/8-1)), z.few), z.bucket)
}

// open makes the staging of a device, which has no memory yet.
func (g *staging) open(dev device.Device) {
	g.sizes = usual
	g.Slots.Init(dev, flow.MaxFlight, func(device.Stream) {})
	g.Down = func() bool { return g.failed.Load() != nil }
	g.Fail = func(err error) { g.failed.CompareAndSwap(nil, &err) }
}

// ensure makes room for the buckets of a batch of n operations, with codes of width
// bytes. The batch then needs no more memory.
func (g *staging) ensure(n, width int) error {
	size := g.of(n)
	slots := min((n+size-1)/size, flow.MaxFlight)
	in := max(g.in, 2*device.Aligned(size*width)+device.Aligned(size))
	out := max(g.out, device.Aligned(size*width)+device.Aligned(size))
	if slots <= g.slots && in == g.in && out == g.out {
		return nil
	}
	g.slots = max(g.slots, slots)
	g.in, g.out = 0, 0 // of some slots, if there is an error
	if err := g.Slots.Ensure(g.slots, in, out); err != nil {
		return err
	}
	g.in, g.out = in, out
	return nil
}

// run moves all buckets of a batch, for which there is room.
func (g *staging) run(w flow.Work[bucket], n, workers int) error {
	g.failed.Store(nil)
	g.flow.Run(&g.Schedule, w, flow.Batch{
		Workers: min(max(n/g.few, 1), max(workers, 1)), Overlap: flow.DoubleBuffered, In: g.in, Out: g.out,
	})
	if err := g.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// course is the common part of all ways through the slots. It lacks the methods
// of flow.Work that differ.
type course struct {
	n, next int // operations, and those that are in buckets already
	size    int // of a bucket,
	piece   int // and of a piece of it
}

func (g *staging) course(n int) course { return course{n: n, size: g.of(n), piece: g.piece} }

// cut returns the number of pieces of the next bucket.
func (c *course) cut(s *flow.Slot[bucket]) (pieces int, ok bool) {
	s.Bucket = bucket{c.next, min(c.size, c.n-c.next)}
	c.next += s.Bucket.n
	s.Queries = s.Bucket.n
	return c.pieces(s), s.Bucket.n > 0
}

func (c *course) pieces(s *flow.Slot[bucket]) int { return (s.Bucket.n + c.piece - 1) / c.piece }

// span returns the operations of a piece, within their bucket.
func (c *course) span(s *flow.Slot[bucket], piece int) (from, to int) {
	return piece * c.piece, min((piece+1)*c.piece, s.Bucket.n)
}

func (c *course) Cut(s *flow.Slot[bucket]) (pieces int, ok bool) { return c.cut(s) }
func (c *course) Fill(*flow.Slot[bucket], int)                   {}
func (c *course) Ends(*flow.Slot[bucket]) int                    { return 1 }
func (c *course) Finish(*flow.Slot[bucket], int)                 {}
func (c *course) Done(*flow.Slot[bucket])                        {}
func (c *course) Rest()                                          {}
func (c *course) Spare() (lo, hi int, ok bool)                   { return 0, 0, false }
func (c *course) Answer(lo, hi int)                              {}

// sending brings operations to the GPU: the columns that have an address there.
type sending[C order.Code] struct {
	course
	fill              func(lo int, keys, vals []C, kinds []uint8)
	keys, vals, kinds device.Ptr
}

// columns returns where keys, vals and kinds of a bucket are in its slot; nil for
// columns that do not travel.
func (j *sending[C]) columns(s *flow.Slot[bucket]) (keys, vals []C, kinds []uint8) {
	n, part := s.Bucket.n, device.Aligned(s.Bucket.n*sizeOf[C]())
	if j.keys != 0 {
		keys = arena.As[C](s.In[:part])[:n]
	}
	if j.vals != 0 {
		vals = arena.As[C](s.In[part : 2*part])[:n]
	}
	if j.kinds != 0 {
		kinds = s.In[2*part:][:n]
	}
	return keys, vals, kinds
}

func (j *sending[C]) Fill(s *flow.Slot[bucket], piece int) {
	from, to := j.span(s, piece)
	keys, vals, kinds := j.columns(s)
	j.fill(s.Bucket.lo+from, part(keys, from, to), part(vals, from, to), part(kinds, from, to))
}

// part returns elements [from, to), of a slice that is not nil.
func part[T any](s []T, from, to int) []T {
	if s == nil {
		return nil
	}
	return s[from:to]
}

func (j *sending[C]) Send(s *flow.Slot[bucket], st device.Stream) error {
	keys, vals, kinds := j.columns(s)
	lo, width := s.Bucket.lo, sizeOf[C]()
	if err := copyIn(st, j.keys+device.Ptr(lo*width), keys); err != nil {
		return err
	}
	if err := copyIn(st, j.vals+device.Ptr(lo*width), vals); err != nil {
		return err
	}
	return copyIn(st, j.kinds+device.Ptr(lo), kinds)
}

// copyIn queues a copy of src to dst, unless src is nil.
func copyIn[T uint8 | uint32 | uint64](st device.Stream, dst device.Ptr, src []T) error {
	if src == nil {
		return nil
	}
	return st.CopyIn(dst, arena.Bytes(src))
}

// receiving hands out the results of operations.
type receiving[C order.Code] struct {
	course
	answer   func(lo int, old []C, had []uint8)
	old, had device.Ptr // old is 0 where nobody asks
}

func (j *receiving[C]) Cut(s *flow.Slot[bucket]) (pieces int, ok bool) {
	_, ok = j.cut(s)
	return 0, ok
}

func (j *receiving[C]) Send(s *flow.Slot[bucket], st device.Stream) error {
	lo, n, width := s.Bucket.lo, s.Bucket.n, sizeOf[C]()
	if j.old != 0 {
		if err := st.CopyOut(s.Out[:n*width], j.old+device.Ptr(lo*width)); err != nil {
			return err
		}
	}
	return st.CopyOut(s.Out[device.Aligned(n*width):][:n], j.had+device.Ptr(lo))
}

func (j *receiving[C]) Ends(s *flow.Slot[bucket]) int { return j.pieces(s) }

func (j *receiving[C]) Finish(s *flow.Slot[bucket], piece int) {
	if s.Err != nil {
		return
	}
	from, to := j.span(s, piece)
	var old []C
	if j.old != 0 {
		old = arena.As[C](s.Out[:s.Bucket.n*sizeOf[C]()])
	}
	had := s.Out[device.Aligned(s.Bucket.n*sizeOf[C]()):]
	j.answer(s.Bucket.lo+from, part(old, from, to), had[from:to])
}

// finding looks keys up.
type finding[C order.Code] struct {
	course
	in     version
	fill   func(lo int, keys []C)
	answer func(lo int, vals []C, found []byte)
}

func (j *finding[C]) Fill(s *flow.Slot[bucket], piece int) {
	from, to := j.span(s, piece)
	j.fill(s.Bucket.lo+from, arena.As[C](s.In[:s.Bucket.n*sizeOf[C]()])[from:to])
}

// bitsAt returns where the found bits of a bucket begin: behind its values, so that
// both come back in one copy.
func (j *finding[C]) bitsAt(s *flow.Slot[bucket]) int {
	return device.Aligned(s.Bucket.n * sizeOf[C]())
}

func (j *finding[C]) Send(s *flow.Slot[bucket], st device.Stream) error {
	n, at := s.Bucket.n, j.bitsAt(s)
	if err := st.CopyIn(s.DevIn, s.In[:n*sizeOf[C]()]); err != nil {
		return err
	}
	if err := j.in.FindIn(st, s.DevIn, n, s.DevOut, s.DevOut+device.Ptr(at)); err != nil {
		return err
	}
	return st.CopyOut(s.Out[:at+(n+31)/32*4], s.DevOut)
}

func (j *finding[C]) Ends(s *flow.Slot[bucket]) int { return j.pieces(s) }

func (j *finding[C]) Finish(s *flow.Slot[bucket], piece int) {
	if s.Err != nil {
		return
	}
	from, to := j.span(s, piece)
	vals, found := arena.As[C](s.Out[:s.Bucket.n*sizeOf[C]()]), s.Out[j.bitsAt(s):]
	j.answer(s.Bucket.lo+from, vals[from:to], found[from/8:(to+7)/8])
}
