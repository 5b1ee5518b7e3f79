package blocked

import (
	"fmt"
	"math/bits"

	"github.com/pando-index/pando/internal/simd"
)

// Geometry is how many binary levels of a tree lie together: in a block for
// one vector comparison, in a cache line, in a page. Zeros stand for the
// default of a key's width.
type Geometry struct {
	K int // 1 to L; L is the default
	L int // 4 for keys of 32 bits, 3 for keys of 64
	P int // a multiple of L
}

// maxPageLevels bounds the levels of lines in a page.
const maxPageLevels = 6

func (g Geometry) String() string { return fmt.Sprintf("K=%d L=%d P=%d", g.K, g.L, g.P) }

// lineLevels is L for keys of a width: a line holds 2^L of them.
func lineLevels[C simd.Code]() int { return bits.TrailingZeros(uint(keysInLine[C]())) }

// whole puts in defaults, and returns an error for impossible values.
func whole[C simd.Code](g Geometry) (Geometry, error) {
	l := lineLevels[C]()
	if g.L == 0 {
		g.L = l
	}
	if g.K == 0 {
		g.K = l
	}
	if g.P == 0 {
		g.P = defaultPageLevels * l
	}
	if g.L != l || g.K < 1 || g.K > l || g.P < l || g.P%l != 0 || g.P > maxPageLevels*l {
		return g, fmt.Errorf("blocks of %v binary levels: for keys of %d bits L is %d, K is 1 to %d, P a multiple of %d up to %d",
			g, 8*keyBytes[C](), l, l, l, maxPageLevels*l)
	}
	return g, nil
}

// Row is a row of pages.
type Row struct {
	At        int // line where its first page begins, from the start of the tree's memory
	PageLines int
	Levels    int // levels of lines in a page
	Pages     int // those with a leaf under them
}

// RowsOver returns the rows over a number of leaves: none over a single one.
func (g Geometry) RowsOver(leaves int) (rows []Row) {
	levels := 0
	for n := leaves; n > 1; n = ceil(n, g.L) {
		levels++
	}
	per := g.P / g.L
	for at := 0; levels > 0; {
		k := (levels-1)%per + 1 // the top row has the rest
		r := Row{At: at, PageLines: linesAbove(k, g.L), Levels: k, Pages: ceil(leaves, levels*g.L)}
		rows = append(rows, r)
		at += r.Pages * r.PageLines
		levels -= k
	}
	return rows
}

// linesAbove is the number of lines in k levels: 1 + F + … + F^(k-1).
func linesAbove(k, l int) int { return (1<<(k*l) - 1) / (1<<l - 1) }

// ceil returns n / 2^shift, rounded up.
func ceil(n, shift int) int { return (n + 1<<shift - 1) >> shift }

// Lines returns the number of lines that rows take.
func Lines(rows []Row) int {
	if len(rows) == 0 {
		return 0
	}
	last := rows[len(rows)-1]
	return last.At + last.Pages*last.PageLines
}

// Level returns where the lines of a row's level t are.
func (r *Row) Level(t, l int) simd.Lines {
	return simd.Lines{At: r.At + linesAbove(t, l), Page: r.PageLines, Shift: t * l, Mask: 1<<(t*l) - 1}
}

// slots returns the place in a line of each of its 2^L-1 keys, in key order. With
// K levels a block, the blocks of the upper levels come first (figure 1 of the
// paper), and a block lies as a small tree, level by level. Where K is L, keys
// lie in order: the comparison takes them all at once.
func (g Geometry) slots() []int {
	out := make([]int, 1<<g.L-1)
	for i := range out {
		out[i] = i
	}
	at := 0
	for top := 0; top < g.L && g.K < g.L; top += g.K {
		for b := range 1 << top { // a block, under which are 2^(L-top) children of the line
			first := b << (g.L - top)
			for t := range min(g.K, g.L-top) {
				part := 1 << (g.L - top - t)
				for i := range 1 << t {
					out[first+i*part+part/2-1] = at
					at++
				}
			}
		}
	}
	return out
}
