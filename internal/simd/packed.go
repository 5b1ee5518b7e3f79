package simd

import (
	"encoding/binary"
	"unsafe"
)

// Packed describes pages of keys that are stored as differences from the
// page's smallest key, each in as few bits as the page's greatest difference
// needs (FAST, section 6.2).
//
//	Table: one entry of 16 bytes per page
//	  ┌──────────────┬──────────────────────────┐
//	  │ Min (uint64) │ At: word << 8 | width    │
//	  └──────────────┴──────────────────────────┘
//	Words: pages, each from its word on
//	  ┌──────────────┬─────────┬─────────┬───┬──────────┐
//	  │ separators   │ group 0 │ group 1 │ … │ group 15 │
//	  └──────────────┴─────────┴─────────┴───┴──────────┘
//	  each of them 16 differences of width bits, 2·width bytes: difference j
//	  is at bit j·width, counted from the lowest bit of the first byte.
//	  Separator g is the greatest difference of group g.
//
// The width is 0 to 32, or 64 for pages of 64-bit keys that lie farther apart.
// Any other width, as in a damaged table, is read as the greatest that the
// keys may have. Offsets are clamped to End, and PackedSlack bytes must be
// readable from there on. Thus no search reads outside the memory, whatever
// the table says.
//
// The assembly reads the fields at fixed offsets; packed_amd64_test.go checks
// them.
type Packed struct {
	Table    unsafe.Pointer
	Words    unsafe.Pointer
	Last     uint64         // number of the last page
	End      uint64         // words in all pages
	Len      uint64         // total number of entries
	Distance uint64         // queries between two steps of one query, at least 1
	Shift    uint64         // number of bits by which the page numbers passed in are shifted left
	Vals     unsafe.Pointer // column of values to prefetch from, for Find; may be nil
	ValSize  uint64         // bytes of a value in that column
	rows     unsafe.Pointer // how to unpack each width: see row
}

// Sizes of a page: keys per group, groups per page, and keys per page.
const (
	PackedGroup  = 16
	PackedGroups = 16
	PackedPage   = PackedGroup * PackedGroups
)

// PackedSlack is the number of bytes that must be readable past End: a page of
// the greatest width, and the vector that begins at its last byte.
const PackedSlack = (PackedGroups+1)*PackedGroup*8 + 2*LineBytes

// PackedEntry is an entry of the table.
type PackedEntry struct{ Min, At uint64 }

// PackedWidth returns the width of a difference in bits, as a search of codes
// C interprets it.
func PackedWidth[C Code](at uint64) uint64 {
	switch w := at & 0xff; {
	case w <= 32:
		return w
	case wide[C]():
		return 64
	}
	return 32
}

// row tells how to unpack 16 differences from 16 dwords. Each difference is
// taken from two adjacent dwords, which are shifted together and masked.
type row struct {
	bit   [16]uint32 // where difference j begins
	first [16]uint32 // the dword that holds this bit
	right [16]uint32 // number of bits to drop there
	mask  [16]uint32
}

var rows = makeRows()

func makeRows() *[33]row {
	all := new([33]row)
	for w := range all {
		for j := range PackedGroup {
			bit := uint32(j * w)
			all[w].bit[j], all[w].first[j], all[w].right[j] = bit, bit/32, bit%32
			all[w].mask[j] = uint32(1<<w - 1)
		}
	}
	return all
}

// Ready sets the unexported fields and bounds Distance. It must be called
// before any search.
func (p *Packed) Ready() {
	p.rows = unsafe.Pointer(rows)
	p.Distance = min(max(p.Distance, 1), MaxPackedDistance)
}

// entry returns the entry of a page, clamped to the readable range.
func (p *Packed) entry(page uint64) (least uint64, at unsafe.Pointer, code uint64) {
	e := (*PackedEntry)(unsafe.Add(p.Table, page*16))
	return e.Min, unsafe.Add(p.Words, 8*min(e.At>>8, p.End)), e.At
}

// Difference returns difference j of those packed with the given width from at
// on.
func Difference(at unsafe.Pointer, width uint64, j int) uint64 {
	bit := uint64(j) * width
	b := (*[8]byte)(unsafe.Add(at, bit/8))
	return binary.LittleEndian.Uint64(b[:]) >> (bit % 8) & (1<<width - 1) // 1<<64 is 0
}

// countBelow returns how many of 16 differences are below d.
func countBelow(at unsafe.Pointer, width, d uint64) (n uint64) {
	for j := range PackedGroup {
		if Difference(at, width, j) < d {
			n++
		}
	}
	return n
}

// inPage returns the place of a key's lower bound in a page, and reports
// whether the entry there has exactly that key.
func inPage[C Code](p *Packed, page uint64, key C) (place uint64, equal bool) {
	least, at, code := p.entry(page)
	w := PackedWidth[C](code)
	d := uint64(key) - min(uint64(key), least)
	group := min(countBelow(at, w, d), PackedGroups-1)
	at = unsafe.Add(at, (group+1)*2*w)
	n := countBelow(at, w, d)
	place = page*PackedPage + group*PackedGroup + n
	equal = n < PackedGroup && Difference(at, w, int(n)) == d && uint64(key) >= least && place < p.Len
	return min(place, p.Len), equal
}

// MaxPackedDistance bounds Packed.Distance: a query occupies one of the slots
// of packedRoom for three times that many steps, and eight slots are set at a
// time.
const MaxPackedDistance = 40

// packedRoom holds the state of the queries in progress, 32 bytes each, about
// their page. The plain Go code does not use it.
type packedRoom [128 * 32]byte

// PackedRank sets ranks[i] to the number of entries with a key below keys[i].
// On entry, ranks[i] holds the key's page: see Packed.Shift.
func PackedRank[C Code](p *Packed, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active != Go {
		var room packedRoom
		packedRankAsm(p, wide[C](), bytes(&keys[0]), len(keys), &ranks[0], &room[0])
		return
	}
	for i, key := range keys {
		place, _ := inPage(p, min(uint64(ranks[i])>>p.Shift, p.Last), key)
		ranks[i] = int(place)
	}
}

// PackedFind sets ranks[i] to the rank of the first entry whose key is
// keys[i], or to -1 if there is none. On entry, ranks[i] holds the key's page.
// It prefetches that entry's value.
func PackedFind[C Code](p *Packed, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active != Go {
		var room packedRoom
		packedFindAsm(p, wide[C](), bytes(&keys[0]), len(keys), &ranks[0], &room[0])
		return
	}
	for i, key := range keys {
		place, equal := inPage(p, min(uint64(ranks[i])>>p.Shift, p.Last), key)
		ranks[i] = -1
		if equal {
			ranks[i] = int(place)
		}
	}
}

// PackedSeek is PackedRank for one key whose page is known; equal reports
// whether the entry at that rank has exactly that key.
func PackedSeek[C Code](p *Packed, page int, key C) (rank int, equal bool) {
	x := min(uint64(page), p.Last)
	if active != Go {
		return packedSeekAsm(p, wide[C](), x, uint64(key))
	}
	place, equal := inPage(p, x, key)
	return int(place), equal
}

// Unpack fills dst with the keys from number first on. first and len(dst) must
// be multiples of PackedGroup, and all the keys must be in one page.
func Unpack[C Code](p *Packed, dst []C, first int) {
	if len(dst) == 0 {
		return
	}
	page, group := min(uint64(first)/PackedPage, p.Last), uint64(first)%PackedPage/PackedGroup
	least, at, code := p.entry(page)
	w := PackedWidth[C](code)
	at = unsafe.Add(at, (group+1)*2*w)
	groups := len(dst) / PackedGroup
	if active != Go && w <= 32 {
		unpackAsm(wide[C](), (*byte)(at), &rows[w], least, groups, 2*w, bytes(&dst[0]))
		return
	}
	for i := range dst[:groups*PackedGroup] {
		dst[i] = C(least + Difference(at, w, i))
	}
}

// PrefetchAt prefetches n cache lines from an address on. In plain Go it does
// nothing.
func PrefetchAt(at unsafe.Pointer, n int) {
	if active != Go && n > 0 {
		prefetchAsm((*byte)(at), n)
	}
}

// PackedAt returns the address of the byte where entry i's key begins, and the
// width of a key there in bits.
func PackedAt[C Code](p *Packed, i int) (at unsafe.Pointer, width uint64) {
	_, at, code := p.entry(min(uint64(i)/PackedPage, p.Last))
	width = PackedWidth[C](code)
	return unsafe.Add(at, (PackedGroup+uint64(i)%PackedPage)*width/8), width
}

// PackedKey returns the key of entry i, where 0 <= i < Len.
func PackedKey[C Code](p *Packed, i int) C {
	least, at, code := p.entry(min(uint64(i)/PackedPage, p.Last))
	return C(least + Difference(at, PackedWidth[C](code), PackedGroup+i%PackedPage))
}
