// Package latched measures the figures of a thesis and of Kaczmarek: trees
// with latches and trees of large pages on a GPU, and trees of Go and C++ on
// the same sequences.
package latched

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	dictSearch, dictInsert, gpuDictSearch, gpuDictInsert, gpuLatchedInsert, gpuLatchedHot,
	gpuSingleInsert, gpuPageSize, gpuVisit,
}
