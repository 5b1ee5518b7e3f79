package pando

import (
	"slices"

	"github.com/pando-index/pando/internal/index"
)

// Stats describes the parts of an index and where it runs.
type Stats struct {
	Len    int        // entries
	Device Device     // where batches run
	Reason string     // why there, in words
	Path   string     // instructions used on the CPU: "AVX-512", "AVX2" or "Go"
	Layout LayoutKind // how keys and values lie in memory
	Levels int        // inner levels of the tree; a lookup reads one cache line in each, and one leaf
	Fanout int        // children of an inner node

	Workers int      // most goroutines that a batch uses
	Pages   PageMode // pages asked for

	InnerBytes  int64 // inner nodes, off the Go heap
	LeafBytes   int64 // leaves, off the Go heap
	ValueBytes  int64 // column of values, off the Go heap
	DeviceBytes int64 // memory on a GPU
	HeapBytes   int64 // Go memory: strings, values with pointers
	KeptBytes   int64 // of a Tree: old states that snapshots need, among LeafBytes, or DeviceBytes with DeviceOnly
	TotalBytes  int64 // all of it, with padding
}

// Stats describes the index.
func (f *Frozen[K, V]) Stats() Stats { return stats(f.c.Stats()) }

// stats returns the figures of package index under their public names.
func stats(s index.Stats) Stats {
	return Stats{
		Len: s.Len, Device: Device{s.Device}, Reason: s.Reason, Path: s.Path, Layout: layoutNamed(s.Layout),
		Levels: s.Levels, Fanout: s.Fanout, Workers: s.Workers, Pages: PageMode(slices.Index(pageModes[:], s.Pages)),
		InnerBytes: s.InnerBytes, LeafBytes: s.LeafBytes, ValueBytes: s.ValueBytes,
		DeviceBytes: s.DeviceBytes, HeapBytes: s.HeapBytes, KeptBytes: s.KeptBytes, TotalBytes: s.TotalBytes,
	}
}
