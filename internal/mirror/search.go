package mirror

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Batch is keys as the caller has them, and where their answers go. Several
// goroutines call both functions, each for other keys, and Fill for a key before
// Answer.
type Batch[C order.Code] struct {
	N      int
	Fill   func(lo int, keys []C) // sets keys to those from lo on
	Answer func(lo int, vals []C, found []bool)
}

// bucket is keys under way.
type bucket struct {
	lo, hi int
	params kernel.Params
}

// search is a batch under way on CPU and GPU.
type search[C order.Code] struct {
	m          *Mirror[C]
	b          Batch[C]
	flow       flow.Flow[bucket]
	next, last int // the first key that is in no bucket yet, and the last: those behind are the CPU's
	bucket     int
	hits       atomic.Int64
	stale      atomic.Int64
}

const (
	outBytes = 16 // of a key's place, and the word of its leaf
	// piece is the number of keys that a worker takes at a time.
	piece = 8192
	// smallest is the least bucket that is worth a launch of its own, as in package
	// exec.
	smallest = 16 << 10
)

// room is a worker's memory for a piece.
type room[C order.Code] struct {
	keys, vals [piece]C
	found      [piece]bool
}

func inBytes[C order.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}

// Find looks keys up, and returns the number of those that are there; false, and
// nothing is answered, if the GPU has no time for it: the CPU is to do it.
func (m *Mirror[C]) Find(b Batch[C]) (hits int, ok bool) {
	if m.down.Load() != nil || m.refresh() != nil || !m.using.TryRLock() {
		return 0, false
	}
	defer m.using.RUnlock()
	if m.down.Load() != nil {
		return 0, false
	}
	j := par.Get(m.jobs)
	j.m, j.b, j.next, j.last = m, b, 0, b.N
	j.hits.Store(0)
	j.stale.Store(0)
	flight := flow.DoubleBuffered.Flight()
	j.bucket = min(m.opts.Bucket, max((b.N+flight-1)/flight, smallest))
	j.flow.Run(&m.Schedule, j, flow.Batch{
		Workers: min(max(b.N/piece, 1), m.opts.Workers), Overlap: flow.DoubleBuffered,
		In: j.bucket * inBytes[C](), Out: j.bucket * outBytes,
	})
	hits = int(j.hits.Load())
	m.note(int(j.stale.Load()), b.N)
	j.m, j.b = nil, Batch[C]{}
	par.Put(m.jobs, j)
	return hits, true
}

func (j *search[C]) Cut(s *flow.Slot[bucket]) (pieces int, ok bool) {
	if j.next >= j.last {
		return 0, false
	}
	s.Bucket.lo, s.Bucket.hi = j.next, min(j.next+j.bucket, j.last)
	j.next = s.Bucket.hi
	s.Queries = s.Bucket.hi - s.Bucket.lo
	return j.Ends(s), true
}

// span returns the keys of a piece, within their bucket.
func span(s *flow.Slot[bucket], p int) (lo, hi int) {
	lo = p * piece
	return lo, min(lo+piece, s.Bucket.hi-s.Bucket.lo)
}

func (j *search[C]) Fill(s *flow.Slot[bucket], p int) {
	lo, hi := span(s, p)
	j.b.Fill(s.Bucket.lo+lo, arena.As[C](s.In)[lo:hi])
}

func (j *search[C]) Send(s *flow.Slot[bucket], st device.Stream) error {
	n, w := s.Bucket.hi-s.Bucket.lo, inBytes[C]()
	if err := st.CopyIn(s.DevIn, s.In[:n*w]); err != nil {
		return err
	}
	words := s.DevOut + device.Ptr(8*n)
	// No word may be read unless the kernel has written it: those of the last bucket
	// are good for other keys.
	if err := st.Fill(words, ^uint32(0), 8*n); err != nil {
		return err
	}
	if err := j.m.seg.set.MirrorFind(st, &s.Bucket.params, &j.m.seg.on, 8*w, s.DevIn, n, s.DevOut, words); err != nil {
		return err
	}
	return st.CopyOut(s.Out[:n*outBytes], s.DevOut)
}

func (j *search[C]) Ends(s *flow.Slot[bucket]) int {
	return (s.Bucket.hi - s.Bucket.lo + piece - 1) / piece
}

func (j *search[C]) Finish(s *flow.Slot[bucket], p int) {
	lo, hi := span(s, p)
	keys := arena.As[C](s.In)[lo:hi]
	if s.Err != nil {
		j.answer(s.Bucket.lo+lo, keys)
		return
	}
	n := s.Bucket.hi - s.Bucket.lo
	out := arena.As[uint64](s.Out)
	r := par.Get(j.m.rooms)
	vals, found := r.vals[:hi-lo], r.found[:hi-lo]
	hits, stale := j.m.cpu.GetPlaced(keys, out[lo:hi], out[n+lo:n+hi], vals, found)
	j.hits.Add(int64(hits))
	j.stale.Add(int64(stale))
	j.b.Answer(s.Bucket.lo+lo, vals, found)
	par.Put(j.m.rooms, r)
}

func (j *search[C]) Done(*flow.Slot[bucket]) {}

func (j *search[C]) Rest() {
	first, n := j.next, j.last-j.next
	par.Run(j.m.opts.Workers, (n+piece-1)/piece, par.Func(func(p int) {
		j.Answer(first+p*piece, min(first+(p+1)*piece, j.last))
	}))
	j.next = j.last
}

// Spare returns some of the last keys while there is more than a bucket left.
func (j *search[C]) Spare() (lo, hi int, ok bool) {
	if j.last-j.next < j.bucket+piece {
		return 0, 0, false
	}
	hi = j.last
	j.last -= piece
	return j.last, hi, true
}

func (j *search[C]) Answer(lo, hi int) {
	r := par.Get(j.m.rooms)
	j.b.Fill(lo, r.keys[:hi-lo])
	j.answer(lo, r.keys[:hi-lo])
	par.Put(j.m.rooms, r)
}

// answer looks keys up on the CPU alone.
func (j *search[C]) answer(lo int, keys []C) {
	r := par.Get(j.m.rooms)
	vals, found := r.vals[:len(keys)], r.found[:len(keys)]
	j.hits.Add(int64(j.m.cpu.GetBatch(keys, vals, found, 1, nil)))
	j.b.Answer(lo, vals, found)
	par.Put(j.m.rooms, r)
}
