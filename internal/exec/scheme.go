package exec

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Scheme is how the CPU takes a batch (FAST paper, section 7). All give the
// same answers.
type Scheme uint8

const (
	Auto        Scheme = iota // the fastest for batch and index
	Unbuffered                // queries go down as they come
	Partitioned               // queries are partitioned by sub-tree, then one sub-tree after the other is searched: the paper's buffering
)

func (s Scheme) String() string {
	return [...]string{"auto", "unbuffered", "partitioned"}[s]
}

// Fetcher is a Sink that can prefetch the values of ranks before it takes them.
// Where queries are partitioned, values are wanted long after they were found:
// without Fetch, Take would wait for each. Ranks may be nonsense.
type Fetcher interface {
	Sink
	Fetch(ranks []int)
}

// Where Auto tries to partition. The figures are ns per query on two cores with 2 MiB
// of second-level cache each and a share of 300 MiB of third-level cache, one
// worker and two: for each the least of several runs, of 2 to 10 rounds in all,
// on a machine that was not quiet. A tenth may be noise; experiment
// response-time redoes them.
//
//	                               unbuffered    partitioned     sorted
//	64M pairs of 64 bits,  1K     35.6   35.4   40.1   49.3   43.5   49.4
//	                      16K     36.1   23.0   40.0   24.2   42.6   27.6
//	                      64K     36.9   18.6   30.5   18.4   41.0   21.7
//	                     256K     35.3   21.9   32.9   18.8   47.5   21.4
//	                       1M     38.0   20.0   27.6   16.4   56.6   25.6
//	                       4M     36.2   19.1   31.3   17.6   60.2   27.3
//	                      16M     35.5   18.5   31.1   15.5   50.8   25.8
//	64M ranks of 32 bits,  1M     19.1   10.3   19.6   10.6   36.7   18.5
//
// So partitioning pays where the tree is well beyond the caches and a worker gets
// enough queries; at 270 MB, the ranks or 16M pairs, it is about even, at 70 MB
// it costs a tenth more. Which of the two is faster for a given tree on a given
// machine is therefore timed as batches run, see paces.
//
// Sorting does not pay: to sort 1M or more takes 25 to 34 ns per query by itself,
// and a search of sorted queries still 11 (16M ranks) to 20 (64M pairs): there
// are as many levels to go through. To merge them with the leaves, as the paper
// does, takes 10 ns per query where there are as many as entries, 18 where a
// quarter, 31 where a sixteenth, against 11 for the tree at all of these. So
// sorting is left to package papers/fast.
var (
	leastBytes   int64 = 128 << 20 // of a tree
	leastPortion       = 64 << 10  // queries of a worker
)

// PartitionFrom makes Auto try to partition from other sizes on, and returns a
// function that undoes it. It is for tests, whose trees and batches are small,
// and must not be called while searches run.
func PartitionFrom(bytes int64, queries int) (undo func()) {
	b, q := leastBytes, leastPortion
	leastBytes, leastPortion = bytes, queries
	return func() { leastBytes, leastPortion = b, q }
}

// maxPortion is the most that one worker partitions at a time. A query takes up
// to 11 bytes on the Go heap: 11 MiB per worker, kept for the next batch until the
// garbage collector takes them. Portions four times as large gain less than the
// noise.
const maxPortion = 1 << 20

// schemes is the state that a schedule needs to partition queries.
type schemes[C order.Code] struct {
	steps  layout.Stepped[C] // nil for a layout whose searches cannot be cut
	pairs  layout.SteppedPairs[C]
	once   sync.Once
	levels []cutLevel
	most   int   // queries of a portion
	bytes  int64 // that searches go through
	scheme atomic.Uint32
	bound  atomic.Int64        // ns; 0 for none
	paces  [getPairs + 1]paces // by question
	rooms  par.Pool[room[C]]
	taken  atomic.Int32 // of them
}

func (s *schemes[C]) init(tree Layout[C]) {
	s.steps, _ = tree.(layout.Stepped[C])
	s.pairs, _ = tree.(layout.SteppedPairs[C])
	s.most = maxPortion
	if body, ok := tree.(layout.Body); ok {
		size := body.Stats()
		s.bytes = size.InnerBytes + size.LeafBytes
	}
	s.rooms = par.NewPool[room[C]]()
}

// SetScheme makes later batches run by a scheme, Auto for the best. Where it
// cannot be had (a layout whose searches cannot be cut has no sub-trees to
// partition by; see SetBound, too), they run unbuffered.
func (e *CPU[C]) SetScheme(s Scheme) { e.schemes.scheme.Store(uint32(s)) }

// SetBound bounds the time for which a query may wait in a partition: from when
// its portion is begun until all answers of it are where they belong. Portions
// are made so small that they meet the bound at the rate of those before. Where
// that leaves too little to gain anything, queries are not partitioned at all:
// then each is answered within the time for a bucket, some 0.3 ms at most. 0 is
// no bound.
func (e *CPU[C]) SetBound(d time.Duration) {
	e.schemes.bound.Store(int64(min(max(d, 0), time.Hour))) // in ps it must fit, too
}

// choose returns the scheme for a batch and, where it is not Unbuffered, the
// number of queries that a worker partitions at a time.
func (e *CPU[C]) choose(b *batch[C]) (how Scheme, portion int) {
	n, s := b.keys.Len(), &e.schemes
	how = Scheme(s.scheme.Load())
	least := 1
	if how == Auto {
		least = leastPortion
	}
	if how == Unbuffered || how == Auto && !e.mayPay(b) || s.steps == nil || !e.numbered() {
		return Unbuffered, 0
	}
	most := s.most
	if bound := s.bound.Load(); bound > 0 {
		least = leastPortion
		most = int(min(max(bound*1000/s.paces[b.ask].of(how), 1), int64(most)))
	}
	portions := roundUp((n+most-1)/most, e.workers) // as many for each worker
	portion = (n + portions - 1) / portions
	if portion < least || e.cutFor(portion).nodes < 2 {
		return Unbuffered, 0
	}
	return how, portion
}

// mayPay reports whether partitioning may be faster, if there are enough
// queries.
func (e *CPU[C]) mayPay(b *batch[C]) bool {
	_, fetches := b.sink.(Fetcher)
	return e.schemes.bytes >= leastBytes && (fetches || b.ask != findEach)
}

// numbered reports whether the number of an entry, and one more, fits a code:
// answers are kept where codes were.
func (e *CPU[C]) numbered() bool {
	return width[C]() == 8 || uint64(e.entries) < math.MaxUint32
}

// byTurn answers a batch by whichever scheme was faster so far, and times it:
// the whole batch, since workers wait for each other. (A worker's portion by
// the slower scheme among faster ones held up the batch: 355 instead of 524 M
// queries/s, 16 cores, 64M keys of 64 bits, batches of 16M.)
func (j *job[C]) byTurn(portion int) {
	paces := &j.cpu.schemes.paces[j.ask]
	how, begun := paces.turn(), time.Now()
	if how == Unbuffered {
		j.inBuckets()
	} else {
		j.inPortions(portion, true)
	}
	paces.note(how, time.Since(begun)*time.Duration(j.cpu.workers), j.keys.Len())
}

// partition says how the queries of a batch are partitioned.
type partition struct {
	portion int // queries that a worker takes at a time
	cut     cutLevel
	timed   bool // as a whole: not each portion
}

// inPortions answers a batch portion by portion.
func (j *job[C]) inPortions(portion int, timed bool) {
	j.partition = partition{portion: portion, cut: j.cpu.cutFor(portion), timed: timed}
	par.Run(j.cpu.workers, (j.keys.Len()+portion-1)/portion, (*portions[C])(j))
}

// portions is a job whose pieces are portions.
type portions[C order.Code] job[C]

// Do answers one portion.
func (p *portions[C]) Do(piece int) {
	j := (*job[C])(p)
	e, lo := j.cpu, piece*j.partition.portion
	hi := min(lo+j.partition.portion, j.keys.Len())
	begun := time.Now()
	hits, ok := j.partitioned(lo, hi)
	if !ok {
		for at := lo; at < hi; at += maxBucket {
			hits += e.answer(&j.batch, at, min(at+maxBucket, hi))
		}
	}
	j.hits.Add(int64(hits))
	if ok && !j.partition.timed {
		e.schemes.paces[j.ask].note(Partitioned, time.Since(begun), hi-lo)
	}
}

// partitioned answers a portion by sub-trees. There is no more room for that
// than for one portion per worker, however many batches are under way: that
// bounds the memory. It returns false where none is left.
func (j *job[C]) partitioned(lo, hi int) (hits int, ok bool) {
	s := &j.cpu.schemes
	defer s.taken.Add(-1) // a sink may panic
	if int(s.taken.Add(1)) > j.cpu.workers {
		return 0, false
	}
	r := par.Get(s.rooms)
	p := portion[C]{j.cpu, &j.batch, r, lo, hi - lo}
	hits = p.answer(j.partition.cut)
	par.Put(s.rooms, r)
	return hits, true
}
