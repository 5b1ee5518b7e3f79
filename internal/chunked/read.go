package chunked

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
)

// Snapshot is the tree as it was when the snapshot was taken. Its methods must
// not be called at the same time as each other, or the tree's.
type Snapshot[C order.Code] struct {
	t *Tree[C]
	b *table
}

// Snapshot returns the tree as it is. It costs nothing now; from then on leaves
// that change are copied, until Release.
func (t *Tree[C]) Snapshot() *Snapshot[C] {
	t.held[t.now]++
	return &Snapshot[C]{t, t.now}
}

// Release gives up memory that only the snapshot needs. It must be called once.
func (s *Snapshot[C]) Release() error {
	t := s.t
	if t.held[s.b]--; t.held[s.b] == 0 {
		delete(t.held, s.b)
		if s.b != t.now {
			t.tables = append(t.tables, s.b)
		}
	}
	oldest := t.now.seq
	for b := range t.held {
		oldest = min(oldest, b.seq)
	}
	for len(t.limbo) > 0 && t.limbo[0].seq < oldest {
		l := t.limbo[0]
		if err := t.leaves.give(t.run.Stream, l.leaves, l.leafCount); err != nil {
			return err
		}
		if err := t.chunks.give(t.run.Stream, l.chunks, l.chunkCount); err != nil {
			return err
		}
		if err := t.run.Stream.Synchronize(); err != nil {
			return err
		}
		t.limbo = t.limbo[1:]
		if err := t.dev.Free(l.leaves); err != nil {
			return err
		}
	}
	return nil
}

// Len returns the number of entries.
func (s *Snapshot[C]) Len() int { return s.b.entries }

// Find queues a search for n keys: vals get their values, or 0, and found a bit
// each.
func (s *Snapshot[C]) Find(keys device.Ptr, n int, vals, found device.Ptr) error {
	return s.t.run.Find(&s.b.version, keys, n, vals, found)
}

// Find queues a search for n keys: vals get their values, or 0, and found a bit
// each.
func (t *Tree[C]) Find(keys device.Ptr, n int, vals, found device.Ptr) error {
	return t.run.Find(&t.now.version, keys, n, vals, found)
}

// FindIn is Find in another stream than the tree's, after Wait. Nothing may change
// the tree until it is done.
func (t *Tree[C]) FindIn(st device.Stream, keys device.Ptr, n int, vals, found device.Ptr) error {
	return t.findIn(st, t.now, keys, n, vals, found)
}

// FindIn is Find in another stream than the tree's, after Wait. Nothing may change
// the tree until it is done.
func (s *Snapshot[C]) FindIn(st device.Stream, keys device.Ptr, n int, vals, found device.Ptr) error {
	return s.t.findIn(st, s.b, keys, n, vals, found)
}

// findIn is FindIn of a version. The host has seen its table complete: there is
// nothing that the stream must wait for.
func (t *Tree[C]) findIn(st device.Stream, b *table, keys device.Ptr, n int, vals, found device.Ptr) error {
	run := t.run
	run.Stream = st
	return run.Find(&b.version, keys, n, vals, found)
}

// Rank queues the search for the ranks (u32) of n keys: the number of entries
// below each, or up to it where after is true.
func (t *Tree[C]) Rank(keys device.Ptr, n int, after bool, ranks device.Ptr) error {
	return t.run.Rank(&t.now.version, keys, n, after, ranks)
}

// Entries queues a copy of runs of entries: run r begins with entry first[r] of
// the tree, and with entry offsets[r] of the result, which has n in all (u32).
func (t *Tree[C]) Entries(first, offsets device.Ptr, ranges, n int, keys, vals device.Ptr) error {
	return t.run.Entries(&t.now.version, first, offsets, ranges, n, keys, vals)
}

// Vectors queues work on the tree's values, by kernels of a set that has them: see
// kernel.Vectors.
func (t *Tree[C]) Vectors(set *kernel.Set, v *kernel.Vectors) error {
	return t.run.Values(set, &t.now.version, v)
}

// Stream returns the stream in which all of the tree's work is done, but for
// FindIn.
func (t *Tree[C]) Stream() device.Stream { return t.run.Stream }
