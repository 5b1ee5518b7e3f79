package hybrid

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
)

var hybridExperiments = []*contest.Experiment{hybridWays, hybridBuckets, hybridSkew, hybridSizes, hybridRanges, hybridBalance, hybridCapped}

// Runs whole experiments, at sizes around a leaf, a node and a warp: their own
// checks look at every answer. Those that use Pando's public API find no GPU
// here: their indexes answer on the CPU.
func TestHybridExperimentsOnTheInterpreter(t *testing.T) {
	for _, e := range append(hybridExperiments, batcherExp) {
		for _, size := range [][2]int{{1, 1}, {17, 32}, {300, 33}, {5000, 257}} {
			s := rigtest.Interpreted(t, e, size[0], size[1])
			s.Elsewhere = true
			if err := e.Run(s); err != nil {
				t.Fatal(err)
			}
			checkHybridRows(t, s)
			if len(s.Skipped) > 0 {
				t.Errorf("%s: left out %q", e.Name, s.Skipped)
			}
		}
	}
}

func checkHybridRows(t *testing.T, s *contest.Session) {
	t.Helper()
	if len(s.Rows) == 0 || s.GPUInfo == nil {
		t.Fatalf("%s: %d rows on %v", s.Exp.Name, len(s.Rows), s.GPUInfo)
	}
	var references []int // of each contest
	for i, r := range s.Rows {
		if len(r.Rounds) != 2 || r.Best <= 0 || r.Median < r.Best {
			t.Errorf("%s: row without times: %+v", s.Exp.Name, r)
		}
		if i == 0 || !r.Beside(s.Rows[i-1]) {
			references = append(references, 0)
		}
		if r.Reference {
			references[len(references)-1]++
		}
		for _, c := range s.Exp.Extra {
			if v, ok := r.Extra[c.Name]; ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
				t.Errorf("%s, %s: %s is %v", s.Exp.Name, r.System, c.Name, v)
			}
		}
	}
	for i, n := range references {
		if n != 1 {
			t.Errorf("%s: contest %d has %d references", s.Exp.Name, i, n)
		}
	}
}

// Every column is filled where it makes sense.
func TestHybridColumns(t *testing.T) {
	for e, want := range map[*contest.Experiment]map[string][]string{
		hybridWays:    {wayName(flow.DoubleBuffered): {colSequential, colPredicted, colMeasured, colOff, contest.ColGiga}, ours.NameCPU: {contest.ColGiga}},
		hybridBuckets: {ours.NameHybrid + ", bucket 1k": {colBucketTime, "fill", "in", "search", "out", "finish", "busy"}},
		hybridSkew:    {ours.NameHybrid: {contest.ColUniform}, ours.NameCPU: {contest.ColUniform}, ours.NameGPU: {contest.ColUniform}},
		hybridSizes:   {ours.NameHybrid: {colBucketTime, colUpper, colShare}, ours.NameCPU: {colBucketTime}, ours.NameGPU: {colBucketTime}},
		hybridRanges:  {ours.NameHybrid: {contest.ColPerMatch}},
		hybridBalance: {nameBalanced: {colUpper, colShare}, namePlanned: {colLeast}},
		hybridCapped:  {ours.NameHybrid: {colOnGPU}},
		batcherExp:    {contest.Pando + " Get": {colMedianCall, colSlowCall}, ours.NameGPU + ", Batcher of 64": {colMedianCall, colSlowCall}},
	} {
		s := rigtest.Interpreted(t, e, 1000, 100)
		s.Elsewhere = true
		if err := e.Run(s); err != nil {
			t.Fatal(err)
		}
		for name, columns := range want {
			at := slices.IndexFunc(s.Rows, func(r *contest.Row) bool { return r.System == name })
			if at < 0 {
				t.Errorf("%s: no row %q among %q", e.Name, name, rigtest.Names(s.Rows))
				continue
			}
			for _, c := range columns {
				if _, ok := s.Rows[at].Extra[c]; !ok {
					t.Errorf("%s, %s: no column %q", e.Name, name, c)
				}
			}
		}
		var out strings.Builder
		s.Result().Print(&out)
		if !strings.Contains(out.String(), e.Faster) {
			t.Errorf("no %q in\n%s", e.Faster, out.String())
		}
	}
}

// A machine without a GPU prints one line; one without a driver for Pando's
// public API prints a line for each row.
func TestHybridWithoutAGPU(t *testing.T) {
	for _, e := range hybridExperiments {
		for _, why := range []error{rig.ErrNoDriver, rig.ErrNoDevice} {
			s := rigtest.Interpreted(t, e, 1000, 100)
			rigtest.UseGPU(t, func() (rig.Device, error) { return nil, why })
			if err := e.Run(s); err != nil || len(s.Rows) > 0 || len(s.Skipped) != 1 {
				t.Errorf("%s: error %v, %d rows, left out %q", e.Name, err, len(s.Rows), s.Skipped)
			}
		}
		s := rigtest.Interpreted(t, e, 1000, 100)
		rigtest.UseGPU(t, func() (rig.Device, error) { return nil, rig.ErrLost })
		if err := e.Run(s); !errors.Is(err, rig.ErrLost) {
			t.Errorf("%s: error %v, want that the GPU is lost", e.Name, err)
		}
	}
	s := rigtest.Interpreted(t, batcherExp, 1000, 100)
	rigtest.UseGPU(t, func() (rig.Device, error) { return nil, rig.ErrNoDriver })
	if err := batcherExp.Run(s); err != nil || len(s.Rows) == 0 {
		t.Errorf("batcher: error %v, %d rows", err, len(s.Rows))
	}
}

// Sizes that do not fit, on the host or on the GPU, are left out, and the rest
// are measured.
func TestHybridSizesThatDoNotFit(t *testing.T) {
	s := rigtest.Interpreted(t, hybridSizes, 1, 50)
	s.Sizes = []int{1 << 50, 1000}
	if err := hybridSizes.Run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 6 || s.Rows[0].N != 1000 || len(s.Skipped) != 2 || !strings.Contains(s.Skipped[0], "memory are free") {
		t.Errorf("rows %q, left out %q", rigtest.Names(s.Rows), s.Skipped)
	}
	s = rigtest.Interpreted(t, hybridSizes, 1000, 50)
	rigtest.UseGPU(t, func() (rig.Device, error) { return ptx.New(ptx.Memory(60 << 20)), nil }) // buckets of a hybrid, but not of a GPU alone
	if err := hybridSizes.Run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 4 || len(s.Skipped) != 2 || !strings.Contains(s.Skipped[0], "no room") {
		t.Errorf("rows %q, left out %q", rigtest.Names(s.Rows), s.Skipped)
	}
}

// deafGPU fails in all copies back after a number of them.
type deafGPU struct {
	rig.Device
	copies *int
}

type deafStream struct {
	rig.Stream
	copies *int
}

func (g deafGPU) NewStream() (rig.Stream, error) {
	s, err := g.Device.NewStream()
	return deafStream{s, g.copies}, err
}

func (s deafStream) CopyOut(dst []byte, src rig.Ptr) error {
	if *s.copies--; *s.copies < 0 {
		return rig.ErrLost
	}
	return s.Stream.CopyOut(dst, src)
}

// Answers that the CPU gave in place of a failed GPU are right, but must not
// appear in the GPU's row.
func TestFailedGPUsAreFoundOut(t *testing.T) {
	for _, e := range []*contest.Experiment{hybridWays, hybridBuckets, hybridSkew, hybridSizes, hybridBalance} {
		for _, copies := range []int{0, 1, 7} {
			s := rigtest.Interpreted(t, e, 2000, 100)
			s.Systems = []string{"none"} // no limits, which fail on their own
			rigtest.UseGPU(t, func() (rig.Device, error) { return deafGPU{ptx.New(), &copies}, nil })
			if err := e.Run(s); !errors.Is(err, rig.ErrLost) {
				t.Errorf("%s: error %v, want that the GPU is lost", e.Name, err)
			}
		}
	}
}

func TestLargeRangesCheckEveryEntry(t *testing.T) {
	s := rigtest.Interpreted(t, hybridRanges, 1000, 50)
	d, err := data.NewDataset[uint64](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	r := newLargeRanges(s, d, 4)
	r.fresh(0)
	answer := func() *peers.Flat[uint64] {
		var out peers.Flat[uint64]
		for i := range r.lo {
			at := int(r.first[i])
			out.Keys = append(out.Keys, d.Keys[at:at+4]...)
			out.Vals = append(out.Vals, d.Vals[at:at+4]...)
			out.Ends = append(out.Ends, len(out.Keys))
		}
		return &out
	}
	if err := r.compare(0, len(r.lo), answer()); err != nil {
		t.Error(err)
	}
	for i := range answer().Keys {
		for _, spoil := range []func(*peers.Flat[uint64]){
			func(f *peers.Flat[uint64]) { f.Keys[i]++ }, func(f *peers.Flat[uint64]) { f.Vals[i]++ },
			func(f *peers.Flat[uint64]) { f.Ends[i/4]-- }, func(f *peers.Flat[uint64]) { f.Keys = f.Keys[:i] },
		} {
			out := answer()
			if spoil(out); r.compare(0, len(r.lo), out) == nil {
				t.Fatalf("entry %d is wrong and nobody says so", i)
			}
		}
	}
}

// The model predicts what a bucket costs: a way can never be predicted to be
// slower than one that overlaps less, if all times are the CPU's own.
func TestPredictionColumns(t *testing.T) {
	times := bucketTimes{Fill: 10e3, In: 20e3, Search: 30e3, Out: 5e3, Finish: 40e3, Busy: 45e3, Queries: 1000}
	for way, want := range map[flow.Overlap]float64{flow.Sequential: 105, flow.Pipelined: 55, flow.DoubleBuffered: 45} {
		r := contest.NewRow("", "", 0)
		r.Median = 100 // ns: 100 µs per bucket
		setPrediction(r, times, way)
		if r.Extra[colPredicted] != want || r.Extra[colMeasured] != 100 || math.Abs(r.Extra[colOff]-(want-100)) > 1e-9 {
			t.Errorf("%v: %v, want %v", way, r.Extra, want)
		}
	}
}
