package data

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/contest/contesttest"
	"github.com/pando-index/pando/internal/seed"
)

// The queries must not depend on the number of cores.
func TestPiecesAreTheSameOnAnyCores(t *testing.T) {
	start := seed.Of(t)
	got := make([]uint32, 2*contest.DrawPiece+77)
	anyNumber := func(rng *rand.Rand, q []uint32) {
		for i := range q {
			q[i] = rng.Uint32()
		}
	}
	DrawPieces(start, 3, got, anyNumber)
	for p := range 3 {
		part := got[p*contest.DrawPiece : min((p+1)*contest.DrawPiece, len(got))]
		want := make([]uint32, len(part))
		anyNumber(NewRand(start, streamPieces+3<<20+uint64(p)), want)
		if !slices.Equal(part, want) {
			t.Errorf("piece %d is not what its stream gives", p)
		}
	}
}

// Drawn on all cores, the distributions are the same as on one.
func TestSkewedPieces(t *testing.T) {
	const n = contest.DrawPiece + 5000
	for _, dist := range Distributions {
		one, many := make([]uint64, n), make([]uint64, n)
		dist.Fill(NewRand(5, 1), one, 1<<20)
		dist.FillPieces(5, many, 1<<20)
		if dist.top == 0 && slices.Max(many) < 1<<63+1<<62 {
			t.Errorf("%s: the greatest is %#x, which is not the domain's end", dist.Name, slices.Max(many))
		}
		for _, q := range [][]uint64{one, many} {
			slices.Sort(q)
		}
		for i := n / 10; i < n; i += n / 10 { // a tenth of the queries is below, in both
			below, _ := slices.BinarySearch(many, one[i])
			if diff := math.Abs(float64(below-i)) / n; diff > 0.01 && dist.top > 0 && dist.Name != "Zipf" {
				t.Errorf("%s: %d of %d are below %#x, where %d should be", dist.Name, below, n, one[i], i)
			}
		}
	}
}

func TestKeysAreDistinctSortedAndUniform(t *testing.T) {
	for _, n := range []int{1, 2, 1000, 100_000, 2*contest.DrawPiece - 1, 2 * contest.DrawPiece, 2*contest.DrawPiece + 1} {
		testKeys[uint64](t, n)
		testKeys[uint32](t, n)
	}
}

func testKeys[W Word](t *testing.T, n int) {
	t.Helper()
	d, err := NewDataset[W](contesttest.Session(t, 7), n)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < n; i++ {
		if d.Keys[i-1] >= d.Keys[i] {
			t.Fatalf("n %d: key %d is not above its neighbour", n, i)
		}
	}
	// The worst deviation of n uniform numbers is of the order 1/sqrt(n):
	// twice that is exceeded for one in some thousand seeds.
	worst := 0.0
	for i, k := range d.Keys {
		worst = max(worst, math.Abs(float64(k)/float64(^W(0))-float64(i)/float64(n)))
	}
	if bound := 2 / math.Sqrt(float64(n)); worst > bound {
		t.Errorf("n %d: keys deviate by %f from uniform, more than %f", n, worst, bound)
	}
}

// Equal keys, and keys crowded at the domain's end, must be moved apart
// without passing it.
func TestKeysMoveApart(t *testing.T) {
	top := ^uint32(0)
	for _, keys := range [][]uint32{{0, 0, 0}, {5, 4, 4}, {top, top, top}, {top - 1, top, top}, {top - 2, top - 2, top}, {top}} {
		drawn := slices.Clone(keys)
		for i := range keys {
			moveApart(keys, 0, i)
			if i > 0 && keys[i] <= keys[i-1] {
				t.Errorf("%d became %d, which is not ascending", drawn, keys)
			}
		}
	}
}

func TestQueriesAreWhatTheySay(t *testing.T) {
	s := contesttest.Session(t, 11)
	for _, n := range []int{1, 2, 50, 5000} {
		d, err := NewDataset[uint32](s, n)
		if err != nil {
			t.Fatal(err)
		}
		q := make([]uint32, 2000)
		d.Hits(RoundRand(s, 0), q)
		for _, k := range q {
			if !d.Has(k) {
				t.Fatalf("n %d: hit %d is no key", n, k)
			}
		}
		d.Misses(RoundRand(s, 1), q)
		for _, k := range q {
			if _, ok := slices.BinarySearch(d.Keys, k); ok || d.Has(k) {
				t.Fatalf("n %d: miss %d is a key, or has says so", n, k)
			}
		}
		d.Between(RoundRand(s, 2), q)
		for _, k := range q {
			r, ok := slices.BinarySearch(d.Keys, k)
			if !d.IsRank(k, r) || d.IsRank(k, r+1) || d.IsRank(k, r-1) || d.Has(k) != ok {
				t.Fatalf("n %d: rank of %d is %d, which isRank or has denies", n, k, r)
			}
		}
	}
}

func TestDistributionsFillTheDomain(t *testing.T) {
	rng := NewRand(5, 5)
	for _, dist := range Distributions {
		q := make([]uint64, 10_000)
		dist.Fill(rng, q, 1000)
		mean := 0.0
		for _, k := range q {
			mean += float64(k) / float64(math.MaxUint64) / float64(len(q))
		}
		want := map[string][2]float64{"uniform": {0.45, 0.55}, "normal": {0.45, 0.55}, "gamma": {0.1, 0.5}, "Zipf": {0, 0.05}}[dist.Name]
		if mean < want[0] || mean > want[1] {
			t.Errorf("%s: mean %f is not within %v", dist.Name, mean, want)
		}
	}
}
