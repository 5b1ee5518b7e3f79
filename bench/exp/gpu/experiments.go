// Package gpu measures numbers and strings on a GPU: the immutable index, and
// the tree that changes.
package gpu

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	gpuRankU32, gpuPointU64, gpuEndToEnd, gpuUpdate, gpuUpdateShapes, gpuTreeFind, gpuTreeU32,
	gpuTreeEndToEnd, gpuAggregate, gpuLayouts, gpuStrings,
}
