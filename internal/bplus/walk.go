package bplus

import (
	"slices"
	"sort"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// The leaves of a snapshot are found along the side links of its moment, from
// one to the next: each step waits for memory. So they are walked in many chains
// at once. A chain begins at a leaf that the tree has now and had then, which its
// epoch of birth tells, and ends where the next one begins: a leaf begins above
// the same key for as long as it lives, so that chains are in the same order then
// and now.

const (
	// chainsAtOnce is the number of chains that a worker walks in turn.
	chainsAtOnce = 8
	// mostChains is about the number of chains in a large tree.
	mostChains = 512
)

// chain is leaves of a snapshot, one after the other.
type chain[C Code] struct {
	low   C      // the first leaf begins above
	at    uint32 // leaf to be read next
	until uint32 // the leaf that the next chain begins with; nothing for the last
	refs  []uint32
	highs []C
	sizes []int
}

// walk returns all leaves of the snapshot in chains, in key order. It returns
// false if the snapshot was closed.
func (s *Snapshot[C]) walk(workers int) ([]chain[C], bool) {
	chains := s.chains()
	groups := (len(chains) + chainsAtOnce - 1) / chainsAtOnce
	par.Run(workers, groups, par.Func(func(g int) {
		left := chains[g*chainsAtOnce : min((g+1)*chainsAtOnce, len(chains))]
		for more := true; more; {
			more = false
			for i := range left {
				if c := &left[i]; c.at != c.until && !s.closed.Load() {
					s.follow(c)
					more = true
				}
			}
		}
	}))
	return chains, !s.closed.Load()
}

// follow reads the next leaf of a chain, and prefetches the one after it.
func (s *Snapshot[C]) follow(c *chain[C]) {
	var n int
	var high C
	var next uint32
	s.readPilot(c.at, func(l leaf[C], entries int) { n, high, next = entries, l.high(), l.info().next })
	c.refs, c.highs, c.sizes = append(c.refs, c.at), append(c.highs, high), append(c.sizes, n)
	if c.at = next; next != nothing && !s.closed.Load() {
		l := s.tree.leaf(next)
		simd.Fetch(l.pilot, 2)
		simd.Fetch(l.sepLine(lines/(simd.LineBytes/width[C]())-1), 1)
	}
}

// chains returns chains that begin at leaves of the snapshot which are still part
// of the tree, the first at its first leaf.
func (s *Snapshot[C]) chains() []chain[C] {
	t := s.tree
	t.rw.RLock()
	defer t.rw.RUnlock()
	all := []chain[C]{{at: t.first}}
	for _, key := range t.someKeys(mostChains) {
		gen := t.Gen()
		x, _, word := t.seek(key)
		l := t.leaf(x)
		in := *l.info()
		// The snapshot keeps the memory of a tree that was closed, whose generations are never
		// current: it is enough that none has ended meanwhile.
		if l.loadWord() == word && t.Gen()-gen <= 1 && in.owner == t.id && in.first == 0 && in.born <= s.moment.epoch {
			all = append(all, chain[C]{low: C(in.low), at: x})
		}
	}
	// Leaves may have been merged between two searches.
	rest := all[1:]
	sort.Slice(rest, func(i, j int) bool { return rest[i].low < rest[j].low }) // slices' is 16 kB of code for each type
	all = slices.CompactFunc(all, func(a, b chain[C]) bool { return a.at == b.at })
	for i := range all {
		if all[i].until = nothing; i+1 < len(all) {
			all[i].until = all[i+1].at
		}
	}
	return all
}

// someKeys returns about n keys that part the tree in about equal parts, or as
// many as there are: separators of the first level of upper nodes that has enough.
func (t *Tree[C]) someKeys(n int) (keys []C) {
	t.structure.Lock()
	defer t.structure.Unlock()
	root := t.root.Load()
	level := []uint32{uint32(root)}
	for h := root >> 32; h > 0 && len(keys) < n; h-- {
		var below []uint32
		keys = keys[:0]
		for _, y := range level {
			u := t.upper(y)
			k := u.info().children
			keys, below = append(keys, u.seps()[:k]...), append(below, u.refs()[:k]...)
		}
		level = below
	}
	stride, some := max(1, len(keys)/n), keys[:0]
	for i := stride - 1; i < len(keys)-1; i += stride { // the last is the greatest of all
		some = append(some, keys[i])
	}
	return some
}
