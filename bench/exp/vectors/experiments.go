// Package vectors measures operations over the values of a range on the CPU.
package vectors

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	aggregateExp, transformExp, histogramExp, selectExp,
}
