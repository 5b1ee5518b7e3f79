package fast

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// This file takes the optimisations of the FAST paper one by one (figure 6):
// plain binary search, then pages, lines, vectors, and several queries under
// way. All ranks are those of blocked.Tree.Rank.

// keysInLine returns the number of keys that fit a line.
func keysInLine[C simd.Code]() int {
	var c C
	return simd.LineBytes / int(unsafe.Sizeof(c))
}

// RankBinary ranks by binary search in sorted keys, one query after the other.
func RankBinary[C simd.Code](sorted, keys []C, ranks []int) {
	for i, key := range keys {
		lo := 0
		for n := len(sorted); n > 0; {
			half := (n + 1) / 2
			if sorted[lo+half-1] < key {
				lo += half
			}
			n -= half
		}
		ranks[i] = lo
	}
}

// PageTree is a binary tree of which only pages lie together: in a page, nodes lie
// level by level, as if there were no cache lines.
type PageTree[C simd.Code] struct {
	rows   []blocked.Row // in keys instead of lines
	nodes  []C
	sorted []C // leaves of as many keys as a line holds
}

// NewPageTree makes the tree over sorted keys, in pages of the given binary
// levels: 10 are 4 KiB of 32-bit keys, 19 are 2 MiB. The keys are kept, as its
// leaves.
func NewPageTree[C simd.Code](sorted []C, levels int) *PageTree[C] {
	geo := blocked.Geometry{K: 1, L: 1, P: max(levels, 1)}
	p := &PageTree[C]{sorted: sorted}
	p.rows = geo.RowsOver(max(1, (len(sorted)+keysInLine[C]()-1)/keysInLine[C]()))
	p.nodes = make([]C, blocked.Lines(p.rows))
	under := 0
	for i := len(p.rows) - 1; i >= 0; i-- {
		for t := p.rows[i].Levels - 1; t >= 0; t-- {
			at := p.rows[i].Level(t, 1)
			for x := range p.rows[i].Pages << t {
				p.nodes[at.Line(x)] = p.greatest((2*x + 1) << under)
			}
			under++
		}
	}
	return p
}

// greatest returns the greatest key in the leaves before one.
func (p *PageTree[C]) greatest(leaf int) C {
	if end := leaf * keysInLine[C](); end < len(p.sorted) {
		return p.sorted[end-1]
	}
	return ^C(0)
}

// Rank ranks one query after the other.
func (p *PageTree[C]) Rank(keys []C, ranks []int) {
	for i, key := range keys {
		page := 0
		for _, row := range p.rows {
			nodes := p.nodes[row.At+page*row.PageLines:][:row.PageLines]
			j := 0
			for j < len(nodes) { // children of node j are 2j+1 and 2j+2
				j = 2*j + 1 + isBelow(nodes[j], key)
			}
			page = page<<row.Levels + j - len(nodes)
		}
		ranks[i] = rankInLeaf(p.sorted, page, key)
	}
}

// isBelow is 1 if a key is below another, 0 if not, without a branch.
func isBelow[C simd.Code](a, b C) (n int) {
	if a < b {
		n = 1
	}
	return n
}

// rankInLeaf ranks a key that has come to a leaf of sorted keys.
func rankInLeaf[C simd.Code](sorted []C, leaf int, key C) int {
	lo := leaf * keysInLine[C]()
	rank := [1]int{}
	RankBinary(sorted[lo:min(lo+keysInLine[C](), len(sorted))], []C{key}, rank[:])
	return lo + rank[0]
}

// RankLines ranks in a tree of K = 1 (a line is a small heap) whose leaves hold
// keys alone, one query after the other, without vectors.
func RankLines[C simd.Code](t *blocked.Tree[C], keys []C, ranks []int) {
	mustBe(t, 1)
	steps, sorted := t.Steps(), arena.As[C](t.Segments()[1])[:t.Len()]
	for i, key := range keys {
		x := 0
		for g := range steps {
			line := lineOf[C](&steps[g], x)
			j := 0
			for j < len(line)-1 {
				j = 2*j + 1 + isBelow(line[j], key)
			}
			x = min(x<<steps[g].Fan+j-(len(line)-1), steps[g].Last)
		}
		ranks[i] = rankInLeaf(sorted, x, key)
	}
}

// lineOf returns the line of node x of a level.
func lineOf[C simd.Code](s *simd.Step, x int) []C {
	return unsafe.Slice((*C)(unsafe.Add(s.Base, s.Here.Line(x)*simd.LineBytes)), keysInLine[C]())
}

// RankLevels ranks in any tree level by level, in groups of queries: whole lines
// at a time, with the widest vectors. It is Rank without simd.Stairs.
func RankLevels[C simd.Code](t *blocked.Tree[C], flight int, keys []C, ranks []int) {
	steps, leaf := t.Steps(), *t.Leaves()
	leaf.From, leaf.Levels, leaf.Top = 1, 1, 1 // a search that has come to its leaf
	for len(keys) > 0 {
		n := min(len(keys), max(flight, 1))
		clear(ranks[:n])
		for g := range steps {
			simd.StepDown(&steps[g], keys[:n], ranks)
		}
		for i, x := range ranks[:n] {
			ranks[i] = int(leaf.Leaves) + x*layout.NodeWords
		}
		simd.Rank(&leaf, keys[:n], ranks)
		keys, ranks = keys[n:], ranks[n:]
	}
}

// mustBe panics on a tree that an experiment cannot search.
func mustBe[C simd.Code](t *blocked.Tree[C], k int) {
	if t.Geometry().K != k || t.Format().Pairs {
		panic(fmt.Sprintf("fast: this search is for trees of K = %d whose leaves hold keys alone", k))
	}
}
