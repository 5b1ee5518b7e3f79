package facetest

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	_ "github.com/pando-index/pando/cuda" // a GPU is tested, too, where there is one
	"github.com/pando-index/pando/internal/simd"
)

// MustFreeze builds an index, which the caller closes.
func MustFreeze[K pando.Key, V any](t testing.TB, keys []K, vals []V, opts ...pando.Option) *pando.Frozen[K, V] {
	t.Helper()
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// OnEachPath calls check once for every path of this machine.
func OnEachPath(check func() error) error {
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

// probes returns keys to ask for: hits, and misses before, between and after.
func Probes[K pando.Key, V any](m *Model[K, V], d Domain[K], n int, rng *rand.Rand) []K {
	out := append([]K(nil), d.Ends...)
	for len(out) < n {
		switch i := rng.IntN(4); {
		case i == 0:
			out = append(out, d.Bits(rng.Uint64()))
		case i == 1 || len(m.Keys) == 0:
			out = append(out, d.Num(rng.IntN(2*len(m.Keys)+10)-5))
		default:
			out = append(out, m.Keys[rng.IntN(len(m.Keys))])
		}
	}
	return out
}

// CheckIndex compares an index with its model: every method.
func CheckIndex[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K) error {
	if ix.Len() != len(m.Keys) || ix.Stats().Len != len(m.Keys) {
		return fmt.Errorf("length %d, in Stats %d; want %d", ix.Len(), ix.Stats().Len, len(m.Keys))
	}
	if err := CheckEntries(ix, m); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(len(m.Keys)), uint64(len(asked))))
	if err := CheckScans(ix, m, asked, rng); err != nil {
		return err
	}
	if err := CheckCursor(ix, m, asked, rng); err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	return OnEachPath(func() error {
		for _, k := range asked {
			if err := CheckKey(ix, m, k); err != nil {
				return err
			}
		}
		for i := 1; i < len(asked); i += 7 {
			if err := CheckRange(ix, m, asked[i-1], asked[i]); err != nil {
				return err
			}
		}
		return CheckBatches(ix, m, asked)
	})
}

// CheckKey asks every question about one key.
func CheckKey[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], k K) error {
	wantVal, want := m.Get(k)
	if v, found := ix.Get(k); found != want || !m.Same(v, wantVal) {
		return fmt.Errorf("Get(%v) = %v, %v; want %v, %v", k, v, found, wantVal, want)
	}
	if has := ix.Has(k); has != want {
		return fmt.Errorf("Has(%v) = %v", k, has)
	}
	if r := ix.Rank(k); r != m.Rank(k) {
		return fmt.Errorf("Rank(%v) = %d, want %d", k, r, m.Rank(k))
	}
	if err := m.Entry(m.After(k)-1, ix.Floor, k); err != nil {
		return fmt.Errorf("Floor(%v) %w", k, err)
	}
	if err := m.Entry(m.Rank(k), ix.Ceil, k); err != nil {
		return fmt.Errorf("Ceil(%v) %w", k, err)
	}
	if CodeBytes[K]() == 0 {
		if err := CheckPrefix(ix, m, k); err != nil {
			return err
		}
	}
	return CheckRange(ix, m, k, k)
}

// Entry checks that ask gives entry i, or nothing where there is no such entry.
func (m *Model[K, V]) Entry(i int, ask func(K) (K, V, bool), k K) error {
	gotKey, gotVal, ok := ask(k)
	if i < 0 || i >= len(m.Keys) {
		var noKey K
		var noVal V
		if ok || gotKey != noKey || !m.Same(gotVal, noVal) {
			return fmt.Errorf("= %v, %v, %v; want none", gotKey, gotVal, ok)
		}
		return nil
	}
	if !ok || !m.Is(i, gotKey, gotVal) {
		return fmt.Errorf("= %v, %v, %v; want entry %d: %v, %v", gotKey, gotVal, ok, i, m.Keys[i], m.Vals[i])
	}
	return nil
}

func CheckRange[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], lo, hi K) error {
	first, end := m.Span(lo, hi, 0)
	if n := ix.Count(lo, hi); n != end-first {
		return fmt.Errorf("Count(%v, %v) = %d, want %d", lo, hi, n, end-first)
	}
	if err := m.Sequence(ix.Range(lo, hi), first, end, 200); err != nil {
		return fmt.Errorf("Range(%v, %v): %w", lo, hi, err)
	}
	return nil
}

// Sequence checks that s yields entries [first, end). It stops after so many.
func (m *Model[K, V]) Sequence(s iter.Seq2[K, V], first, end, stop int) error {
	i := first
	for k, v := range s {
		if i >= end || !m.Is(i, k, v) {
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

// CheckEntries looks at every entry, by place and in sequence.
func CheckEntries[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V]) error {
	n := len(m.Keys)
	for i := range n {
		if k, v := ix.At(i); !m.Is(i, k, v) {
			return fmt.Errorf("At(%d) = %v, %v; want %v, %v", i, k, v, m.Keys[i], m.Vals[i])
		}
	}
	var none K
	if err := m.Entry(min(0, n-1), func(K) (K, V, bool) { return ix.Min() }, none); err != nil {
		return fmt.Errorf("in Min: %w", err)
	}
	if err := m.Entry(n-1, func(K) (K, V, bool) { return ix.Max() }, none); err != nil {
		return fmt.Errorf("in Max: %w", err)
	}
	if err := m.Sequence(ix.All(), 0, n, n+1); err != nil {
		return fmt.Errorf("in All: %w", err)
	}
	i := n
	for k, v := range ix.Backward() {
		i--
		if i < 0 || !m.Is(i, k, v) {
			return fmt.Errorf("in Backward: entry %d is %v, %v", i, k, v)
		}
	}
	if i != 0 {
		return fmt.Errorf("in Backward: ends at entry %d", i)
	}
	return nil
}

// CheckBatches asks for all keys at once.
func CheckBatches[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K) error {
	if err := CheckGetBatch(ix, m, asked, nil); err != nil {
		return err
	}
	if err := CheckGetBatch(ix, m, asked, make([]bool, len(asked)+2)); err != nil {
		return err
	}
	if err := CheckRankBatch(ix, m, asked); err != nil {
		return err
	}
	if err := CheckCountBatch(ix, m, asked); err != nil {
		return err
	}
	if CodeBytes[K]() == 0 {
		if err := checkGetBatchBytes(ix, m, asked); err != nil {
			return err
		}
	}
	for _, limit := range []int{-1, 0, 1, 3} {
		if err := CheckRangeBatch(ix, m, asked, limit); err != nil {
			return fmt.Errorf("RangeBatch, limit %d: %w", limit, err)
		}
	}
	return nil
}

// CheckGetBatch also looks at what lies behind the results: found, where not
// nil, is longer than asked.
func CheckGetBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K, found []bool) error {
	n := len(asked)
	vals, hits := make([]V, n+2), 0
	var mark V
	if len(m.Vals) > 0 {
		mark = m.Vals[len(m.Vals)-1]
	}
	for i := range vals {
		vals[i] = mark
	}
	for i := range found { // the wrong way round, so that all must be set
		if i < n {
			_, found[i] = m.Get(asked[i])
		}
		found[i] = !found[i]
	}
	got := ix.GetBatch(asked, vals, found)
	for i, k := range asked {
		want, has := m.Get(k)
		if has {
			hits++
		}
		if !m.Same(vals[i], want) || found != nil && found[i] != has {
			return fmt.Errorf("GetBatch: value %d of %v is %v, want %v, %v", i, k, vals[i], want, has)
		}
	}
	if got != hits {
		return fmt.Errorf("GetBatch has %d hits, want %d", got, hits)
	}
	if !m.Same(vals[n], mark) || !m.Same(vals[n+1], mark) || found != nil && !(found[n] && found[n+1]) {
		return fmt.Errorf("GetBatch has written behind its results")
	}
	return nil
}

func CheckRankBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K) error {
	ranks := make([]int, len(asked)+1)
	ranks[len(asked)] = -7
	ix.RankBatch(asked, ranks)
	for i, k := range asked {
		if ranks[i] != m.Rank(k) {
			return fmt.Errorf("RankBatch: rank %d of %v is %d, want %d", i, k, ranks[i], m.Rank(k))
		}
	}
	if ranks[len(asked)] != -7 {
		return fmt.Errorf("RankBatch has written behind its results")
	}
	return nil
}

// CheckRangeBatch asks for ranges between neighbours among the keys, so that
// about half of them are the wrong way round, and for single keys, until the
// results are some thousand entries.
func CheckRangeBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K, limit int) error {
	lo, hi := []K{}, []K{}
	for i, total := 0, 0; i < len(asked) && total < 2000; i++ {
		lo, hi = append(lo, asked[i]), append(hi, asked[i/3*3])
		first, end := m.Span(lo[i], hi[i], limit)
		total += end - first
	}
	r := ix.RangeBatch(lo, hi, limit)
	if r.Len() != len(lo) {
		return fmt.Errorf("%d results for %d ranges", r.Len(), len(lo))
	}
	total := 0
	for i := range lo {
		first, end := m.Span(lo[i], hi[i], limit)
		keys, vals := r.At(i)
		if len(keys) != end-first || len(vals) != end-first {
			return fmt.Errorf("%v to %v: %d keys, %d values; want %d", lo[i], hi[i], len(keys), len(vals), end-first)
		}
		for j := range keys {
			if !m.Is(first+j, keys[j], vals[j]) {
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

// SameKeys compares keys as an index does.
func SameKeys[K pando.Key](a, b []K) bool {
	return slices.EqualFunc(a, b, func(x, y K) bool { return cmp.Compare(x, y) == 0 })
}

// CheckPrefix compares Prefix and PrefixCount with a look at every key.
func CheckPrefix[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], p K) error {
	text := func(k K) string { return reflect.ValueOf(k).String() }
	first := m.Rank(p)
	end := first
	for end < len(m.Keys) && strings.HasPrefix(text(m.Keys[end]), text(p)) {
		end++
	}
	if n := ix.PrefixCount(p); n != end-first {
		return fmt.Errorf("PrefixCount(%q) = %d, want %d", text(p), n, end-first)
	}
	if err := m.Sequence(ix.Prefix(p), first, end, 200); err != nil {
		return fmt.Errorf("Prefix(%q): %w", text(p), err)
	}
	return nil
}

// CodeBytes is the width of a key in the index; 0 for strings.
func CodeBytes[K pando.Key]() int {
	switch t := reflect.TypeFor[K](); {
	case t.Kind() == reflect.String:
		return 0
	case t.Size() <= 4:
		return 4
	}
	return 8
}

// CheckCountBatch counts between neighbours among the keys, so that about half
// of the ranges are the wrong way round.
func CheckCountBatch[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K) error {
	hi := make([]K, len(asked))
	for i := range asked {
		hi[i] = asked[(i+1)%len(asked)]
	}
	counts := make([]int, len(asked)+1)
	counts[len(asked)] = -7
	ix.CountBatch(asked, hi, counts)
	for i := range asked {
		if first, end := m.Span(asked[i], hi[i], 0); counts[i] != end-first {
			return fmt.Errorf("CountBatch: %d entries from %v to %v, want %d", counts[i], asked[i], hi[i], end-first)
		}
	}
	if counts[len(asked)] != -7 {
		return fmt.Errorf("CountBatch has written behind its results")
	}
	return nil
}

// checkGetBatchBytes looks strings up that lie one behind the other, with
// something before the first and behind the last.
func checkGetBatchBytes[K pando.Key, V any](ix *pando.Frozen[K, V], m *Model[K, V], asked []K) error {
	data, offsets := []byte("before"), []int32{6}
	for _, k := range asked {
		data = append(data, reflect.ValueOf(k).String()...)
		offsets = append(offsets, int32(len(data)))
	}
	data = append(data, "behind"...)
	vals, found := make([]V, len(asked)), make([]bool, len(asked))
	hits := ix.GetBatchBytes(data, offsets, vals, found)
	for i, k := range asked {
		want, has := m.Get(k)
		if has {
			hits--
		}
		if found[i] != has || !m.Same(vals[i], want) {
			return fmt.Errorf("GetBatchBytes: value %d of %v is %v, %v; want %v, %v", i, k, vals[i], found[i], want, has)
		}
	}
	if hits != 0 {
		return fmt.Errorf("GetBatchBytes counts %d hits too many", hits)
	}
	return nil
}
