// Package cuart measures the figures of the CuART paper: radix trees of
// strings on CPU and GPU.
package cuart

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	cuartLayout, cuartBatches, cuartThreads, cuartSizes, cuartKeys, cuartReal, cuartLong, cuartUpdates,
	cuartRoot, radixWide, gpuRadix, gpuRadixHost, gpuRadixLong, gpuRadixEndToEnd,
}
