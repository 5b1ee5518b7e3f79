// Package inside is the door to what Pando's public API does not have, on the
// CPU: its trees with other parameters, its schedules, its memory, its
// instruction sets. An experiment that varies such things asks here, so that a
// change inside the library is followed in this package alone. What only one
// group of experiments is about (tries, mirrors, a tree's operations) stays
// with that group.
package inside

import (
	"slices"

	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// CPU is a schedule of the CPU alone, for numbers that are their own codes.
type CPU[W data.Word] struct{ *exec.CPU[W] }

// Searched is a tree that a schedule can search.
type Searched[W data.Word] = exec.Layout[W]

// NewCPU returns a schedule for a tree of n entries.
func NewCPU[W data.Word](tree Searched[W], n, threads int) CPU[W] {
	return CPU[W]{exec.NewCPU(tree, n, threads)}
}

// NewPairsCPU returns a schedule for a tree of pairs.
func NewPairsCPU[W data.Word](tree *Tree[W], threads int) CPU[W] {
	return NewCPU[W](implicit.Paired[W]{Tree: tree}, tree.Len(), threads)
}

// Rank finds the ranks of keys.
func (c CPU[W]) Rank(keys []W, ranks []int) { c.CPU.Rank(order.KeysOf(keys), ranks) }

// GetPairs looks keys up in a tree of pairs.
func (c CPU[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return c.CPU.GetPairs(order.KeysOf(keys), vals, found)
}

// Scheme says how a schedule of the CPU goes through a batch.
type Scheme = exec.Scheme

// The schemes: as the schedule chooses, query by query, and by parts of the tree.
const (
	Auto        = exec.Auto
	Unbuffered  = exec.Unbuffered
	Partitioned = exec.Partitioned
)

// Path is an instruction set that searches nodes.
type Path = simd.Path

// PlainGo is the path without vectors.
const PlainGo = simd.Go

// Paths returns those that this machine has, PlainGo first.
func Paths() []Path { return slices.Clone(simd.Paths()) }

// OnPath makes all threads of a run use a path.
func OnPath(p Path, do func(int) error) func(int) error {
	return func(ops int) error {
		defer simd.Use(p)()
		return do(ops)
	}
}

// Sort sorts keys, and what belongs to them, as a batch of the library is
// sorted. It returns where both are then; the other slices are for its use.
func Sort[W, P data.Word](keys, keysTmp []W, rest, restTmp []P, workers int) ([]W, []P) {
	return order.Sort(keys, keysTmp, rest, restTmp, workers)
}
