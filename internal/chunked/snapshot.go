package chunked

import (
	"github.com/pando-index/pando/internal/device"
)

// Rank queues the search for the ranks of n keys: see Tree.Rank.
func (s *Snapshot[C]) Rank(keys device.Ptr, n int, after bool, ranks device.Ptr) error {
	return s.t.run.Rank(&s.b.version, keys, n, after, ranks)
}

// Entries queues a copy of runs of entries: see Tree.Entries.
func (s *Snapshot[C]) Entries(first, offsets device.Ptr, ranges, n int, keys, vals device.Ptr) error {
	return s.t.run.Entries(&s.b.version, first, offsets, ranges, n, keys, vals)
}

// Kept returns the bytes of leaves and chunks that only snapshots need.
func (t *Tree[C]) Kept() (bytes int64) {
	for _, l := range t.limbo {
		bytes += int64(l.leafCount)*int64(t.leaves.slot) + int64(l.chunkCount)*int64(t.chunks.slot)
	}
	return bytes
}
