package pando

import (
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

func (e *fixed[K, C, V]) Seek(key K) (rank int, equal bool) {
	return e.tree.Seek(e.codec.Encode(key))
}

func (e *fixed[K, C, V]) After(key K) int {
	next := e.codec.Encode(key) + 1
	if next == 0 { // nothing is above the greatest code
		return e.n
	}
	rank, _ := e.tree.Seek(next)
	return rank
}

// Prefix is never asked: numbers have none.
func (e *fixed[K, C, V]) Prefix(K) (lo, hi int) { return 0, 0 }

func (e *fixed[K, C, V]) Key(i int) K { return e.codec.Decode(e.tree.Key(i)) }

func (e *fixed[K, C, V]) Val(i int) V {
	switch {
	case e.rows != nil:
		return e.rows[i]
	case e.coded != nil:
		return e.coded.at(i)
	}
	return *(*V)(e.tree.Val(i))
}

// schedule is a way to run batches.
type schedule[K Key, C order.Code] interface {
	Rank(keys []K, ranks []int)
	RankAfter(keys []K, ranks []int)
	FindEach(keys []K, sink exec.Sink) (hits int)
	GetPairs(keys []K, vals []C, found []bool) (hits int)
}

// on gives the schedule for a batch of n keys.
func (e *fixed[K, C, V]) on(n int) schedule[K, C] {
	if e.onGPU(n) {
		return e.gpu
	}
	return e.cpu
}

func (e *fixed[K, C, V]) RankBatch(keys []K, ranks []int) { e.on(len(keys)).Rank(keys, ranks) }

func (e *fixed[K, C, V]) AfterBatch(keys []K, ranks []int) { e.on(len(keys)).RankAfter(keys, ranks) }

func (e *fixed[K, C, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	if e.pairs {
		return e.on(len(keys)).GetPairs(keys, recast[C](vals), found)
	}
	s, _ := e.takes.Get().(*take[V])
	if s == nil {
		s = new(take[V])
	}
	*s = take[V]{entries: e.n, column: e.column(), rows: e.rows, coded: e.coded, vals: vals, found: found}
	if e.onGPU(len(keys)) && e.rows == nil && e.coded == nil {
		hits = e.gpu.FindVals(keys, s, arena.Bytes(vals), found)
	} else {
		hits = e.on(len(keys)).FindEach(keys, s)
	}
	*s = take[V]{} // the caller's slices are not ours to keep
	e.takes.Put(s)
	return hits
}

// column gives the first value, where values have a column in the tree.
func (e *fixed[K, C, V]) column() *V {
	if e.rows != nil || e.coded != nil {
		return nil
	}
	return (*V)(e.tree.Val(0))
}

// take is a sink that turns the places found in a bucket into values.
type take[V any] struct {
	entries int
	column  *V  // first value, where values are in the tree
	rows    []V // values, where they are in Go memory
	coded   *coded[V]
	vals    []V
	found   []bool
}

// Take sets the results of a bucket. The index's values were prefetched when
// their places were found.
func (t *take[V]) Take(lo int, ranks []int) (hits int) {
	vals := t.vals[lo : lo+len(ranks)]
	for i, r := range ranks {
		var v V
		if uint(r) < uint(t.entries) { // below 0: not found; above: being closed
			v = t.at(r)
			hits++
		}
		vals[i] = v
	}
	if t.found != nil {
		found := t.found[lo : lo+len(ranks)]
		for i, r := range ranks {
			found[i] = r >= 0
		}
	}
	return hits
}

// Fetch asks for the values of places, which Take will read.
func (t *take[V]) Fetch(ranks []int) {
	first := unsafe.Pointer(t.column)
	if t.rows != nil {
		first = unsafe.Pointer(unsafe.SliceData(t.rows))
	}
	if size := int(unsafe.Sizeof(*t.column)); first != nil && size > 0 && t.coded == nil {
		simd.FetchEach(first, ranks, size)
	}
}

func (t *take[V]) at(r int) V {
	switch {
	case t.rows != nil:
		return t.rows[r]
	case t.coded != nil:
		return t.coded.at(r)
	}
	return *(*V)(unsafe.Add(unsafe.Pointer(t.column), r*int(unsafe.Sizeof(*t.column))))
}

func (e *fixed[K, C, V]) Fetch(lo, n int) { e.tree.Prefetch(lo, n) }

func (e *fixed[K, C, V]) CopyOut(lo int, keys []K, vals []V) {
	if e.codec.Identity() {
		e.tree.CopyKeys(recast[C](keys), lo)
	} else {
		e.decodeOut(lo, keys)
	}
	switch {
	case e.rows != nil:
		copy(vals, e.rows[lo:])
	case e.coded != nil:
		e.coded.copyOut(vals, lo)
	default:
		e.tree.CopyVals(arena.Bytes(vals), lo)
	}
}

// decodeOut copies keys that need to be turned back from codes.
func (e *fixed[K, C, V]) decodeOut(lo int, keys []K) {
	var codes [window]C
	for len(keys) > 0 {
		n := min(len(keys), window)
		e.tree.CopyKeys(codes[:n], lo)
		e.codec.DecodeSlice(keys[:n], codes[:n])
		keys, lo = keys[n:], lo+n
	}
}

func (e *fixed[K, C, V]) Release() error {
	var err error
	if e.gpu != nil {
		err = e.gpu.Close()
	}
	e.tree.Release()
	return err
}
