package index

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/simd"
)

// Stats describes the parts of an index and where it runs.
type Stats struct {
	Len     int
	Device  Device
	Reason  string // why there, in words
	Path    string // instructions used on the CPU
	Layout  string
	Levels  int
	Fanout  int
	Workers int
	Pages   arena.Pages

	InnerBytes, LeafBytes, ValueBytes, DeviceBytes, HeapBytes, TotalBytes int64

	KeptBytes int64 // of a tree that changes: old states that snapshots need
}

// describe sets the fields of Stats for an index in memory.
func (ix *Index) describe(cfg Config) {
	tree := ix.Body().Stats()
	s := &ix.stats
	*s = Stats{
		Len: ix.n, Path: simd.Active().String(), Layout: string(tree.Kind), Levels: tree.Levels, Fanout: tree.Fanout,
		Workers: ix.workers, Pages: cfg.Pages,
		InnerBytes: tree.InnerBytes, LeafBytes: tree.LeafBytes, ValueBytes: tree.ValueBytes,
	}
	if tree.OnHeap {
		s.HeapBytes, s.InnerBytes, s.LeafBytes = tree.TotalBytes, 0, 0
	}
	heap, off := ix.values.footprint()
	s.HeapBytes += heap
	s.ValueBytes += off
	s.TotalBytes = tree.TotalBytes + heap + off
}

// Stats describes the index.
func (ix *Index) Stats() Stats {
	s := ix.stats
	ix.Report(&s)
	return s
}
