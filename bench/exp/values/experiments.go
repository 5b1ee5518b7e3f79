// Package values measures maps of strings to slices of bytes: time, resident memory, and what
// the garbage collector takes.
package values

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	valuesExp, memoryExp, wavesExp,
}
