package cuart

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/simd"
)

// image is a tree's memory on the host: to be copied to a device, or copied from it
// to be looked at.
type image struct {
	place    Place
	valBytes int
	table    []link
	n4       []inner4
	n16      []inner16
	n48      []inner48
	n256     []inner256
	units    []uint64 // of leaves,
	far      []uint64 // and those from split on: leaves of farClass and above
	split    int
	farClass int
	entries  int
}

// bytes returns the memory of the nodes of each type.
func (im *image) bytes() [nodeTypes][]byte {
	return [nodeTypes][]byte{arena.Bytes(im.n4), arena.Bytes(im.n16), arena.Bytes(im.n48), arena.Bytes(im.n256)}
}

// nodes returns how many there are of each type.
func (im *image) nodes() [nodeTypes]int {
	return [nodeTypes]int{len(im.n4), len(im.n16), len(im.n48), len(im.n256)}
}

// build lays out keys, which ascend, with their values.
func build(keys []string, vals []uint64, valBytes int, p Place, split, farClass int) (*image, error) {
	im := &image{place: p, valBytes: valBytes, table: make([]link, 1<<p.bits), entries: len(keys), split: split, farClass: farClass}
	slots, starts := make([]uint32, len(keys)), make([]uint32, 1<<p.bits+1)
	for i, k := range keys {
		if len(k) > MaxKey {
			return nil, fmt.Errorf("%w: %d bytes", ErrKeyTooLong, len(k))
		}
		slots[i] = uint32(p.Slot(k))
		starts[slots[i]+1]++
	}
	for s := range 1 << p.bits {
		starts[s+1] += starts[s]
	}
	b := &builder{im, keys, vals, make([]uint32, len(keys))}
	next := append([]uint32(nil), starts...)
	for i, s := range slots {
		b.order[next[s]] = uint32(i)
		next[s]++
	}
	for s := range im.table {
		if lo, hi := starts[s], starts[s+1]; lo < hi {
			im.table[s] = b.below(int(lo), int(hi))
		}
	}
	return im, nil
}

// builder makes an image of keys; order has them slot by slot, ascending in each.
type builder struct {
	*image
	keys  []string
	vals  []uint64
	order []uint32
}

func (b *builder) key(i int) string { return b.keys[b.order[i]] }

// below returns a link to keys lo to hi-1 of the order.
func (b *builder) below(lo, hi int) link {
	if hi-lo == 1 {
		return b.leaf(b.key(lo), b.vals[b.order[lo]])
	}
	h := header{depth: uint32(simd.CommonPrefix(b.key(lo), b.key(hi-1)))}
	depth := int(h.depth)
	if len(b.key(lo)) == depth {
		h.own = uint32(b.below(lo, lo+1))
		lo++
	}
	var bytes []uint8
	var links []link
	for lo < hi {
		c, end := b.key(lo)[depth], lo+1
		for end < hi && b.key(end)[depth] == c {
			end++
		}
		bytes, links = append(bytes, c), append(links, b.below(lo, end))
		lo = end
	}
	h.count = uint32(len(bytes))
	return b.node(h, bytes, links)
}

// node adds an inner node of the least type that has room.
func (b *builder) node(h header, bytes []uint8, links []link) link {
	switch {
	case len(bytes) <= 4:
		n := inner4{header: h}
		copy(n.keys[:], bytes)
		copy(n.links[:], links)
		b.n4 = append(b.n4, n)
		return linkTo(node4, len(b.n4)-1)
	case len(bytes) <= 16:
		n := inner16{header: h}
		copy(n.keys[:], bytes)
		copy(n.links[:], links)
		b.n16 = append(b.n16, n)
		return linkTo(node16, len(b.n16)-1)
	case len(bytes) <= 48:
		n := inner48{header: h}
		for _, c := range bytes {
			n.bits[c>>5] |= 1 << (c & 31)
		}
		copy(n.links[:], links)
		b.n48 = append(b.n48, n)
		return linkTo(node48, len(b.n48)-1)
	}
	n := inner256{header: h}
	for i, c := range bytes {
		n.links[c] = links[i]
	}
	b.n256 = append(b.n256, n)
	return linkTo(node256, len(b.n256)-1)
}

// leaf adds a leaf.
func (b *builder) leaf(key string, val uint64) link {
	to, first, class := &b.units, 0, leafClass(len(key), b.valBytes)
	if class >= b.farClass {
		to, first = &b.far, b.split
	}
	at := len(*to)
	*to = append(*to, make([]uint64, unitsOf(class))...)
	x := arena.Bytes((*to)[at:])
	if b.valBytes == 8 {
		*(*uint64)(unsafe.Pointer(&x[0])) = val
	} else {
		*(*uint32)(unsafe.Pointer(&x[0])) = uint32(val)
	}
	*(*uint32)(unsafe.Pointer(&x[b.valBytes])) = uint32(len(key))
	copy(x[b.valBytes+4:], key)
	return leafBit | link(first+at)
}

// leafAt returns the memory from a leaf on to the end of its pool, and reports whether
// that is far.
func (im *image) leafAt(l link) (memory []byte, far bool) {
	units, at := im.units, int(l&^leafBit)
	if far = at >= im.split; far {
		units, at = im.far, at-im.split
	}
	return arena.Bytes(units[min(at, len(units)):]), far
}

// child is a link of an inner node, and its byte; -1 for the key that ends there.
type child struct {
	b  int
	to link
}

// children returns all links of an inner node. The node is there.
func (im *image) children(l link) (h header, all []child, err error) {
	listed := func(keys []uint8, links []link) {
		for i := range min(int(h.count), len(keys)) {
			all = append(all, child{int(keys[i]), links[i]})
		}
	}
	switch n := l.number(); l.kind() {
	case node4:
		x := &im.n4[n]
		h = x.header
		listed(x.keys[:], x.links[:])
	case node16:
		x := &im.n16[n]
		h = x.header
		listed(x.keys[:], x.links[:])
	case node48:
		x := &im.n48[n]
		h = x.header
		for w, m := range x.bits {
			for ; m != 0 && len(all) < len(x.links); m &= m - 1 {
				all = append(all, child{32*w + bits.TrailingZeros32(m), x.links[len(all)]})
			}
		}
	case node256:
		x := &im.n256[n]
		h = x.header
		for b, to := range x.links {
			if to != 0 {
				all = append(all, child{b, to})
			}
		}
	}
	if len(all) != int(h.count) {
		return h, nil, fmt.Errorf("cuart: node %x has %d children, not %d", l, len(all), h.count)
	}
	if h.own != 0 {
		all = append([]child{{-1, link(h.own)}}, all...)
	}
	return h, all, nil
}
