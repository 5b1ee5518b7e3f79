package fast

import (
	"sync"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Ranker sets ranks[i] to the number of entries below keys[i], as every layout
// does.
type Ranker[C order.Code] interface {
	Rank(keys []C, ranks []int)
}

// Sorted answers a batch in the order of its keys, the sorted scheme of the
// FAST paper (figure 11): neighbours share most of their way. Each worker sorts
// and answers portions of its own. Unlike the schemes of package exec it takes
// memory for each portion, as order.Sort does.
type Sorted[C order.Code] struct {
	tree    Ranker[C]
	workers int
	rooms   sync.Pool // *sortRoom[C]
}

// maxPortion is the most that a worker sorts at a time, and sortBucket the most
// that it asks the layout for at once, as in package exec.
const (
	maxPortion = 1 << 20
	sortBucket = 8 << 10
)

// NewSorted makes a schedule of workers goroutines over a tree.
func NewSorted[C order.Code](tree Ranker[C], workers int) *Sorted[C] {
	s := &Sorted[C]{tree: tree, workers: max(workers, 1)}
	s.rooms.New = func() any { return new(sortRoom[C]) }
	return s
}

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (s *Sorted[C]) Rank(keys []C, ranks []int) {
	if len(keys) == 0 {
		return
	}
	portion := portionOf(len(keys), s.workers)
	par.Run(s.workers, (len(keys)+portion-1)/portion, par.Func(func(piece int) {
		lo := piece * portion
		hi := min(lo+portion, len(keys))
		room := s.rooms.Get().(*sortRoom[C])
		room.rank(s.tree, keys[lo:hi], ranks[lo:hi])
		s.rooms.Put(room)
	}))
}

// portionOf returns the queries of a portion: all workers have as many of them.
func portionOf(n, workers int) int {
	portions := (n + maxPortion - 1) / maxPortion
	portions = (portions + workers - 1) / workers * workers
	return (n + portions - 1) / portions
}

// sortRoom is room for a portion, kept for the next: codes with the place of
// each in the caller's order, and as much again to sort them.
type sortRoom[C order.Code] struct {
	codes, codesTmp   []C
	places, placesTmp []uint32
	ranks             [sortBucket]int
}

// rank answers a portion.
func (r *sortRoom[C]) rank(tree Ranker[C], keys []C, ranks []int) {
	codes, places := r.sorted(keys)
	for len(codes) > 0 {
		n := min(len(codes), sortBucket)
		tree.Rank(codes[:n], r.ranks[:n])
		for i, p := range places[:n] {
			ranks[p] = r.ranks[i]
		}
		codes, places = codes[n:], places[n:]
	}
}

// sorted returns keys in order, with the place of each.
func (r *sortRoom[C]) sorted(keys []C) ([]C, []uint32) {
	n := len(keys)
	r.codes, r.codesTmp = grown(r.codes, n), grown(r.codesTmp, n)
	r.places, r.placesTmp = grown(r.places, n), grown(r.placesTmp, n)
	copy(r.codes, keys)
	for i := range r.places {
		r.places[i] = uint32(i)
	}
	return order.Sort(r.codes, r.codesTmp, r.places, r.placesTmp, 1)
}

// grown returns a slice of length n, the same if it is long enough. Its
// contents are undefined.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
