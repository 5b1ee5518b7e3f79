package main

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
)

var gpuExperiments = []*experiment{gpuRankU32, gpuPointU64, gpuEndToEnd, gpuLayouts}

// interpreted returns a session whose GPU is the interpreter, without a
// compiler for the peer.
func interpreted(t *testing.T, e *experiment, n, queries int) *session {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	t.Cleanup(func() { gpuPrograms.remove() })
	seed := rand.Uint64N(1 << 32)
	t.Logf("%s, n %d, %d queries, seed %d", e.name, n, queries, seed)
	cfg := defaultConfig()
	cfg.sizes, cfg.rounds, cfg.queries, cfg.seconds, cfg.seed = []int{n}, 2, queries, 0.001, seed
	s := newSession(cfg, e, &bytes.Buffer{})
	s.openGPU = func() (device.Device, error) { return ptx.New(ptx.Seed(seed)), nil }
	s.warmUp = 0
	return s
}

func names(rows []*row) (out []string) {
	for _, r := range rows {
		out = append(out, r.System)
	}
	return out
}

// Runs whole experiments on the interpreter, at sizes around a leaf, a node
// and a warp: their own checks look at every answer.
func TestGPUExperimentsOnTheInterpreter(t *testing.T) {
	want := map[*experiment][]string{
		gpuRankU32:  {namePandoGPU, namePandoCPU, nameGPULimit},
		gpuPointU64: {namePandoGPUPairs, namePandoGPUApart, namePandoCPU, nameGPULimit},
		gpuEndToEnd: {namePandoCPU, nameCopyLimit},
		gpuLayouts:  {namePandoImplicit, namePandoBlocked, namePandoCompressed, namePandoCPU},
	}
	for _, e := range gpuExperiments {
		for _, size := range [][2]int{{1, 1}, {2, 31}, {17, 32}, {300, 33}, {5000, 257}} {
			s := interpreted(t, e, size[0], size[1])
			if err := e.run(s); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(names(s.rows), func(n string) bool { return e == gpuEndToEnd && n == namePandoGPU })
			if !slices.Equal(got, want[e]) {
				t.Errorf("rows %q, want %q; left out: %q", got, want[e], s.skipped)
			}
			checkGPURows(t, s, size[1])
		}
	}
}

func checkGPURows(t *testing.T, s *session, queries int) {
	t.Helper()
	for i, r := range s.rows {
		if r.Reference != (i == 0) || r.Ops != queries || len(r.Rounds) != 2 || r.Best <= 0 || r.Median < r.Best {
			t.Errorf("row %d: %+v", i, r)
		}
		if got := r.Extra[colGiga] * r.Median; math.Abs(got-1) > 1e-9 {
			t.Errorf("%s: %v Gops/s at %v ns", r.System, r.Extra[colGiga], r.Median)
		}
		if onCPU := r.Threads > 0; onCPU != (r.System == namePandoCPU || s.exp == gpuEndToEnd && isPando(r.System)) {
			t.Errorf("%s: %d threads", r.System, r.Threads)
		}
	}
	if s.result().GPU == nil || s.result().GPU.Name != "PTX interpreter" {
		t.Errorf("the result does not name the GPU: %+v", s.result().GPU)
	}
}

// With several sizes in one run, the memory of one is free for the next.
func TestGPUMemoryIsGivenBack(t *testing.T) {
	for _, e := range gpuExperiments {
		s := interpreted(t, e, 1, 100)
		s.sizes = []int{40_000, 39_000, 41_000, 40_500}
		dev := ptx.New(ptx.Memory(3 << 20))
		s.openGPU = func() (device.Device, error) { return dev, nil }
		if err := e.run(s); err != nil {
			t.Fatal(err)
		}
		sizes := map[int]bool{}
		for _, r := range s.rows {
			sizes[r.N] = true
		}
		if len(sizes) != len(s.sizes) {
			t.Errorf("%s: only %v were measured: %q", e.name, sizes, s.skipped)
		}
	}
}

func TestWhatTheGPUHasNoRoomForIsLeftOut(t *testing.T) {
	for _, e := range []*experiment{gpuRankU32, gpuPointU64} {
		s := interpreted(t, e, 1, 100)
		s.sizes = []int{1_000_000, 1000}
		s.openGPU = func() (device.Device, error) { return ptx.New(ptx.Memory(1 << 20)), nil }
		if err := e.run(s); err != nil {
			t.Fatal(err)
		}
		if len(s.rows) == 0 || s.rows[0].N != 1000 || !strings.Contains(s.skipped[0], "no room") {
			t.Errorf("%s: rows %q, left out %q", e.name, names(s.rows), s.skipped)
		}
	}
}

func TestNoGPUIsNoError(t *testing.T) {
	for _, e := range gpuExperiments {
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
}

func TestTooManyQueriesForAGPU(t *testing.T) {
	for _, e := range gpuExperiments {
		for _, queries := range []int{maxGPUQueries + 1, 1 << 50} {
			s := interpreted(t, e, 1000, queries)
			if err := e.run(s); err == nil || !strings.Contains(err.Error(), "--queries") {
				t.Errorf("%s, %d queries: error %v", e.name, queries, err)
			}
		}
	}
}

// lazyGPU skips what it is asked to do: launches after the first few, or
// copies, are dropped.
type lazyGPU struct {
	device.Device
	few, launches int
	noCopies      bool
}

type lazyStream struct {
	device.Stream
	gpu *lazyGPU
}

func (g *lazyGPU) NewStream() (device.Stream, error) {
	s, err := g.Device.NewStream()
	return lazyStream{s, g}, err
}

func (s lazyStream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	if s.gpu.launches++; s.gpu.launches > s.gpu.few {
		return nil
	}
	return s.Stream.Launch(k, g, params)
}

func (s lazyStream) CopyOut(dst []byte, src device.Ptr) error {
	if s.gpu.noCopies {
		return nil
	}
	return s.Stream.CopyOut(dst, src)
}

// A GPU that stops working, at any point in a run, must not pass with the
// answers of an earlier launch.
func TestLazyGPUsAreFoundOut(t *testing.T) {
	run := func(e *experiment, g *lazyGPU) error {
		g.Device = ptx.New()
		s := interpreted(t, e, 2000, 200)
		s.openGPU = func() (device.Device, error) { return g, nil }
		return e.run(s)
	}
	for _, e := range []*experiment{gpuRankU32, gpuPointU64, gpuLayouts} {
		honest := &lazyGPU{few: math.MaxInt}
		if err := run(e, honest); err != nil {
			t.Fatal(err)
		}
		for few := range honest.launches {
			if err := run(e, &lazyGPU{few: few}); err == nil || !strings.Contains(err.Error(), "should be") {
				t.Errorf("%s with %d of %d launches: error %v", e.name, few, honest.launches, err)
			}
		}
	}
	if err := run(gpuEndToEnd, &lazyGPU{few: math.MaxInt, noCopies: true}); err == nil || !strings.Contains(err.Error(), "came out") {
		t.Errorf("copies that are not made: error %v", err)
	}
}

// More than the buffers hold is copied by reusing them.
func TestCopyLimitGoesOverItsBuffers(t *testing.T) {
	for i, most := range []int{8, 64, 100, 4096} {
		s := interpreted(t, gpuEndToEnd, 1000, 777)
		err := withGPU(s, 0, func(g *gpuRig) error {
			return withCopyLimit(g, []crossing{queryBytes, nodeBytes}[i%2], most, func(l *copyLimit) error {
				return g.clear(1000, competeOnGPU(g, 1000, []*subject{l.subject()}))
			})
		})
		if err != nil {
			t.Errorf("buffers of %d bytes: %v", most, err)
		}
	}
}

func TestFoundBits(t *testing.T) {
	for n := 1; n < 100; n++ {
		bits := make([]uint32, bitBytes(n)/4)
		for i := range n {
			bits[i/32] |= 1 << (i % 32)
		}
		if err := allSet(0, bits, n); err != nil {
			t.Fatalf("%d bits: %v", n, err)
		}
		for i := range 32 * len(bits) {
			bits[i/32] ^= 1 << (i % 32)
			if allSet(0, bits, n) == nil || i >= 32 && allSet(1, bits[1:], n) == nil {
				t.Errorf("%d bits: bit %d is wrong and nobody says so", n, i)
			}
			bits[i/32] ^= 1 << (i % 32)
		}
	}
}

// The queries must not depend on the number of cores.
func TestPiecesAreTheSameOnAnyCores(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	got := make([]uint32, 2*drawPiece+77)
	drawPieces(seed, 3, got, anyNumber)
	for p := range 3 {
		part := got[p*drawPiece : min((p+1)*drawPiece, len(got))]
		want := make([]uint32, len(part))
		anyNumber(newRand(seed, streamPieces+3<<20+uint64(p)), want)
		if !slices.Equal(part, want) {
			t.Errorf("piece %d is not what its stream gives", p)
		}
	}
}

// fakeNVCC puts a compiler on the PATH whose program is a script.
func fakeNVCC(t *testing.T, program string) {
	t.Helper()
	gpuPrograms.remove()
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
		for e, name := range map[*experiment]string{gpuRankU32: nameThrust, gpuPointU64: nameThrustGather} {
			s := interpreted(t, e, 1000, 100)
			fakeNVCC(t, c.program)
			err := e.run(s)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s, %s: error %v, want %q", e.name, c.name, err, c.err)
			}
			if c.err != "" {
				continue
			}
			if slices.Contains(names(s.rows), name) != c.row {
				t.Errorf("%s, %s: rows %q", e.name, c.name, names(s.rows))
			}
			if !strings.Contains(strings.Join(s.skipped, " "), c.line) {
				t.Errorf("%s, %s: left out %q, want %q", e.name, c.name, s.skipped, c.line)
			}
		}
	}
}

func TestThrustTimesAreItsOwn(t *testing.T) {
	s := interpreted(t, gpuRankU32, 1000, 100)
	fakeNVCC(t, `echo ready; while read ops; do echo "0.25 0"; done`)
	if err := gpuRankU32.run(s); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.rows {
		if r.System == nameThrust && (r.Best != 2500 || r.Median != 2500) { // 0.25 ms for 100 queries
			t.Errorf("best %v, median %v ns", r.Best, r.Median)
		}
	}
}

func TestThrustWithoutACompiler(t *testing.T) {
	s := interpreted(t, gpuRankU32, 1000, 100)
	if err := gpuRankU32.run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.skipped) != 1 || !strings.Contains(s.skipped[0], "no nvcc on the PATH") {
		t.Errorf("left out: %q", s.skipped)
	}
	dir := gpuPrograms.dir
	if err := gpuPrograms.remove(); err != nil || dir == "" {
		t.Fatal(dir, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// Strings in every form: the checks of the experiment look at every answer.
// Pando's face finds no GPU here: its indexes answer on the CPU.
func TestGPUStringsInEveryForm(t *testing.T) {
	want := []string{
		namePandoCPU, namePandoGPU, namePandoGPU + ", strings on the host",
		namePandoCPU + ", bytes", namePandoGPU + ", bytes",
		namePandoCPU + ", bytes in pando.Buffer", namePandoGPU + ", bytes in pando.Buffer",
	}
	for _, size := range [][2]int{{1, 1}, {65, 33}, {5000, 3000}} {
		s := interpreted(t, gpuStrings, size[0], size[1])
		if err := gpuStrings.run(s); err != nil {
			t.Fatal(err)
		}
		if got := names(s.rows); !slices.Equal(got, append(slices.Clone(want), want...)) { // two kinds of strings
			t.Errorf("rows %q; left out: %q", got, s.skipped)
		}
	}
}

// Keys that are packed are the queries; more than there is room for is an error.
func TestPackedTexts(t *testing.T) {
	s := testSession(t, 300)
	l := newTextLookups(s, newTexts(s, textKinds[0], 100))
	err := withPackedTexts(s, l, func(forms []*packedTexts) error {
		for round := range 2 {
			l.draw(s.seed, round)
			for _, p := range forms {
				p.pack()
				for i, q := range l.q {
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
	l.t.mean = 1 << 40
	if err := withPackedTexts(s, l, func(forms []*packedTexts) error {
		if len(forms) != 0 || len(s.skipped) != 1 {
			t.Errorf("%d forms, left out %q", len(forms), s.skipped)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
