package exec

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// search is a batch of queries under way on CPU and GPU.
type search[C order.Code] struct {
	batch[C]
	gpu    *GPU[C]
	plan   Plan
	flow   flow.Flow[bucket]
	next   int // first query that is in no bucket yet,
	last   int // and the last: those behind are the CPU's
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

func (g *GPU[C]) run(what batch[C]) (hits int) {
	start := time.Now()
	hits = g.runBy(what, g.plan.Load(), nil)
	g.look(time.Since(start), what.keys.Len())
	return hits
}

// runBy runs a batch by a plan; where c is not nil, every step is timed.
func (g *GPU[C]) runBy(what batch[C], plan *Plan, c *flow.Clock) (hits int) {
	n := what.keys.Len()
	if n == 0 {
		return 0
	}
	if g.down.Load() != nil {
		return g.CPU.run(what)
	}
	j := par.Get(g.jobs)
	j.gpu, j.batch, j.plan, j.next, j.last = g, what, *plan, 0, n
	j.hits.Store(0)
	j.measure(n)
	j.flow.Run(&g.Schedule, j, flow.Batch{
		Workers: j.workers(n), Overlap: j.plan.Overlap, In: j.bucket * inBytes, Out: j.bucket * outBytes, Clock: c,
	})
	hits = int(j.hits.Load())
	j.gpu, j.batch = nil, batch[C]{} // neither the tree nor the caller's slices are a pool's to keep
	par.Put(g.jobs, j)
	return hits
}

// workers returns how many goroutines a batch of n is worth: copies are done before
// many of them are awake.
func (j *search[C]) workers(n int) int {
	least := minShared
	if j.whole() {
		least = 32 << 10
	}
	return min(max(n/least, 1), j.gpu.workers)
}

// measure decides on sizes: buckets as the plan has them, or smaller where a
// batch would else be too few to overlap.
func (j *search[C]) measure(n int) {
	j.bucket = min(j.plan.Bucket, max(roundUp(n, j.plan.Overlap.Flight())/j.plan.Overlap.Flight(), smallest))
	j.bucket = (j.bucket + 31) &^ 31
	j.piece = (min(max(j.bucket/j.workers(n), minBucket), maxBucket) + 31) &^ 31
	j.past = n >= pastCaches
	aliased := j.raw != nil && unsafe.Pointer(unsafe.SliceData(j.raw)) == j.keys.At()
	raw := j.keys.Raw()
	j.direct = n >= smallest && !aliased && raw != nil && j.ask != rankAfter && device.Shared(raw)
	j.place = n >= smallest && !aliased && j.values() && device.Shared(j.raw)
}

// values reports whether the GPU sets values, rather than ranks.
func (j *search[C]) values() bool { return j.raw != nil && j.whole() }

// whole reports whether the GPU takes searches to their end.
func (j *search[C]) whole() bool { return j.plan.Lower > j.gpu.steps.Depth() }

// begins reports whether searches begin at nodes that the CPU found.
func (j *search[C]) begins() bool { return j.plan.Upper > 0 || j.plan.Share > 0 }

func (j *search[C]) Cut(s *flow.Slot[bucket]) (pieces int, ok bool) {
	if j.next >= j.last {
		return 0, false
	}
	s.Bucket.lo, s.Bucket.hi = j.next, min(j.next+j.bucket, j.last)
	j.next = s.Bucket.hi
	s.Queries = s.Bucket.hi - s.Bucket.lo
	n := s.Bucket.hi - s.Bucket.lo
	s.Bucket.deep = int(float64(n)*j.plan.Share+0.5) &^ 31
	if j.plan.Share == 1 {
		s.Bucket.deep = n
	}
	if j.direct {
		s.Bucket.keysAt = j.keys.Slice(s.Bucket.lo, s.Bucket.hi).Raw()
		if !j.begins() {
			return 0, true
		}
	}
	return j.pieces(n), true
}

func (j *search[C]) pieces(n int) int { return (n + j.piece - 1) / j.piece }

// span returns the queries of a piece, within their bucket.
func (j *search[C]) span(s *flow.Slot[bucket], piece int) (lo, hi int) {
	lo = piece * j.piece
	return lo, min(lo+j.piece, s.Bucket.hi-s.Bucket.lo)
}

// codes returns the codes of queries [lo, hi) of a bucket, as the GPU gets them.
func (j *search[C]) codes(s *flow.Slot[bucket], lo, hi int) []C {
	if s.Bucket.keysAt != nil {
		return arena.As[C](s.Bucket.keysAt)[lo:hi]
	}
	return arena.As[C](s.In)[lo:hi]
}

// starts returns the nodes at which the queries begin: behind the codes.
func (j *search[C]) starts(s *flow.Slot[bucket]) []uint32 {
	n := s.Bucket.hi - s.Bucket.lo
	return arena.As[uint32](s.In[n*width[C]():])[:n]
}

func (j *search[C]) Fill(s *flow.Slot[bucket], piece int) {
	lo, hi := j.span(s, piece)
	codes := j.codes(s, lo, hi)
	if s.Bucket.keysAt == nil {
		j.encode(codes, j.keys.Slice(s.Bucket.lo+lo, s.Bucket.lo+hi))
	}
	if j.begins() {
		j.descend(s, lo, hi, codes)
	}
}

func (j *search[C]) encode(codes []C, keys order.Keys) {
	if raw := keys.Raw(); j.past && raw != nil {
		simd.Copy(arena.Bytes(codes), raw)
	} else {
		order.CodesTo(codes, keys)
	}
	if j.ask == rankAfter {
		for i := range codes {
			codes[i]++
		}
	}
}

// descend takes queries through the levels that are the CPU's.
func (j *search[C]) descend(s *flow.Slot[bucket], lo, hi int, codes []C) {
	room := par.Get(j.gpu.spaces)
	places := room.ranks[:len(codes)]
	deep := min(max(s.Bucket.deep-lo, 0), len(codes))
	if deep > 0 { // else there may be no such level
		j.gpu.steps.Descend(0, j.plan.Upper+1, codes[:deep], places)
	}
	j.gpu.steps.Descend(0, j.plan.Upper, codes[deep:], places[deep:])
	starts := j.starts(s)[lo:hi]
	for i, p := range places {
		starts[i] = uint32(p / layout.NodeWords)
	}
	par.Put(j.gpu.spaces, room)
}

// Send puts a bucket on its way: keys in, search, results out.
func (j *search[C]) Send(s *flow.Slot[bucket], st device.Stream) error {
	n := s.Bucket.hi - s.Bucket.lo
	keyBytes := n * width[C]()
	if err := j.flow.Mark(s, st, flow.Sent); err != nil {
		return err
	}
	in := keyBytes
	if j.begins() {
		in += 4 * n
	}
	if s.Bucket.keysAt != nil {
		if err := st.CopyIn(s.DevIn, s.Bucket.keysAt); err != nil {
			return err
		}
		if err := st.CopyIn(s.DevIn+device.Ptr(keyBytes), s.In[keyBytes:in]); err != nil {
			return err
		}
	} else if err := st.CopyIn(s.DevIn, s.In[:in]); err != nil {
		return err
	}
	if err := j.flow.Mark(s, st, flow.CopiedIn); err != nil {
		return err
	}
	if err := j.launch(s, st, n); err != nil {
		return err
	}
	if err := j.flow.Mark(s, st, flow.Searched); err != nil {
		return err
	}
	return j.fetch(s, st, n)
}

// launch queues a bucket's kernels.
func (j *search[C]) launch(s *flow.Slot[bucket], st device.Stream, n int) error {
	g := j.gpu
	s.Bucket.launch = layout.Launch{
		Set: g.set, Stream: st, Params: &s.Bucket.params,
		Bits: 8 * width[C](), N: n, Keys: s.DevIn, Nodes: s.DevIn + device.Ptr(n*width[C]()),
		Begins: j.begins(), From: j.plan.Upper, Deep: s.Bucket.deep, To: j.plan.Lower,
		Want: j.wants(), Vals: 8 * g.image.ValSize,
		Out: s.DevOut, Found: s.DevOut + device.Ptr(j.bitsAt(n)),
	}
	return g.image.Resident.Launch(&s.Bucket.launch)
}

// wants returns the kind of result of a GPU that takes searches to their end.
func (j *search[C]) wants() layout.Want {
	switch {
	case j.ask == getPairs:
		return layout.WantPairs
	case j.raw != nil:
		return layout.WantColumn
	case j.ask == findEach:
		return layout.WantFinds
	}
	return layout.WantRanks
}

// bitsAt returns where found bits begin in a bucket's results: behind the values, so
// that both come back in one copy.
func (j *search[C]) bitsAt(n int) int { return (n*j.gpu.image.ValSize + 3) &^ 3 }

// fetch copies results back.
func (j *search[C]) fetch(s *flow.Slot[bucket], st device.Stream, n int) error {
	if !j.values() {
		return st.CopyOut(s.Out[:4*n], s.DevOut)
	}
	size, at := j.gpu.image.ValSize, j.bitsAt(n)
	end := at + (n+31)/32*4
	if !j.place {
		return st.CopyOut(s.Out[:end], s.DevOut)
	}
	s.Bucket.valsAt = j.raw[s.Bucket.lo*size : s.Bucket.hi*size]
	if err := st.CopyOut(s.Bucket.valsAt, s.DevOut); err != nil {
		return err
	}
	return st.CopyOut(s.Out[at:end], s.DevOut+device.Ptr(at))
}

func (j *search[C]) Ends(s *flow.Slot[bucket]) int {
	if j.place && j.found == nil && s.Err == nil {
		return 1 // hits are all that is left to do
	}
	return j.pieces(s.Bucket.hi - s.Bucket.lo)
}

func (j *search[C]) Finish(s *flow.Slot[bucket], piece int) {
	lo, hi := j.span(s, piece)
	hits := 0
	switch {
	case s.Err != nil:
		j.Answer(s.Bucket.lo+lo, s.Bucket.lo+hi)
	case !j.whole():
		hits = j.goOn(s, lo, hi)
	case j.raw != nil:
		if j.Ends(s) == 1 {
			hi = s.Bucket.hi - s.Bucket.lo
		}
		hits = j.takeVals(s, lo, hi)
	default:
		hits = j.takeRanks(s, lo, hi)
	}
	j.hits.Add(int64(hits))
}

// Done keeps nothing of the caller's slices.
func (j *search[C]) Done(s *flow.Slot[bucket]) { s.Bucket.keysAt, s.Bucket.valsAt = nil, nil }

func (j *search[C]) Rest() {
	first, n := j.next, j.last-j.next
	par.Run(j.gpu.workers, (n+maxBucket-1)/maxBucket, par.Func(func(p int) {
		lo := first + p*maxBucket
		j.Answer(lo, min(lo+maxBucket, j.last))
	}))
	j.next = j.last
}

// Spare returns some of the last queries while there is more than a bucket left,
// unless buckets follow one after another to be timed.
func (j *search[C]) Spare() (lo, hi int, ok bool) {
	if j.whole() || j.plan.Overlap == flow.Sequential || j.last-j.next < j.bucket+minBucket {
		return 0, 0, false
	}
	hi = j.last
	j.last -= minBucket
	return j.last, hi, true
}

func (j *search[C]) Answer(lo, hi int) {
	j.hits.Add(int64(j.gpu.CPU.answer(&j.batch, lo, hi)))
}

// goOn takes queries on from the nodes that the GPU has brought them to.
func (j *search[C]) goOn(s *flow.Slot[bucket], lo, hi int) (hits int) {
	g, from := j.gpu, j.plan.Lower
	codes, nodes := j.codes(s, lo, hi), arena.As[uint32](s.Out)[lo:hi]
	lo, hi = s.Bucket.lo+lo, s.Bucket.lo+hi
	switch j.ask {
	case getPairs:
		vals, found := j.vals[lo:hi], []bool(nil)
		if j.found != nil {
			found = j.found[lo:hi]
		}
		for i, n := range nodes {
			vals[i] = C(n) * layout.NodeWords
		}
		return g.schemes.pairs.GetPairsFrom(from, codes, vals, found)
	case findEach:
		room := par.Get(g.spaces)
		ranks := room.ranks[:len(codes)]
		enter(ranks, nodes)
		g.steps.FindFrom(from, codes, ranks)
		hits = j.sink.Take(lo, ranks)
		par.Put(g.spaces, room)
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
		places[i] = int(n) * layout.NodeWords
	}
}

// lastRanks corrects ranks behind the greatest code, above which nothing is.
func (j *search[C]) lastRanks(codes []C, ranks []int) {
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
func (j *search[C]) takeVals(s *flow.Slot[bucket], lo, hi int) (hits int) {
	size := j.gpu.image.ValSize
	if s.Bucket.valsAt == nil {
		dst, src := j.raw[(s.Bucket.lo+lo)*size:(s.Bucket.lo+hi)*size], s.Out[lo*size:hi*size]
		if j.past {
			simd.Copy(dst, src)
		} else {
			copy(dst, src)
		}
	}
	bits := s.Out[j.bitsAt(s.Bucket.hi-s.Bucket.lo):][lo/8 : (hi+31)/32*4]
	if j.found == nil {
		return countBits(bits)
	}
	return SpreadBits(j.found[s.Bucket.lo+lo:s.Bucket.lo+hi], bits)
}

// takeRanks hands ranks on.
func (j *search[C]) takeRanks(s *flow.Slot[bucket], lo, hi int) (hits int) {
	places := arena.As[uint32](s.Out)[lo:hi]
	if j.ask == findEach {
		room := par.Get(j.gpu.spaces)
		ranks := room.ranks[:len(places)]
		for i, p := range places {
			ranks[i] = int(p)
			if p == kernel.NotFound {
				ranks[i] = -1
			}
		}
		hits = j.sink.Take(s.Bucket.lo+lo, ranks)
		par.Put(j.gpu.spaces, room)
		return hits
	}
	ranks := j.ranks[s.Bucket.lo+lo : s.Bucket.lo+hi]
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
