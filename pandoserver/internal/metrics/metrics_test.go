package metrics

import (
	"math"
	"strings"
	"testing"
)

// A size is in the first bucket whose end is not below it.
func TestBuckets(t *testing.T) {
	for size := uint64(0); size < 5000; size++ {
		i := bucket(size)
		if float64(size) > end(i) || i > 0 && float64(size) <= end(i-1) {
			t.Fatalf("%d is in bucket %d", size, i)
		}
	}
	if i := bucket(math.MaxUint64); i != steps-1 || !math.IsInf(end(i), 1) {
		t.Errorf("the greatest is in bucket %d", i)
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	h.Add(3, 3, 90)
	h.Add(100, 1000, 9)
	h.Add(1<<40, 7, 1)
	for part, want := range map[float64]float64{0: 1, 0.5: 4, 0.9: 4, 0.91: 128, 0.99: 128, 1: math.Inf(1)} {
		if part == 0 {
			continue
		}
		if got := h.Quantile(part); got != want {
			t.Errorf("%v: %v, want %v", part, got, want)
		}
	}
	if h.Count() != 100 || h.Sum() != 1010 {
		t.Errorf("%d, %d", h.Count(), h.Sum())
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	w := Writer{W: &b}
	w.Counter("calls_total", "Calls\nof \\ all.")
	w.Sample(3, "name", "a\"b\\c\nd\xff", "other", "")
	w.Sample(0.25)
	var h Histogram
	h.Add(2, 1500, 1)
	w.Histogram("seconds", "Time.")
	w.Of(&h, 1e-6, 1e-9, "cmd", "get")
	got := b.String()
	for _, want := range []string{
		"# HELP calls_total Calls\\nof \\\\ all.\n# TYPE calls_total counter\n",
		`calls_total{name="a\"b\\c\nd` + "�" + `",other=""} 3` + "\ncalls_total 0.25\n",
		"# TYPE seconds histogram\nseconds_bucket{cmd=\"get\",le=\"1e-06\"} 0\nseconds_bucket{cmd=\"get\",le=\"2e-06\"} 1\n",
		"seconds_bucket{cmd=\"get\",le=\"+Inf\"} 1\nseconds_sum{cmd=\"get\"} 1.5e-06\nseconds_count{cmd=\"get\"} 1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
