// Package ranges measures ranges of keys on the CPU: batches of them, and one
// a call.
package ranges

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	rangeQueries, rangeIter,
}
