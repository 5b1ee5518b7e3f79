package trie

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// A wide node tells keys apart by several bytes at once (START: "The self-tuning
// adaptive radix tree", Fent, Jungmair, Kipf and Neumann, 2020). It is a table of
// links, indexed by the ranks of a key's next bytes among those that keys have there:
//
//	 0  first   rank of the first key below
//	 4  depth   bytes that all keys below begin with
//	 8  bytes   how many the node tells apart: 2 to 8
//	 9  own     1 if a key ends here: it is the first, and has no slot
//	10  lines   of 64 bytes before the links
//	11  shift   how many bits of the last byte it leaves out; 128 more if no value is missing at any place,
//	            and all are there but at the first: then the slot is a matter of a shift
//	12  slots
//	16  places  for each byte: its least value, how far the greatest is above that (1 byte each), where
//	            in the node the ranks of values are (2; 0 where none is missing), slots of a value (4)
//	    ranks   of the values from the least one on; 255 for one that no key has
//	    links   a slot each, from line `lines` on; zeros up to the end of a line
//
// So hexadecimal digits have 16 values, and a table over four of them 65,536 slots. The
// slot never descends where keys ascend, for any string of bytes: one that no key
// has at a place stands for the next that is there, and all that follows for the least;
// one that is above all for all that follows at its greatest. Keys that end between the
// node's bytes go on with the least. That is why all searches in order are right: keys
// of a slot are neighbours.
//
// A slot without keys has the rank of the first key behind it, with type 0. So the
// rank behind a slot is always known from the next.
type wideHead struct {
	first uint32 // to own as a trieNode has them
	depth uint32
	count uint8
	own   uint8
	lines uint8
	shift uint8
	slots uint32
}

// widePlace is one of the bytes that a wide node tells apart.
type widePlace struct {
	least uint8
	above uint8
	ranks uint16
	slots uint32
}

const (
	widePlaces = 16 // where places begin
	mostWide   = 8  // bytes
	noRank     = 255
	wholeBytes = 128
	lineBytes  = 64

	// A slot without keys has 28 bits for a rank.
	mostWideKeys = numberMax
)

// slot returns the slot for the bytes of a key behind the node's depth. Even in a
// damaged file it reads none but the first size bytes of the node.
func (h *wideHead) slot(rest string, size int) (slot uint32) {
	n := int(h.count)
	if size = min(size, int(h.lines)*lineBytes); n > mostWide || size < widePlaces+8*n {
		return 0
	}
	if len(rest) < n {
		return h.nearSlot(rest, size)
	}
	if h.shift&wholeBytes != 0 {
		x := uint64(0)
		if len(rest) >= 8 {
			x = bits.ReverseBytes64(simd.EightOf(rest, 0)) >> (64 - 8*uint(n)&63)
		} else {
			for i := range n {
				x = x<<8 | uint64(rest[i])
			}
		}
		shift := h.shift & 7
		if x = x>>shift - uint64(h.place(0).least)<<((8*uint(n)-8-uint(shift))&63); x < uint64(h.slots) {
			return uint32(x)
		}
		return h.nearSlot(rest, size)
	}
	for i := range n {
		p := *h.place(i)
		b := rest[i]
		if i == n-1 {
			b >>= h.shift & 7
		}
		rank := b - p.least // below the least it is above all
		if rank > p.above {
			return h.nearSlot(rest, size)
		}
		if p.ranks != 0 {
			at := int(p.ranks) + int(rank)
			if at >= size {
				return 0
			}
			if rank = h.byteAt(at); rank == noRank {
				return h.nearSlot(rest, size)
			}
		}
		slot += uint32(rank) * p.slots
	}
	return slot
}

// nearSlot is slot for a key with values that no key has at their places, or that ends.
func (h *wideHead) nearSlot(rest string, size int) (slot uint32) {
	block := h.slots
	for i := range int(h.count) {
		if i == len(rest) {
			return slot
		}
		p := *h.place(i)
		b := rest[i]
		if i == int(h.count)-1 {
			b >>= h.shift & 7
		}
		if b < p.least {
			return slot
		}
		rank := b - p.least
		if rank > p.above {
			return slot + block - 1
		}
		if p.ranks != 0 {
			at, end := int(p.ranks)+int(rank), int(p.ranks)+int(p.above)
			if end >= size {
				return 0
			}
			if rank = h.byteAt(at); rank == noRank {
				for ; rank == noRank && at < end; at++ {
					rank = h.byteAt(at + 1)
				}
				return slot + uint32(rank)*p.slots
			}
		}
		slot += uint32(rank) * p.slots
		block = p.slots
	}
	return slot
}

func (h *wideHead) place(i int) *widePlace {
	return (*widePlace)(unsafe.Add(unsafe.Pointer(h), widePlaces+8*i))
}

func (h *wideHead) byteAt(at int) byte { return *(*byte)(unsafe.Add(unsafe.Pointer(h), at)) }

// wideSize returns how many bytes there are from a wide node on, up to the end of all.
func (t *trie) wideSize(l link) int {
	return (int(t.places[trieWide].count) - l.number()) * lineBytes
}

// slotOf returns the slot of a wide node for a key that is longer than the node's depth.
func (t *trie) slotOf(l link, key string) uint32 {
	h := (*wideHead)(unsafe.Pointer(t.at(l)))
	return h.slot(key[h.depth:], t.wideSize(l))
}

// linkAt returns where the link of a slot of a wide node is; a place with none if there
// is no such slot.
func (t *trie) linkAt(l link, slot uint32) *link {
	h := (*wideHead)(unsafe.Pointer(t.at(l)))
	at := int64(h.lines)*lineBytes + 4*int64(slot)
	if slot >= h.slots || at >= int64(t.wideSize(l)) {
		return (*link)(unsafe.Pointer(&nowhere))
	}
	return (*link)(unsafe.Add(unsafe.Pointer(h), at))
}

// wide is a wide node that grows.
type wide struct {
	lo, hi int // its keys
	number uint32
	head   []byte // the bytes before its links
	height atomic.Uint32
}

func (w *wide) header() *wideHead { return (*wideHead)(unsafe.Pointer(&w.head[0])) }

func (w *wide) link() link { return linkTo(trieWide, int(w.number)) }

// units returns the lines of the node.
func (w *wide) units() int64 {
	return int64(len(w.head))/lineBytes + (4*int64(w.header().slots)+lineBytes-1)/lineBytes
}

// slotOf returns the slot of a key, -1 for the one that ends where the node begins.
func (w *wide) slotOf(keys sortedKeys, i int) int {
	var rest [mostWide]byte
	h := w.header()
	n := 0
	for ; n < int(h.count); n++ {
		b := keys.byteAt(i, int(h.depth)+n)
		if b < 0 {
			break
		}
		rest[n] = byte(b)
	}
	if n == 0 {
		return -1
	}
	return int(h.slot(unsafe.String(&rest[0], n), len(w.head)))
}

// values is which bytes keys have at each place behind their common prefix.
type values [mostWide][256 / 64]uint64

func (v *values) add(place int, b byte) { v[place][b>>6] |= 1 << (b & 63) }
func (v *values) has(place, b int) bool { return v[place][b>>6]>>(b&63)&1 != 0 }

// note adds the bytes of key i from a place on.
func (v *values) note(keys sortedKeys, i, depth, from int) {
	for p := from; p < mostWide; p++ {
		b := keys.byteAt(i, depth+p)
		if b < 0 {
			return
		}
		v.add(p, byte(b))
	}
}

// shifted returns the values at a place without their lower bits.
func (v *values) shifted(place, shift int) (out [256]bool, n int) {
	for b := range 256 {
		if v.has(place, b) && !out[b>>shift] {
			out[b>>shift] = true
			n++
		}
	}
	return out, n
}

// newWide returns a wide node for keys with these values, over some bytes without the
// lower bits of the last one. It must fit: see fitWide.
func newWide(keys sortedKeys, lo, hi, depth, bytes, shift int, v *values) *wide {
	w := &wide{lo: lo, hi: hi}
	_, size, whole := fitWide(v, bytes, shift)
	w.head = make([]byte, size)
	h := w.header()
	h.first, h.depth, h.count = uint32(lo), uint32(depth), uint8(bytes)
	if keys.byteAt(lo, depth) < 0 {
		h.own = 1
	}
	h.lines, h.shift = uint8(size/lineBytes), uint8(shift)
	at, slots := widePlaces+8*bytes, uint32(1)
	for i := bytes - 1; i >= 0; i-- {
		s := 0
		if i == bytes-1 {
			s = shift
		}
		there, n := v.shifted(i, s)
		p := (*widePlace)(unsafe.Pointer(&w.head[widePlaces+8*i]))
		least, greatest := bounds(&there)
		p.least, p.above, p.slots = uint8(least), uint8(greatest-least), slots
		if n <= greatest-least {
			p.ranks = uint16(at)
			rank := byte(0)
			for b := least; b <= greatest; b++ {
				if w.head[at] = noRank; there[b] {
					w.head[at] = rank
					rank++
				}
				at++
			}
		}
		slots *= uint32(n)
	}
	if h.slots = slots; whole {
		h.shift |= wholeBytes
	}
	return w
}

// bounds returns the least and the greatest value.
func bounds(there *[256]bool) (least, greatest int) {
	least = 256
	for b, yes := range there {
		if yes {
			least, greatest = min(least, b), b
		}
	}
	return least, greatest
}

// fitWide returns the slots of a wide node, the bytes before its links, and whether the
// slot is a matter of a shift.
func fitWide(v *values, bytes, shift int) (slots float64, head int, whole bool) {
	slots, head, whole = 1, widePlaces+8*bytes, true
	for i := range bytes {
		s := 0
		if i == bytes-1 {
			s = shift
		}
		there, n := v.shifted(i, s)
		if n == 0 {
			return 0, 0, false
		}
		if least, greatest := bounds(&there); n <= greatest-least {
			head += greatest - least + 1
			whole = false
		}
		slots *= float64(n)
		whole = whole && (i == 0 || n == 256>>s)
	}
	return slots, (head + lineBytes - 1) / lineBytes * lineBytes, whole
}
