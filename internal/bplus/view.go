package bplus

import (
	"sort"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
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
	v := &View[C]{Snapshot: s}
	chains, ok := s.walk(workers)
	if !ok {
		return nil, op.ErrClosed
	}
	leaves := 0
	for i := range chains {
		leaves += len(chains[i].refs)
	}
	highs := make([]C, 0, leaves)
	v.refs, v.first = make([]uint32, 0, leaves), make([]int, 1, leaves+1)
	for i := range chains {
		c := &chains[i]
		v.refs, highs = append(v.refs, c.refs...), append(highs, c.highs...)
		for _, n := range c.sizes {
			v.first = append(v.first, v.first[len(v.first)-1]+n)
		}
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

// CopyOut sets keys and vals to the entries from lo on. Either may be nil. Leaves
// are unpacked where their entries are to be, if they are all wanted and there is
// room.
func (v *View[C]) CopyOut(lo int, n int, keys, vals []C) {
	s := par.Get(v.tree.scratches).ready()
	defer par.Put(v.tree.scratches, s)
	room, done := simd.RegularRoom[C](), 0
	for at := sort.SearchInts(v.first, lo+1) - 1; done < n && at < len(v.refs); at++ {
		if at+1 < len(v.refs) && n-done > room {
			v.tree.leaf(v.refs[at+1]).fetch()
		}
		from := lo + done - v.first[at]
		k := min(v.first[at+1]-v.first[at]-from, n-done)
		if from == 0 && n-done >= room && vals != nil {
			var ks []C
			if keys != nil {
				ks = keys[done : done+room]
			}
			v.read(v.refs[at], func(l leaf[C], _ int) { l.unpackInto(ks, vals[done:done+room]) })
		} else {
			v.read(v.refs[at], func(l leaf[C], _ int) { l.unpackInto(s.run.keys[:room], s.run.vals[:room]) })
			if keys != nil {
				copy(keys[done:done+k], s.run.keys[from:room])
			}
			if vals != nil {
				copy(vals[done:done+k], s.run.vals[from:room])
			}
		}
		done += k
	}
}
