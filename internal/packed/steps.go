package packed

import "github.com/pando-index/pando/internal/simd"

// placeShift shifts a page to a place: by a word's bytes, as if a
// page's entry were one.
const placeShift = 3

// Depth is the number of levels above the pages: the inner levels of the top
// tree and its leaves. Level Depth is the pages.
func (t *Tree[C]) Depth() int { return t.top.Depth() + 1 }

// Descend takes queries from one level to another: places[i] becomes the place
// that keys[i] leads to. Where from is above 0, it is the place to begin at
// before. A place of level Depth is 8 times the number of the page.
func (t *Tree[C]) Descend(from, to int, keys []C, places []int) {
	switch {
	case from == t.Depth():
	case to < t.Depth():
		t.top.Descend(from, to, keys, places)
	default:
		t.top.RankFrom(from, keys, places)
		for i := range keys {
			places[i] = min(places[i], t.count-1) << placeShift
		}
	}
}

// RankFrom is Rank for queries that have come to level from, at the places
// in ranks.
func (t *Tree[C]) RankFrom(from int, keys []C, ranks []int) {
	part := t.from(from, keys, ranks)
	simd.PackedRank(&part, keys, ranks)
}

// FindFrom is Find for queries that have come to level from, at the places in
// ranks.
func (t *Tree[C]) FindFrom(from int, keys []C, ranks []int) {
	part := t.from(from, keys, ranks)
	simd.PackedFind(&part, keys, ranks)
}

// from takes queries to their pages, and gives the pages as they are to be
// searched then.
func (t *Tree[C]) from(level int, keys []C, ranks []int) simd.Packed {
	part := t.pages
	if level == t.Depth() {
		part.Shift = placeShift
	} else {
		t.top.RankFrom(level, keys, ranks)
	}
	return part
}
