package index

import (
	"reflect"

	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
)

// This file is for the tests of this package, which are outside of it: inside, the whole
// package would be compiled once more for them, which takes longer than they do. No program
// links it.

// ImageOf returns the tree of an index with 64-bit keys as it is copied to a
// device.
func ImageOf(ix *Index) layout.Image {
	return ix.Engine.(*withValues[uint64]).tree.(layout.OnDevice).Image()
}

// UsePlan has such an index run on its GPU in a given way.
func UsePlan(ix *Index, p exec.Plan) error {
	return ix.Engine.(*withValues[uint64]).gpu.(*exec.GPU[uint64]).Use(p)
}

// SetLeast sets the batch from which on such an index uses its GPU.
func SetLeast(ix *Index, least int) { ix.Engine.(*withValues[uint64]).least = least }

// TypeName is how files name a type.
func TypeName(t reflect.Type) string { return typeName(t, nil) }
