// Package implicit is the implicit B+-tree of the HB+-tree paper (section
// 4.1): an immutable tree without child pointers, its nodes one cache line
// each, breadth first in one block of memory.
//
//	segment 0: inner nodes, root level first
//	  ┌────────┬────────┬─────┬────────┐
//	  │ root   │ level 1│  …  │ level h│   child j of node i of a level is
//	  └────────┴────────┴─────┴────────┘   node i·fanout+j of the next
//
//	  inner node: 8 (64-bit) or 16 (32-bit) separators, 64 bytes
//	  ┌──┬──┬──┬──┬──┬──┬──┬──┐   separator j is the greatest key under
//	  │s0│s1│s2│s3│s4│s5│s6│s7│   child j; the last child has none. Places
//	  └──┴──┴──┴──┴──┴──┴──┴──┘   without a child hold the maximum, which
//	                              is below no key and so never counted.
//
//	segment 1: leaves, in key order
//	  Pairs:  ┌──────────────┬──────────────┐  keys and values of the same
//	          │ k0 k1 k2 k3  │ v0 v1 v2 v3  │  width in one line: one miss
//	          └──────────────┴──────────────┘  a hit (8 pairs of 32 bits)
//	  Apart:  ┌─────────────────────────────┐  keys alone: 8 or 16 a line;
//	          │ k0 k1 k2 k3 k4 k5 k6 k7     │  values of any width, if any,
//	          └─────────────────────────────┘  in segment 2, in key order
//
//	  The last leaf is filled up with copies of the greatest key: a search
//	  for the first of equal keys never ends at one of them.
//
// With every separator the greatest key on its left, the number of separators
// below a key is the child that holds the key's lower bound: equal keys may
// cross any border between nodes, and no key value is reserved.
//
// Which leaves are the better: bench experiment layout. A hit on Pairs takes
// one line from memory where Apart takes two; so Frozen uses Pairs where widths
// allow, at 12.5 % of memory beyond the pairs against 6.3 %.
package implicit

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Leaves is how leaves hold keys and values.
type Leaves uint8

const (
	Apart Leaves = iota // keys in leaves, values in a column of their own
	Pairs               // keys and values together in a line
)

func (l Leaves) String() string {
	if l == Pairs {
		return "pairs"
	}
	return "apart"
}

// Config says how to build a tree.
type Config struct {
	Leaves   Leaves
	ValSize  int         // bytes of a value kept in the tree; 0 for none. Pairs need the key's width
	Fanout   int         // 0 for the most a node can have: 9 (64-bit) or 17 (32-bit). The paper's hybrid tree has 8 and 16
	Pages    arena.Pages // which segments go on huge pages
	Limit    int64       // most bytes to take; 0 for no limit
	Workers  int         // goroutines that build
	Distance int         // queries between two steps of one query; 0 for DefaultDistance
	Inner    int         // bytes of segment 0 to leave to another layout, which then has these leaves: the tree has no inner levels of its own
	Slack    int         // bytes that its searches may read behind the leaves

	Stop func() bool // see layout.Config
}

// DefaultDistance is the best of 1 to 128: bench experiment pipeline-length.
const DefaultDistance = 32

// maxTopBytes bounds a level that a query walks through without giving way to
// other queries: it should be in the second-level cache, with room to spare.
const maxTopBytes = 256 << 10

// maxLeaves keeps the number of a node within 32 bits, which the search
// routines rely on, and the bytes of all leaves within the limits of an arena:
// on machines of 32 bits that is less.
const maxLeaves = min(1<<32, math.MaxInt/4/simd.LineBytes)

// maxPairs32 keeps the place of a leaf of 32-bit pairs within simd.MaxPlace.
const maxPairs32 = min(simd.MaxPlace/10*8, math.MaxInt)

// PairsFit reports whether leaves of pairs can hold n entries.
func PairsFit[C simd.Code](n int) bool { return keyBytes[C]() == 8 || n <= maxPairs32 }

// smallBlock is the size below which huge pages would be mostly empty.
const smallBlock = 4 << 20

// Tree is an immutable tree over codes. It is safe for concurrent readers.
type Tree[C simd.Code] struct {
	simd.Tree
	cfg    Config
	counts []int // nodes of each inner level, root first
	places []int // place of the first node of each level, the leaves' last
	leaves int
	block  *arena.Block
}

// lineWords is the size of a node in the words that places count.
const lineWords = simd.LineBytes / 8

// leaf returns the address of leaf x.
func (t *Tree[C]) leaf(x int) unsafe.Pointer {
	return unsafe.Add(t.Base, int(t.Leaves)*8+x*simd.LineBytes)
}

// keyBytes is the size of a code.
func keyBytes[C simd.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}

// shape works out the geometry of a tree of n keys.
func shape[C simd.Code](n int, cfg Config) (*Tree[C], error) {
	slots := simd.LineBytes / keyBytes[C]()
	if cfg.Fanout == 0 {
		cfg.Fanout = slots + 1
	}
	if cfg.Fanout != slots && cfg.Fanout != slots+1 {
		return nil, fmt.Errorf("fanout %d: a node of %d-bit keys has %d or %d children", cfg.Fanout, 8*keyBytes[C](), slots, slots+1)
	}
	if cfg.Distance == 0 {
		cfg.Distance = DefaultDistance
	}
	if cfg.Slack < 0 || cfg.Inner < 0 || cfg.Inner%simd.LineBytes != 0 {
		return nil, fmt.Errorf("%d bytes for inner nodes: want a multiple of %d", cfg.Inner, simd.LineBytes)
	}
	perLeaf := slots
	if cfg.Leaves == Pairs {
		if cfg.ValSize != keyBytes[C]() {
			return nil, fmt.Errorf("pairs of %d-byte keys and %d-byte values: the widths must be equal", keyBytes[C](), cfg.ValSize)
		}
		perLeaf = slots / 2
		if !PairsFit[C](n) {
			return nil, fmt.Errorf("%w: %d pairs of 32 bits, the limit is %d", layout.ErrTooLarge, n, maxPairs32)
		}
	}
	t := &Tree[C]{cfg: cfg, leaves: max(1, (n+perLeaf-1)/perLeaf)}
	if t.leaves > maxLeaves {
		return nil, fmt.Errorf("%w: %d keys, the limit is %d", layout.ErrTooLarge, n, maxLeaves*perLeaf)
	}
	if cfg.ValSize > 0 && n > math.MaxInt/cfg.ValSize {
		return nil, fmt.Errorf("%w: %d values of %d bytes", layout.ErrTooLarge, n, cfg.ValSize)
	}
	for nodes := t.leaves; nodes > 1 && cfg.Inner == 0; {
		nodes = (nodes + cfg.Fanout - 1) / cfg.Fanout
		t.counts = append([]int{nodes}, t.counts...)
	}
	t.Levels = len(t.counts)
	for t.Top < t.Levels && t.counts[t.Top]*simd.LineBytes <= maxTopBytes {
		t.Top++
	}
	t.Fanout = uint64(cfg.Fanout)
	t.Distance = uint64(cfg.Distance)
	t.Tree.Len = uint64(n)
	for 1<<t.LeafShift < perLeaf {
		t.LeafShift++
	}
	if n > 0 { // an empty tree has one leaf without places
		t.LeafMask = 1<<perLeaf - 1
	}
	return t, nil
}

// segments returns the sizes of the block's segments.
func (t *Tree[C]) segments() []int {
	inner := t.cfg.Inner
	for _, c := range t.counts {
		inner += c * simd.LineBytes
	}
	sizes := []int{inner, t.leaves * simd.LineBytes}
	if t.hasColumn() {
		sizes = append(sizes, int(t.Tree.Len)*t.cfg.ValSize)
	}
	return sizes
}

// slack is the bytes that must be readable behind the block: with a fanout one
// below the most, a search through a released tree counts one child too many at
// every level and may end that far behind.
func (t *Tree[C]) slack(sizes []int) int {
	if t.cfg.Inner > 0 {
		return t.cfg.Slack
	}
	if t.cfg.Fanout > simd.LineBytes/keyBytes[C]() {
		return 0
	}
	return (sizes[0] + sizes[1]) / 8
}

// pages is the page mode to use for a block of these sizes.
func (t *Tree[C]) pages(sizes []int) arena.Pages {
	total := 0
	for _, s := range sizes {
		total += s
	}
	if total < smallBlock {
		return arena.Small
	}
	return t.cfg.Pages
}

// Need returns the bytes that a tree of n keys takes.
func Need[C simd.Code](n int, cfg Config) (int64, error) {
	t, err := shape[C](n, cfg)
	if err != nil {
		return 0, err
	}
	sizes := t.segments()
	return arena.Need(sizes, t.pages(sizes))
}

// allocate takes the memory and points the levels into it.
func (t *Tree[C]) allocate() error {
	sizes := t.segments()
	b, err := arena.New(sizes, t.slack(sizes), t.pages(sizes), t.cfg.Limit)
	if err != nil {
		return err
	}
	t.point(b)
	return nil
}

// point makes the tree that of a block: its first segments are inner nodes,
// leaves and, if there is one, the column of values. Where they are is taken
// from the segments' addresses.
func (t *Tree[C]) point(b *arena.Block) {
	t.block = b
	t.Base = b.Base()
	t.Leaves = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b.Segment(1))))-uintptr(t.Base)) / 8
	t.LastLeaf = t.Leaves + uint64(t.leaves-1)*lineWords
	place := 0
	for l, c := range t.counts {
		t.places = append(t.places, place)
		below := place + c*lineWords
		if l == t.Levels-1 {
			below = int(t.Leaves)
		}
		t.Next[l] = int64(below - t.cfg.Fanout*place)
		place = below
	}
	t.places = append(t.places, int(t.Leaves))
	t.ValSize = uint64(t.cfg.ValSize)
	if t.hasColumn() {
		t.Vals = unsafe.Pointer(unsafe.SliceData(b.Segment(2)))
	}
}

// hasColumn reports whether values lie in a segment of their own.
func (t *Tree[C]) hasColumn() bool { return t.cfg.Leaves == Apart && t.cfg.ValSize > 0 }

// perLeaf is the number of keys in a leaf.
func (t *Tree[C]) perLeaf() int { return 1 << t.LeafShift }

// line returns node x of a level as keys.
func (t *Tree[C]) line(level, x int) []C {
	at := unsafe.Add(t.Base, t.places[level]*8+x*simd.LineBytes)
	return unsafe.Slice((*C)(at), simd.LineBytes/keyBytes[C]())
}

// Release gives the memory back. Readers that are on their way get nonsense,
// but no fault; see arena.Block.
func (t *Tree[C]) Release() { t.block.Release() }

// Leaf returns how the leaves hold keys and values.
func (t *Tree[C]) Leaf() Leaves { return t.cfg.Leaves }

// Stats says how large the tree is and how it was built.
func (t *Tree[C]) Stats() layout.Stats {
	s := layout.Stats{Kind: layout.Apart, Fanout: t.cfg.Fanout, Levels: t.Levels, TotalBytes: t.block.Bytes()}
	if t.cfg.Leaves == Pairs {
		s.Kind = layout.Pairs
	}
	sizes := t.segments()
	s.InnerBytes, s.LeafBytes = int64(sizes[0]), int64(sizes[1])
	if len(sizes) > 2 {
		s.ValueBytes = int64(sizes[2])
	}
	return s
}
