// Package fast measures the figures of the FAST paper on the CPU, and the
// layouts that came of it.
package fast

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	keyEntropy, keySize, fastSteps, fastSizes, fastBuild, responseTime, layouts, packedDistance,
}
