package main

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	figures "github.com/pando-index/pando/bench/report"
)

func testSession(t *testing.T, seed uint64) *session {
	t.Helper()
	t.Logf("seed %d", seed)
	cfg := defaultConfig()
	cfg.rounds, cfg.queries, cfg.seconds, cfg.seed = 3, 256, 0.001, seed
	return newSession(cfg, pointU64, &bytes.Buffer{})
}

func TestKeysAreDistinctSortedAndUniform(t *testing.T) {
	for _, n := range []int{1, 2, 1000, 100_000, 2*drawPiece - 1, 2 * drawPiece, 2*drawPiece + 1} {
		testKeys[uint64](t, n)
		testKeys[uint32](t, n)
	}
}

func testKeys[W word](t *testing.T, n int) {
	t.Helper()
	d, err := newDataset[W](testSession(t, 7), n)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < n; i++ {
		if d.keys[i-1] >= d.keys[i] {
			t.Fatalf("n %d: key %d is not above its neighbour", n, i)
		}
	}
	// The worst deviation of n uniform numbers is of the order 1/sqrt(n):
	// twice that is exceeded for one in some thousand seeds.
	worst := 0.0
	for i, k := range d.keys {
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
	s := testSession(t, 11)
	for _, n := range []int{1, 2, 50, 5000} {
		d, err := newDataset[uint32](s, n)
		if err != nil {
			t.Fatal(err)
		}
		q := make([]uint32, 2000)
		d.hits(s.roundRand(0), q)
		for _, k := range q {
			if !d.has(k) {
				t.Fatalf("n %d: hit %d is no key", n, k)
			}
		}
		d.misses(s.roundRand(1), q)
		for _, k := range q {
			if _, ok := slices.BinarySearch(d.keys, k); ok || d.has(k) {
				t.Fatalf("n %d: miss %d is a key, or has says so", n, k)
			}
		}
		d.between(s.roundRand(2), q)
		for _, k := range q {
			r, ok := slices.BinarySearch(d.keys, k)
			if !d.isRank(k, r) || d.isRank(k, r+1) || d.isRank(k, r-1) || d.has(k) != ok {
				t.Fatalf("n %d: rank of %d is %d, which isRank or has denies", n, k, r)
			}
		}
	}
}

func TestDistributionsFillTheDomain(t *testing.T) {
	rng := newRand(5, 5)
	for _, dist := range distributions {
		q := make([]uint64, 10_000)
		dist.fill(rng, q, 1000)
		mean := 0.0
		for _, k := range q {
			mean += float64(k) / float64(math.MaxUint64) / float64(len(q))
		}
		want := map[string][2]float64{"uniform": {0.45, 0.55}, "normal": {0.45, 0.55}, "gamma": {0.1, 0.5}, "Zipf": {0, 0.05}}[dist.name]
		if mean < want[0] || mean > want[1] {
			t.Errorf("%s: mean %f is not within %v", dist.name, mean, want)
		}
	}
}

// liar is a system with one wrong answer.
type liar struct{ *binarySearch[uint64] }

func (l liar) Name() string { return "liar" }

func (l liar) Get(q, vals []uint64, found []bool) int {
	hits := l.binarySearch.Get(q, vals, found)
	vals[len(q)-1]++
	return hits
}

// asleep is a system that answers nothing: what is in the slices from the
// previous system must not pass as its answers.
type asleep struct{ *binarySearch[uint64] }

func (asleep) Get(q, _ []uint64, _ []bool) int { return len(q) }

func TestWrongAnswersEndTheRun(t *testing.T) {
	s := testSession(t, 13)
	d, err := newDataset[uint64](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	honest := &binarySearch[uint64]{d}
	for name, sys := range map[string]system[uint64]{"liar": liar{honest}, "asleep": asleep{honest}} {
		c, err := newLookups(s, d).contest([]system[uint64]{honest, sys}, nil, 1, "", d.hits, allHits)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.compete(c); err == nil || !strings.Contains(err.Error(), "wrong answer") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Round r runs every system once before round r+1.
func TestSystemsTakeTurns(t *testing.T) {
	s := testSession(t, 17)
	var log []string
	c := &contest{n: 10, threads: 1, ops: 10}
	for _, name := range []string{"a", "b", "c"} {
		c.subjects = append(c.subjects, &subject{
			system: name, whole: true, reference: name == "b",
			do:    func(int) error { log = append(log, name); return nil },
			check: func(int) error { return nil },
		})
	}
	if err := s.compete(c); err != nil {
		t.Fatal(err)
	}
	if len(log) != 3*s.rounds {
		t.Fatalf("%d runs, want %d", len(log), 3*s.rounds)
	}
	for r := range s.rounds {
		if got := slices.Sorted(slices.Values(log[3*r : 3*r+3])); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("round %d ran %v", r, got)
		}
	}
	if b := s.rows[1]; b.RatioMedian != 1 || b.RatioBest != 1 {
		t.Errorf("the reference's ratios are %v and %v", b.RatioMedian, b.RatioBest)
	}
}

func TestFailedWorkEndsTheRun(t *testing.T) {
	s := testSession(t, 19)
	boom := errors.New("boom")
	c := &contest{n: 10, threads: 1, ops: 10, subjects: []*subject{{
		system: "a", do: func(int) error { return boom }, check: func(int) error { return nil },
	}}}
	if err := s.compete(c); !errors.Is(err, boom) {
		t.Errorf("error %v, want boom", err)
	}
}

func TestWhatDoesNotFitIsLeftOut(t *testing.T) {
	s := testSession(t, 23)
	if memInfo("MemAvailable") == 0 {
		t.Skip("this system does not say how much memory is free")
	}
	if s.fits("glutton", 1<<40, 1000) {
		t.Fatal("a petabyte fits")
	}
	if len(s.skipped) != 1 || !strings.Contains(s.skipped[0], "glutton") {
		t.Errorf("left out: %q", s.skipped)
	}
}

func TestSystemsFilter(t *testing.T) {
	s := testSession(t, 29)
	s.systems = []string{"art", "tidwall/btree map"}
	for name, want := range map[string]bool{nameART: true, nameTidwallMap: true, nameTidwallG: false,
		nameGoogle: false, namePandoPairs: true, nameLimit: false} {
		if s.wanted(name) != want {
			t.Errorf("%s wanted: %v", name, !want)
		}
	}
}

// Ratios are relative to the layout and the pages that Pando uses by default.
func TestReferenceIsTheDefault(t *testing.T) {
	s := testSession(t, 31)
	d, err := newDataset[uint64](s, 1<<18)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []maker[uint64]{pandoLayouts[uint64]()[0], pandoPages[uint64]()[0]} {
		plain, err := makePando[uint64](namePando).build(d)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := m.build(d)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := plain.(frozenMap[uint64]).ix.Stats(), ref.(frozenMap[uint64]).ix.Stats(); a != b {
			t.Errorf("%s is not what Pando does by itself: %+v, %+v", m.name, b, a)
		}
		plain.Close()
		ref.Close()
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.in); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, got, c.want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	r := &result{Name: "x", About: "y", CaseName: "input", extra: []extraColumn{{"more", ratio}}, Skipped: []string{"b: too large"},
		Rows: []*row{
			{Row: figures.Row{System: "Pando", Case: "sorted", N: 1 << 20, Threads: 1, Best: 9.5, Median: 10.25, BytesPerEntry: 18, RatioMedian: 1}},
			{Row: figures.Row{System: "a long name", Case: "sorted", N: 1 << 20, Threads: 1, Best: 1000, Median: 1234.5, RatioMedian: 120.44}},
			{Row: figures.Row{System: "Pando", Case: "unsorted", N: 1500, Threads: 2, Best: 0.5, Median: 100, RatioMedian: 1}},
		}}
	var out bytes.Buffer
	r.print(&out)
	want := `
x: y

system       input        n  threads  best ns/op  median ns/op  Mops/s  bytes/entry  x Pando
Pando        sorted      1M        1        9.50          10.2    97.6         18.0     1.00
a long name  sorted      1M        1        1000          1234   0.810            -   120.44

Pando        unsorted  1500        2       0.500         100.0    10.0            -     1.00
left out: b: too large
noisy: in 1 of 3 rows the median is 30 % or more above the best: measure again when the machine is quiet
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestReadLimitReadsEveryWay(t *testing.T) {
	l, err := newReadLimit(1<<20, 1003) // not a multiple of any unrolling
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for i, touch := range []func([]uint64, []uint32) uint64{touch1, touch4, touch16} {
		l.touch = touch
		l.fresh(newRand(uint64(i), 1))
		for _, threads := range []int{1, 3} {
			l.read(threads, len(l.lines))
			if err := l.check(len(l.lines)); err != nil {
				t.Errorf("touch %d, threads %d: %v", i, threads, err)
			}
		}
	}
}
