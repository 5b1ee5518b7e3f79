package exec

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/par"
)

// StringBatch is strings to look for.
type StringBatch = packing.Strings

// stringPiece is the most strings that a worker takes at a time.
const stringPiece = 512

// Strings runs batches of strings on the CPU's cores. It is safe for concurrent
// use and allocates nothing in steady state.
type Strings struct {
	tree    layout.StringTree
	workers int
	jobs    par.Pool[stringJob]
	spaces  par.Pool[stringSpace]
}

// NewStrings makes a schedule of workers goroutines over a tree of strings.
func NewStrings(tree layout.StringTree, workers int) *Strings {
	return &Strings{tree: tree, workers: workers, jobs: par.NewPool[stringJob](), spaces: par.NewPool[stringSpace]()}
}

// stringSpace is room for a piece, kept for the next.
type stringSpace struct {
	keys  [stringPiece]string
	ranks [stringPiece]int
	next  []byte // of following strings
	// Queries that a device has left to the CPU.
	left  [stringPiece]int
	loose [stringPiece]int
	sent  [stringPiece]string
}

// give keeps a space for the next piece, and nothing of the caller's strings:
// n of them were in it at most.
func (e *Strings) give(s *stringSpace, n int) {
	clear(s.keys[:n])
	clear(s.sent[:n])
	par.Put(e.spaces, s)
}

// following sets keys to the strings that come next: of all that are above a
// key, the least is the key and a zero byte. They last until the next call.
func (s *stringSpace) following(dst, keys []string) []string {
	total := len(keys)
	for _, k := range keys {
		total += len(k)
	}
	if cap(s.next) < total {
		s.next = make([]byte, 0, 2*total)
	}
	all := s.next[:0]
	for i, k := range keys {
		from := len(all)
		all = append(append(all, k...), 0)
		dst[i] = unsafe.String(&all[from], len(all)-from)
	}
	s.next = all
	return dst[:len(keys)]
}

// stringQueries is the queries of a batch.
type stringQueries struct {
	ask   question
	keys  StringBatch
	ranks []int
	sink  Sink
}

// stringJob is a batch under way on the CPU, cut into pieces.
type stringJob struct {
	stringQueries
	cpu  *Strings
	hits atomic.Int64
}

// Rank sets ranks[i] to the number of strings below keys[i].
func (e *Strings) Rank(keys StringBatch, ranks []int) {
	e.run(stringQueries{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of strings up to keys[i].
func (e *Strings) RankAfter(keys StringBatch, ranks []int) {
	e.run(stringQueries{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks strings up and hands the results to sink.
func (e *Strings) FindEach(keys StringBatch, sink Sink) (hits int) {
	return e.run(stringQueries{ask: findEach, keys: keys, sink: sink})
}

func (e *Strings) run(what stringQueries) (hits int) {
	j := par.Get(e.jobs)
	j.cpu, j.stringQueries = e, what
	j.hits.Store(0)
	par.Run(e.workers, (what.keys.Len()+stringPiece-1)/stringPiece, j)
	hits = int(j.hits.Load())
	j.cpu, j.stringQueries = nil, stringQueries{} // neither the tree nor the caller's slices are a pool's to keep
	par.Put(e.jobs, j)
	return hits
}

// Do answers one piece.
func (j *stringJob) Do(piece int) {
	lo := piece * stringPiece
	j.hits.Add(int64(j.cpu.answer(&j.stringQueries, lo, min(lo+stringPiece, j.keys.Len()))))
}

// answer answers queries [lo, hi), at most stringPiece of them.
func (e *Strings) answer(b *stringQueries, lo, hi int) (hits int) {
	s := par.Get(e.spaces)
	keys := b.keys.Span(lo, hi, s.keys[:])
	switch b.ask {
	case rank:
		e.tree.Rank(keys, b.ranks[lo:hi])
	case rankAfter:
		e.tree.Rank(s.following(s.sent[:], keys), b.ranks[lo:hi])
	case findEach:
		ranks := s.ranks[:hi-lo]
		e.tree.Find(keys, ranks)
		hits = b.sink.Take(lo, ranks)
	}
	e.give(s, hi-lo)
	return hits
}
