package live

import (
	"github.com/pando-index/pando/internal/index"
)

// apart holds the values of a map that cannot lie in its tree, which has a word for each. A
// value is put before its word is in the tree, and never changes. Its memory is used again
// when nobody can come across its word any more: see Generations.
//
// Any goroutine may call any method at any time.
type apart interface {
	// put takes a value for the tree of an epoch, and returns its word. An error has changed
	// nothing.
	put(v index.Value, epoch uint64) (word uint64, err error)
	// putAll sets words[i] to that of value rows[i], or i where rows is nil. An error has
	// changed nothing.
	putAll(words []uint64, vals index.Column, rows []int, epoch uint64) error
	// get returns a value. The word may be an old one, or any: then the value is any, and the
	// caller finds out.
	get(word uint64) index.Value
	// getAll sets vals to those of words, but to zero where found, unless it is nil, is false.
	getAll(vals index.Column, words []uint64, found []bool)
	// same reports whether two values that get has returned are the same one, or as good.
	same(a, b index.Value) bool
	// lent returns a value that get has returned for somebody who may change its memory.
	lent(v index.Value) index.Value
	// few returns how many of some words, from one end, have values that are read at once.
	few(words []uint64, down bool) int

	// out counts values that are no longer in the tree, and returns those whose memory is
	// used again: retire has them next.
	out(words []uint64) []uint64
	// born returns the epoch in which a value was put, or an earlier one. It is out of the
	// tree, and not free.
	born(word uint64) uint64
	// free frees values that nobody can find any more.
	free(words []uint64)
	// unput frees values that never came into the tree.
	unput(words []uint64)
	// over frees all.
	over()

	// report adds the memory of values to what is known of a map.
	report(s *index.Stats)
	// count returns the number of values, those that are no longer in the tree included.
	count() int64
}
