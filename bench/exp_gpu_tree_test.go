package main

import (
	"math"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
)

// gpuTreeRows are the rows of each experiment's first set.
var gpuTreeRows = map[*experiment][]string{
	gpuUpdate:       {namePandoGPUTree, nameByLeaf, nameFlat},
	gpuUpdateShapes: {namePandoGPUTree, nameByLeaf, nameFlat},
	gpuTreeFind:     {namePandoGPUTree + ", loaded", namePandoGPUTree + ", after random inserts", namePandoGPUPairs},
	gpuAggregate:    {namePandoGPUTree + ", loaded, units of 1k", namePandoGPUTree + ", loaded, units of 2k"},
	gpuRadix:        {rowThread, rowTile, rowHost, rowHostTile, rowWidth, rowDirect, rowResident, rowHost},
	gpuRadixHost: {rowHost, rowHostTile, rowHost + ", buckets of 128k", rowHost + ", buckets of 256k", rowHost + ", buckets of 512k", rowThread,
		rowFarResident, rowFarHost, nameCopyLimit},
	gpuRadixLong: {rowLongLeft, rowLongHost, rowLongDevice},
	gpuTreeU32:   {namePandoGPUTree + ", one batch"},
	gpuRadixEndToEnd: {namePandoGPUTree + ", until it returns", namePandoGPUTree + ", until in host memory", namePandoTree + ", CPU",
		namePandoGPUTree + ", until it returns"},
	gpuTreeEndToEnd: {namePandoGPUTree + ", until it returns", namePandoGPUTree + ", until in host memory", namePandoGPUTree + ", until it returns, from a Buffer",
		namePandoGPUTree + ", DeviceOnly", namePandoGPUTree + ", DeviceOnly, from a Buffer", namePandoTree + ", CPU"},
}

// Experiments on the GPU's mutable tree run whole on the interpreter: their own
// checks look at every answer.
func TestGPUTreeExperimentsOnTheInterpreter(t *testing.T) {
	for e, want := range gpuTreeRows {
		t.Run(e.name, func(t *testing.T) { runInterpreted(t, e, want, 40, 33) })
	}
}

// runInterpreted runs an experiment, whose first rows are to be some.
func runInterpreted(t *testing.T, e *experiment, want []string, n, ops int) {
	t.Helper()
	s := interpreted(t, e, n, ops)
	indextest.Interpreted(t, s.seed)
	s.threads, s.rounds = []int{2}, 1
	s.openGPU = func() (device.Device, error) { return ptx.New(ptx.Seed(s.seed), ptx.Memory(256<<20)), nil }
	if err := e.run(s); err != nil {
		t.Fatalf("%s, n %d, %d operations: %v", e.name, n, ops, err)
	}
	got := names(s.rows)
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%s: rows %q, want %q first; left out: %q", e.name, got, want, s.skipped)
	}
	for _, r := range s.rows {
		if r.Best <= 0 || r.Extra[colGiga] <= 0 {
			t.Errorf("%s: %+v", e.name, r)
		}
	}
}

func TestGPUTreeExperimentsWithoutAGPU(t *testing.T) {
	for e := range gpuTreeRows {
		s := interpreted(t, e, 1000, 100)
		s.openGPU = func() (device.Device, error) { return nil, device.ErrNoDriver }
		indextest.UseGPU(t, func(int) (device.Device, error) { return nil, device.ErrNoDriver })
		if err := e.run(s); err != nil || len(s.rows) > 0 || len(s.skipped) != 1 {
			t.Errorf("%s: error %v, %d rows, left out %q", e.name, err, len(s.rows), s.skipped)
		}
	}
}

// A GPU that skips launches must not pass: what its tree then says it needs may
// also be more than there is room for.
func TestLazyGPUTreesAreFoundOut(t *testing.T) {
	run := func(g *lazyGPU) (*session, error) {
		g.Device = ptx.New(ptx.Memory(64 << 20))
		s := interpreted(t, gpuUpdate, 100, 40)
		s.rounds = 1
		s.openGPU = func() (device.Device, error) { return g, nil }
		return s, gpuUpdate.run(s)
	}
	honest := &lazyGPU{few: math.MaxInt}
	if _, err := run(honest); err != nil {
		t.Fatal(err)
	}
	for _, few := range []int{0, honest.launches / 4} {
		if s, err := run(&lazyGPU{few: few}); err == nil && len(s.rows) > 0 {
			t.Errorf("a GPU that stops after %d of %d launches passes", few, honest.launches)
		}
	}
}
