// Package exec is how a batch runs: which queries go where, in buckets of
// what size. It knows nothing of any layout but the interface it asks for.
package exec

import (
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Layout is a tree as a schedule sees it: it answers buckets of codes.
type Layout[C order.Code] interface {
	// Rank sets ranks[i] to the number of entries below keys[i].
	Rank(keys []C, ranks []int)
	// Find sets ranks[i] to the place of the first entry equal to keys[i], or -1.
	Find(keys []C, ranks []int)
	// GetPairs sets vals[i] to the value of that entry, or 0; a layout that
	// does not hold such values is never asked.
	GetPairs(keys, vals []C, found []bool) (hits int)
}

// Sink takes the places that FindEach finds, bucket by bucket: ranks[i] is
// where keys[lo+i] is, or -1. It is called from several goroutines, each with
// a part of its own, and gives the number of hits.
type Sink interface {
	Take(lo int, ranks []int) (hits int)
}

// Bucket sizes. A bucket is one call into assembly, which the scheduler
// cannot interrupt: 8K keys take a few hundred microseconds at worst. Below
// minShared keys the wake-up of another goroutine costs more than it brings.
const (
	maxBucket = 8 << 10
	minBucket = 1 << 10
	minShared = 4 << 10
)

// CPU runs batches on the CPU's cores. It is safe for concurrent use and
// allocates nothing in steady state.
type CPU[K order.Key, C order.Code] struct {
	codec   order.Codec[K, C]
	layout  Layout[C]
	entries int
	workers int
	jobs    sync.Pool // *job[K, C]
	spaces  sync.Pool // *space[C]
	schemes schemes[C]
}

// NewCPU makes a schedule of workers goroutines over a layout that holds so
// many entries.
func NewCPU[K order.Key, C order.Code](codec order.Codec[K, C], layout Layout[C], entries, workers int) *CPU[K, C] {
	e := &CPU[K, C]{codec: codec, layout: layout, entries: entries, workers: workers}
	e.jobs.New = func() any { return &job[K, C]{cpu: e} }
	e.spaces.New = func() any { return new(space[C]) }
	e.schemes.init(layout)
	return e
}

// Workers is the most goroutines that a batch uses.
func (e *CPU[K, C]) Workers() int { return e.workers }

// space is room for one bucket, kept for the next.
type space[C order.Code] struct {
	codes [maxBucket]C
	ranks [maxBucket]int
}

// batch is what is asked.
type batch[K order.Key, C order.Code] struct {
	ask   question
	keys  []K
	ranks []int
	vals  []C
	found []bool
	sink  Sink
	raw   []byte // memory of the values, where a GPU sets them
}

// job is a batch under way, cut into buckets.
type job[K order.Key, C order.Code] struct {
	batch[K, C]
	cpu    *CPU[K, C]
	bucket int
	parked parked // where the queries of a portion are parked
	hits   atomic.Int64
}

type question uint8

const (
	rank question = iota
	rankAfter
	findEach
	getPairs
)

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (e *CPU[K, C]) Rank(keys []K, ranks []int) {
	e.run(batch[K, C]{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of entries with a key up to keys[i].
func (e *CPU[K, C]) RankAfter(keys []K, ranks []int) {
	e.run(batch[K, C]{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks keys up and hands the places found to sink.
func (e *CPU[K, C]) FindEach(keys []K, sink Sink) (hits int) {
	return e.run(batch[K, C]{ask: findEach, keys: keys, sink: sink})
}

// GetPairs looks keys up in a layout of pairs. found may be nil.
func (e *CPU[K, C]) GetPairs(keys []K, vals []C, found []bool) (hits int) {
	return e.run(batch[K, C]{ask: getPairs, keys: keys, vals: vals, found: found})
}

// run answers a batch by the scheme that is best for it.
func (e *CPU[K, C]) run(what batch[K, C]) (hits int) {
	n := len(what.keys)
	if n == 0 {
		return 0
	}
	j := e.jobs.Get().(*job[K, C])
	j.batch, j.parked = what, parked{}
	j.hits.Store(0)
	switch how, portion := e.choose(&what); how {
	case Unbuffered:
		j.inBuckets()
	case Auto:
		j.byTurn(portion)
	default:
		j.inPortions(how, portion)
	}
	hits = int(j.hits.Load())
	j.batch = batch[K, C]{} // the caller's slices are not ours to keep
	e.jobs.Put(j)
	return hits
}

// inBuckets cuts a batch into buckets, several for each worker so that none
// waits long for the last, and answers them.
func (j *job[K, C]) inBuckets() {
	n := len(j.keys)
	workers, bucket := j.cpu.workers, maxBucket
	if n < minShared {
		workers = 1
	} else if workers > 1 {
		bucket = min(max(n/(4*workers), minBucket), maxBucket)
	}
	j.bucket = bucket
	par.Run(workers, (n+bucket-1)/bucket, j)
}

// Do answers one bucket.
func (j *job[K, C]) Do(piece int) {
	lo := piece * j.bucket
	j.hits.Add(int64(j.cpu.answer(&j.batch, lo, min(lo+j.bucket, len(j.keys)))))
}

// answer answers queries [lo, hi) of a batch, at most maxBucket of them.
func (e *CPU[K, C]) answer(b *batch[K, C], lo, hi int) (hits int) {
	keys := b.keys[lo:hi]
	s := e.spaces.Get().(*space[C])
	codes := e.codec.EncodeSlice(s.codes[:len(keys)], keys)
	switch b.ask {
	case rank:
		e.layout.Rank(codes, b.ranks[lo:])
	case rankAfter:
		e.rankAfter(codes, s.codes[:len(keys)], b.ranks[lo:])
	case findEach:
		e.layout.Find(codes, s.ranks[:len(keys)])
		hits = b.sink.Take(lo, s.ranks[:len(keys)])
	case getPairs:
		var found []bool
		if b.found != nil {
			found = b.found[lo:]
		}
		vals := b.vals[lo:]
		if &codes[0] == &vals[0] { // results may take the place of the keys
			codes = s.codes[:copy(s.codes[:], codes)]
		}
		hits = e.layout.GetPairs(codes, vals, found)
	}
	e.spaces.Put(s)
	return hits
}

// rankAfter counts entries up to a code as those below the next code; the
// greatest code has none.
func (e *CPU[K, C]) rankAfter(codes, next []C, ranks []int) {
	for i, c := range codes {
		next[i] = c + 1
	}
	e.layout.Rank(next, ranks)
	for i, c := range next {
		if c == 0 {
			ranks[i] = e.entries
		}
	}
}
