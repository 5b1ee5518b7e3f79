// Package store measures the tree that outlives its process, beside other stores and beside
// what the disk itself gives: its writes, its syncs, its reads.
package store

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{storeSet, storeBatch, storeRecover, storeCheckpoint}
