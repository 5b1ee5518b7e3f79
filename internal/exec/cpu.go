// Package exec is how a batch runs: which queries go where, in buckets of which
// size. It knows layouts by the interfaces of package layout alone. It is
// generic in the code type alone: keys come as order.Keys and become codes once
// a bucket, values are the business of a Sink.
package exec

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Sink takes the results of FindEach, bucket by bucket: ranks[i] is the number
// of the entry that is equal to keys[lo+i], or -1. It is called from several
// goroutines, each with a part of its own, and returns the number of hits.
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
type CPU[C order.Code] struct {
	layout  Layout[C]
	pairs   layout.Paired[C] // nil where values do not lie beside keys
	entries int
	workers int
	jobs    par.Pool[job[C]]
	spaces  par.Pool[space[C]]
	schemes schemes[C]
}

// Layout is a layout as a schedule on the CPU sees it.
type Layout[C order.Code] interface {
	Rank(keys []C, ranks []int)
	Find(keys []C, ranks []int)
}

// NewCPU makes a schedule of workers goroutines over a tree with a number of
// entries.
func NewCPU[C order.Code](tree Layout[C], entries, workers int) *CPU[C] {
	e := &CPU[C]{layout: tree, entries: entries, workers: workers, jobs: par.NewPool[job[C]](), spaces: par.NewPool[space[C]]()}
	e.pairs, _ = tree.(layout.Paired[C])
	e.schemes.init(tree)
	return e
}

// Workers is the most goroutines that a batch uses.
func (e *CPU[C]) Workers() int { return e.workers }

// space is room for one bucket, kept for the next.
type space[C order.Code] struct {
	codes [maxBucket]C
	ranks [maxBucket]int
}

// batch is the queries of a batch.
type batch[C order.Code] struct {
	ask   question
	keys  order.Keys
	ranks []int
	vals  []C
	found []bool
	sink  Sink
	raw   []byte // memory of the values, where a GPU sets them
}

// job is a batch under way, cut into buckets.
type job[C order.Code] struct {
	batch[C]
	cpu       *CPU[C]
	bucket    int
	partition partition // how the queries are partitioned, where they are
	hits      atomic.Int64
}

type question uint8

const (
	rank question = iota
	rankAfter
	findEach
	getPairs
)

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (e *CPU[C]) Rank(keys order.Keys, ranks []int) {
	e.run(batch[C]{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of entries with a key up to keys[i].
func (e *CPU[C]) RankAfter(keys order.Keys, ranks []int) {
	e.run(batch[C]{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks keys up and hands the results to sink.
func (e *CPU[C]) FindEach(keys order.Keys, sink Sink) (hits int) {
	return e.run(batch[C]{ask: findEach, keys: keys, sink: sink})
}

// GetPairs looks keys up in a layout of pairs. found may be nil.
func (e *CPU[C]) GetPairs(keys order.Keys, vals []C, found []bool) (hits int) {
	return e.run(batch[C]{ask: getPairs, keys: keys, vals: vals, found: found})
}

// run answers a batch by the scheme that is best for it.
func (e *CPU[C]) run(what batch[C]) (hits int) {
	n := what.keys.Len()
	if n == 0 {
		return 0
	}
	j := par.Get(e.jobs)
	j.cpu, j.batch, j.partition = e, what, partition{}
	j.hits.Store(0)
	switch how, portion := e.choose(&what); how {
	case Unbuffered:
		j.inBuckets()
	case Auto:
		j.byTurn(portion)
	default:
		j.inPortions(portion, false)
	}
	hits = int(j.hits.Load())
	j.cpu, j.batch = nil, batch[C]{} // neither the tree nor the caller's slices are a pool's to keep
	par.Put(e.jobs, j)
	return hits
}

// inBuckets cuts a batch into buckets, several for each worker so that none
// waits long for the last, and answers them.
func (j *job[C]) inBuckets() {
	n := j.keys.Len()
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
func (j *job[C]) Do(piece int) {
	lo := piece * j.bucket
	j.hits.Add(int64(j.cpu.answer(&j.batch, lo, min(lo+j.bucket, j.keys.Len()))))
}

// answer answers queries [lo, hi) of a batch, at most maxBucket of them.
func (e *CPU[C]) answer(b *batch[C], lo, hi int) (hits int) {
	n, s := hi-lo, par.Get(e.spaces)
	codes := order.Codes(b.keys.Slice(lo, hi), s.codes[:n])
	switch b.ask {
	case rank:
		e.layout.Rank(codes, b.ranks[lo:])
	case rankAfter:
		e.rankAfter(codes, s.codes[:n], b.ranks[lo:])
	case findEach:
		e.layout.Find(codes, s.ranks[:n])
		hits = b.sink.Take(lo, s.ranks[:n])
	case getPairs:
		var found []bool
		if b.found != nil {
			found = b.found[lo:]
		}
		vals := b.vals[lo:]
		if &codes[0] == &vals[0] { // results may take the place of the keys
			codes = s.codes[:copy(s.codes[:], codes)]
		}
		hits = e.pairs.GetPairs(codes, vals, found)
	}
	par.Put(e.spaces, s)
	return hits
}

// rankAfter counts entries up to a code as those below the next code; the
// greatest code has none.
func (e *CPU[C]) rankAfter(codes, next []C, ranks []int) {
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
