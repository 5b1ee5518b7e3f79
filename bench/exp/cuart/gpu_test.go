package cuart

import (
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
)

// gpuRadixRows are the rows of each experiment's first set.
var gpuRadixRows = map[*contest.Experiment][]string{
	gpuRadix: {rowThread, rowTile, rowHost, rowHostTile, rowWidth, rowDirect, rowResident, rowHost},
	gpuRadixHost: {rowHost, rowHostTile, rowHost + ", buckets of 128k", rowHost + ", buckets of 256k", rowHost + ", buckets of 512k", rowThread,
		rowFarResident, rowFarHost, rig.NameCopyLimit},
	gpuRadixLong: {rowLongLeft, rowLongHost, rowLongDevice},
	gpuRadixEndToEnd: {ours.NameGPUTree + ", until it returns", ours.NameGPUTree + ", until in host memory", ours.NameTree + ", CPU",
		ours.NameGPUTree + ", until it returns"},
}

// Experiments on the GPU's radix tree run whole on the interpreter: their own
// checks look at every answer.
func TestGPURadixExperimentsOnTheInterpreter(t *testing.T) {
	for e, want := range gpuRadixRows {
		t.Run(e.Name, func(t *testing.T) { rigtest.RunInterpreted(t, e, want, 40, 33) })
	}
}

func TestGPURadixExperimentsWithoutAGPU(t *testing.T) {
	for e := range gpuRadixRows {
		rigtest.RunWithoutGPU(t, e)
	}
}
