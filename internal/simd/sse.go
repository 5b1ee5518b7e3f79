package simd

import "runtime"

// Narrow is a way to search a line with 128-bit vectors, as the FAST paper
// does (section 5.1.2): in blocks of three keys, first the block of the upper
// two levels, then one of the four below it. The ways differ in how the three
// bits of a comparison become the number of a child.
type Narrow uint8

const (
	ByTable Narrow = iota // a table of eight entries: the paper's figure 2
	ByCount               // the number of bits set
)

func (n Narrow) String() string { return [...]string{"table", "count"}[n] }

// RankNarrow is RankDown for trees whose lines have blocks of two levels, and
// whose leaves hold 16 keys. Groups of flight queries go down together, level
// by level, as in the paper (section 5.1.3); with flight 1 they go one after
// the other. It is for experiments.
func RankNarrow(s *Stairs, how Narrow, flight int, keys []uint32, ranks []int) {
	_ = ranks[:len(keys)]
	flight = max(flight, 1)
	switch {
	case len(keys) == 0:
	case active == Go:
		narrowGo(s, keys, ranks)
	default:
		narrowAsm(bytes(s), how, bytes(&keys[0]), len(keys), &ranks[0], flight)
		runtime.KeepAlive(s)
	}
}

// narrowGo is RankNarrow in plain Go.
func narrowGo(s *Stairs, keys []uint32, ranks []int) {
	for i, key := range keys {
		x := 0
		for l := range s.Levels {
			line := lineOf[uint32](s, l, x)
			upper := linear(line[:3], key)
			lower := linear(line[3+3*upper:][:3], key)
			x = 16*x + 8*(4*upper+lower)
		}
		ranks[i] = rankInLeaf(&s.Tree, min(uint64(x)+s.Leaves, s.LastLeaf), key)
	}
}
