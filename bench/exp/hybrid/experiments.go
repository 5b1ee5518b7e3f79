// Package hybrid measures CPU and GPU that share the work, as the HB+-tree
// paper has it.
package hybrid

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	hybridWays, hybridBuckets, hybridSkew, hybridSizes, hybridRanges, hybridBalance, hybridCapped,
	batcherExp,
}
