package radix

import (
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/shortcut"
)

// Writers keep the entries of the root table (package shortcut) true: before a top is taken
// out of the tree, or another node put above it, it is taken out of the table; so a search
// that looks there after a link was exchanged finds the new one, or none. All of that is done
// while the node that has the link to the top is locked. docs/radix.md has the whole argument.

// unhint takes a link out of the table, where a key's is, before it is taken out of the tree or
// something is put above it. parent is the node above it.
func (w *writer) unhint(key string, parent, l link) {
	if mutant.On && mutant.Is("radix: shortcut out first") {
		w.late = append(w.late, func() { w.unhintNow(key, parent, l) })
		return
	}
	w.unhintNow(key, parent, l)
}

func (w *writer) unhintNow(key string, parent, l link) {
	s := w.t.short.Load()
	if s == nil || w.t.forked || belowTops(s, parent) {
		return
	}
	if x, _ := s.Place(key); x != nil {
		x.Remove(uint32(l))
	}
}

// belowTops reports whether the children of a node are below the tops.
func belowTops(s *shortcut.Table, parent link) bool {
	return parent != 0 && int(parent.header().depth) >= s.Depth
}

// hint puts a link into the table that is a key's top: parent is the node above it.
func (w *writer) hint(key string, parent, l link) {
	if mutant.On && mutant.Is("radix: shortcut put in under lock") {
		w.late = append(w.late, func() { w.hintNow(key, parent, l) })
		return
	}
	w.hintNow(key, parent, l)
}

func (w *writer) hintNow(key string, parent, l link) {
	s := w.t.short.Load()
	if s == nil || w.t.forked || belowTops(s, parent) || l.isInner() && int(l.header().depth) < s.Depth {
		return
	}
	if x, tag := s.Place(key); x != nil {
		x.PutBeside(tag, uint32(l))
	}
}

// hintWay puts the top on the way to a key into the table.
func (t *Tree) hintWay(s *shortcut.Table, key string) {
	if x, tag := s.Place(key); x != nil {
		if l := t.topOf(s, key); l != 0 && s.Proves(key, t.key(anyLeaf(l))) {
			x.Put(tag, uint32(l))
		}
	}
}

// topOf returns the top of a key that is long enough, 0 if no key like it is there.
func (t *Tree) topOf(s *shortcut.Table, key string) link {
	l := t.top.link
	for l.isInner() {
		d := int(l.header().depth)
		if d >= s.Depth {
			break
		}
		l = child(l, int(key[d]))
	}
	return l
}

// entrance returns the node where a writer begins its way to a key, and asks for its memory;
// 0 is the root. depth is as many first bytes of the key as are sure to be those of all keys
// below; if it is 0 a leaf has to show it.
func (t *Tree) entrance(key string) (l link, depth int) {
	s := t.short.Load()
	if s == nil {
		return 0, 0
	}
	to, sure := s.EnterSure(key)
	if l = link(to); sure {
		depth = s.Depth
	}
	fetch(l, key, s.Depth)
	return l, depth
}
