package pando

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/text"
)

// words is the engine for string keys: a sorted block of bytes, and the
// values in a Go slice, or both in a file.
type words[K Key, V any] struct {
	block   *text.Block
	rows    []V
	coded   *coded[V] // where a codec has written the values to a file
	n       int
	workers int
}

// name gives a key as the string it is.
func name[K Key](k K) string { return *(*string)(unsafe.Pointer(&k)) }

func (e *words[K, V]) Seek(key K) (rank int, equal bool) { return e.block.Seek(name(key)) }

func (e *words[K, V]) After(key K) int { return e.block.After(name(key)) }

func (e *words[K, V]) Key(i int) K {
	s := e.block.Key(i)
	return *(*K)(unsafe.Pointer(&s))
}

func (e *words[K, V]) Val(i int) V {
	if e.coded != nil {
		return e.coded.at(i)
	}
	return e.rows[i]
}

func (e *words[K, V]) RankBatch(keys []K, ranks []int) {
	e.each(len(keys), func(i int) { ranks[i], _ = e.Seek(keys[i]) })
}

func (e *words[K, V]) AfterBatch(keys []K, ranks []int) {
	e.each(len(keys), func(i int) { ranks[i] = e.After(keys[i]) })
}

func (e *words[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	places := make([]int, len(keys))
	e.each(len(keys), func(i int) {
		r, equal := e.Seek(keys[i])
		if !equal {
			r = -1
		}
		places[i] = r
	})
	sink := take[V]{entries: e.n, rows: e.rows, coded: e.coded, vals: vals, found: found}
	if e.coded == nil {
		return sink.Take(0, places)
	}
	var total atomic.Int64
	e.pieces(len(keys), func(lo, hi int) { total.Add(int64(sink.Take(lo, places[lo:hi]))) })
	return int(total.Load())
}

// each calls do for every i below n, on all workers if n is large.
func (e *words[K, V]) each(n int, do func(i int)) {
	e.pieces(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			do(i)
		}
	})
}

// pieces cuts [0, n) and calls do for each piece, on all workers if n is large.
func (e *words[K, V]) pieces(n int, do func(lo, hi int)) {
	const piece = 512
	par.Run(e.workers, (n+piece-1)/piece, par.Func(func(p int) { do(p*piece, min((p+1)*piece, n)) }))
}

// fetch does nothing: what a search has touched is most of it.
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

// Release gives a file back; Go memory is gone when nothing points to it.
func (e *words[K, V]) Release() error {
	e.block.Release()
	return nil
}

// Report adds nothing.
func (e *words[K, V]) Report(*Stats) {}

// CopyRuns leaves all to the CPU.
func (e *words[K, V]) CopyRuns(_, _ []int, _ []K, _ []V, _ func(lo, hi int)) bool { return false }
