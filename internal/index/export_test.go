package index

import (
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
)

// AutoEntries is the size from which on Auto looks for a GPU.
const AutoEntries = autoEntries

// ImageOf returns the tree of an index with 64-bit keys as it is copied to a
// device.
func ImageOf(ix *Index) layout.Image {
	return ix.engine.(*withValues[uint64]).tree.(layout.OnDevice).Image()
}

// GPUOf returns how such an index runs on its GPU.
func GPUOf(ix *Index) *exec.GPU[uint64] {
	return ix.engine.(*withValues[uint64]).gpu.(*exec.GPU[uint64])
}

// SetLeast sets the batch from which on such an index uses its GPU.
func SetLeast(ix *Index, least int) { ix.engine.(*withValues[uint64]).least = least }
