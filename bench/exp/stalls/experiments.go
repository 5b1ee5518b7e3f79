// Package stalls measures how long one operation holds up another: stops of
// the world, and waits of single calls.
package stalls

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	stopsExp, waitsExp,
}
