package radix

import (
	"strings"
	"sync/atomic"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// rank returns the number of entries below a link with a key below key, or up to
// key where after is true, and false if it has met a node that is not counted.
func (t *Tree) rank(root link, key string, after bool) (n int64, ok bool) {
	// A leaf shows how many bytes the key has in common with compressed paths.
	k := t.key(t.near(root, key))
	at := simd.CommonPrefix(k, key)
	l := root
	for l.isInner() {
		h := l.header()
		d := int(h.depth)
		if d > at {
			if simd.ByteAt(k, at) < simd.ByteAt(key, at) {
				all, ok := entriesOf(l)
				return n + all, ok
			}
			return n, true
		}
		own := load(&h.own) != 0
		if d >= len(key) {
			if own && after {
				n++
			}
			return n, true
		}
		if own {
			n++
		}
		b := int(key[d])
		before, ok := countBelow(l, b)
		if !ok {
			return 0, false
		}
		n += before
		l = child(l, b)
	}
	if l == 0 {
		return n, true
	}
	if order := strings.Compare(t.key(l), key); order < 0 || order == 0 && after {
		n++
	}
	return n, true
}

// near returns a leaf below a link that has as many bytes in common with a key as any,
// if it is one of those that the key's own bytes lead to.
func (t *Tree) near(l link, key string) link {
	for l.isInner() && int(l.header().depth) <= len(key) {
		next := child(l, simd.ByteAt(key, int(l.header().depth)))
		if next == 0 {
			break
		}
		l = next
	}
	return anyLeaf(l)
}

// atRank returns the leaf of entry i below a link, 0 if there is none. It returns
// false if it has met a node that is not counted.
func atRank(l link, i int64) (leaf link, ok bool) {
	for l.isInner() {
		b := -1
		if l.kind() == node256 && (load(&l.header().own) == 0 || i > 0) {
			if b, i, ok = skipSums((*inner256)(l.at()), i); !ok {
				return 0, false
			}
		}
		var next link
		for b, next = atOrAfter(l, b); next != 0; b, next = atOrAfter(l, b+1) {
			n, ok := entriesOf(next)
			if !ok {
				return 0, false
			}
			if i < n {
				break
			}
			i -= n
		}
		l = next
	}
	if i != 0 {
		return 0, true
	}
	return l, true
}

// skipSums returns the byte from which on entry i of a node is to be looked for,
// and its number from there on.
func skipSums(x *inner256, i int64) (b int, rest int64, ok bool) {
	if load(&x.own) != 0 {
		i--
	}
	for group := range 15 {
		sum, ok := sumOf(x, group)
		if !ok {
			return 0, 0, false
		}
		if i < sum {
			return 16 * group, i, true
		}
		i -= sum
	}
	return 240, i, true
}

// Rank returns the number of entries with a key below key, or up to key where
// after is true: exactly, if nobody writes meanwhile.
func (t *Tree) Rank(key string, after bool) int {
	defer t.edges.AcquireAll()
	n, ok := t.tryRank(key, after)
	if !ok {
		t.whenCounted(func(root link) { n, _ = t.rank(root, key, after) })
	}
	return int(n)
}

// tryRank is Rank by the counts as they are.
func (t *Tree) tryRank(key string, after bool) (n int64, ok bool) {
	t.rw.RLock()
	defer t.rw.RUnlock()
	for {
		gen := t.Gen()
		n, ok = t.rank(load(&t.top.link), key, after)
		if t.Current(gen) || t.Closed() {
			return n, ok
		}
	}
}

// At returns entry i in key order, and false if there is none. It is exact if no
// writer runs meanwhile.
func (t *Tree) At(i int) (key string, val uint64, ok bool) {
	defer t.edges.AcquireAll()
	key, val, ok, sure := t.tryAt(i)
	if !sure {
		t.whenCounted(func(root link) {
			l, _ := atRank(root, int64(i))
			key, val, ok = t.entry(l)
		})
	}
	return key, val, ok
}

// tryAt is At by the counts as they are. sure is false if these do not say.
func (t *Tree) tryAt(i int) (key string, val uint64, ok, sure bool) {
	t.rw.RLock()
	defer t.rw.RUnlock()
	for {
		gen := t.Gen()
		l, counted := atRank(load(&t.top.link), int64(i))
		key, val, ok = t.entry(l)
		if t.Current(gen) || t.Closed() {
			return key, val, ok, counted && (ok || i >= t.Len() || t.Closed())
		}
	}
}

// entry returns the entry of a leaf, the key copied; false for no leaf.
func (t *Tree) entry(l link) (key string, val uint64, ok bool) {
	if l == 0 {
		return "", 0, false
	}
	return strings.Clone(t.key(l)), atomic.LoadUint64(&l.leaf().value), true
}

// The methods of a Snapshot are those of the tree at its moment.

// Len returns the number of entries.
func (s *Snapshot) Len() int { return int(s.moment.entries) }

// Rank returns the number of entries with a key below key, or up to key where
// after is true.
func (s *Snapshot) Rank(key string, after bool) int {
	n, _ := s.tree.rank(s.counted(), key, after)
	return int(n)
}

// counted returns the root, below which all is counted: on all cores, the first time.
func (s *Snapshot) counted() link {
	root := s.moment.root
	if _, ok := entriesOf(root); !ok {
		parts := uncounted(root)
		par.Run(s.tree.Workers, len(parts), par.Func(func(p int) { s.countAll(parts[p]) }))
		s.countAll(root)
	}
	return root
}

// countAll counts the nodes below a link, a piece at a time, so that no writer waits long for the
// desk. Pieces grow where nodes are so deep that a piece would not come to an end.
func (s *Snapshot) countAll(l link) {
	for left, pieces := countPiece, 1; !s.countSome(l, left); pieces++ {
		if pieces%8 == 0 {
			left *= 2
		}
	}
}

// countSome counts some nodes below a link, and reports whether all are counted. It does so from
// a desk, since a snapshot is closed only while all desks are taken: as long as it is not, no
// writer changes the nodes that it shares with the tree. Counts that were stored later would be
// the tree's, and wrong.
func (s *Snapshot) countSome(l link, left int) bool {
	d := s.tree.enter()
	defer s.tree.leave(d)
	if s.moment.closed.Load() {
		return true
	}
	c := counter{left}
	_, ok := c.count(l)
	return ok
}

// uncounted returns nodes below a link that are not counted, and that have no others above them but a few.
func uncounted(root link) []link {
	const enough = 1 << 10
	here := []link{root}
	for {
		var below []link
		for _, l := range here {
			for b, to := atOrAfter(l, -1); to != 0; b, to = atOrAfter(l, b+1) {
				if _, ok := entriesOf(to); !ok {
					below = append(below, to)
				}
			}
		}
		if len(below) == 0 || len(here) >= enough {
			return here
		}
		here = below
	}
}

// leafAt returns the leaf of entry i, 0 if there is none.
func (s *Snapshot) leafAt(i int) link {
	l, _ := atRank(s.counted(), int64(i))
	return l
}

// At returns entry i in key order; the key is copied.
func (s *Snapshot) At(i int) (key string, val uint64, ok bool) { return s.tree.entry(s.leafAt(i)) }

// AppendKey appends key i to dst.
func (s *Snapshot) AppendKey(dst []byte, i int) []byte {
	if l := s.leafAt(i); l != 0 {
		dst = append(dst, s.tree.key(l)...)
	}
	return dst
}

// Get returns the value of key, and reports whether there is one.
func (s *Snapshot) Get(key string) (val uint64, ok bool) {
	l := s.moment.root
	for l.isInner() {
		l, _ = through(l, key)
	}
	return s.tree.valueOf(l, key)
}
