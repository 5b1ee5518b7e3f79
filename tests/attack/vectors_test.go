package attack

import (
	"fmt"

	"github.com/pando-index/pando"
)

// vectorOperations has an operation[K, V] for each of the pairs whose values are numbers.
var vectorOperations = []any{
	vectorOperation[uint64, uint64](), vectorOperation[int8, uint32](), vectorOperation[string, uint64](),
}

func vectorOperation[K pando.Key, V uint64 | uint32]() operation[K, V] {
	return operation[K, V]{"vector operations", vectorStep[K, V]}
}

// vectors are the vector operations, where values are numbers.
func vectors[K pando.Key, V any]() []operation[K, V] {
	for _, op := range vectorOperations {
		if op, ok := op.(operation[K, V]); ok {
			return []operation[K, V]{op}
		}
	}
	return nil
}

// vectorStep asks for all vector operations over a range.
func vectorStep[K pando.Key, V uint64 | uint32](s *subject[K, V]) error {
	ix, ok := s.ix.(pando.Index[K, V])
	if !ok { // it lacks methods, on purpose
		return nil
	}
	model := s.model
	lo, hi := s.key(), s.key()
	first, end := model.Span(lo, hi, 0)
	bound := V(s.rng.Uint64())
	var want pando.Summary[V]
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
	many := make([]pando.Summary[V], 2)
	if pando.AggregateBatch(ix, []K{lo, lo}, []K{hi, hi}, many); many[0] != got || many[1] != got {
		return fmt.Errorf(": AggregateBatch(%v, %v) = %+v, want %+v twice", lo, hi, many, got)
	}
	counts := make([]int, 2)
	if pando.Histogram(ix, lo, hi, []V{bound}, counts); counts[0] != below || counts[1] != end-first-below {
		return fmt.Errorf(": Histogram(%v, %v, %v) = %v, want %d below", lo, hi, bound, counts, below)
	}
	if r := pando.Select(ix, lo, hi, pando.Below(bound)); len(r.Keys) != below || len(r.Vals) != below {
		return fmt.Errorf(": Select(%v, %v, Below(%v)) has %d keys, %d values; want %d", lo, hi, bound, len(r.Keys), len(r.Vals), below)
	}
	s.same(4)
	return nil
}
