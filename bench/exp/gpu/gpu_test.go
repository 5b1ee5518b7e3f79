package gpu

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/contest/contesttest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/device/ptx"
)

var gpuExperiments = []*contest.Experiment{gpuRankU32, gpuPointU64, gpuEndToEnd, gpuLayouts}

// Runs whole experiments on the interpreter, at sizes around a leaf, a node
// and a warp: their own checks look at every answer.
func TestGPUExperimentsOnTheInterpreter(t *testing.T) {
	want := map[*contest.Experiment][]string{
		gpuRankU32:  {ours.NameGPU, ours.NameCPU, rig.NameGPULimit},
		gpuPointU64: {ours.NameGPUPairs, ours.NameGPUApart, ours.NameCPU, rig.NameGPULimit},
		gpuEndToEnd: {ours.NameCPU, rig.NameCopyLimit},
		gpuLayouts:  {ours.NameImplicit, ours.NameBlocked, ours.NameCompressed, ours.NameCPU},
	}
	for _, e := range gpuExperiments {
		for _, size := range [][2]int{{1, 1}, {2, 31}, {17, 32}, {300, 33}, {5000, 257}} {
			s := rigtest.Interpreted(t, e, size[0], size[1])
			if err := e.Run(s); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(rigtest.Names(s.Rows), func(n string) bool { return e == gpuEndToEnd && n == ours.NameGPU })
			if !slices.Equal(got, want[e]) {
				t.Errorf("rows %q, want %q; left out: %q", got, want[e], s.Skipped)
			}
			checkGPURows(t, s, size[1])
		}
	}
}

func checkGPURows(t *testing.T, s *contest.Session, queries int) {
	t.Helper()
	for i, r := range s.Rows {
		if r.Reference != (i == 0) || r.Ops != queries || len(r.Rounds) != 2 || r.Best <= 0 || r.Median < r.Best {
			t.Errorf("row %d: %+v", i, r)
		}
		if got := r.Extra[contest.ColGiga] * r.Median; math.Abs(got-1) > 1e-9 {
			t.Errorf("%s: %v Gops/s at %v ns", r.System, r.Extra[contest.ColGiga], r.Median)
		}
		if onCPU := r.Threads > 0; onCPU != (r.System == ours.NameCPU || s.Exp == gpuEndToEnd && contest.IsPando(r.System)) {
			t.Errorf("%s: %d threads", r.System, r.Threads)
		}
	}
	if s.Result().GPU == nil || s.Result().GPU.Name != "PTX interpreter" {
		t.Errorf("the result does not name the GPU: %+v", s.Result().GPU)
	}
}

// With several sizes in one run, the memory of one is free for the next.
func TestGPUMemoryIsGivenBack(t *testing.T) {
	for _, e := range gpuExperiments {
		s := rigtest.Interpreted(t, e, 1, 100)
		s.Sizes = []int{40_000, 39_000, 41_000, 40_500}
		dev := ptx.New(ptx.Memory(3 << 20))
		rigtest.UseGPU(t, func() (rig.Device, error) { return dev, nil })
		if err := e.Run(s); err != nil {
			t.Fatal(err)
		}
		sizes := map[int]bool{}
		for _, r := range s.Rows {
			sizes[r.N] = true
		}
		if len(sizes) != len(s.Sizes) {
			t.Errorf("%s: only %v were measured: %q", e.Name, sizes, s.Skipped)
		}
	}
}

func TestWhatTheGPUHasNoRoomForIsLeftOut(t *testing.T) {
	for _, e := range []*contest.Experiment{gpuRankU32, gpuPointU64} {
		s := rigtest.Interpreted(t, e, 1, 100)
		s.Sizes = []int{1_000_000, 1000}
		rigtest.UseGPU(t, func() (rig.Device, error) { return ptx.New(ptx.Memory(1 << 20)), nil })
		if err := e.Run(s); err != nil {
			t.Fatal(err)
		}
		if len(s.Rows) == 0 || s.Rows[0].N != 1000 || !strings.Contains(s.Skipped[0], "no room") {
			t.Errorf("%s: rows %q, left out %q", e.Name, rigtest.Names(s.Rows), s.Skipped)
		}
	}
}

func TestNoGPUIsNoError(t *testing.T) {
	for _, e := range gpuExperiments {
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
}

func TestTooManyQueriesForAGPU(t *testing.T) {
	for _, e := range gpuExperiments {
		for _, queries := range []int{rig.MaxGPUQueries + 1, 1 << 50} {
			s := rigtest.Interpreted(t, e, 1000, queries)
			if err := e.Run(s); err == nil || !strings.Contains(err.Error(), "--queries") {
				t.Errorf("%s, %d queries: error %v", e.Name, queries, err)
			}
		}
	}
}

// A GPU that stops working, at any point in a run, must not pass with the
// answers of an earlier launch.
func TestLazyGPUsAreFoundOut(t *testing.T) {
	run := func(e *contest.Experiment, g *rigtest.LazyGPU) error {
		g.Device = ptx.New()
		s := rigtest.Interpreted(t, e, 2000, 200)
		rigtest.UseGPU(t, func() (rig.Device, error) { return g, nil })
		return e.Run(s)
	}
	for _, e := range []*contest.Experiment{gpuRankU32, gpuPointU64, gpuLayouts} {
		honest := &rigtest.LazyGPU{Few: math.MaxInt}
		if err := run(e, honest); err != nil {
			t.Fatal(err)
		}
		for few := range honest.Launches {
			if err := run(e, &rigtest.LazyGPU{Few: few}); err == nil || !strings.Contains(err.Error(), "should be") {
				t.Errorf("%s with %d of %d launches: error %v", e.Name, few, honest.Launches, err)
			}
		}
	}
	if err := run(gpuEndToEnd, &rigtest.LazyGPU{Few: math.MaxInt, NoCopies: true}); err == nil || !strings.Contains(err.Error(), "came out") {
		t.Errorf("copies that are not made: error %v", err)
	}
}

// More than the buffers hold is copied by reusing them.
func TestCopyLimitGoesOverItsBuffers(t *testing.T) {
	for i, most := range []int{8, 64, 100, 4096} {
		s := rigtest.Interpreted(t, gpuEndToEnd, 1000, 777)
		err := rig.With(s, 0, func(g *rig.Rig) error {
			return rig.WithCopyLimit(g, []rig.Crossing{rig.QueryBytes, rig.NodeBytes}[i%2], most, func(l *rig.CopyLimit) error {
				return g.Clear(1000, rig.Compete(g, 1000, []*contest.Subject{l.Subject()}))
			})
		})
		if err != nil {
			t.Errorf("buffers of %d bytes: %v", most, err)
		}
	}
}

// fakeNVCC puts a compiler on the PATH whose program is a script.
func fakeNVCC(t *testing.T, program string) {
	t.Helper()
	peers.RemovePrograms()
	dir := t.TempDir()
	script := "#!/bin/sh\ngrep -q thrust::lower_bound \"$5\" || exit 1\ncat > \"$4\" <<'END'\n#!/bin/sh\n" + program + "\nEND\nchmod +x \"$4\"\n"
	if err := os.WriteFile(filepath.Join(dir, "nvcc"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// The peer from the toolkit is compiled, started and queried; if that fails, a
// line says so and everything else is measured.
func TestThrustTakesPart(t *testing.T) {
	for _, c := range []struct {
		name, program string
		row           bool
		err, line     string
	}{
		{"right", `echo ready; while read ops; do echo "0.25 0"; done`, true, "", ""},
		{"wrong", `echo ready; while read ops; do echo "0.25 3"; done`, false, "3 of 100 results are wrong", ""},
		{"no data", `echo "out of memory" >&2; exit 1`, false, "", "out of memory"},
		{"gone", `echo ready; read ops`, false, "no answer", ""},
		{"chatty", `echo ready; read ops; echo hello; read ops`, false, "another form", ""},
	} {
		for e, name := range map[*contest.Experiment]string{gpuRankU32: peers.NameThrust, gpuPointU64: peers.NameThrustGather} {
			s := rigtest.Interpreted(t, e, 1000, 100)
			fakeNVCC(t, c.program)
			err := e.Run(s)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s, %s: error %v, want %q", e.Name, c.name, err, c.err)
			}
			if c.err != "" {
				continue
			}
			if slices.Contains(rigtest.Names(s.Rows), name) != c.row {
				t.Errorf("%s, %s: rows %q", e.Name, c.name, rigtest.Names(s.Rows))
			}
			if !strings.Contains(strings.Join(s.Skipped, " "), c.line) {
				t.Errorf("%s, %s: left out %q, want %q", e.Name, c.name, s.Skipped, c.line)
			}
		}
	}
}

func TestThrustTimesAreItsOwn(t *testing.T) {
	s := rigtest.Interpreted(t, gpuRankU32, 1000, 100)
	fakeNVCC(t, `echo ready; while read ops; do echo "0.25 0"; done`)
	if err := gpuRankU32.Run(s); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Rows {
		if r.System == peers.NameThrust && (r.Best != 2500 || r.Median != 2500) { // 0.25 ms for 100 queries
			t.Errorf("best %v, median %v ns", r.Best, r.Median)
		}
	}
}

func TestThrustWithoutACompiler(t *testing.T) {
	s := rigtest.Interpreted(t, gpuRankU32, 1000, 100)
	if err := gpuRankU32.Run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.Skipped) != 1 || !strings.Contains(s.Skipped[0], "no nvcc on the PATH") {
		t.Errorf("left out: %q", s.Skipped)
	}
}

// Strings in every form: the checks of the experiment look at every answer.
// Pando's face finds no GPU here: its indexes answer on the CPU.
func TestGPUStringsInEveryForm(t *testing.T) {
	want := []string{
		ours.NameCPU, ours.NameGPU, ours.NameGPU + ", strings on the host",
		ours.NameCPU + ", bytes", ours.NameGPU + ", bytes",
		ours.NameCPU + ", bytes in pando.Buffer", ours.NameGPU + ", bytes in pando.Buffer",
	}
	for _, size := range [][2]int{{1, 1}, {65, 33}, {5000, 3000}} {
		s := rigtest.Interpreted(t, gpuStrings, size[0], size[1])
		if err := gpuStrings.Run(s); err != nil {
			t.Fatal(err)
		}
		if got := rigtest.Names(s.Rows); !slices.Equal(got, append(slices.Clone(want), want...)) { // two kinds of strings
			t.Errorf("rows %q; left out: %q", got, s.Skipped)
		}
	}
}

// Keys that are packed are the queries; more than there is room for is an error.
func TestPackedTexts(t *testing.T) {
	s := contesttest.Session(t, 300)
	l := work.NewTextLookups(s, data.NewTexts(s, data.TextKinds[0], 100))
	err := withPackedTexts(s, l, func(forms []*packedTexts) error {
		for round := range 2 {
			l.Draw(s.Seed, round)
			for _, p := range forms {
				p.pack()
				for i, q := range l.Q {
					if got := string(p.data[p.offsets[i]:p.offsets[i+1]]); p.err != nil || got != q {
						t.Fatalf("%s: key %d is %q, want %q; %v", p.form, i, got, q, p.err)
					}
				}
			}
		}
		forms[0].data = forms[0].data[:10]
		if forms[0].pack(); forms[0].err == nil {
			t.Error("no error where there is no room")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	l.T.Mean = 1 << 40
	if err := withPackedTexts(s, l, func(forms []*packedTexts) error {
		if len(forms) != 0 || len(s.Skipped) != 1 {
			t.Errorf("%d forms, left out %q", len(forms), s.Skipped)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
