package typed_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table/cols"
)

var allTypes = []cols.Type{cols.Int64, cols.Uint64, cols.Int32, cols.Uint32, cols.Float64, cols.Float32, cols.String}

// column converts numbers to a column of a type in which they keep their
// order: strings get leading zeros.
func column(t cols.Type, numbers []int) *cols.Column {
	c := &cols.Column{Field: cols.Field{Type: t}}
	for _, n := range numbers {
		switch t {
		case cols.Int64:
			c.Int64 = append(c.Int64, int64(n))
		case cols.Uint64:
			c.Uint64 = append(c.Uint64, uint64(n))
		case cols.Int32:
			c.Int32 = append(c.Int32, int32(n))
		case cols.Uint32:
			c.Uint32 = append(c.Uint32, uint32(n))
		case cols.Float64:
			c.Float64 = append(c.Float64, float64(n))
		case cols.Float32:
			c.Float32 = append(c.Float32, float32(n))
		default:
			c.String = append(c.String, fmt.Sprintf("%06d", n))
		}
	}
	return c
}

// numbers is the way back.
func numbers(c *cols.Column) (out []int) {
	add := func(s string) {
		if s == "" { // the value of a key that was not found
			s = "0"
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(err)
		}
		out = append(out, int(f))
	}
	for _, s := range [][]string{texts(c.Int64), texts(c.Uint64), texts(c.Int32), texts(c.Uint32), texts(c.Float64), texts(c.Float32), c.String} {
		for _, v := range s {
			add(v)
		}
	}
	return out
}

func texts[T any](s []T) (out []string) {
	for _, v := range s {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// Each pair of types is written to a file and read back, and answers what a
// sorted slice of the same rows does.
func TestEveryPairOfTypes(t *testing.T) {
	rng := seed.Rand(t)
	for _, key := range allTypes {
		testPair(t, typed.Types{Key: key}, rng)
		for _, value := range allTypes {
			testPair(t, typed.Types{key, value, true}, rng)
		}
	}
}

func testPair(t *testing.T, types typed.Types, rng *rand.Rand) {
	t.Helper()
	n := 1 + rng.IntN(300)
	rows := make([][2]int, n)
	for i := range rows {
		rows[i] = [2]int{2 * rng.IntN(n), i}
	}
	path := filepath.Join(t.TempDir(), "t.pando")
	if err := writeRows(path, types, rows, rng); err != nil {
		t.Fatalf("%v: %v", types, err)
	}
	ix, err := typed.Open(path)
	if err != nil {
		t.Fatalf("%v: %v", types, err)
	}
	defer ix.Close()
	if v, ok := ix.Value(); ix.Key() != types.Key || ok != types.Valued || ok && v != types.Value {
		t.Errorf("%v: %v, %v, %v", types, ix.Key(), v, ok)
	}
	slices.SortStableFunc(rows, func(a, b [2]int) int { return a[0] - b[0] })
	if err := compare(ix, types, rows); err != nil {
		t.Errorf("%v: %v", types, err)
	}
}

// writeRows builds an index in two or three batches, with rows in between that
// are to be dropped.
func writeRows(path string, types typed.Types, rows [][2]int, rng *rand.Rand) error {
	b := typed.NewBuilder(types)
	for len(rows) > 0 {
		n := 1 + rng.IntN(len(rows))
		var keys, vals []int
		var drop []bool
		for _, r := range rows[:n] {
			keys, vals, drop = append(keys, r[0]), append(vals, r[1]), append(drop, false)
			if rng.IntN(4) == 0 {
				keys, vals, drop = append(keys, 7), append(vals, 7), append(drop, true)
			}
		}
		b.Add(column(types.Key, keys), column(types.Value, vals), drop)
		b.Expect(rng.IntN(1000))
		rows = rows[n:]
	}
	if b.Need(b.Len()) <= 0 {
		return fmt.Errorf("%d rows need no memory", b.Len())
	}
	ix, err := b.Freeze(pando.On(pando.CPU))
	if err != nil {
		return err
	}
	defer ix.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = ix.WriteTo(f)
	return err
}

// compare makes every kind of query on an index of sorted rows.
func compare(ix typed.Index, types typed.Types, rows [][2]int) error {
	n := len(rows)
	var asked []int
	for k := -1; k <= 2*n+1; k++ {
		asked = append(asked, max(0, k))
	}
	keys := column(types.Key, asked)
	keys.Null = make([]bool, len(asked))
	keys.Null[0] = true
	first := map[int]int{}
	times := map[int]int{}
	for i := n - 1; i >= 0; i-- {
		first[rows[i][0]] = i
		times[rows[i][0]]++
	}
	var vals, every cols.Column
	found, ranks := make([]bool, len(asked)), make([]int, len(asked))
	hits := ix.Get(keys, &vals, found)
	offsets := ix.GetAll(keys, &every)
	ix.Rank(keys, ranks)
	got, gotAll := numbers(&vals), numbers(&every)
	for i, k := range asked {
		at, ok := first[k]
		ok = ok && i > 0 // the first is null
		if ok {
			hits--
		}
		below, _ := slices.BinarySearchFunc(rows, k, func(r [2]int, k int) int { return r[0] - k })
		want := 0
		if ok {
			want = times[k]
		}
		switch {
		case found[i] != ok, ok && types.Valued && got[i] != rows[at][1]:
			return fmt.Errorf("key %d: found %v", k, found[i])
		case ranks[i] != below:
			return fmt.Errorf("key %d: rank %d, want %d", k, ranks[i], below)
		case offsets[i+1]-offsets[i] != want:
			return fmt.Errorf("key %d: %d entries, want %d", k, offsets[i+1]-offsets[i], want)
		}
		for j := 0; j < want && types.Valued; j++ {
			if v := gotAll[offsets[i]+j]; v != rows[at+j][1] {
				return fmt.Errorf("key %d: value %d of all is %d", k, j, v)
			}
		}
	}
	if hits != 0 {
		return fmt.Errorf("%d hits too many", hits)
	}
	return compareOrder(ix, types, rows)
}

// compareOrder queries entries by their rank.
func compareOrder(ix typed.Index, types typed.Types, rows [][2]int) error {
	var keys, vals cols.Column
	ix.Entries(0, len(rows), &keys, &vals)
	for i, k := range numbers(&keys) {
		if k != rows[i][0] || types.Valued && numbers(&vals)[i] != rows[i][1] {
			return fmt.Errorf("entry %d has key %d", i, k)
		}
	}
	same, at := 0, 0
	for i := len(rows) - 1; i > 0; i-- {
		if rows[i][0] == rows[i-1][0] {
			same, at = same+1, i
		}
	}
	if n, first := ix.Duplicates(); n != same || n > 0 && first != at {
		return fmt.Errorf("%d duplicates from %d on, want %d from %d on", n, first, same, at)
	}
	lo, hi := column(types.Key, []int{rows[0][0]}), column(types.Key, []int{rows[len(rows)-1][0]})
	if first, end := ix.Span(lo, hi); first != 0 || end != len(rows) {
		return fmt.Errorf("span of all is [%d, %d)", first, end)
	}
	if first, end := ix.Span(nil, nil); first != 0 || end != len(rows) {
		return fmt.Errorf("open span is [%d, %d)", first, end)
	}
	if first, end := ix.Span(hi, lo); end < first {
		return fmt.Errorf("span of nothing is [%d, %d)", first, end)
	}
	return nil
}

// Files of types that no command can read result in an error that says so.
func TestForeignTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pando")
	small, err := pando.Freeze([]int16{1}, []uint64{1})
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := pando.Freeze([]int64{1}, [][2]uint32{{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, save := range []func(string) error{small.Save, pairs.Save} {
		if err := save(path); err != nil {
			t.Fatal(err)
		}
		if ix, err := typed.Open(path); err == nil || ix != nil {
			t.Errorf("opened: %v", err)
		}
	}
}

// Stores of all types: what was set is there when they are opened again with the types that
// their folders have.
func TestStores(t *testing.T) {
	for _, key := range allTypes {
		for _, types := range append(valuesFor(key), typed.Types{Key: key}) {
			t.Run(types.String(), func(t *testing.T) { storeOf(t, types) })
		}
	}
}

// valuesFor returns the types of indexes with a type of keys.
func valuesFor(key cols.Type) (types []typed.Types) {
	for _, v := range allTypes {
		types = append(types, typed.Types{Key: key, Value: v, Valued: true})
	}
	return types
}

func storeOf(t *testing.T, types typed.Types) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := typed.NewStore(dir, types)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set(column(types.Key, []int{5, 3, 9, 3}), column(types.Value, []int{50, 30, 90, 31})); err != nil {
		t.Fatal(err)
	}
	found := make([]bool, 2)
	if n, err := s.Delete(column(types.Key, []int{9, 4}), found); n != 1 || err != nil || !found[0] || found[1] {
		t.Error(n, err, found)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = typed.OpenStore(dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ix := s.Snapshot()
	defer ix.Close()
	var keys, vals cols.Column
	ix.Entries(0, ix.Len(), &keys, &vals)
	if got := numbers(&keys); !slices.Equal(got, []int{3, 5}) {
		t.Error(got)
	}
	if got := numbers(&vals); types.Valued && !slices.Equal(got, []int{31, 50}) {
		t.Error(got)
	}
}
