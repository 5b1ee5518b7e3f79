package radix

import "strings"

// rank returns the number of entries below a link with a key below key, or up to
// key where after is true.
func (t *Tree) rank(root link, key string, after bool) (n int64) {
	// What the key has in common with compressed paths shows in a leaf.
	k := t.key(t.near(root, key))
	at := common(k, key)
	l := root
	for l.isInner() {
		h := l.header()
		d := int(h.depth)
		if d > at {
			if byteAt(k, at) < byteAt(key, at) {
				n += entriesOf(l)
			}
			return n
		}
		own := load(&h.own) != 0
		if d >= len(key) {
			if own && after {
				n++
			}
			return n
		}
		if own {
			n++
		}
		b := int(key[d])
		n += countBelow(l, b)
		l = child(l, b)
	}
	if l == 0 {
		return n
	}
	if order := strings.Compare(t.key(l), key); order < 0 || order == 0 && after {
		n++
	}
	return n
}

// near returns a leaf below a link that has as many bytes in common with a key as any,
// if it is one of those that the key's own bytes lead to.
func (t *Tree) near(l link, key string) link {
	for l.isInner() && int(l.header().depth) <= len(key) {
		next := child(l, byteAt(key, int(l.header().depth)))
		if next == 0 {
			break
		}
		l = next
	}
	return t.anyLeaf(l)
}

// atRank returns the leaf of entry i below a link, 0 if there are not so many.
func atRank(l link, i int64) link {
	for l.isInner() {
		b := -1
		if l.kind() == node256 && (load(&l.header().own) == 0 || i > 0) {
			b, i = skipSums((*inner256)(l.at()), i)
		}
		var next link
		for b, next = atOrAfter(l, b); next != 0; b, next = atOrAfter(l, b+1) {
			n := entriesOf(next)
			if i < n {
				break
			}
			i -= n
		}
		l = next
	}
	if i != 0 {
		return 0
	}
	return l
}

// skipSums returns the byte from which on entry i of a node is to be looked for,
// and its number from there on.
func skipSums(n *inner256, i int64) (int, int64) {
	if load(&n.own) != 0 {
		i--
	}
	for at, sum := range n.sums[:15] {
		if i < int64(sum) {
			return 16 * at, i
		}
		i -= int64(sum)
	}
	return 240, i
}

// Rank returns the number of entries with a key below key, or up to key where
// after is true: exactly, if nobody writes meanwhile.
func (t *Tree) Rank(key string, after bool) int {
	t.lockRead()
	defer t.unlockRead()
	defer acquiredAll(t)
	for {
		gen := t.Gen()
		n := t.rank(load(&t.top.link), key, after)
		if t.Current(gen) || t.closed.Load() {
			return int(n)
		}
	}
}

// At returns entry i in key order, and false if there are not so many: exactly, if
// nobody writes meanwhile.
func (t *Tree) At(i int) (key string, val uint64, ok bool) {
	const tries = 8
	for range tries {
		if key, val, ok = t.tryAt(i); ok || i >= t.Len() {
			return key, val, ok
		}
	}
	t.lockWrite() // counts were met between two changes, each time
	defer t.unlockWrite()
	return t.entry(atRank(t.top.link, int64(i)))
}

func (t *Tree) tryAt(i int) (key string, val uint64, ok bool) {
	t.lockRead()
	defer t.unlockRead()
	defer acquiredAll(t)
	for {
		gen := t.Gen()
		key, val, ok = t.entry(atRank(load(&t.top.link), int64(i)))
		if t.Current(gen) || t.closed.Load() {
			return key, val, ok
		}
	}
}

// entry returns what a leaf has, the key copied; false for no leaf.
func (t *Tree) entry(l link) (key string, val uint64, ok bool) {
	if l == 0 {
		return "", 0, false
	}
	val, _ = end{leaf: l}.value()
	return strings.Clone(t.key(l)), val, true
}

// The methods of a Snapshot are those of the tree at its moment.

// Len returns the number of entries.
func (s *Snapshot) Len() int { return int(s.moment.entries) }

// Rank returns the number of entries with a key below key, or up to key where
// after is true.
func (s *Snapshot) Rank(key string, after bool) int {
	return int(s.tree.rank(s.moment.root, key, after))
}

// At returns entry i in key order; the key is copied.
func (s *Snapshot) At(i int) (key string, val uint64, ok bool) {
	return s.tree.entry(atRank(s.moment.root, int64(i)))
}

// AppendKey appends key i to dst.
func (s *Snapshot) AppendKey(dst []byte, i int) []byte {
	if l := atRank(s.moment.root, int64(i)); l != 0 {
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
