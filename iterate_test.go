package pando_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// counted is an index of the keys 0 to n-1, each with itself as its value.
func counted(t testing.TB, n int, opts ...pando.Option) *pando.Frozen[uint64, uint64] {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	return facetest.MustFreeze(t, keys, keys, opts...)
}

// An iteration that is stopped has yielded just the entries up to there,
// wherever that is.
func TestIterationStoppedEarly(t *testing.T) {
	const n = 300
	ix := counted(t, n)
	defer ix.Close()
	for stop := range n + 1 {
		for name, s := range map[string]iter.Seq2[uint64, uint64]{
			"All": ix.All(), "Range": ix.Range(0, n), "Backward": ix.Backward(),
		} {
			seen := 0
			for k, v := range s {
				if seen == stop {
					break
				}
				want := uint64(seen)
				if name == "Backward" {
					want = n - 1 - want
				}
				if k != want || v != want {
					t.Fatalf("%s: entry %d is %d, %d", name, seen, k, v)
				}
				seen++
			}
			if seen != stop {
				t.Fatalf("%s: stopped after %d, want %d", name, seen, stop)
			}
		}
	}
}

// A sequence can be run again, inside itself, and step by step.
func TestIterationsDoNotDisturbEachOther(t *testing.T) {
	const n = 100
	ix := counted(t, n)
	defer ix.Close()
	all, pairs := ix.All(), 0
	for a := range all {
		for b, v := range all {
			if v != b {
				t.Fatalf("%d has value %d", b, v)
			}
			pairs++
		}
		if got := ix.Rank(a); got != int(a) {
			t.Fatalf("Rank(%d) = %d inside an iteration", a, got)
		}
	}
	if pairs != n*n {
		t.Errorf("%d pairs, want %d", pairs, n*n)
	}
	up, stopUp := iter.Pull2(ix.All())
	down, stopDown := iter.Pull2(ix.Backward())
	defer stopUp()
	defer stopDown()
	for i := range uint64(n) {
		a, _, okUp := up()
		b, _, okDown := down()
		if !okUp || !okDown || a != i || b != n-1-i {
			t.Fatalf("step %d: %d, %v and %d, %v", i, a, okUp, b, okDown)
		}
	}
	if _, _, ok := up(); ok {
		t.Error("All does not end")
	}
}

func TestRangeEnds(t *testing.T) {
	ix := facetest.MustFreeze(t, []float64{-5, -5, 0, 3, 3, 3, 9}, []string{"a", "b", "c", "d", "e", "f", "g"})
	defer ix.Close()
	for _, r := range []struct {
		lo, hi float64
		want   string
	}{
		{-5, 9, "abcdefg"}, {-32768, 32767, "abcdefg"}, {-5, -5, "ab"}, {3, 3, "def"}, {-4, 3, "cdef"},
		{4, 8, ""}, {10, 20, ""}, {-20, -6, ""}, {9, -5, ""}, {3, 2, ""}, {32767, -32768, ""}, {0, 0, "c"},
	} {
		got := ""
		for _, v := range ix.Range(r.lo, r.hi) {
			got += v
		}
		if got != r.want || ix.Count(r.lo, r.hi) != len(r.want) {
			t.Errorf("%v to %v: %q, count %d; want %q", r.lo, r.hi, got, ix.Count(r.lo, r.hi), r.want)
		}
		if _, vals := ix.RangeBatch([]float64{r.lo}, []float64{r.hi}, 2).At(0); len(vals) != min(2, len(r.want)) {
			t.Errorf("%v to %v, limit 2: %q", r.lo, r.hi, vals)
		}
	}
}

// An empty index has nothing to iterate over.
func TestEmptyIterations(t *testing.T) {
	ix := counted(t, 0)
	defer ix.Close()
	for _, s := range []iter.Seq2[uint64, uint64]{ix.All(), ix.Backward(), ix.Range(0, ^uint64(0))} {
		for k := range s {
			t.Errorf("an empty index yields %d", k)
		}
	}
	if r := ix.RangeBatch([]uint64{0, 5}, []uint64{9, 1}, 0); !slices.Equal(r.Offsets, []int{0, 0, 0}) {
		t.Errorf("an empty index has ranges %+v", r)
	}
}
