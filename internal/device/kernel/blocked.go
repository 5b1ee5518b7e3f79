package kernel

import (
	_ "embed"
	"fmt"
	"math"
	"math/bits"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:embed blocked.ptx
var blockedPTX string

// BlockedSource is the kernels of blocked.cu.
var BlockedSource = Source{&blockedPTX, []string{"blockedDown32", "blockedDown64",
	"packedRank32", "packedRank64", "packedFind32", "packedFind64", "gather32", "gather64"}}

// MaxRows bounds the rows of a blocked tree.
const MaxRows = simd.MaxLevels + 1

// Row is a row of pages of a blocked tree. Lines are counted from the tree's
// first byte.
type Row struct {
	At        int // line of the first page
	PageLines int // lines per page
	Levels    int // levels of lines per page
	Pages     int
}

// Blocked describes the rows of a blocked tree in a device's memory, in the
// form that the kernels read: struct Blocked of blocked.cu, field by field.
type Blocked struct {
	Base         device.Ptr
	Start        device.Ptr // page numbers (u32) at which queries begin; 0: all begin at the root
	From         uint32     // row of those pages
	Deep         uint32     // queries before this one, a multiple of 32, begin one row further down
	To, Rows     uint32     // row where a search ends, and the total number of rows, which bounds the search
	Fan          uint32     // a line has 1<<Fan children
	Leaves, Last uint32     // lines of the first leaf and of the last
	row          [MaxRows]deviceRow
	_            uint32 // C++ aligns 8 bytes to 8, Go on machines of 32 bits to 4
}

type deviceRow struct{ at, pageLines, levels, last uint32 }

// NewBlocked describes rows of pages above leaves, for keys of keyBits bits,
// in a tree whose memory was copied to base, byte for byte. If only a part of
// the tree was copied, base is where the whole tree would begin.
func NewBlocked(rows []Row, keyBits int, leaves *simd.Tree, base device.Ptr) (Blocked, error) {
	d := Blocked{
		Base: base, To: uint32(len(rows)), Rows: uint32(len(rows)),
		Fan:    uint32(bits.TrailingZeros(simd.LineBytes * 8 / uint(keyBits))),
		Leaves: uint32(leaves.Leaves / lineWords), Last: uint32(leaves.LastLeaf / lineWords),
	}
	if len(rows) > MaxRows || leaves.LastLeaf/lineWords >= math.MaxUint32-maxCount {
		return d, fmt.Errorf("%w: %d rows of pages, %d entries", ErrTooLarge, len(rows), leaves.Len)
	}
	for i, r := range rows {
		d.row[i] = deviceRow{uint32(r.At), uint32(r.PageLines), uint32(r.Levels), uint32(max(r.Pages, 1) - 1)}
	}
	return d, nil
}

// FavorBlocked is Favor for the rows of a blocked tree.
func FavorBlocked(st device.Stream, t *Blocked) {
	p, ok := st.(device.Persister)
	if !ok {
		return
	}
	most, fits := uint64(p.Persistable()), uint64(0)
	for _, r := range t.row[:t.Rows] {
		if end := (uint64(r.at) + uint64(r.last+1)*uint64(r.pageLines)) * simd.LineBytes; end <= most {
			fits = end
		}
	}
	if fits > 0 {
		p.Persist(t.Base, int(fits)) // only a hint, as in Favor
	}
}

// Packed describes pages of packed keys in a device's memory, in the form that
// the kernels read: struct Packed of blocked.cu, field by field.
type Packed struct {
	Table, Words device.Ptr
	End          uint64 // total words in all pages
	Last         uint32 // number of the last page
	Entries      uint32
}

// NewPacked describes packed pages: their number, their total size end in
// words of 8 bytes, and their total number of entries. Both addresses must be
// multiples of 16.
func NewPacked(table, words device.Ptr, pages, end, entries int) (Packed, error) {
	if uint64(entries) >= math.MaxUint32-simd.PackedPage { // ranks are cut to it only after they were counted
		return Packed{}, fmt.Errorf("%w: %d entries", ErrTooLarge, entries)
	}
	return Packed{Table: table, Words: words, End: uint64(end), Last: uint32(max(pages, 1) - 1), Entries: uint32(entries)}, nil
}

// blockedParams are the arguments of BlockedDown.
type blockedParams struct {
	tree Blocked
	keys device.Ptr
	n    uint32
	_    uint32
	out  device.Ptr
}

// packedParams are the arguments of PackedRank and PackedFind.
type packedParams struct {
	pages Packed
	keys  device.Ptr
	n     uint32
	_     uint32
	at    device.Ptr
	out   device.Ptr
}

// gatherParams are the arguments of Gather.
type gatherParams struct {
	column     device.Ptr
	entries, n uint32
	places     device.Ptr
	vals       device.Ptr
	found      device.Ptr
}

// BlockedDown sets nodes (u32) to the page of row t.To that each query reaches
// or, past the last row, to the line of its leaf. nodes may be the same memory
// as t.Start.
func (s *Set) BlockedDown(st device.Stream, p *Params, t *Blocked, bits int, keys device.Ptr, n int, nodes device.Ptr) error {
	p.blocked = blockedParams{tree: *t, keys: keys, n: uint32(n), out: nodes}
	return s.start(st, pick(bits, "blockedDown32", "blockedDown64"), n, argsOf(&p.blocked))
}

// PackedRank sets ranks (u32) to the number of entries below each key. pages
// (u32) holds the page that each key belongs to: the first whose greatest key
// is not below it, or any number past the last. ranks may be the same memory
// as pages.
func (s *Set) PackedRank(st device.Stream, p *Params, t *Packed, bits int, keys device.Ptr, n int, pages, ranks device.Ptr) error {
	if t.Entries == 0 { // then there is no page either
		return st.Fill(ranks, 0, 4*n)
	}
	return s.packed(st, pick(bits, "packedRank32", "packedRank64"), p, t, keys, n, pages, ranks)
}

// PackedFind sets places (u32) to the rank of the first entry equal to each
// key, or to NotFound; pages is as in PackedRank.
func (s *Set) PackedFind(st device.Stream, p *Params, t *Packed, bits int, keys device.Ptr, n int, pages, places device.Ptr) error {
	if t.Entries == 0 {
		return st.Fill(places, NotFound, 4*n)
	}
	return s.packed(st, pick(bits, "packedFind32", "packedFind64"), p, t, keys, n, pages, places)
}

func (s *Set) packed(st device.Stream, name string, p *Params, t *Packed, keys device.Ptr, n int, pages, out device.Ptr) error {
	p.packed = packedParams{pages: *t, keys: keys, n: uint32(n), at: pages, out: out}
	return s.start(st, name, n, argsOf(&p.packed))
}

// Gather sets vals to the values at places (u32) of a column of entries values,
// or to 0 for a place behind them, as NotFound is, and found to one bit per
// place, set where there is a value.
func (s *Set) Gather(st device.Stream, p *Params, valBits int, column device.Ptr, entries, n int, places, vals, found device.Ptr) error {
	p.gather = gatherParams{column: column, entries: uint32(entries), n: uint32(n), places: places, vals: vals, found: found}
	return s.start(st, pick(valBits, "gather32", "gather64"), n, argsOf(&p.gather))
}
