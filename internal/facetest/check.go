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
	"github.com/pando-index/pando/internal/seed"
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

// Probes returns keys to ask for: hits, and misses before, between and after.
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
func CheckIndex[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], asked []K) error {
	return checkIndex(&anyIndex[K, V]{ix}, &anyModel[K, V]{m}, anys(asked))
}

func checkIndex(ix index, m model, asked []any) error {
	if ix.Len() != m.size() || ix.lenInStats() != m.size() {
		return fmt.Errorf("length %d, in Stats %d; want %d", ix.Len(), ix.lenInStats(), m.size())
	}
	if err := checkEntries(ix, m); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(m.size()), uint64(len(asked))))
	if err := checkScans(ix, m, asked, rng); err != nil {
		return err
	}
	if err := checkCursor(ix.Cursor(), m, asked, rng); err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	return OnEachPath(func() error {
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
func checkKey(ix index, m model, k any) error {
	wantVal, want := m.get(k)
	if v, found := ix.Get(k); found != want || !m.same(v, wantVal) {
		return fmt.Errorf("Get(%v) = %v, %v; want %v, %v", k, v, found, wantVal, want)
	}
	if has := ix.Has(k); has != want {
		return fmt.Errorf("Has(%v) = %v", k, has)
	}
	if r := ix.Rank(k); r != m.rank(k) {
		return fmt.Errorf("Rank(%v) = %d, want %d", k, r, m.rank(k))
	}
	if err := checkEntry(m, m.after(k)-1)(ix.Floor(k)); err != nil {
		return fmt.Errorf("Floor(%v) %w", k, err)
	}
	if err := checkEntry(m, m.rank(k))(ix.Ceil(k)); err != nil {
		return fmt.Errorf("Ceil(%v) %w", k, err)
	}
	if isText(k) {
		if err := checkPrefix(ix, m, k); err != nil {
			return err
		}
	}
	return checkRange(ix, m, k, k)
}

// Entry checks that ask gives entry i, or nothing where there is no such entry.
func (m *Model[K, V]) Entry(i int, ask func(K) (K, V, bool), k K) error {
	return checkEntry(&anyModel[K, V]{m}, i)(anyEntry(ask(k)))
}

// checkEntry checks that an answer is entry i, or nothing where there is no such entry.
func checkEntry(m model, i int) func(k, v any, ok bool) error {
	return func(k, v any, ok bool) error {
		if i < 0 || i >= m.size() {
			if noKey, noVal := m.none(); ok || k != noKey || !m.same(v, noVal) {
				return fmt.Errorf("= %v, %v, %v; want none", k, v, ok)
			}
			return nil
		}
		if !ok || !m.is(i, k, v) {
			wantKey, wantVal := m.entry(i)
			return fmt.Errorf("= %v, %v, %v; want entry %d: %v, %v", k, v, ok, i, wantKey, wantVal)
		}
		return nil
	}
}

func checkRange(ix index, m model, lo, hi any) error {
	first, end := span(m, lo, hi, 0)
	if n := ix.Count(lo, hi); n != end-first {
		return fmt.Errorf("Count(%v, %v) = %d, want %d", lo, hi, n, end-first)
	}
	if err := checkSequence(m, ix.Range(lo, hi), first, end, 200); err != nil {
		return fmt.Errorf("Range(%v, %v): %w", lo, hi, err)
	}
	return nil
}

// Sequence checks that s yields entries [first, end). It stops after stop entries.
func (m *Model[K, V]) Sequence(s iter.Seq2[K, V], first, end, stop int) error {
	return checkSequence(&anyModel[K, V]{m}, anySeq(s), first, end, stop)
}

func checkSequence(m model, s iter.Seq2[any, any], first, end, stop int) error {
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

// CheckEntries looks at every entry, by place and in sequence.
func CheckEntries[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V]) error {
	return checkEntries(&anyIndex[K, V]{ix}, &anyModel[K, V]{m})
}

func checkEntries(ix index, m model) error {
	n := m.size()
	for i := range n {
		if k, v := ix.At(i); !m.is(i, k, v) {
			wantKey, wantVal := m.entry(i)
			return fmt.Errorf("At(%d) = %v, %v; want %v, %v", i, k, v, wantKey, wantVal)
		}
	}
	if err := checkEntry(m, min(0, n-1))(ix.Min()); err != nil {
		return fmt.Errorf("in Min: %w", err)
	}
	if err := checkEntry(m, n-1)(ix.Max()); err != nil {
		return fmt.Errorf("in Max: %w", err)
	}
	if err := checkSequence(m, ix.All(), 0, n, n+1); err != nil {
		return fmt.Errorf("in All: %w", err)
	}
	i := n
	for k, v := range ix.Backward() {
		i--
		if i < 0 || !m.is(i, k, v) {
			return fmt.Errorf("in Backward: entry %d is %v, %v", i, k, v)
		}
	}
	if i != 0 {
		return fmt.Errorf("in Backward: ends at entry %d", i)
	}
	return nil
}

// checkBatches asks for all keys at once.
func checkBatches(ix index, m model, asked []any) error {
	if err := checkGetBatch(ix, m, asked, nil); err != nil {
		return err
	}
	if err := checkGetBatch(ix, m, asked, make([]bool, len(asked)+2)); err != nil {
		return err
	}
	if err := checkRankBatch(ix, m, asked); err != nil {
		return err
	}
	if err := checkCountBatch(ix, m, asked); err != nil {
		return err
	}
	if noKey, _ := m.none(); isText(noKey) {
		if err := checkGetBatchBytes(ix, m, asked); err != nil {
			return err
		}
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
func checkGetBatch(ix index, m model, asked []any, found []bool) error {
	n := len(asked)
	vals, hits := make([]any, n+2), 0
	_, mark := m.none()
	if m.size() > 0 {
		_, mark = m.entry(m.size() - 1)
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

func checkRankBatch(ix index, m model, asked []any) error {
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
// results are many entries.
func checkRangeBatch(ix index, m model, asked []any, limit int) error {
	lo, hi := []any{}, []any{}
	for i, total := 0, 0; i < len(asked) && total < seed.Size(500, 2000); i++ {
		lo, hi = append(lo, asked[i]), append(hi, asked[i/3*3])
		first, end := span(m, lo[i], hi[i], limit)
		total += end - first
	}
	keys, vals, allKeys, allVals := ix.RangeBatch(lo, hi, limit)
	if len(keys) != len(lo) {
		return fmt.Errorf("%d results for %d ranges", len(keys), len(lo))
	}
	total := 0
	for i := range lo {
		first, end := span(m, lo[i], hi[i], limit)
		if len(keys[i]) != end-first || len(vals[i]) != end-first {
			return fmt.Errorf("%v to %v: %d keys, %d values; want %d", lo[i], hi[i], len(keys[i]), len(vals[i]), end-first)
		}
		for j, k := range keys[i] {
			if !m.is(first+j, k, vals[i][j]) {
				return fmt.Errorf("%v to %v: entry %d is %v, %v", lo[i], hi[i], j, k, vals[i][j])
			}
		}
		total += len(keys[i])
	}
	if allKeys != total || allVals != total {
		return fmt.Errorf("%d keys and %d values, %d used", allKeys, allVals, total)
	}
	return nil
}

// SameKeys compares keys as an index does.
func SameKeys[K pando.Key](a, b []K) bool {
	return slices.EqualFunc(a, b, func(x, y K) bool { return cmp.Compare(x, y) == 0 })
}

// CheckPrefix compares Prefix and PrefixCount with a look at every key.
func CheckPrefix[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], p K) error {
	return checkPrefix(&anyIndex[K, V]{ix}, &anyModel[K, V]{m}, p)
}

func checkPrefix(ix index, m model, p any) error {
	first := m.rank(p)
	end := first
	for ; end < m.size(); end++ {
		if k, _ := m.entry(end); !strings.HasPrefix(text(k), text(p)) {
			break
		}
	}
	if n := ix.PrefixCount(p); n != end-first {
		return fmt.Errorf("PrefixCount(%q) = %d, want %d", text(p), n, end-first)
	}
	if err := checkSequence(m, ix.Prefix(p), first, end, 200); err != nil {
		return fmt.Errorf("Prefix(%q): %w", text(p), err)
	}
	return nil
}

// text returns a key that is a string.
func text(k any) string { return reflect.ValueOf(k).String() }

// isText reports whether a key is a string.
func isText(k any) bool { return reflect.TypeOf(k).Kind() == reflect.String }

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

// checkCountBatch counts between neighbours among the keys, so that about half
// of the ranges are the wrong way round.
func checkCountBatch(ix index, m model, asked []any) error {
	hi := make([]any, len(asked))
	for i := range asked {
		hi[i] = asked[(i+1)%len(asked)]
	}
	counts := make([]int, len(asked)+1)
	counts[len(asked)] = -7
	ix.CountBatch(asked, hi, counts)
	for i := range asked {
		if first, end := span(m, asked[i], hi[i], 0); counts[i] != end-first {
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
func checkGetBatchBytes(ix index, m model, asked []any) error {
	data, offsets := []byte("before"), []int32{6}
	for _, k := range asked {
		data = append(data, text(k)...)
		offsets = append(offsets, int32(len(data)))
	}
	data = append(data, "behind"...)
	vals, found := make([]any, len(asked)), make([]bool, len(asked))
	for i := range vals {
		_, vals[i] = m.none()
	}
	hits := ix.GetBatchBytes(data, offsets, vals, found)
	for i, k := range asked {
		want, has := m.get(k)
		if has {
			hits--
		}
		if found[i] != has || !m.same(vals[i], want) {
			return fmt.Errorf("GetBatchBytes: value %d of %v is %v, %v; want %v, %v", i, k, vals[i], found[i], want, has)
		}
	}
	if hits != 0 {
		return fmt.Errorf("GetBatchBytes counts %d hits too many", hits)
	}
	return nil
}
