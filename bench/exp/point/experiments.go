// Package point measures lookups of single keys in an immutable index, on the
// CPU: batches and single calls, beside every peer, and how an index is built
// and how much memory it takes.
package point

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	pointU64, pointU32, rankU32, singleGet, build, memory, pages, skew, threadsExp, layoutExp,
}
