package blocked

import (
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Config says how to build a tree.
type Config struct {
	implicit.Config // of its leaves; Fanout and Inner are the tree's own
	Geometry
}

// defaultPageLevels is the number of levels of lines in a page: pages of 17 KiB
// for keys of 32 bits, 4.6 KiB for keys of 64. From 1 to 5 levels the speed
// differs by a few percent only, while a row may waste a page.
const defaultPageLevels = 3

// Tree is an immutable tree of blocked nodes. It is safe for concurrent
// readers.
type Tree[C simd.Code] struct {
	geo    Geometry
	rows   []Row
	first  []int       // level of lines on which each row begins; one more for the leaves
	steps  []simd.Step // one for each level of lines
	stairs *simd.Stairs
	leaves *implicit.Tree[C]
	count  int   // leaves
	slot   []int // place in a line of each key
}

// plan works out the rows over n keys, and the Config of their leaves.
func plan[C simd.Code](n int, cfg Config) (*Tree[C], implicit.Config, error) {
	geo, err := whole[C](cfg.Geometry)
	if err != nil {
		return nil, cfg.Config, err
	}
	under := cfg.Config
	under.Fanout, under.Inner = 0, simd.LineBytes
	if _, err := implicit.Plan[C](n, under); err != nil { // before anything is made of n
		return nil, under, err
	}
	per := keysInLine[C]()
	if cfg.Leaves == implicit.Pairs {
		per /= 2
	}
	t := &Tree[C]{geo: geo, count: max(1, (n+per-1)/per), slot: geo.slots()}
	t.rows = geo.RowsOver(t.count)
	for i := range t.rows {
		t.first = append(t.first, len(t.steps))
		t.addRow(i)
	}
	t.first = append(t.first, len(t.steps))
	under.Inner = Lines(t.rows) * simd.LineBytes
	under.Slack = max(0, (simd.Reach(t.steps)-Lines(t.rows)-t.count)*simd.LineBytes)
	return t, under, nil
}

// over makes the tree that of its leaves, and so that of their memory.
func (t *Tree[C]) over(leaves *implicit.Tree[C]) {
	t.leaves = leaves
	for g := range t.steps {
		t.steps[g].Base = leaves.Base
	}
	if n := len(t.steps); n > 0 {
		t.steps[n-1].Next.At = int(leaves.Leaves) / lineWords
	}
	top := 0
	for top < len(t.steps) && t.nodes(top)*simd.LineBytes <= maxTopBytes {
		top++
	}
	t.stairs = simd.NewStairs[C](leaves.Tree, t.steps, top)
}

// maxTopBytes bounds a level that a query walks through without giving way to
// other queries: it should be in the second-level cache, with room to spare.
const maxTopBytes = 256 << 10

// addRow adds the steps through row i, but for where the tree lies in memory.
// Each cuts the number of the child to those that there are.
func (t *Tree[C]) addRow(i int) {
	row, l := &t.rows[i], t.geo.L
	for k := range row.Levels {
		s := simd.Step{Here: row.Level(k, l), Fan: l}
		switch {
		case k+1 < row.Levels:
			s.Next, s.Last = row.Level(k+1, l), row.Pages<<((k+1)*l)-1
		case i+1 < len(t.rows):
			next := &t.rows[i+1]
			s.Next, s.Last = next.Level(0, l), next.Pages-1
		default:
			s.Next, s.Last = simd.Lines{Page: 1}, t.count-1
		}
		t.steps = append(t.steps, s)
	}
}

// Need returns the bytes that a tree of n keys takes.
func Need[C simd.Code](n int, cfg Config) (int64, error) {
	_, under, err := plan[C](n, cfg)
	if err != nil {
		return 0, err
	}
	return implicit.Need[C](n, under)
}

// Plan returns the outline of a tree of n keys: its segments are the rows of
// pages, the leaves and, if values have one, their column.
func Plan[C simd.Code](n int, cfg Config) (layout.Outline, error) {
	t, under, err := plan[C](n, cfg)
	if err != nil {
		return layout.Outline{}, err
	}
	o, err := implicit.Plan[C](n, under)
	o.Shape = t.Shape()
	return o, err
}

// Open makes a tree of n keys over a block that holds one already, whose first
// segments are as Plan has them; the tree is released with it. Nothing of it is
// read: even if the bytes are damaged, no search leaves the block. Check
// reports whether they are a tree.
func Open[C simd.Code](n int, cfg Config, b *arena.Block) (*Tree[C], error) {
	t, under, err := plan[C](n, cfg)
	if err != nil {
		return nil, err
	}
	leaves, err := implicit.Open[C](n, under, b)
	if err != nil {
		return nil, err
	}
	t.over(leaves)
	return t, nil
}

// Geometry returns the blocks of the tree.
func (t *Tree[C]) Geometry() Geometry { return t.geo }

// Leaves describes the leaves: where they are, and how they hold entries.
func (t *Tree[C]) Leaves() *simd.Tree { return &t.leaves.Tree }

// Steps returns the step through each level of lines, for other ways to search
// the tree (package papers/fast).
func (t *Tree[C]) Steps() []simd.Step { return t.steps }

// Len returns the number of entries.
func (t *Tree[C]) Len() int { return t.leaves.Len() }

// Stats says how large the tree is and how it was built: Fanout is that of a
// line, Levels are those of lines.
func (t *Tree[C]) Stats() layout.Stats {
	s := t.leaves.Stats()
	s.Kind, s.Fanout, s.Levels = Kind, 1<<t.geo.L, len(t.steps)
	return s
}

// Release gives the memory back. Readers that are on their way get nonsense,
// but no fault; see arena.Block.
func (t *Tree[C]) Release() { t.leaves.Release() }

// lineWords is the size of a line in the words that places count.
const lineWords = simd.LineBytes / 8

// keyBytes is the size of a code.
func keyBytes[C simd.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}

// keysInLine is the number of keys that fit a line.
func keysInLine[C simd.Code]() int { return simd.LineBytes / keyBytes[C]() }
