package radix

import (
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// bitmap is a set of bytes.
type bitmap [4]uint64

func (m *bitmap) has(b byte) bool { return m[b>>6]>>(b&63)&1 != 0 }
func (m *bitmap) set(b byte)      { m[b>>6] |= 1 << (b & 63) }
func (m *bitmap) unset(b byte)    { m[b>>6] &^= 1 << (b & 63) }

// below returns how many bytes below b are in the set.
func (m *bitmap) below(b byte) (n int) {
	for _, w := range m[:b>>6] {
		n += bits.OnesCount64(w)
	}
	return n + bits.OnesCount64(m[b>>6]&(1<<(b&63)-1))
}

// next returns the least byte of the set that is at least b, and -1 if there is
// none.
func (m *bitmap) next(b int) int {
	if b > 255 {
		return -1
	}
	w := m[b>>6] >> (b & 63) << (b & 63)
	for i := b >> 6; ; {
		if w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
		if i++; i == len(m) {
			return -1
		}
		w = m[i]
	}
}

// prev returns the greatest byte of the set that is at most b, and -1 if there is
// none.
func (m *bitmap) prev(b int) int {
	if b < 0 {
		return -1
	}
	w := m[b>>6] << (63 - b&63) >> (63 - b&63)
	for i := b >> 6; ; {
		if w != 0 {
			return i<<6 + 63 - bits.LeadingZeros64(w)
		}
		if i--; i < 0 {
			return -1
		}
		w = m[i]
	}
}

// amongTwelve returns the place of a byte among the keys of a node of one of the three
// smallest types, or a number below 0 if it is none of them. These have up to twelve keys
// behind own, all in one piece of 16 bytes, so that nothing branches on the type, which
// the machine would predict wrong.
func amongTwelve(at unsafe.Pointer, kind int, b byte) int {
	const low, most = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	x, y := simd.EightAt(at, 16)^uint64(b)*low, simd.EightAt(at, 24)^uint64(b)*low
	// Bit 7 of each byte that is equal, and of no other.
	x, y = ^((x&most + most) | x | most), ^((y&most + most) | y | most)
	// Keys 0 to 3 come to bits 0, 8 and so on, keys 4 to 11 to bits 4, 12 and so on.
	p := (x>>39 | y>>3) & firstOfTwelve[kind&3][(*header)(at).meta&15]
	if p == 0 {
		return -1
	}
	i := bits.TrailingZeros64(p)
	return i>>3 + i&4
}

// firstOfTwelve has, for each type and number of children, the bits of amongTwelve that are
// theirs. A late reader may find any number of children in a node.
var firstOfTwelve = func() (m [node12 + 1][16]uint64) {
	for kind := node2; kind <= node12; kind++ {
		for n := range m[kind] {
			for i := range min(n, int(small[kind].cap)) {
				if i < 4 {
					m[kind][n] |= 1 << (8 * i)
				} else {
					m[kind][n] |= 1 << (8*(i-4) + 4)
				}
			}
		}
	}
	return m
}()

// keysOf returns the keys of a node with sorted keys, those that it has room for.
func keysOf(at unsafe.Pointer, kind int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(at, smallKeys)), small[kind].cap)
}

// linksOf returns the links of a node with sorted keys.
func linksOf(at unsafe.Pointer, kind int) []link {
	return unsafe.Slice((*link)(unsafe.Add(at, small[kind].links)), small[kind].cap)
}

// sorted returns the keys and links that a node with sorted keys has. A late reader
// may find any number of children in a node.
func sorted(l link) ([]byte, []link) {
	at, kind := l.at(), l.kind()
	n := min((*header)(at).children(), int(small[kind].cap))
	return keysOf(at, kind)[:n], linksOf(at, kind)[:n]
}

// find returns where an inner node has the link for a byte; nil if it has none.
func find(l link, b byte) *link { return findIn(l.at(), l.kind(), b) }

// findIn is find for a node at a known address.
func findIn(at unsafe.Pointer, kind int, b byte) *link {
	var i int
	switch kind {
	case node2, node5, node12:
		if i = amongTwelve(at, kind, b); i >= 0 {
			return (*link)(unsafe.Add(at, small[kind].links+uintptr(i)*4))
		}
		return nil
	case node21:
		if i = simd.EqualByte(simd.EightAt(at, smallKeys), b); i == 8 {
			if i += simd.EqualByte(simd.EightAt(at, smallKeys+8), b); i == 16 {
				i += simd.EqualByte(simd.EightAt(at, smallKeys+16), b)
			}
		}
	case node48:
		n := (*inner48)(at)
		if n.bits.has(b) {
			if i := n.bits.below(b); i < 48 {
				return &n.links[i]
			}
		}
		return nil
	case node256:
		if n := (*inner256)(at); n.links[b] != 0 {
			return &n.links[b]
		}
		return nil
	default:
		return nil
	}
	if x := &small[kind]; i < min((*header)(at).children(), int(x.cap)) {
		return (*link)(unsafe.Add(at, x.links+uintptr(i)*4))
	}
	return nil
}

// child returns the link for a byte, or for the key that ends here where b is
// below 0.
func child(l link, b int) link {
	if b < 0 {
		return load(&l.header().own)
	}
	if at := find(l, byte(b)); at != nil {
		return load(at)
	}
	return 0
}

// atOrAfter returns the first byte from b on that an inner node has a link for, and
// the link; 0 if there is none. Before all bytes, as -1, comes the key that ends here.
func atOrAfter(l link, b int) (int, link) {
	if b < 0 {
		if own := load(&l.header().own); own != 0 {
			return -1, own
		}
		b = 0
	}
	switch l.kind() {
	case node48:
		n := (*inner48)(l.at())
		if b = n.bits.next(b); b >= 0 {
			return b, load(&n.links[min(n.bits.below(byte(b)), 47)])
		}
	case node256:
		n := (*inner256)(l.at())
		if b = n.bits.next(b); b >= 0 {
			return b, load(&n.links[b])
		}
	default:
		keys, links := sorted(l)
		for i, k := range keys {
			if int(k) >= b {
				return int(k), load(&links[i])
			}
		}
	}
	return 0, 0
}

// atOrBefore returns the last byte up to b that an inner node has a link for, and
// the link, as atOrAfter does.
func atOrBefore(l link, b int) (int, link) {
	switch l.kind() {
	case node48:
		n := (*inner48)(l.at())
		if k := n.bits.prev(b); k >= 0 {
			return k, load(&n.links[min(n.bits.below(byte(k)), 47)])
		}
	case node256:
		n := (*inner256)(l.at())
		if k := n.bits.prev(b); k >= 0 {
			return k, load(&n.links[k])
		}
	default:
		keys, links := sorted(l)
		for i := len(keys) - 1; i >= 0; i-- {
			if int(keys[i]) <= b {
				return int(keys[i]), load(&links[i])
			}
		}
	}
	return -1, load(&l.header().own)
}

// capacity returns the most children of a type of inner node.
func capacity(kind int) int { return [...]int{0, 2, 5, 12, 21, 48, 256}[kind] }

// insert adds a link for a byte to a node that has room and none for it. The node
// is locked, or nobody else's.
func insert(l link, b byte, to link) {
	h := l.header()
	n := h.children()
	switch l.kind() {
	case node48:
		x := (*inner48)(l.at())
		i := x.bits.below(b)
		copy(x.links[i+1:n+1], x.links[i:n])
		store(&x.links[i], to)
		x.bits.set(b)
	case node256:
		x := (*inner256)(l.at())
		store(&x.links[b], to)
		x.bits.set(b)
	default:
		insertSorted(keysOf(l.at(), l.kind())[:n+1], linksOf(l.at(), l.kind())[:n+1], b, to)
	}
	h.meta++
}

func insertSorted(keys []byte, links []link, b byte, to link) {
	i := len(keys) - 1
	for ; i > 0 && keys[i-1] > b; i-- {
		keys[i] = keys[i-1]
		stall.At("held: radix key moved")
		store(&links[i], links[i-1])
	}
	keys[i] = b
	store(&links[i], to)
}

// remove takes the link for a byte away. The node is locked, or nobody else's.
func remove(l link, b byte) {
	h := l.header()
	n := h.children()
	switch l.kind() {
	case node48:
		x := (*inner48)(l.at())
		i := x.bits.below(b)
		x.bits.unset(b)
		copy(x.links[i:n-1], x.links[i+1:n])
	case node256:
		x := (*inner256)(l.at())
		x.bits.unset(b)
		store(&x.links[b], 0)
	default:
		keys, links := sorted(l)
		removeSorted(keys, links, b)
	}
	h.meta--
}

func removeSorted(keys []byte, links []link, b byte) {
	i := 0
	for keys[i] != b {
		i++
	}
	for ; i+1 < len(keys); i++ {
		keys[i] = keys[i+1]
		store(&links[i], links[i+1])
	}
}

// copyChildren sets the children of a new node to those of another, but for that
// of byte without, which is below 0 for none.
func copyChildren(to, from link, without int) {
	if without < 0 {
		growChildren(to, from)
		return
	}
	for b, l := atOrAfter(from, 0); l != 0; b, l = atOrAfter(from, b+1) {
		if b == without {
			continue
		}
		insert(to, byte(b), l)
	}
}

// growChildren sets the children of a new node to those of one of the type below.
func growChildren(to, from link) {
	n := from.header().children()
	switch from.kind() {
	case node48:
		x, y := (*inner48)(from.at()), (*inner256)(to.at())
		y.bits = x.bits
		b := -1
		for _, l := range x.links[:n] {
			b = x.bits.next(b + 1)
			y.links[b] = l
		}
	case node21:
		keys, links := sorted(from)
		y := (*inner48)(to.at())
		for _, b := range keys {
			y.bits.set(b)
		}
		copy(y.links[:], links)
	default:
		keys, links := sorted(from)
		copy(keysOf(to.at(), to.kind()), keys)
		copy(linksOf(to.at(), to.kind()), links)
	}
	to.header().meta += uint32(n)
}

// wipe empties the children of a node that is nobody else's, and whose slot
// another has had.
func wipe(l link) {
	switch l.kind() {
	case node48:
		(*inner48)(l.at()).bits = bitmap{}
	case node256:
		n := (*inner256)(l.at())
		n.bits, n.sums, n.links = bitmap{}, unknownSums, [256]link{}
	}
}

// bytesAt returns memory as a string that must not outlive it.
func bytesAt(at unsafe.Pointer, n int) string { return unsafe.String((*byte)(at), n) }
