package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	figures "github.com/pando-index/pando/bench/report"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/flow"
)

var hybridExperiments = []*experiment{hybridWays, hybridBuckets, hybridSkew, hybridSizes, hybridRanges, hybridBalance, hybridCapped}

// Runs whole experiments, at sizes around a leaf, a node and a warp: their own
// checks look at every answer. Those that use Pando's public API find no GPU
// here: their indexes answer on the CPU.
func TestHybridExperimentsOnTheInterpreter(t *testing.T) {
	for _, e := range append(hybridExperiments, batcherExp) {
		for _, size := range [][2]int{{1, 1}, {17, 32}, {300, 33}, {5000, 257}} {
			s := interpreted(t, e, size[0], size[1])
			s.elsewhere = true
			if err := e.run(s); err != nil {
				t.Fatal(err)
			}
			checkHybridRows(t, s)
			if len(s.skipped) > 0 {
				t.Errorf("%s: left out %q", e.name, s.skipped)
			}
		}
	}
}

func checkHybridRows(t *testing.T, s *session) {
	t.Helper()
	if len(s.rows) == 0 || s.gpuInfo == nil {
		t.Fatalf("%s: %d rows on %v", s.exp.name, len(s.rows), s.gpuInfo)
	}
	references := map[int]int{}
	for _, r := range s.rows {
		if len(r.Rounds) != 2 || r.Best <= 0 || r.Median < r.Best {
			t.Errorf("%s: row without times: %+v", s.exp.name, r)
		}
		if r.Reference {
			references[r.group]++
		}
		for _, c := range s.exp.extra {
			if v, ok := r.Extra[c.name]; ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
				t.Errorf("%s, %s: %s is %v", s.exp.name, r.System, c.name, v)
			}
		}
	}
	for group := range s.contests {
		if references[group] != 1 {
			t.Errorf("%s: contest %d has %d references", s.exp.name, group, references[group])
		}
	}
}

// Every column is filled where it makes sense.
func TestHybridColumns(t *testing.T) {
	for e, want := range map[*experiment]map[string][]string{
		hybridWays:    {wayName(flow.DoubleBuffered): {colSequential, colPredicted, colMeasured, colOff, colGiga}, namePandoCPU: {colGiga}},
		hybridBuckets: {namePandoHybrid + ", bucket 1k": {colBucketTime, "fill", "in", "search", "out", "finish", "busy"}},
		hybridSkew:    {namePandoHybrid: {colUniform}, namePandoCPU: {colUniform}, namePandoGPU: {colUniform}},
		hybridSizes:   {namePandoHybrid: {colBucketTime, colUpper, colShare}, namePandoCPU: {colBucketTime}, namePandoGPU: {colBucketTime}},
		hybridRanges:  {namePandoHybrid: {colPerMatch}},
		hybridBalance: {nameBalanced: {colUpper, colShare}, namePlanned: {colLeast}},
		hybridCapped:  {namePandoHybrid: {colOnGPU}},
		batcherExp:    {namePando + " Get": {colMedianCall, colSlowCall}, namePandoGPU + ", Batcher of 64": {colMedianCall, colSlowCall}},
	} {
		s := interpreted(t, e, 1000, 100)
		s.elsewhere = true
		if err := e.run(s); err != nil {
			t.Fatal(err)
		}
		for name, columns := range want {
			at := slices.IndexFunc(s.rows, func(r *row) bool { return r.System == name })
			if at < 0 {
				t.Errorf("%s: no row %q among %q", e.name, name, names(s.rows))
				continue
			}
			for _, c := range columns {
				if _, ok := s.rows[at].Extra[c]; !ok {
					t.Errorf("%s, %s: no column %q", e.name, name, c)
				}
			}
		}
		var out strings.Builder
		s.result().print(&out)
		if !strings.Contains(out.String(), e.faster) {
			t.Errorf("no %q in\n%s", e.faster, out.String())
		}
	}
}

// A machine without a GPU prints one line; one without a driver for Pando's
// public API prints a line for each row.
func TestHybridWithoutAGPU(t *testing.T) {
	for _, e := range hybridExperiments {
		for _, why := range []error{device.ErrNoDriver, device.ErrNoDevice} {
			s := interpreted(t, e, 1000, 100)
			s.openGPU = func() (device.Device, error) { return nil, why }
			if err := e.run(s); err != nil || len(s.rows) > 0 || len(s.skipped) != 1 {
				t.Errorf("%s: error %v, %d rows, left out %q", e.name, err, len(s.rows), s.skipped)
			}
		}
		s := interpreted(t, e, 1000, 100)
		s.openGPU = func() (device.Device, error) { return nil, device.ErrLost }
		if err := e.run(s); !errors.Is(err, device.ErrLost) {
			t.Errorf("%s: error %v, want that the GPU is lost", e.name, err)
		}
	}
	s := interpreted(t, batcherExp, 1000, 100)
	s.openGPU = func() (device.Device, error) { return nil, device.ErrNoDriver }
	if err := batcherExp.run(s); err != nil || len(s.rows) == 0 {
		t.Errorf("batcher: error %v, %d rows", err, len(s.rows))
	}
}

// Sizes that do not fit, on the host or on the GPU, are left out, and the rest
// are measured.
func TestHybridSizesThatDoNotFit(t *testing.T) {
	s := interpreted(t, hybridSizes, 1, 50)
	s.sizes = []int{1 << 50, 1000}
	if err := hybridSizes.run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.rows) != 6 || s.rows[0].N != 1000 || len(s.skipped) != 2 || !strings.Contains(s.skipped[0], "memory are free") {
		t.Errorf("rows %q, left out %q", names(s.rows), s.skipped)
	}
	s = interpreted(t, hybridSizes, 1000, 50)
	s.openGPU = func() (device.Device, error) { return ptx.New(ptx.Memory(60 << 20)), nil } // buckets of a hybrid, but not of a GPU alone
	if err := hybridSizes.run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.rows) != 4 || len(s.skipped) != 2 || !strings.Contains(s.skipped[0], "no room") {
		t.Errorf("rows %q, left out %q", names(s.rows), s.skipped)
	}
}

// deafGPU fails in all copies back after a number of them.
type deafGPU struct {
	device.Device
	copies *int
}

type deafStream struct {
	device.Stream
	copies *int
}

func (g deafGPU) NewStream() (device.Stream, error) {
	s, err := g.Device.NewStream()
	return deafStream{s, g.copies}, err
}

func (s deafStream) CopyOut(dst []byte, src device.Ptr) error {
	if *s.copies--; *s.copies < 0 {
		return device.ErrLost
	}
	return s.Stream.CopyOut(dst, src)
}

// Answers that the CPU gave in place of a failed GPU are right, but must not
// appear in the GPU's row.
func TestFailedGPUsAreFoundOut(t *testing.T) {
	for _, e := range []*experiment{hybridWays, hybridBuckets, hybridSkew, hybridSizes, hybridBalance} {
		for _, copies := range []int{0, 1, 7} {
			s := interpreted(t, e, 2000, 100)
			s.systems = []string{"none"} // no limits, which fail on their own
			s.openGPU = func() (device.Device, error) { return deafGPU{ptx.New(), &copies}, nil }
			if err := e.run(s); !errors.Is(err, device.ErrLost) {
				t.Errorf("%s: error %v, want that the GPU is lost", e.name, err)
			}
		}
	}
}

// tired answers a number of batches, and then no more.
type tired struct{ batches int }

func (a *tired) GetPairs(keys, vals []uint64, found []bool) (hits int) {
	if a.batches--; a.batches < 0 {
		return len(keys)
	}
	for i, k := range keys {
		vals[i], found[i] = valueOf(k), true
	}
	return len(keys)
}

// The answers of a system while it is warmed up do not count.
func TestWarmingUpLeavesNoAnswers(t *testing.T) {
	s := interpreted(t, hybridWays, 1000, mega)
	d, err := newDataset[uint64](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b := newBulk(s, d)
	b.hits(0)
	for batches, right := range []bool{false, false, true} {
		sub := b.subject("tired", &tired{batches}, nil)
		if _, _, err := once(sub, mega); (err == nil) != right {
			t.Errorf("%d batches answered: error %v", batches, err)
		}
	}
}

// One wrong answer among many is detected, and nothing is left for the next
// system.
func TestBulkChecksEveryAnswer(t *testing.T) {
	s := interpreted(t, hybridWays, 1000, 300)
	d, err := newDataset[uint32](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b := newBulk(s, d)
	b.hits(0)
	answer := func() {
		for i, k := range b.q {
			b.vals[i], b.found[i] = valueOf(k), true
		}
	}
	answer()
	if err := b.check(len(b.q), len(b.q)); err != nil {
		t.Error(err)
	}
	if err := b.check(len(b.q), len(b.q)); err == nil {
		t.Error("the answers of one system pass for the next one's")
	}
	for i := range b.q {
		for _, spoil := range []func(){
			func() { b.vals[i]++ }, func() { b.found[i] = false }, func() { b.want = make([]bool, len(b.q)) },
		} {
			answer()
			b.want = nil
			if spoil(); b.check(len(b.q), len(b.q)) == nil {
				t.Fatalf("query %d is wrong and nobody says so", i)
			}
		}
	}
	b.want = nil
	if answer(); b.check(len(b.q), len(b.q)-1) == nil {
		t.Error("a wrong number of hits passes")
	}
}

func TestLargeRangesCheckEveryEntry(t *testing.T) {
	s := interpreted(t, hybridRanges, 1000, 50)
	d, err := newDataset[uint64](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	r := newLargeRanges(s, d, 4)
	r.fresh(0)
	answer := func() *flat[uint64] {
		var out flat[uint64]
		for i := range r.lo {
			at := int(r.first[i])
			out.keys = append(out.keys, d.keys[at:at+4]...)
			out.vals = append(out.vals, d.vals[at:at+4]...)
			out.ends = append(out.ends, len(out.keys))
		}
		return &out
	}
	if err := r.compare(0, len(r.lo), answer()); err != nil {
		t.Error(err)
	}
	for i := range answer().keys {
		for _, spoil := range []func(*flat[uint64]){
			func(f *flat[uint64]) { f.keys[i]++ }, func(f *flat[uint64]) { f.vals[i]++ },
			func(f *flat[uint64]) { f.ends[i/4]-- }, func(f *flat[uint64]) { f.keys = f.keys[:i] },
		} {
			out := answer()
			if spoil(out); r.compare(0, len(r.lo), out) == nil {
				t.Fatalf("entry %d is wrong and nobody says so", i)
			}
		}
	}
}

// Drawn on all cores, the distributions are the same as on one.
func TestSkewedPieces(t *testing.T) {
	const n = drawPiece + 5000
	for _, dist := range distributions {
		one, many := make([]uint64, n), make([]uint64, n)
		dist.fill(newRand(5, 1), one, 1<<20)
		dist.fillPieces(5, many, 1<<20)
		if dist.top == 0 && slices.Max(many) < 1<<63+1<<62 {
			t.Errorf("%s: the greatest is %#x, which is not the domain's end", dist.name, slices.Max(many))
		}
		for _, q := range [][]uint64{one, many} {
			slices.Sort(q)
		}
		for i := n / 10; i < n; i += n / 10 { // a tenth of the queries is below, in both
			below, _ := slices.BinarySearch(many, one[i])
			if diff := math.Abs(float64(below-i)) / n; diff > 0.01 && dist.top > 0 && dist.name != "Zipf" {
				t.Errorf("%s: %d of %d are below %#x, where %d should be", dist.name, below, n, one[i], i)
			}
		}
	}
}

// The model predicts what a bucket costs: a way can never be predicted to be
// slower than one that overlaps less, if all times are the CPU's own.
func TestPredictionColumns(t *testing.T) {
	times := exec.Times{Fill: 10e3, In: 20e3, Search: 30e3, Out: 5e3, Finish: 40e3, Busy: 45e3, Queries: 1000}
	for way, want := range map[flow.Overlap]float64{flow.Sequential: 105, flow.Pipelined: 55, flow.DoubleBuffered: 45} {
		r := &row{Row: figures.Row{Median: 100}} // ns: 100 µs per bucket
		setPrediction(r, times, way)
		if r.Extra[colPredicted] != want || r.Extra[colMeasured] != 100 || math.Abs(r.Extra[colOff]-(want-100)) > 1e-9 {
			t.Errorf("%v: %v, want %v", way, r.Extra, want)
		}
	}
}
