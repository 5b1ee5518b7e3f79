package pando

import (
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/text"
)

// words is the engine for string keys: a sorted block of bytes, and the
// values in a Go slice.
type words[K Key, V any] struct {
	block   *text.Block
	rows    []V
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

func (e *words[K, V]) Val(i int) V { return e.rows[i] }

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
	sink := take[V]{entries: len(e.rows), rows: e.rows, vals: vals, found: found}
	return sink.Take(0, places)
}

// each calls do for every i below n, on all workers if n is large.
func (e *words[K, V]) each(n int, do func(i int)) {
	const piece = 512
	par.Run(e.workers, (n+piece-1)/piece, par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			do(i)
		}
	}))
}

// fetch does nothing: what a search has touched is most of it.
func (e *words[K, V]) Fetch(int, int) {}

func (e *words[K, V]) CopyOut(lo int, keys []K, vals []V) {
	for i := range keys {
		keys[i] = e.Key(lo + i)
	}
	copy(vals, e.rows[lo:])
}

// release does nothing: the block is Go memory, gone when nothing points to it.
func (e *words[K, V]) Release() error { return nil }

// Report adds nothing.
func (e *words[K, V]) Report(*Stats) {}
