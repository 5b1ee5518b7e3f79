package pando_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/simd"
)

// mustFreeze builds an index, which the caller closes.
func mustFreeze[K pando.Key, V any](t testing.TB, keys []K, vals []V, opts ...pando.Option) *pando.Frozen[K, V] {
	t.Helper()
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// onEachPath calls check once for every path of this machine.
func onEachPath(check func() error) error {
	for _, p := range simd.Paths() {
		undo := simd.Use(p)
		err := check()
		undo()
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// probes gives keys to ask for: hits, and misses before, between and after.
func probes[K pando.Key, V any](m *model[K, V], d domain[K], n int, rng *rand.Rand) []K {
	out := append([]K(nil), d.ends...)
	for len(out) < n {
		switch i := rng.IntN(4); {
		case i == 0:
			out = append(out, d.bits(rng.Uint64()))
		case i == 1 || len(m.keys) == 0:
			out = append(out, d.num(rng.IntN(2*len(m.keys)+10)-5))
		default:
			out = append(out, m.keys[rng.IntN(len(m.keys))])
		}
	}
	return out
}

// checkIndex compares an index with its model: every method.
func checkIndex[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], asked []K) error {
	if ix.Len() != len(m.keys) || ix.Stats().Len != len(m.keys) {
		return fmt.Errorf("length %d, in Stats %d; want %d", ix.Len(), ix.Stats().Len, len(m.keys))
	}
	if err := checkEntries(ix, m); err != nil {
		return err
	}
	return onEachPath(func() error {
		for _, k := range asked {
			if err := checkKey(ix, m, k); err != nil {
				return err
			}
		}
		for i := 1; i < len(asked); i += 7 {
			if err := checkRange(ix, m, asked[i-1], asked[i]); err != nil {
				return err
			}
		}
		return checkBatches(ix, m, asked)
	})
}

// checkKey asks every question about one key.
func checkKey[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], k K) error {
	wantVal, want := m.get(k)
	if v, found := ix.Get(k); found != want || !m.same(v, wantVal) {
		return fmt.Errorf("Get(%v) = %v, %v; want %v, %v", k, v, found, wantVal, want)
	}
	if r := ix.Rank(k); r != m.rank(k) {
		return fmt.Errorf("Rank(%v) = %d, want %d", k, r, m.rank(k))
	}
	if err := m.entry(m.after(k)-1, ix.Floor, k); err != nil {
		return fmt.Errorf("Floor(%v) %w", k, err)
	}
	if err := m.entry(m.rank(k), ix.Ceil, k); err != nil {
		return fmt.Errorf("Ceil(%v) %w", k, err)
	}
	if codeBytes[K]() == 0 {
		if err := checkPrefix(ix, m, k); err != nil {
			return err
		}
	}
	return checkRange(ix, m, k, k)
}

// entry checks that ask gives entry i, or nothing where there is no such entry.
func (m *model[K, V]) entry(i int, ask func(K) (K, V, bool), k K) error {
	gotKey, gotVal, ok := ask(k)
	if i < 0 || i >= len(m.keys) {
		var noKey K
		var noVal V
		if ok || gotKey != noKey || !m.same(gotVal, noVal) {
			return fmt.Errorf("= %v, %v, %v; want none", gotKey, gotVal, ok)
		}
		return nil
	}
	if !ok || !m.is(i, gotKey, gotVal) {
		return fmt.Errorf("= %v, %v, %v; want entry %d: %v, %v", gotKey, gotVal, ok, i, m.keys[i], m.vals[i])
	}
	return nil
}

func checkRange[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], lo, hi K) error {
	first, end := m.span(lo, hi, 0)
	if n := ix.Count(lo, hi); n != end-first {
		return fmt.Errorf("Count(%v, %v) = %d, want %d", lo, hi, n, end-first)
	}
	if err := m.sequence(ix.Range(lo, hi), first, end, 200); err != nil {
		return fmt.Errorf("Range(%v, %v): %w", lo, hi, err)
	}
	return nil
}

// sequence checks that s yields entries [first, end). It stops after so many.
func (m *model[K, V]) sequence(s iter.Seq2[K, V], first, end, stop int) error {
	i := first
	for k, v := range s {
		if i >= end || !m.is(i, k, v) {
			return fmt.Errorf("entry %d is %v, %v; want up to entry %d", i, k, v, end)
		}
		if i++; i-first == stop {
			return nil
		}
	}
	if i != end {
		return fmt.Errorf("ends at entry %d, want %d", i, end)
	}
	return nil
}

// checkEntries looks at every entry, by place and in sequence.
func checkEntries[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V]) error {
	n := len(m.keys)
	for i := range n {
		if k, v := ix.At(i); !m.is(i, k, v) {
			return fmt.Errorf("At(%d) = %v, %v; want %v, %v", i, k, v, m.keys[i], m.vals[i])
		}
	}
	var none K
	if err := m.entry(min(0, n-1), func(K) (K, V, bool) { return ix.Min() }, none); err != nil {
		return fmt.Errorf("Min %w", err)
	}
	if err := m.entry(n-1, func(K) (K, V, bool) { return ix.Max() }, none); err != nil {
		return fmt.Errorf("Max %w", err)
	}
	if err := m.sequence(ix.All(), 0, n, n+1); err != nil {
		return fmt.Errorf("All: %w", err)
	}
	i := n
	for k, v := range ix.Backward() {
		i--
		if i < 0 || !m.is(i, k, v) {
			return fmt.Errorf("Backward: entry %d is %v, %v", i, k, v)
		}
	}
	if i != 0 {
		return fmt.Errorf("Backward ends at entry %d", i)
	}
	return nil
}

// checkBatches asks for all keys at once.
func checkBatches[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], asked []K) error {
	if err := checkGetBatch(ix, m, asked, nil); err != nil {
		return err
	}
	if err := checkGetBatch(ix, m, asked, make([]bool, len(asked)+2)); err != nil {
		return err
	}
	if err := checkRankBatch(ix, m, asked); err != nil {
		return err
	}
	for _, limit := range []int{-1, 0, 1, 3} {
		if err := checkRangeBatch(ix, m, asked, limit); err != nil {
			return fmt.Errorf("RangeBatch, limit %d: %w", limit, err)
		}
	}
	return nil
}

// checkGetBatch also looks at what lies behind the results: found, where not
// nil, is longer than asked.
func checkGetBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], asked []K, found []bool) error {
	n := len(asked)
	vals, hits := make([]V, n+2), 0
	var mark V
	if len(m.vals) > 0 {
		mark = m.vals[len(m.vals)-1]
	}
	for i := range vals {
		vals[i] = mark
	}
	for i := range found { // the wrong way round, so that all must be set
		if i < n {
			_, found[i] = m.get(asked[i])
		}
		found[i] = !found[i]
	}
	got := ix.GetBatch(asked, vals, found)
	for i, k := range asked {
		want, has := m.get(k)
		if has {
			hits++
		}
		if !m.same(vals[i], want) || found != nil && found[i] != has {
			return fmt.Errorf("GetBatch: value %d of %v is %v, want %v, %v", i, k, vals[i], want, has)
		}
	}
	if got != hits {
		return fmt.Errorf("GetBatch has %d hits, want %d", got, hits)
	}
	if !m.same(vals[n], mark) || !m.same(vals[n+1], mark) || found != nil && !(found[n] && found[n+1]) {
		return fmt.Errorf("GetBatch has written behind its results")
	}
	return nil
}

func checkRankBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], asked []K) error {
	ranks := make([]int, len(asked)+1)
	ranks[len(asked)] = -7
	ix.RankBatch(asked, ranks)
	for i, k := range asked {
		if ranks[i] != m.rank(k) {
			return fmt.Errorf("RankBatch: rank %d of %v is %d, want %d", i, k, ranks[i], m.rank(k))
		}
	}
	if ranks[len(asked)] != -7 {
		return fmt.Errorf("RankBatch has written behind its results")
	}
	return nil
}

// checkRangeBatch asks for ranges between neighbours among the keys, so that
// about half of them are the wrong way round, and for single keys, until the
// results are some thousand entries.
func checkRangeBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], asked []K, limit int) error {
	lo, hi := []K{}, []K{}
	for i, total := 0, 0; i < len(asked) && total < 2000; i++ {
		lo, hi = append(lo, asked[i]), append(hi, asked[i/3*3])
		first, end := m.span(lo[i], hi[i], limit)
		total += end - first
	}
	r := ix.RangeBatch(lo, hi, limit)
	if r.Len() != len(lo) {
		return fmt.Errorf("%d results for %d ranges", r.Len(), len(lo))
	}
	total := 0
	for i := range lo {
		first, end := m.span(lo[i], hi[i], limit)
		keys, vals := r.At(i)
		if len(keys) != end-first || len(vals) != end-first {
			return fmt.Errorf("%v to %v: %d keys, %d values; want %d", lo[i], hi[i], len(keys), len(vals), end-first)
		}
		for j := range keys {
			if !m.is(first+j, keys[j], vals[j]) {
				return fmt.Errorf("%v to %v: entry %d is %v, %v", lo[i], hi[i], j, keys[j], vals[j])
			}
		}
		total += len(keys)
	}
	if len(r.Keys) != total || len(r.Vals) != total {
		return fmt.Errorf("%d keys and %d values, %d used", len(r.Keys), len(r.Vals), total)
	}
	return nil
}

// sameKeys compares keys as an index does.
func sameKeys[K pando.Key](a, b []K) bool {
	for i := range a {
		if cmp.Compare(a[i], b[i]) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}
