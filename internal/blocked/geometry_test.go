package blocked

import (
	"slices"
	"testing"
)

// The paper's figure 1 shows blocks of two levels; one level a block is the
// order of a heap, and all four are the order of the keys.
func TestSlotsAreAsInThePaper(t *testing.T) {
	for _, c := range []struct {
		geo  Geometry
		want []int // the key in each slot
	}{
		{Geometry{K: 2, L: 4}, []int{7, 3, 11, 1, 0, 2, 5, 4, 6, 9, 8, 10, 13, 12, 14}},
		{Geometry{K: 1, L: 4}, []int{7, 3, 11, 1, 5, 9, 13, 0, 2, 4, 6, 8, 10, 12, 14}},
		{Geometry{K: 3, L: 4}, []int{7, 3, 11, 1, 5, 9, 13, 0, 2, 4, 6, 8, 10, 12, 14}},
		{Geometry{K: 4, L: 4}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
		{Geometry{K: 2, L: 3}, []int{3, 1, 5, 0, 2, 4, 6}},
		{Geometry{K: 1, L: 1}, []int{0}},
	} {
		got := make([]int, len(c.want))
		for key, slot := range c.geo.slots() {
			got[slot] = key
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: keys lie as %v, want %v", c.geo, got, c.want)
		}
	}
}

// Rows are one behind the other, with a page for every path that has a leaf.
func TestRowsHoldTheLeaves(t *testing.T) {
	for _, l := range []int{1, 3, 4} {
		for k := 1; k <= 5; k++ {
			geo := Geometry{L: l, P: k * l}
			for leaves := 1; leaves < 100_000; leaves += 1 + leaves/3 {
				at, pages := 0, 1
				for i, r := range geo.RowsOver(leaves) {
					if r.At != at || r.Levels < 1 || r.Levels > k || i > 0 && r.Levels != k || r.Pages > pages {
						t.Fatalf("%v over %d leaves: row %d is %+v", geo, leaves, i, r)
					}
					at += r.Pages * r.PageLines
					pages = r.Pages << (r.Levels * l)
				}
				if pages < leaves || pages>>(k*l) >= leaves {
					t.Fatalf("%v over %d leaves: room for %d", geo, leaves, pages)
				}
			}
		}
	}
}
