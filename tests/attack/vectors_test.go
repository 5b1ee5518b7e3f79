package attack

import (
	"fmt"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// vectors are the vector operations, where values are numbers.
func vectors[K pando.Key, V any]() []operation[K, V] {
	var do func(s *subject[K, V]) error
	switch any((*V)(nil)).(type) {
	case *uint64:
		do = func(s *subject[K, V]) error { return vectorStep[K, V, uint64](s) }
	case *uint32:
		do = func(s *subject[K, V]) error { return vectorStep[K, V, uint32](s) }
	case *int32:
		do = func(s *subject[K, V]) error { return vectorStep[K, V, int32](s) }
	default:
		return nil
	}
	return []operation[K, V]{{"vector operations", do}}
}

// vectorStep asks for all vector operations over a range. N is V.
func vectorStep[K pando.Key, V any, N uint64 | uint32 | int32](s *subject[K, V]) error {
	ix, ok := any(s.ix).(pando.Index[K, N])
	if !ok { // it lacks methods, on purpose
		return nil
	}
	model := any(s.model).(*facetest.Model[K, N])
	lo, hi := s.key(), s.key()
	first, end := model.Span(lo, hi, 0)
	bound := N(s.rng.Uint64())
	var want pando.Summary[N]
	below := 0
	for i, v := range model.Vals[first:end] {
		if i == 0 {
			want.Min, want.Max = v, v
		}
		want.Count, want.Sum, want.Min, want.Max = want.Count+1, want.Sum+v, min(want.Min, v), max(want.Max, v)
		if v < bound {
			below++
		}
	}
	got := pando.Aggregate(ix, lo, hi)
	if want.Mean = got.Mean; got != want {
		return fmt.Errorf(": Aggregate(%v, %v) = %+v, want %+v", lo, hi, got, want)
	}
	many := make([]pando.Summary[N], 2)
	if pando.AggregateBatch(ix, []K{lo, lo}, []K{hi, hi}, many); many[0] != got || many[1] != got {
		return fmt.Errorf(": AggregateBatch(%v, %v) = %+v, want %+v twice", lo, hi, many, got)
	}
	counts := make([]int, 2)
	if pando.Histogram(ix, lo, hi, []N{bound}, counts); counts[0] != below || counts[1] != end-first-below {
		return fmt.Errorf(": Histogram(%v, %v, %v) = %v, want %d below", lo, hi, bound, counts, below)
	}
	if r := pando.Select(ix, lo, hi, pando.Below(bound)); len(r.Keys) != below || len(r.Vals) != below {
		return fmt.Errorf(": Select(%v, %v, Below(%v)) has %d keys, %d values; want %d", lo, hi, bound, len(r.Keys), len(r.Vals), below)
	}
	s.same(4)
	return nil
}
