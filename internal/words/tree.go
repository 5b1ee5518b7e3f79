// Package words is the strings of the FAST paper: a sorted list in pages, which
// is searched by partial keys.
package words

import (
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Tree is an immutable sorted list of strings (FAST paper, section 6.1),
// searched by partial keys: the bits in which the keys of a page differ.
//
//	directory   for each page the partial key of its greatest key, 64 bits, in
//	            an implicit tree; where several pages have the same, a node
//	            with a program of its own tells them apart, and so on
//	page        64 keys: 9 lines of 64 bytes
//	  ┌────────────┬──────────────────┬──────────────────┐
//	  │ program,   │ 16 partial keys, │ 16 offsets of    │
//	  │ base, and  │ 32 bits, a line; │ full keys a      │
//	  │ separators │ 4 lines          │ line; 4 lines    │
//	  └────────────┴──────────────────┴──────────────────┘
//	bytes       the full keys in order, one behind the other
//
// A search takes the partial key of the query by the directory's program,
// finds the page, takes the partial key again by the page's program, finds
// the first entry whose partial key is not below, and compares the full key
// there. Keys with equal partial keys form a run; the one asked for is found
// among them by their full keys.
//
// A program leaves out bits that all keys under it have in common. A query
// that is in the list has them, too, and so comes to where it is. Any other may
// be led astray: that shows when full keys are compared, and Find is done; for
// a rank, the search goes on from there by full keys, in steps that double.
//
// After Release all bytes read as zeros, and a damaged file may hold any bytes:
// results are then garbage, but nothing outside is touched.
type Tree struct {
	n     int
	count int // pages
	pages []byte
	bytes []byte
	root  *implicit.Tree[uint64]
	directory
	step    simd.Step // from a line of a page to an entry
	blocks  []*arena.Block
	vals    unsafe.Pointer // to be fetched for what is found
	valSize int
}

// Pages of 64 keys: with 256, 32 bits do not tell the keys of a page apart
// where they are URLs (3.1 comparisons a hit instead of 1.1, docs/layouts.md),
// and a line more is read for the separators.
const (
	lineKeys    = 16
	keyLines    = 4
	pageEntries = keyLines * lineKeys
	pageLines   = 1 + 2*keyLines
	pageBytes   = pageLines * simd.LineBytes
)

// Bits of a partial key, in pages and in the directory.
const (
	pageBits = 32
	nodeBits = 64
)

// header is the first line of a page.
type header struct {
	simd.Program
	Base uint64               // where the page's keys begin among the bytes,
	End  uint32               // and where they end, from there
	seps [keyLines - 1]uint32 // the greatest partial key of each line but the last
}

// page is a page as it lies in memory.
type page struct {
	header
	partials [pageEntries]uint32
	offsets  [pageEntries]uint32 // from Base
}

var _ [pageBytes]byte = [unsafe.Sizeof(page{})]byte{}

// page returns page p.
func (t *Tree) page(p int) *page {
	return (*page)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.pages)), p*pageBytes))
}

// Len is the number of strings.
func (t *Tree) Len() int { return t.n }

// view returns string i where it lies; it must not be kept.
func (t *Tree) view(i int) string {
	p := t.page(i / pageEntries)
	slot := i % pageEntries
	lo, hi := p.Base+uint64(p.offsets[slot]), p.Base+uint64(p.End)
	if slot+1 < pageEntries {
		hi = p.Base + uint64(p.offsets[slot+1])
	}
	if lo >= hi || hi > uint64(len(t.bytes)) {
		return ""
	}
	return unsafe.String(&t.bytes[lo], hi-lo)
}

// Key returns string i, as a copy.
func (t *Tree) Key(i int) string { return string([]byte(t.view(i))) }

// bytesInAll returns the memory that the tree takes, in a file or not.
func (t *Tree) bytesInAll() (total int64) {
	for _, s := range t.Segments() {
		total += int64(len(s))
	}
	return total
}

// Stats says what the tree is made of. The directory counts as inner nodes.
func (t *Tree) Stats() layout.Stats {
	s := layout.Stats{Kind: Kind, Levels: t.root.Depth() + 1, LeafBytes: int64(len(t.pages) + len(t.bytes)), TotalBytes: t.bytesInAll()}
	s.InnerBytes = s.TotalBytes - s.LeafBytes
	return s
}

// Nodes returns the number of nodes of the directory below its root.
func (t *Tree) Nodes() int { return len(t.nodes) - 1 }

// PrefetchFrom makes Find fetch the value of each string that it finds: vals
// is the first, size the bytes of one.
func (t *Tree) PrefetchFrom(vals unsafe.Pointer, size int) { t.vals, t.valSize = vals, size }

// Release gives the memory back. Readers that are on their way get nonsense,
// but no fault.
func (t *Tree) Release() {
	for _, b := range t.blocks {
		b.Release()
	}
	if t.root != nil { // of a list in a file, the same block
		t.root.Release()
	}
}

// aim sets the step from a line of a page to an entry.
func (t *Tree) aim() {
	t.step = simd.Step{
		Base: unsafe.Pointer(unsafe.SliceData(t.pages)),
		Here: simd.Lines{At: 1, Page: pageLines, Shift: 2, Mask: keyLines - 1},
		Next: simd.NoLines, Fan: 4, Last: t.n,
	}
}
