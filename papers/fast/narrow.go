package fast

import (
	"runtime"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/simd"
)

// Narrow is a way to search a line with vectors of 128 bits, as the FAST paper
// does (section 5.1.2): blocks of three keys, the one of the upper two levels
// first, then the four under it. The ways differ in how the three bits of a
// comparison become the number of a child.
type Narrow uint8

const (
	ByTable Narrow = iota // a table of eight entries: the paper's figure 2
	ByCount               // the number of bits that are set
)

func (n Narrow) String() string { return [...]string{"table", "count"}[n] }

// RankSSE ranks in a tree of K = 2 whose leaves hold keys alone, with vectors of
// 128 bits: the paper's search. As many queries as flight says go down together,
// level by level, as in the paper (section 5.1.3); 1 is one after the other.
func RankSSE(t *blocked.Tree[uint32], how Narrow, flight int, keys []uint32, ranks []int) {
	mustBe(t, 2)
	ranks = ranks[:len(keys)]
	switch {
	case len(keys) == 0:
	case simd.Active() == simd.Go:
		rankNarrow(t, keys, ranks)
	default:
		s := newNarrowStairs(t)
		narrowAsm((*byte)(unsafe.Pointer(&s)), how, (*byte)(unsafe.Pointer(&keys[0])), len(keys), &ranks[0], max(flight, 1))
		runtime.KeepAlive(t)
	}
}

// rankNarrow is RankSSE in plain Go: the definition of what the assembly does.
func rankNarrow(t *blocked.Tree[uint32], keys []uint32, ranks []int) {
	steps, sorted := t.Steps(), arena.As[uint32](t.Segments()[1])[:t.Len()]
	for i, key := range keys {
		x := 0
		for g := range steps {
			line := lineOf[uint32](&steps[g], x)
			upper := countBelow(line[:3], key)
			lower := countBelow(line[3+3*upper:][:3], key)
			x = min(x<<steps[g].Fan+4*upper+lower, steps[g].Last)
		}
		ranks[i] = rankInLeaf(sorted, x, key)
	}
}

// countBelow returns the number of keys below key.
func countBelow(block []uint32, key uint32) (n int) {
	for _, k := range block {
		n += isBelow(k, key)
	}
	return n
}

// narrowStairs is a tree as the assembly takes it. It reads the fields at fixed
// offsets: those of simd.Tree, which the tests of simd compare, and the table
// behind.
type narrowStairs struct {
	simd.Tree
	table [simd.MaxLevels + 1]narrowStair // one more, for the leaves
}

// narrowStair is a level: the node at x, 8 times its number, is at the address
// at + 8·x + (x>>shift)·page.
type narrowStair struct {
	at          uintptr
	shift, page int
	_           int // an entry has 32 bytes
}

func newNarrowStairs(t *blocked.Tree[uint32]) narrowStairs {
	s, steps := narrowStairs{Tree: *t.Leaves()}, t.Steps()
	s.Levels = len(steps)
	for i := range steps {
		s.table[i] = s.stair(&steps[i].Here)
	}
	s.table[len(steps)] = s.stair(&simd.Lines{At: int(s.Leaves * 8 / simd.LineBytes), Page: 1})
	return s
}

// stair returns the entry of a level whose lines are in a row of pages.
func (s *narrowStairs) stair(l *simd.Lines) narrowStair {
	return narrowStair{
		at:    uintptr(s.Base) + uintptr(l.At)*simd.LineBytes,
		shift: l.Shift + 3,
		page:  (l.Page - 1<<l.Shift) * simd.LineBytes,
	}
}
