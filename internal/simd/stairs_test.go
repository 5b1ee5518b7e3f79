package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// staircase is a Stairs put together line by line, in rows of pages. Its lines
// are sorted, but need not be consistent with each other.
type staircase[C Code] struct {
	*Stairs
	steps []Step
	words []uint64
}

// makeStairs makes rows with the given numbers of levels, all pages present,
// over full leaves.
func makeStairs[C Code](rows []int, top int, pairs bool, fill func(node []C)) *staircase[C] {
	fan := 3
	if nodeKeys[C]() == 16 {
		fan = 4
	}
	s := new(staircase[C])
	at, pages := 0, 1
	for _, levels := range rows {
		lines := (1<<(levels*fan) - 1) / (1<<fan - 1)
		for t := range levels {
			above := (1<<(t*fan) - 1) / (1<<fan - 1)
			here := Lines{At: at + above, Page: lines, Shift: t * fan, Mask: 1<<(t*fan) - 1}
			s.steps = append(s.steps, Step{Here: here, Fan: fan})
		}
		at, pages = at+pages*lines, pages<<(levels*fan)
	}
	s.words = alignedWords(max(at+pages, Reach(s.steps)) * LineBytes / 8)
	leaves := Tree{Base: unsafe.Pointer(&s.words[0]), Leaves: uint64(at) * 8, LastLeaf: uint64(at+pages-1) * 8, Distance: 5}
	per := nodeKeys[C]()
	if pairs {
		per /= 2
	}
	for 1<<leaves.LeafShift < per {
		leaves.LeafShift++
	}
	leaves.LeafMask, leaves.Len = 1<<per-1, uint64(pages*per-1)
	for i := range s.steps {
		s.steps[i].Base = leaves.Base
	}
	for i := range at + pages {
		line := unsafe.Slice((*C)(unsafe.Add(leaves.Base, i*LineBytes)), nodeKeys[C]())
		if fill(line); i < at {
			line[len(line)-1] = ^C(0)
		}
	}
	s.Stairs = NewStairs[C](leaves, s.steps, min(top, len(s.steps)))
	return s
}

// descend answers one key as the doc comments define it.
func (s *staircase[C]) descend(key C) (a answer[C], nodes []int) {
	line := func(i int) []C {
		return unsafe.Slice((*C)(unsafe.Add(s.Base, i*LineBytes)), nodeKeys[C]())
	}
	x := 0
	for _, step := range s.steps {
		nodes = append(nodes, x)
		x = x<<step.Fan + linear(line(step.Here.Line(x)), key)
	}
	leaf := min(x, int(s.LastLeaf-s.Leaves)/8)
	nodes = append(nodes, leaf)
	per := 1 << s.LeafShift
	keys := line(int(s.Leaves)/8 + leaf)
	a.rank, a.place = min(leaf*per+linear(keys[:per], key), int(s.Len)), -1
	if i := slices.Index(keys[:per], key); i >= 0 {
		a.place, a.val = leaf*per+i, keys[len(keys)/2:][i%(len(keys)/2)]
	}
	return a, nodes
}

func TestStairsEqualTheDefinition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, stairsEqual[uint32], stairsEqual[uint64])
	})
}

func stairsEqual[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, rows := range [][]int{{}, {1}, {2}, {3}, {1, 1}, {1, 2}, {2, 1}, {1, 1, 1}} {
		for _, kind := range fillings[C](rng) {
			for range 3 {
				pairs := rng.IntN(2) == 0
				s := makeStairs(rows, rng.IntN(4), pairs, kind.fill)
				s.Distance = uint64(1 + rng.IntN(20))
				checkStairs(t, s, pairs, rng)
			}
		}
	}
}

// checkStairs searches batches of many lengths, cut at every level.
func checkStairs[C Code](t *testing.T, s *staircase[C], pairs bool, rng *rand.Rand) {
	t.Helper()
	all := unsafe.Slice((*C)(s.Base), (int(s.LastLeaf)/8+1)*nodeKeys[C]())
	for _, n := range []int{0, 1, 2, 15, 16, 17, 64, longest} {
		keys := make([]C, n)
		for i := range keys {
			keys[i] = all[rng.IntN(len(all))] + C(rng.IntN(3)) - 1
		}
		for cut := range s.Levels + 1 {
			upper, lower := s.Cut(0, cut, 1<<27), s.Cut(cut, s.Levels, 0)
			places := make([]int, n)
			Down(&upper, keys, places)
			if cut == s.Levels {
				for i := range places {
					places[i] -= int(s.Leaves)
				}
			}
			ranks, finds, vals := slices.Clone(places), slices.Clone(places), make([]C, n)
			for i, p := range places {
				vals[i] = C(p)
			}
			RankDown(&lower, keys, ranks)
			FindDown(&lower, keys, finds)
			if pairs {
				GetPairsDown(&lower, keys, vals, make([]bool, n))
			}
			for i, key := range keys {
				want, nodes := s.descend(key)
				if places[i] != 8*nodes[cut] {
					t.Fatalf("cut at %d: key %d comes to %d, want node %d", cut, key, places[i], nodes[cut])
				}
				if ranks[i] != want.rank || finds[i] != want.place || pairs && vals[i] != want.val {
					t.Fatalf("cut at %d: key %d has rank %d, is at %d with %d; want %+v", cut, key, ranks[i], finds[i], vals[i], want)
				}
			}
		}
	}
}
