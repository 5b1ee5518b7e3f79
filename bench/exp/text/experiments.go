// Package text measures strings on the CPU, in an index and in maps that
// change.
package text

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	stringsExp, stringsTree, treeGetStrings,
}
