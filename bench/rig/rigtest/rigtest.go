// Package rigtest runs experiments for tests on the interpreter of kernels, on
// devices that skip their work, and without a GPU.
package rigtest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// Interpreted returns a session whose GPU is the interpreter, without a
// compiler for the peer.
func Interpreted(t *testing.T, e *contest.Experiment, n, queries int) *contest.Session {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	t.Cleanup(func() { peers.RemovePrograms() })
	t.Logf("%s, n %d, %d queries", e.Name, n, queries)
	start := seed.Of(t)
	cfg := contest.DefaultConfig()
	cfg.Sizes, cfg.Rounds, cfg.Queries, cfg.Seconds, cfg.Seed = []int{n}, 2, queries, 0.001, start
	s := contest.NewSession(cfg, e, &bytes.Buffer{})
	UseGPU(t, func() (rig.Device, error) { return ptx.New(ptx.Seed(start)), nil })
	s.WarmUp = 0
	return s
}

// UseGPU makes a device stand for the machine's GPU until the end of the test.
func UseGPU(t *testing.T, open func() (rig.Device, error)) {
	t.Helper()
	before := rig.Open
	rig.Open = func(*contest.Session) (rig.Device, error) { return open() }
	t.Cleanup(func() { rig.Open = before })
}

// Names returns the systems of rows.
func Names(rows []*contest.Row) (out []string) {
	for _, r := range rows {
		out = append(out, r.System)
	}
	return out
}

// LazyGPU skips what it is asked to do: launches after the first few, or
// copies, are dropped.
type LazyGPU struct {
	rig.Device
	Few, Launches int
	NoCopies      bool
}

type lazyStream struct {
	rig.Stream
	gpu *LazyGPU
}

// NewStream returns a stream that skips what its device skips.
func (g *LazyGPU) NewStream() (rig.Stream, error) {
	s, err := g.Device.NewStream()
	return lazyStream{s, g}, err
}

func (s lazyStream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	if s.gpu.Launches++; s.gpu.Launches > s.gpu.Few {
		return nil
	}
	return s.Stream.Launch(k, g, params)
}

func (s lazyStream) CopyOut(dst []byte, src rig.Ptr) error {
	if s.gpu.NoCopies {
		return nil
	}
	return s.Stream.CopyOut(dst, src)
}

// RunInterpreted runs an experiment, whose first rows are to be some.
func RunInterpreted(t *testing.T, e *contest.Experiment, want []string, n, ops int) {
	t.Helper()
	s := Interpreted(t, e, n, ops)
	indextest.Interpreted(t, s.Seed)
	s.Threads, s.Rounds = []int{2}, 1
	UseGPU(t, func() (rig.Device, error) { return ptx.New(ptx.Seed(s.Seed), ptx.Memory(256<<20)), nil })
	if err := e.Run(s); err != nil {
		t.Fatalf("%s, n %d, %d operations: %v", e.Name, n, ops, err)
	}
	got := Names(s.Rows)
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%s: rows %q, want %q first; left out: %q", e.Name, got, want, s.Skipped)
	}
	for _, r := range s.Rows {
		if r.Best <= 0 || r.Extra[contest.ColGiga] <= 0 {
			t.Errorf("%s: %+v", e.Name, r)
		}
	}
}

// RunWithoutGPU runs an experiment that needs a GPU where there is none.
func RunWithoutGPU(t *testing.T, e *contest.Experiment) {
	t.Helper()
	s := Interpreted(t, e, 1000, 100)
	UseGPU(t, func() (rig.Device, error) { return nil, rig.ErrNoDriver })
	indextest.UseGPU(t, func(int) (rig.Device, error) { return nil, rig.ErrNoDriver })
	if err := e.Run(s); err != nil || len(s.Rows) > 0 || len(s.Skipped) != 1 {
		t.Errorf("%s: error %v, %d rows, left out %q", e.Name, err, len(s.Rows), s.Skipped)
	}
}
