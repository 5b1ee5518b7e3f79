// Package packed is the compressed integers of the FAST paper: pages of keys as
// differences in few bits, under an implicit tree of their greatest keys.
package packed

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Tree is an immutable tree whose keys are stored as differences to the
// smallest key of their page, in as few bits as a page needs (FAST, section
// 6.2). It is safe for concurrent readers.
//
//	segment 0, 1: inner nodes and leaves of an implicit tree over the greatest
//	              key of each page: the rank of a key in it is the key's page
//	segment 2:    table of pages, 16 bytes each: {Min, word << 8 | width}
//	segment 3:    pages of 256 keys, each from a multiple of 64 bytes on
//	  ┌───────────────┬───────────┬───────────┬───┬───────────┬──────────┐
//	  │ 16 separators │ 16 keys   │ 16 keys   │ … │ 16 keys   │ zeros    │
//	  └───────────────┴───────────┴───────────┴───┴───────────┴──────────┘
//	  one stream of 272 differences of width bits, lowest bit first: key i of
//	  the page is at bit (16+i)·width. Separator g is the greatest difference
//	  of group g. So a search reads the line with the separators, which never
//	  crosses a border up to 32 bits, and the group.
//	  The last page is filled up with copies of the greatest key. Behind the
//	  last page are 64 bytes of zeros: a vector may be read from any group.
//	segment 4:    values in key order, if they are kept in the tree
//
// Differences up to 32 bits are packed; a page of 64-bit keys that needs more
// has 64 each. A page of equal keys has width 0 and takes no room at all. An
// empty tree has one page, of zeros.
type Tree[C simd.Code] struct {
	pages  simd.Packed
	cfg    implicit.Config
	top    *implicit.Tree[C]
	length int
	count  int // pages
	block  *arena.Block
}

// tailBytes are the zeros behind the last page.
const tailBytes = simd.LineBytes

// alignWords is the alignment of pages: a line, in words.
const alignWords = simd.LineBytes / 8

// distance is the queries between two steps of one. On 64M keys, 16 to 40
// are alike within a few percent and 8 is slower by an eighth.
const distance = 24

// smallBlock is the size below which huge pages would be mostly empty.
const smallBlock = 4 << 20

// widthOf returns the bits that differences up to greatest take.
func widthOf(greatest uint64) uint64 {
	if w := bits.Len64(greatest); w <= 32 {
		return uint64(w)
	}
	return 64
}

// wordsOf returns the words of a page.
func wordsOf(width uint64) uint64 {
	const all = simd.PackedPage + simd.PackedGroups // differences
	words := (all*width + 63) / 64
	return (words + alignWords - 1) / alignWords * alignWords
}

// countOf returns the number of pages of n keys.
func countOf(n int) int { return max(1, (n+simd.PackedPage-1)/simd.PackedPage) }

// topConfig is how the tree over the pages is built.
func topConfig(cfg implicit.Config) implicit.Config {
	return implicit.Config{Leaves: implicit.Apart, Fanout: cfg.Fanout, Pages: arena.Small, Workers: cfg.Workers, Distance: cfg.Distance}
}

// Plan returns the outline of a packed tree of n keys whose pages take
// packed bytes, as long as segment 3 of the one that was written. Only values
// of a column of their own can be kept: cfg.Leaves is Apart.
func Plan[C simd.Code](n, packed int, cfg implicit.Config) (layout.Outline, error) {
	if cfg.Leaves != implicit.Apart {
		return layout.Outline{}, fmt.Errorf("compressed leaves hold no pairs: keep values apart")
	}
	if n < 0 || packed < tailBytes || packed%simd.LineBytes != 0 {
		return layout.Outline{}, fmt.Errorf("%d keys in %d bytes of compressed pages: want lines of %d bytes, one at least", n, packed, simd.LineBytes)
	}
	count := countOf(n)
	plan, err := implicit.Plan[C](count, topConfig(cfg))
	if err != nil {
		return plan, err
	}
	plan.Sizes = append(plan.Sizes, count*int(unsafe.Sizeof(simd.PackedEntry{})), packed)
	if cfg.ValSize > 0 {
		plan.Sizes = append(plan.Sizes, n*cfg.ValSize)
	}
	plan.Slack += simd.PackedSlack
	plan.Levels++
	return plan, nil
}

// pageMode is the page mode to use for a block of these sizes.
func pageMode(sizes []int, asked arena.Pages) arena.Pages {
	total := 0
	for _, s := range sizes {
		total += s
	}
	if total < smallBlock {
		return arena.Small
	}
	return asked
}

// Open makes a tree of n keys over a block that holds one already, whose
// first segments are as Plan has them; the tree is released with it. Nothing of
// it is read: even if the bytes are damaged, no search leaves the block. Check
// reports whether they are a tree.
func Open[C simd.Code](n int, cfg implicit.Config, b *arena.Block) (*Tree[C], error) {
	plan, err := Plan[C](n, len(b.Segment(3)), cfg)
	if err != nil {
		return nil, err
	}
	if err := plan.CheckSegments(b); err != nil {
		return nil, err
	}
	t := &Tree[C]{cfg: cfg, length: n, count: countOf(n), block: b}
	if t.top, err = implicit.Open[C](t.count, topConfig(cfg), b); err != nil {
		return nil, err
	}
	t.point()
	return t, nil
}

// point tells the search routines where everything is.
func (t *Tree[C]) point() {
	segment := func(i int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(t.block.Segment(i))) }
	t.pages = simd.Packed{
		Table: segment(2), Words: segment(3),
		Last: uint64(t.count - 1), End: uint64(len(t.block.Segment(3))-tailBytes) / 8, Len: uint64(t.length),
		Distance: distance,
		Vals:     segment(2), // without values, Find prefetches a line that is there
	}
	if t.cfg.Distance > 0 {
		t.pages.Distance = uint64(t.cfg.Distance)
	}
	if t.cfg.ValSize > 0 {
		t.pages.Vals, t.pages.ValSize = segment(4), uint64(t.cfg.ValSize)
	}
	t.pages.Ready()
}

// Segments returns the memory of the top tree's inner nodes and leaves, the
// table of pages, the pages and, if values have one, their column.
func (t *Tree[C]) Segments() [][]byte {
	count := 4
	if t.cfg.ValSize > 0 {
		count++
	}
	var out [][]byte
	for i := range count {
		out = append(out, t.block.Segment(i))
	}
	return out
}

// Memory returns the tree as it lies: all segments, and where the column of
// values starts (0: there is none). A copy of it is the same tree.
func (t *Tree[C]) Memory() (all []byte, vals int) {
	segments := t.Segments()
	last := segments[len(segments)-1]
	at := t.block.Offset(last)
	if t.cfg.ValSize > 0 {
		vals = at
	}
	all = t.block.Memory()
	return all[:min(len(all), (at+len(last)+4095)&^4095)], vals // a file may have more behind
}

// Top is the tree over the greatest keys of the pages.
func (t *Tree[C]) Top() *implicit.Tree[C] { return t.top }

// Release gives the memory back. Readers that are on their way get nonsense,
// but no fault; see arena.Block.
func (t *Tree[C]) Release() { t.block.Release() }

// Stats says how large the tree is, without a look at its pages, which may lie
// in a file.
func (t *Tree[C]) Stats() layout.Stats {
	s := layout.Stats{Kind: Kind, Levels: t.Depth(), Fanout: t.top.Stats().Fanout, TotalBytes: t.block.Bytes()}
	for i, segment := range t.Segments() {
		switch n := int64(len(segment)); {
		case i < 3:
			s.InnerBytes += n
		case i == 3:
			s.LeafBytes = n
		default:
			s.ValueBytes = n
		}
	}
	return s
}

// Bits returns how many bits a key takes, on average.
func (t *Tree[C]) Bits() float64 {
	sum := uint64(0)
	for _, e := range t.table() {
		sum += simd.PackedWidth[C](e.At)
	}
	return float64(sum) / float64(t.count)
}

// table returns the entries of the pages.
func (t *Tree[C]) table() []simd.PackedEntry {
	return arena.As[simd.PackedEntry](t.block.Segment(2))
}

// keyBytes is the size of a code.
func keyBytes[C simd.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}
