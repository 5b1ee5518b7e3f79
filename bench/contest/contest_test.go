package contest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	figures "github.com/pando-index/pando/bench/report"
)

func testSession(t *testing.T, seed uint64) *Session {
	t.Helper()
	t.Logf("seed %d", seed)
	cfg := DefaultConfig()
	cfg.Rounds, cfg.Queries, cfg.Seconds, cfg.Seed = 3, 256, 0.001, seed
	return NewSession(cfg, &Experiment{Name: "test", Sizes: UsualSizes}, &bytes.Buffer{})
}

// Round r runs every system once before round r+1.
func TestSystemsTakeTurns(t *testing.T) {
	s := testSession(t, 17)
	var log []string
	c := &Contest{N: 10, Threads: 1, Ops: 10}
	for _, name := range []string{"a", "b", "c"} {
		c.Subjects = append(c.Subjects, &Subject{
			System: name, Whole: true, Reference: name == "b",
			Do:    func(int) error { log = append(log, name); return nil },
			Check: func(int) error { return nil },
		})
	}
	if err := s.Compete(c); err != nil {
		t.Fatal(err)
	}
	if len(log) != 3*s.Rounds {
		t.Fatalf("%d runs, want %d", len(log), 3*s.Rounds)
	}
	for r := range s.Rounds {
		if got := slices.Sorted(slices.Values(log[3*r : 3*r+3])); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("round %d ran %v", r, got)
		}
	}
	if b := s.Rows[1]; b.RatioMedian != 1 || b.RatioBest != 1 {
		t.Errorf("the reference's ratios are %v and %v", b.RatioMedian, b.RatioBest)
	}
}

func TestFailedWorkEndsTheRun(t *testing.T) {
	s := testSession(t, 19)
	boom := errors.New("boom")
	c := &Contest{N: 10, Threads: 1, Ops: 10, Subjects: []*Subject{{
		System: "a", Do: func(int) error { return boom }, Check: func(int) error { return nil },
	}}}
	if err := s.Compete(c); !errors.Is(err, boom) {
		t.Errorf("error %v, want boom", err)
	}
}

func TestWhatDoesNotFitIsLeftOut(t *testing.T) {
	s := testSession(t, 23)
	if memInfo("MemAvailable") == 0 {
		t.Skip("this system does not say how much memory is free")
	}
	if s.Fits("glutton", 1<<40, 1000) {
		t.Fatal("a petabyte fits")
	}
	if len(s.Skipped) != 1 || !strings.Contains(s.Skipped[0], "glutton") {
		t.Errorf("left out: %q", s.Skipped)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(c.in); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, got, c.want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	r := &result{Name: "x", About: "y", CaseName: "input", extra: []ExtraColumn{{"more", Ratio}}, Skipped: []string{"b: too large"},
		Rows: []*Row{
			{Row: figures.Row{System: "Pando", Case: "sorted", N: 1 << 20, Threads: 1, Best: 9.5, Median: 10.25, BytesPerEntry: 18, RatioMedian: 1}},
			{Row: figures.Row{System: "a long name", Case: "sorted", N: 1 << 20, Threads: 1, Best: 1000, Median: 1234.5, RatioMedian: 120.44}},
			{Row: figures.Row{System: "Pando", Case: "unsorted", N: 1500, Threads: 2, Best: 0.5, Median: 100, RatioMedian: 1}},
		}}
	var out bytes.Buffer
	r.Print(&out)
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
