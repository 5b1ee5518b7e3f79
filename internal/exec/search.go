package exec

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// search is a batch of queries under way on CPU and GPU.
type search[K order.Key, C order.Code] struct {
	batch[K, C]
	gpu    *GPU[K, C]
	plan   Plan
	flow   flow
	next   int // first query that is in no bucket yet,
	last   int // and the last: what is behind is the CPU's
	bucket int
	piece  int  // queries that a worker takes at a time
	past   bool // copies go past the caches
	direct bool // the GPU reads keys where they are,
	place  bool // and writes values where they belong
	hits   atomic.Int64
}

// pastCaches is the batch from which on results would not stay in the CPU's
// caches anyway. Experiment gpu-endtoend: 4.0 against 3.4 G queries/s.
const pastCaches = 1 << 20

// smallest is the least bucket that is worth a launch of its own: launches and
// copies of one cost some 20 µs (experiment gpu-endtoend).
const smallest = 16 << 10

func (g *GPU[K, C]) run(what batch[K, C]) (hits int) {
	start := time.Now()
	hits = g.runBy(what, g.plan.Load(), nil)
	g.look(time.Since(start), len(what.keys))
	return hits
}

// runBy runs a batch by a plan; where c is not nil, every step is timed.
func (g *GPU[K, C]) runBy(what batch[K, C], plan *Plan, c *clock) (hits int) {
	n := len(what.keys)
	if n == 0 {
		return 0
	}
	if g.down.Load() != nil {
		return g.CPU.run(what)
	}
	j := g.jobs.Get().(*search[K, C])
	j.batch, j.plan, j.next, j.last = what, *plan, 0, n
	j.hits.Store(0)
	j.measure(n)
	j.flow.reset(j, j.plan.Way, j.bucket)
	j.flow.workers, j.flow.clock = j.workers(n), c
	j.flow.run()
	hits = int(j.hits.Load())
	j.batch = batch[K, C]{} // the caller's slices are not ours to keep
	g.jobs.Put(j)
	return hits
}

// given says whether the GPU was given up.
func (g *GPU[K, C]) given() bool { return g.down.Load() != nil }

// workers is how many goroutines a batch of n is worth: copies are done before
// many of them are awake.
func (j *search[K, C]) workers(n int) int {
	least := minShared
	if j.whole() {
		least = 32 << 10
	}
	return min(max(n/least, 1), j.gpu.workers)
}

// measure decides on sizes: buckets as the plan has them, or smaller where a
// batch would else be too few to overlap.
func (j *search[K, C]) measure(n int) {
	g := j.gpu
	j.bucket = min(j.plan.Bucket, max(roundUp(n, j.plan.Way.flight())/j.plan.Way.flight(), smallest))
	j.bucket = (j.bucket + 31) &^ 31
	j.piece = (min(max(j.bucket/j.workers(n), minBucket), maxBucket) + 31) &^ 31
	j.past = n >= pastCaches
	aliased := j.raw != nil && unsafe.Pointer(unsafe.SliceData(j.raw)) == unsafe.Pointer(unsafe.SliceData(j.keys))
	j.direct = n >= smallest && !aliased && g.codec.Identity() && j.ask != rankAfter && device.Shared(arena.Bytes(j.keys))
	j.place = n >= smallest && !aliased && j.values() && device.Shared(j.raw)
}

// values says whether the GPU gives values, rather than places.
func (j *search[K, C]) values() bool { return j.raw != nil && j.whole() }

// whole says whether the GPU takes searches to their end.
func (j *search[K, C]) whole() bool { return j.plan.Lower > j.gpu.steps.Depth() }

// begins says whether searches begin at nodes that the CPU found.
func (j *search[K, C]) begins() bool { return j.plan.Upper > 0 || j.plan.Share > 0 }

func (j *search[K, C]) cut(s *slot) (pieces int, ok bool) {
	if j.next >= j.last {
		return 0, false
	}
	s.lo, s.hi = j.next, min(j.next+j.bucket, j.last)
	j.next = s.hi
	n := s.hi - s.lo
	s.deep = int(float64(n)*j.plan.Share+0.5) &^ 31
	if j.plan.Share == 1 {
		s.deep = n
	}
	if j.direct {
		s.keysAt = arena.Bytes(j.keys[s.lo:s.hi])
		if !j.begins() {
			return 0, true
		}
	}
	return j.pieces(n), true
}

func (j *search[K, C]) pieces(n int) int { return (n + j.piece - 1) / j.piece }

// span gives the queries of a piece, within their bucket.
func (j *search[K, C]) span(s *slot, piece int) (lo, hi int) {
	lo = piece * j.piece
	return lo, min(lo+j.piece, s.hi-s.lo)
}

// codes gives the codes of queries [lo, hi) of a bucket, as the GPU gets them.
func (j *search[K, C]) codes(s *slot, lo, hi int) []C {
	if s.keysAt != nil {
		return arena.As[C](s.keysAt)[lo:hi]
	}
	return arena.As[C](s.in)[lo:hi]
}

// starts gives the nodes at which the queries begin: behind the codes.
func (j *search[K, C]) starts(s *slot) []uint32 {
	n := s.hi - s.lo
	return arena.As[uint32](s.in[n*width[C]():])[:n]
}

func (j *search[K, C]) stage(s *slot, piece int) {
	lo, hi := j.span(s, piece)
	codes := j.codes(s, lo, hi)
	if s.keysAt == nil {
		j.encode(codes, j.keys[s.lo+lo:s.lo+hi])
	}
	if j.begins() {
		j.descend(s, lo, hi, codes)
	}
}

func (j *search[K, C]) encode(codes []C, keys []K) {
	codec := j.gpu.codec
	if j.past && codec.Identity() {
		simd.Copy(arena.Bytes(codes), arena.Bytes(keys))
	} else {
		codec.EncodeTo(codes, keys)
	}
	if j.ask == rankAfter {
		for i := range codes {
			codes[i]++
		}
	}
}

// descend takes queries through the levels that are the CPU's.
func (j *search[K, C]) descend(s *slot, lo, hi int, codes []C) {
	room := j.gpu.spaces.Get().(*space[C])
	places := room.ranks[:len(codes)]
	deep := min(max(s.deep-lo, 0), len(codes))
	if deep > 0 { // else there may be no such level
		j.gpu.steps.Descend(0, j.plan.Upper+1, codes[:deep], places)
	}
	j.gpu.steps.Descend(0, j.plan.Upper, codes[deep:], places[deep:])
	starts := j.starts(s)[lo:hi]
	for i, p := range places {
		starts[i] = uint32(p / nodeWords)
	}
	j.gpu.spaces.Put(room)
}

// nodeWords is the size of a node in the words that places count; kernels
// count nodes.
const nodeWords = simd.LineBytes / 8

// send puts a bucket on its way: keys in, search, results out.
func (j *search[K, C]) send(s *slot, st device.Stream) error {
	n, clock := s.hi-s.lo, j.flow.clock
	keyBytes := n * width[C]()
	if err := clock.mark(s, st, 0); err != nil {
		return err
	}
	in := keyBytes
	if j.begins() {
		in += 4 * n
	}
	if s.keysAt != nil {
		if err := st.CopyIn(s.devIn, s.keysAt); err != nil {
			return err
		}
		if err := st.CopyIn(s.devIn+device.Ptr(keyBytes), s.in[keyBytes:in]); err != nil {
			return err
		}
	} else if err := st.CopyIn(s.devIn, s.in[:in]); err != nil {
		return err
	}
	if err := clock.mark(s, st, 1); err != nil {
		return err
	}
	if err := j.launch(s, st, n); err != nil {
		return err
	}
	if err := clock.mark(s, st, 2); err != nil {
		return err
	}
	return j.fetch(s, st, n)
}

// bitsAt is where found bits begin in a bucket's results: behind the values, so
// that both come back in one copy.
func (j *search[K, C]) bitsAt(n int) int { return (n*j.gpu.image.Bytes + 3) &^ 3 }

// fetch copies results back.
func (j *search[K, C]) fetch(s *slot, st device.Stream, n int) error {
	if !j.values() {
		return st.CopyOut(s.out[:4*n], s.devOut)
	}
	size, at := j.gpu.image.Bytes, j.bitsAt(n)
	end := at + (n+31)/32*4
	if !j.place {
		return st.CopyOut(s.out[:end], s.devOut)
	}
	s.valsAt = j.raw[s.lo*size : s.hi*size]
	if err := st.CopyOut(s.valsAt, s.devOut); err != nil {
		return err
	}
	return st.CopyOut(s.out[at:end], s.devOut+device.Ptr(at))
}

func (j *search[K, C]) ends(s *slot) int {
	if j.place && j.found == nil && s.err == nil {
		return 1 // hits are all that is left to do
	}
	return j.pieces(s.hi - s.lo)
}

func (j *search[K, C]) finish(s *slot, piece int) {
	lo, hi := j.span(s, piece)
	hits := 0
	switch {
	case s.err != nil:
		j.answer(s.lo+lo, s.lo+hi)
	case !j.whole():
		hits = j.goOn(s, lo, hi)
	case j.raw != nil:
		if j.ends(s) == 1 {
			hi = s.hi - s.lo
		}
		hits = j.takeVals(s, lo, hi)
	default:
		hits = j.takeRanks(s, lo, hi)
	}
	j.hits.Add(int64(hits))
}

func (j *search[K, C]) rest() {
	first, n := j.next, j.last-j.next
	par.Run(j.gpu.workers, (n+maxBucket-1)/maxBucket, par.Func(func(p int) {
		lo := first + p*maxBucket
		j.answer(lo, min(lo+maxBucket, j.last))
	}))
	j.next = j.last
}

// spare gives some of the last queries while there is more than a bucket left,
// unless buckets follow one after another to be timed.
func (j *search[K, C]) spare() (lo, hi int, ok bool) {
	if j.whole() || j.plan.Way == Sequential || j.last-j.next < j.bucket+minBucket {
		return 0, 0, false
	}
	hi = j.last
	j.last -= minBucket
	return j.last, hi, true
}

func (j *search[K, C]) answer(lo, hi int) {
	j.hits.Add(int64(j.gpu.CPU.answer(&j.batch, lo, hi)))
}

// goOn takes queries on from the nodes that the GPU has brought them to.
func (j *search[K, C]) goOn(s *slot, lo, hi int) (hits int) {
	g, from := j.gpu, j.plan.Lower
	codes, nodes := j.codes(s, lo, hi), arena.As[uint32](s.out)[lo:hi]
	lo, hi = s.lo+lo, s.lo+hi
	switch j.ask {
	case getPairs:
		vals, found := j.vals[lo:hi], []bool(nil)
		if j.found != nil {
			found = j.found[lo:hi]
		}
		for i, n := range nodes {
			vals[i] = C(n) * nodeWords
		}
		return g.steps.GetPairsFrom(from, codes, vals, found)
	case findEach:
		room := g.spaces.Get().(*space[C])
		ranks := room.ranks[:len(codes)]
		enter(ranks, nodes)
		g.steps.FindFrom(from, codes, ranks)
		hits = j.sink.Take(lo, ranks)
		g.spaces.Put(room)
		return hits
	}
	ranks := j.ranks[lo:hi]
	enter(ranks, nodes)
	g.steps.RankFrom(from, codes, ranks)
	j.lastRanks(codes, ranks)
	return 0
}

// enter sets the places at which searches go on.
func enter(places []int, nodes []uint32) {
	for i, n := range nodes {
		places[i] = int(n) * nodeWords
	}
}

// lastRanks corrects ranks behind the greatest code, above which nothing is.
func (j *search[K, C]) lastRanks(codes []C, ranks []int) {
	if j.ask != rankAfter {
		return
	}
	for i, c := range codes {
		if c == 0 {
			ranks[i] = j.gpu.entries
		}
	}
}

// takeVals copies values out, and found bits.
func (j *search[K, C]) takeVals(s *slot, lo, hi int) (hits int) {
	size := j.gpu.image.Bytes
	if s.valsAt == nil {
		dst, src := j.raw[(s.lo+lo)*size:(s.lo+hi)*size], s.out[lo*size:hi*size]
		if j.past {
			simd.Copy(dst, src)
		} else {
			copy(dst, src)
		}
	}
	bits := s.out[j.bitsAt(s.hi-s.lo):][lo/8 : (hi+31)/32*4]
	if j.found == nil {
		return countBits(bits)
	}
	return spreadBits(j.found[s.lo+lo:s.lo+hi], bits)
}

// takeRanks hands places on.
func (j *search[K, C]) takeRanks(s *slot, lo, hi int) (hits int) {
	places := arena.As[uint32](s.out)[lo:hi]
	if j.ask == findEach {
		room := j.gpu.spaces.Get().(*space[C])
		ranks := room.ranks[:len(places)]
		for i, p := range places {
			ranks[i] = int(p)
			if p == kernel.NotFound {
				ranks[i] = -1
			}
		}
		hits = j.sink.Take(s.lo+lo, ranks)
		j.gpu.spaces.Put(room)
		return hits
	}
	ranks := j.ranks[s.lo+lo : s.lo+hi]
	for i, p := range places {
		ranks[i] = int(p)
	}
	j.lastRanks(j.codes(s, lo, hi), ranks)
	return 0
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// width is the bytes of a code.
func width[C order.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}
