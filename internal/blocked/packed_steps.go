package blocked

import "github.com/pando-index/pando/internal/simd"

// packedShift is what a page is multiplied by to be a place: by a word's bytes,
// as if a page's entry were one.
const packedShift = 3

// Depth is the number of levels above the pages: the inner levels of the top
// tree and its leaves. Level Depth is the pages.
func (t *Packed[C]) Depth() int { return t.top.Depth() + 1 }

// Descend takes queries from one level to another: places[i] becomes the place
// that keys[i] leads to. Where from is above 0, it is the place to begin at
// before. A place of level Depth is 8 times the number of the page.
func (t *Packed[C]) Descend(from, to int, keys []C, places []int) {
	switch {
	case from == t.Depth():
	case to < t.Depth():
		t.top.Descend(from, to, keys, places)
	default:
		t.top.RankFrom(from, keys, places)
		for i := range keys {
			places[i] = min(places[i], t.count-1) << packedShift
		}
	}
}

// RankFrom is Rank for queries that have come to level from, at the places
// in ranks.
func (t *Packed[C]) RankFrom(from int, keys []C, ranks []int) {
	part := t.from(from, keys, ranks)
	simd.PackedRank(&part, keys, ranks)
}

// FindFrom is Find for queries that have come to level from, at the places in
// ranks.
func (t *Packed[C]) FindFrom(from int, keys []C, ranks []int) {
	part := t.from(from, keys, ranks)
	simd.PackedFind(&part, keys, ranks)
}

// from takes queries to their pages, and gives the pages as they are to be
// searched then.
func (t *Packed[C]) from(level int, keys []C, ranks []int) simd.Packed {
	part := t.pages
	if level == t.Depth() {
		part.Shift = packedShift
	} else {
		t.top.RankFrom(level, keys, ranks)
	}
	return part
}

// GetPairsFrom is never asked of a tree without pairs.
func (t *Packed[C]) GetPairsFrom(int, []C, []C, []bool) (hits int) { panic("blocked: not asked") }
