// Package metrics counts what a server does, and writes it as Prometheus reads it: the text format is lines of a name,
// labels and a number, so that no library is needed for it, which every user of this module would download.
package metrics

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"sync/atomic"
)

// steps is how many buckets a histogram has. The upper end of bucket i is 1<<i; the last has none.
const steps = 25

// Histogram counts sizes by powers of two. Its zero value is empty, and its methods may be called from any goroutine.
type Histogram struct {
	counts [steps]atomic.Int64
	sum    atomic.Int64
}

// Add counts n times a size, rounded up to a whole number of units. sum is what the n come to, in the unit that Write
// is told.
func (h *Histogram) Add(size uint64, sum, n int64) {
	h.counts[bucket(size)].Add(n)
	h.sum.Add(sum)
}

// bucket returns the first bucket that has room for a size.
func bucket(size uint64) int {
	if size <= 1 {
		return 0
	}
	return min(bits.Len64(size-1), steps-1)
}

// Count returns how many were counted.
func (h *Histogram) Count() (n int64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// Sum returns what all that were counted come to.
func (h *Histogram) Sum() int64 { return h.sum.Load() }

// Quantile returns the upper end of the bucket below which are a part of all, 0.99 of them say: infinity for the last
// bucket, and zero if there are none.
func (h *Histogram) Quantile(part float64) float64 {
	var counts [steps]int64
	total := int64(0)
	for i := range h.counts {
		counts[i] = h.counts[i].Load()
		total += counts[i]
	}
	rank := int64(math.Ceil(part * float64(total)))
	for i, n := range counts {
		if rank -= n; rank <= 0 && total > 0 {
			return end(i)
		}
	}
	return 0
}

// end returns the upper end of a bucket.
func end(i int) float64 {
	if i == steps-1 {
		return math.Inf(1)
	}
	return float64(uint64(1) << i)
}

// Writer writes metrics in the text format, version 0.0.4. Samples of one metric come one behind the other.
type Writer struct {
	W   io.Writer
	Err error // the first that writing has returned

	name string
}

// Content is the media type of what a Writer writes.
const Content = "text/plain; version=0.0.4; charset=utf-8"

func (w *Writer) print(format string, args ...any) {
	if w.Err == nil {
		_, w.Err = fmt.Fprintf(w.W, format, args...)
	}
}

// Counter begins a metric that only grows, Gauge one that goes up and down, and Histogram one of Histograms.
func (w *Writer) Counter(name, help string)   { w.begin(name, help, "counter") }
func (w *Writer) Gauge(name, help string)     { w.begin(name, help, "gauge") }
func (w *Writer) Histogram(name, help string) { w.begin(name, help, "histogram") }

func (w *Writer) begin(name, help, kind string) {
	w.name = name
	w.print("# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(help), name, kind)
}

// Sample writes a value of the metric. Labels are pairs of a name and a value.
func (w *Writer) Sample(value float64, labels ...string) { w.line("", value, labels) }

func (w *Writer) line(suffix string, value float64, labels []string) {
	w.print("%s%s%s %s\n", w.name, suffix, labelled(labels), number(value))
}

// Of writes a histogram, whose sizes are counted in units of unit and its sum in units of sumUnit: seconds, say.
func (w *Writer) Of(h *Histogram, unit, sumUnit float64, labels ...string) {
	total := int64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
		w.line("_bucket", float64(total), append(labels[:len(labels):len(labels)], "le", number(end(i)*unit)))
	}
	w.line("_sum", float64(h.Sum())*sumUnit, labels)
	w.line("_count", float64(total), labels)
}

func number(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	case x == math.Trunc(x) && math.Abs(x) < 1<<53:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// labelled returns labels as they stand behind a name.
func labelled(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	escape := strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`)
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		b.WriteString(sep + labels[i] + `="` + escape.Replace(strings.ToValidUTF8(labels[i+1], "�")) + `"`)
	}
	b.WriteByte('}')
	return b.String()
}
