// Package tree measures a tree that changes, on the CPU: sets, deletes,
// batches, lookups, scans, snapshots and mixes of all.
package tree

import "github.com/pando-index/pando/bench/contest"

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	setRandom, setAscending, deleteExp, setBatch, treeGet, scanExp, treeMemory, writersExp, snapshotExp,
	mixedExp,
}
