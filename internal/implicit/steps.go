package implicit

import "github.com/pando-index/pando/internal/simd"

// Depth returns the number of inner levels; level Depth is the leaves.
func (t *Tree[C]) Depth() int { return t.Levels }

// Descend takes queries from one level to another: places[i] becomes the place
// that keys[i] leads to. Where from is above 0, it is the place to begin at
// before.
func (t *Tree[C]) Descend(from, to int, keys []C, places []int) {
	part := t.Part(from, to)
	simd.Descend(&part, keys, places)
}

// RankFrom is Rank for queries that have come to level from, at the places
// in ranks.
func (t *Tree[C]) RankFrom(from int, keys []C, ranks []int) {
	part := t.Part(from, t.Levels)
	simd.Rank(&part, keys, ranks)
}

// FindFrom is Find for queries that have come to level from, at the places in
// ranks.
func (t *Tree[C]) FindFrom(from int, keys []C, ranks []int) {
	part := t.Part(from, t.Levels)
	simd.Find(&part, keys, ranks)
}

// Paired is a tree of Pairs: values come out of the line of their key.
type Paired[C simd.Code] struct{ *Tree[C] }

// GetPairs looks keys up; see simd.GetPairs.
func (t Paired[C]) GetPairs(keys, vals []C, found []bool) (hits int) {
	return simd.GetPairs(&t.Tree.Tree, keys, vals, found)
}

// GetPairsFrom is GetPairs for queries that have come to level from, at the
// places in vals.
func (t Paired[C]) GetPairsFrom(from int, keys, vals []C, found []bool) (hits int) {
	part := t.Part(from, t.Levels)
	return simd.GetPairs(&part, keys, vals, found)
}
