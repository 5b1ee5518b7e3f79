package index

import (
	"fmt"

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
	tree := ix.Engine.Body().Stats()
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
	ix.Engine.Report(&s)
	if s.Device.Kind != CPU && ix.holder == nil && ix.values.KeptSize() == 0 && !ix.values.Empty() {
		s.Reason += "; the host gathers values"
	}
	return s
}

// Words returns the figures in a few words: "1000 entries, pairs, 18.0 KiB, cpu".
func (s Stats) Words() string {
	entries := "entries"
	if s.Len == 1 {
		entries = "entry"
	}
	return fmt.Sprintf("%d %s, %s, %s, %v", s.Len, entries, s.Layout, inBytes(s.TotalBytes), s.Device)
}

// inBytes returns a number of bytes in the unit that leaves few digits.
func inBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/(1<<10), 0
	for ; size >= 1000 && unit < 4; unit++ {
		size /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[unit])
}
