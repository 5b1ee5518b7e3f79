package pando

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/snapshot"
)

// list is a sorted list of strings as the engine sees it.
type list interface {
	Seek(key string) (rank int, equal bool) // strings below key; whether the one there is key
	After(key string) int                   // strings up to key
	Prefix(p string) (lo, hi int)           // those that start with p
	Key(i int) string
	Find(keys []string, ranks []int) // the first that is keys[i], or -1
	Rank(keys []string, ranks []int) // strings below keys[i]
	Segments() [][]byte
	Check() error
	Bytes() int64
	Release()
}

// words is the engine for string keys: a list of them, and the values in a Go
// slice, in memory off the heap, or all in a file.
type words[K Key, V any] struct {
	list    list
	layout  snapshot.Layout // of the list
	rows    []V
	column  *arena.Block // where rows lie, unless in Go memory or in the file
	coded   *coded[V]    // where a codec has written the values to a file
	n       int
	workers int
	gpu     *exec.Text // nil where there is none
	least   int        // batches from this size on go to the GPU
}

// name gives a key as the string it is.
func name[K Key](k K) string { return *(*string)(unsafe.Pointer(&k)) }

func (e *words[K, V]) Seek(key K) (rank int, equal bool) { return e.list.Seek(name(key)) }

func (e *words[K, V]) After(key K) int { return e.list.After(name(key)) }

func (e *words[K, V]) Prefix(p K) (lo, hi int) { return e.list.Prefix(name(p)) }

func (e *words[K, V]) Key(i int) K {
	s := e.list.Key(i)
	return *(*K)(unsafe.Pointer(&s))
}

func (e *words[K, V]) Val(i int) V {
	if e.coded != nil {
		return e.coded.at(i)
	}
	return e.rows[i]
}

func (e *words[K, V]) RankBatch(keys []K, ranks []int) {
	e.rankAll(recast[string](keys), ranks)
}

// AfterBatch counts strings up to a key as those below the next string there
// is, the key and a zero byte.
func (e *words[K, V]) AfterBatch(keys []K, ranks []int) {
	names := recast[string](keys)
	if e.onGPU(len(keys)) {
		e.gpu.Rank(following(names), ranks)
		return
	}
	e.pieces(len(keys), func(lo, hi int) { e.list.Rank(following(names[lo:hi]), ranks[lo:hi]) })
}

// following gives for each string the one that comes next: of all that are
// above it, the least.
func following(names []string) []string {
	total := len(names)
	for _, s := range names {
		total += len(s)
	}
	all, next := make([]byte, 0, total), make([]string, len(names))
	for i, s := range names {
		from := len(all)
		all = append(append(all, s...), 0)
		next[i] = unsafe.String(&all[from], len(all)-from)
	}
	return next
}

func (e *words[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	names := recast[string](keys)
	places := scratch.take(len(keys))
	defer scratch.give(places)
	sink := take[V]{entries: e.n, rows: e.rows, coded: e.coded, vals: vals, found: found}
	if e.onGPU(len(keys)) {
		e.gpu.Find(names, *places)
		return e.takeAll(&sink, *places)
	}
	var total atomic.Int64
	e.pieces(len(keys), func(lo, hi int) {
		e.list.Find(names[lo:hi], (*places)[lo:hi])
		total.Add(int64(sink.Take(lo, (*places)[lo:hi])))
	})
	return int(total.Load())
}

// takeAll turns places into values, fetching them ahead.
func (e *words[K, V]) takeAll(sink *take[V], places []int) (hits int) {
	var total atomic.Int64
	e.pieces(len(places), func(lo, hi int) {
		sink.Fetch(places[lo:hi])
		total.Add(int64(sink.Take(lo, places[lo:hi])))
	})
	return int(total.Load())
}

// pieces cuts [0, n) and calls do for each piece, on all workers if n is large.
func (e *words[K, V]) pieces(n int, do func(lo, hi int)) {
	const piece = 512
	par.Run(e.workers, (n+piece-1)/piece, par.Func(func(p int) { do(p*piece, min((p+1)*piece, n)) }))
}

// Fetch does nothing: what a search has touched is most of it.
func (e *words[K, V]) Fetch(int, int) {}

func (e *words[K, V]) CopyOut(lo int, keys []K, vals []V) {
	for i := range keys {
		keys[i] = e.Key(lo + i)
	}
	if e.coded != nil {
		e.coded.copyOut(vals, lo)
		return
	}
	copy(vals, e.rows[lo:])
}

// Release gives memory off the heap, or a file, back; Go memory is gone when
// nothing points to it.
func (e *words[K, V]) Release() (err error) {
	if e.gpu != nil {
		err = e.gpu.Close()
	}
	e.list.Release()
	if e.column != nil {
		e.column.Release()
	}
	return err
}

// CopyRuns leaves all to the CPU.
func (e *words[K, V]) CopyRuns(_, _ []int, _ []K, _ []V, _ func(lo, hi int)) bool { return false }
