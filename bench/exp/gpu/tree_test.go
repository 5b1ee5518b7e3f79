package gpu

import (
	"math"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
	"github.com/pando-index/pando/internal/device/ptx"
)

// gpuTreeRows are the rows of each experiment's first set.
var gpuTreeRows = map[*contest.Experiment][]string{
	gpuUpdate:       {ours.NameGPUTree, nameByLeaf, nameFlat},
	gpuUpdateShapes: {ours.NameGPUTree, nameByLeaf, nameFlat},
	gpuTreeFind:     {ours.NameGPUTree + ", loaded", ours.NameGPUTree + ", after random inserts", ours.NameGPUPairs},
	gpuAggregate:    {ours.NameGPUTree + ", loaded, units of 1k", ours.NameGPUTree + ", loaded, units of 2k"},
	gpuTreeU32:      {ours.NameGPUTree + ", one batch"},
	gpuTreeEndToEnd: {ours.NameGPUTree + ", until it returns", ours.NameGPUTree + ", until in host memory", ours.NameGPUTree + ", until it returns, from a Buffer",
		ours.NameGPUTree + ", DeviceOnly", ours.NameGPUTree + ", DeviceOnly, from a Buffer", ours.NameTree + ", CPU"},
}

// Experiments on the GPU's mutable tree run whole on the interpreter: their own
// checks look at every answer.
func TestGPUTreeExperimentsOnTheInterpreter(t *testing.T) {
	for e, want := range gpuTreeRows {
		t.Run(e.Name, func(t *testing.T) { rigtest.RunInterpreted(t, e, want, 40, 33) })
	}
}

func TestGPUTreeExperimentsWithoutAGPU(t *testing.T) {
	for e := range gpuTreeRows {
		rigtest.RunWithoutGPU(t, e)
	}
}

// A GPU that skips launches must not pass: what its tree then says it needs may
// also be more than there is room for.
func TestLazyGPUTreesAreFoundOut(t *testing.T) {
	run := func(g *rigtest.LazyGPU) (*contest.Session, error) {
		g.Device = ptx.New(ptx.Memory(64 << 20))
		s := rigtest.Interpreted(t, gpuUpdate, 100, 40)
		s.Rounds = 1
		rigtest.UseGPU(t, func() (rig.Device, error) { return g, nil })
		return s, gpuUpdate.Run(s)
	}
	honest := &rigtest.LazyGPU{Few: math.MaxInt}
	if _, err := run(honest); err != nil {
		t.Fatal(err)
	}
	for _, few := range []int{0, honest.Launches / 4} {
		if s, err := run(&rigtest.LazyGPU{Few: few}); err == nil && len(s.Rows) > 0 {
			t.Errorf("a GPU that stops after %d of %d launches passes", few, honest.Launches)
		}
	}
}
