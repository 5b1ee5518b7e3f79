package bplus

import (
	"sort"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// View reads a snapshot by rank as well as by key. Making one goes once through
// all leaves: the upper nodes of the tree have changed since, so a view has a
// directory of its own, an implicit tree over the leaves' high keys.
type View[C Code] struct {
	*Snapshot[C]
	refs  []uint32
	first []int // rank of the first entry of each leaf, and the number of all
	dir   layout.Tree[C]
}

// View returns a view of the snapshot.
func (s *Snapshot[C]) View(workers int) (*View[C], error) {
	v := &View[C]{Snapshot: s, first: []int{0}}
	var highs []C
	for x := s.tree.first; x != nothing; {
		var n int
		var high C
		var next uint32
		s.read(x, func(l leaf[C], entries int) { n, high, next = entries, l.high(), l.info().next })
		if s.closed.Load() {
			return nil, ErrClosed
		}
		v.refs, highs = append(v.refs, x), append(highs, high)
		v.first = append(v.first, v.first[len(v.first)-1]+n)
		x = next
	}
	dir, err := implicit.Layout[C]{}.Build(layout.Source[C]{Len: len(highs), Codes: highs}, layout.Config{Workers: workers, Pages: arena.Small})
	if err != nil {
		return nil, err
	}
	v.dir = dir
	return v, nil
}

// Len returns the number of entries.
func (v *View[C]) Len() int { return v.first[len(v.refs)] }

// Bytes returns the memory of the directory.
func (v *View[C]) Bytes() int64 { return v.dir.Stats().TotalBytes + int64(12*len(v.refs)) }

// Release gives back the directory and the snapshot.
func (v *View[C]) Release() {
	v.Close()
	v.dir.Release()
}

// Rank sets ranks[i] to the number of entries below keys[i], or up to it.
func (v *View[C]) Rank(keys []C, after bool, ranks []int) {
	v.dir.Rank(keys, ranks)
	for i, key := range keys {
		at := min(ranks[i], len(v.refs)-1)
		n := 0
		v.read(v.refs[at], func(l leaf[C], _ int) { n = l.rankAt(key, after) })
		ranks[i] = v.first[at] + n
	}
}

// Seek returns the number of entries below key, and the entry there if it has
// the key.
func (v *View[C]) Seek(key C) (rank int, val C, equal bool) {
	at, _ := v.dir.Seek(key)
	at = min(at, len(v.refs)-1)
	v.read(v.refs[at], func(l leaf[C], _ int) {
		rank = v.first[at] + l.rankAt(key, false)
		val, equal = valueIn(l.line(l.lineOf(key)), key)
	})
	return rank, val, equal
}

// Get sets vals[i] to the value of keys[i], or to 0, and found[i] to whether
// there is one.
func (v *View[C]) Get(keys, vals []C, found []bool, ranks []int) (hits int) {
	v.dir.Rank(keys, ranks)
	for i, key := range keys {
		v.read(v.refs[min(ranks[i], len(v.refs)-1)], func(l leaf[C], _ int) {
			vals[i], found[i] = valueIn(l.line(l.lineOf(key)), key)
		})
		if found[i] {
			hits++
		}
	}
	return hits
}

// lineOf returns the line that a key belongs to.
func (l leaf[C]) lineOf(key C) int {
	r := simd.Regular{Pilots: l.pilot}
	_, line, _ := simd.SeekRegular(&r, key)
	return min(line, lines-1)
}

// rankAt returns the number of entries of a leaf below key, or up to it.
func (l leaf[C]) rankAt(key C, after bool) int {
	if l.high() < key {
		n := 0
		for j := range lines {
			n += l.entries(j)
		}
		return n
	}
	return l.rank(key, after)
}

// CopyOut sets keys and vals to the entries from lo on. Either may be nil.
func (v *View[C]) CopyOut(lo int, n int, keys, vals []C) {
	s := v.tree.scratches.Get().ready()
	defer v.tree.scratches.Put(s)
	at := sort.SearchInts(v.first, lo+1) - 1
	for done := 0; done < n && at < len(v.refs); at++ {
		v.read(v.refs[at], func(l leaf[C], _ int) {
			s.run.clear()
			l.unpack(&s.run)
		})
		from := min(max(lo+done-v.first[at], 0), len(s.run.keys))
		k := min(len(s.run.keys)-from, n-done)
		if keys != nil {
			copy(keys[done:done+k], s.run.keys[from:])
		}
		if vals != nil {
			copy(vals[done:done+k], s.run.vals[from:])
		}
		done += k
	}
}
