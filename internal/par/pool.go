package par

import "sync"

// Pool keeps the scratch memory of batches for the batches that follow. Go
// refers to every sync.Pool in use until two collections after its last, and so
// to the object that the pool is a part of: an index with a pool inside would
// outlive its last user by two collections, each later than the one before
// since the index counts as live. So a Pool is memory of its own, and objects
// that are put into it must not refer to the index either.
//
// A Pool has functions in the place of methods, which every package that uses a type with a
// Pool in it would compile again.
type Pool[T any] struct{ pool *sync.Pool }

// NewPool makes a pool of values that begin as zero.
func NewPool[T any]() Pool[T] {
	return Pool[T]{&sync.Pool{New: func() any { return new(T) }}}
}

// Get returns a value that was put into a pool, or a new one.
func Get[T any](p Pool[T]) *T { return p.pool.Get().(*T) }

// Put keeps a value for a later Get.
func Put[T any](p Pool[T], v *T) { p.pool.Put(v) }
