package radix

import (
	"strings"
)

// Seen is an inner node as it is.
type Seen struct {
	ID     uint32 // tells nodes and leaves apart that are there at the same time
	Type   string
	Room   int    // links by a byte
	Prefix string // of all keys below
	Links  []SeenLink
}

// SeenLink is a link of an inner node.
type SeenLink struct {
	Byte int // -1 for the key that ends here
	To   uint32
	Leaf bool
}

// See calls f with each inner node, a parent before its children, and returns the
// root: 0 for none. It takes no lock: the caller makes sure that no writer runs
// meanwhile. It is for small trees.
func (t *Tree) See(f func(Seen)) (root uint32) {
	l := load(&t.top.link)
	t.see(l, f)
	return uint32(l)
}

func (t *Tree) see(l link, f func(Seen)) {
	if !l.isInner() {
		return
	}
	s := Seen{ID: uint32(l), Type: typeName(l.kind()), Room: capacity(l.kind()), Prefix: strings.Clone(t.key(anyLeaf(l))[:l.header().depth])}
	var below []link
	t.children(l, func(b int, to link) bool {
		s.Links = append(s.Links, SeenLink{b, uint32(to), to.isLeaf()})
		below = append(below, to)
		return true
	})
	f(s)
	for _, to := range below {
		t.see(to, f)
	}
}

// SeenTogether is the number of keys of a batch that have their nodes fetched together,
// before they are changed one after the other.
const SeenTogether = warmKeys
