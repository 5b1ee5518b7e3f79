package vectors

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// squares returns n keys and their squares.
func squares(n int) (keys []uint64, vals []uint64) {
	for i := range uint64(n) {
		keys, vals = append(keys, i), append(vals, i*i)
	}
	return keys, vals
}

// panics returns what f panics with.
func panics(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

// A closed index panics, but for Transform, which has an error to return.
func TestClosed(t *testing.T) {
	keys, vals := squares(100)
	f := facetest.MustFreeze(t, keys, vals)
	f.Close()
	tree, err := pando.TreeOf(keys, vals)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := pando.TreeOf(keys, make([]facetest.Offset, len(keys)))
	if err != nil {
		t.Fatal(err)
	}
	tree.Close()
	bytes.Close()
	for _, ix := range []pando.Index[uint64, uint64]{f, tree} {
		for name, do := range map[string]func(){
			"Aggregate":      func() { pando.Aggregate(ix, 0, 9) },
			"AggregateBatch": func() { pando.AggregateBatch(ix, keys, keys, make([]pando.Summary[uint64], len(keys))) },
			"Histogram":      func() { pando.Histogram(ix, 0, 9, nil, make([]int, 1)) },
			"Select":         func() { pando.Select(ix, 0, 9, pando.Equal[uint64](4)) },
		} {
			if text := panics(do); !strings.Contains(text, "used after Close") {
				t.Errorf("%T: %s after Close panics with %q", ix, name, text)
			}
		}
	}
	if n, err := pando.Transform(tree, 0, 9, pando.Add[uint64](1)); n != 0 || !errors.Is(err, pando.ErrClosed) {
		t.Errorf("Transform after Close: %d, %v", n, err)
	}
	if n, err := pando.Transform(bytes, 0, 9, pando.Add[facetest.Offset](1)); n != 0 || !errors.Is(err, pando.ErrClosed) {
		t.Errorf("Transform of bytes after Close: %d, %v", n, err)
	}
}

func TestMisuse(t *testing.T) {
	ix := facetest.MustFreeze(t, []int64{1}, []float64{2})
	defer ix.Close()
	nan := math.NaN()
	for name, do := range map[string]func(){
		"Histogram: 2 bounds are for 3 counts, and there are 2": func() { pando.Histogram(ix, 0, 9, []float64{1, 2}, make([]int, 2)) },
		"Histogram: bounds must ascend, and bound 1 is 1":       func() { pando.Histogram(ix, 0, 9, []float64{2, 1}, make([]int, 3)) },
		"Histogram: bounds must ascend, and bound 0 is NaN":     func() { pando.Histogram(ix, 0, 9, []float64{nan}, make([]int, 2)) },
		"AggregateBatch: 1 lower and 2 upper bounds":            func() { pando.AggregateBatch(ix, make([]int64, 1), make([]int64, 2), nil) },
		"AggregateBatch: out holds 0 results, but there are 1":  func() { pando.AggregateBatch(ix, make([]int64, 1), make([]int64, 1), nil) },
		"Clamp: nothing is between 2 and 1":                     func() { pando.Clamp(2, 1) },
		"Clamp: nothing is between NaN and 1":                   func() { pando.Clamp(nan, 1) },
	} {
		if text := panics(do); !strings.Contains(text, name) {
			t.Errorf("panics with %q, want %q", text, name)
		}
	}
}

// Over the memory limit Transform changes nothing.
func TestTransformOverTheLimit(t *testing.T) {
	keys, vals := squares(20_000)
	tree, err := pando.TreeOf(keys, vals)
	if err != nil {
		t.Fatal(err)
	}
	bytes := tree.Stats().LeafBytes
	tree.Close()
	if tree, err = pando.TreeOf(keys, vals, pando.MemoryLimit(bytes+bytes/2)); err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	before := pando.Aggregate(tree, 0, 1<<63)
	if n, err := pando.Transform(tree, 0, 1<<63, pando.Add[uint64](1)); n != len(keys) || err != nil {
		t.Fatalf("without a snapshot %d, %v", n, err)
	}
	moment := tree.Snapshot()
	n, err := pando.Transform(tree, 0, 1<<63, pando.Add[uint64](1))
	if n != 0 || !errors.Is(err, pando.ErrMemoryLimit) {
		t.Fatalf("with a snapshot that needs as much memory again: %d, %v", n, err)
	}
	if got := pando.Aggregate(tree, 0, 1<<63).Sum; got != before.Sum+uint64(len(keys)) {
		t.Fatalf("the sum is %d, want %d", got, before.Sum+uint64(len(keys)))
	}
	if n, err := pando.Transform(tree, 100, 300, pando.Add[uint64](1)); n != 201 || err != nil {
		t.Fatalf("a part, for which there is memory: %d, %v", n, err)
	}
	moment.Close()
	if n, err := pando.Transform(tree, 0, 1<<63, pando.Add[uint64](1)); n != len(keys) || err != nil {
		t.Fatalf("after the snapshot %d, %v", n, err)
	}
}

// Sums of floats are the same bits however a tree came to have its entries.
func TestSumsDependOnEntriesAlone(t *testing.T) {
	rng := seed.Rand(t)
	const n = 70_000
	keys, vals := make([]int64, n), make([]float64, n)
	for i := range keys {
		keys[i], vals[i] = int64(i)*3, rng.NormFloat64()*math.Exp(rng.NormFloat64()*5)
	}
	want := pando.Aggregate(facetest.MustFreeze(t, keys, vals, pando.Workers(1)), 0, 3*n)
	for _, workers := range []int{1, 2, 3, 8} {
		tree, err := pando.NewTree[int64, float64](pando.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range rng.Perm(n) {
			tree.Set(keys[i], vals[i])
			if rng.IntN(8) == 0 { // leaves are filled by others, too
				tree.Set(keys[i]+1+rng.Int64N(2), 1)
			}
		}
		for _, k := range keys {
			tree.Delete(k + 1)
			tree.Delete(k + 2)
		}
		if got := pando.Aggregate(tree, 0, 3*n); got != want {
			t.Errorf("%d workers: %+v, want %+v", workers, got, want)
		}
		tree.Close()
	}
}
