// Package hbplus measures the other figures of the HB+-tree paper: searches in
// a node, pipelines, fanouts, updates and rebuilds.
package hbplus

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	nodeSearch, pipelineLength, fanout, updateWays, updateBatches, rebuildExp, updateMix,
}
