package fast

import (
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/blocked"
)

// The assembly reads narrowStairs at the offsets that are written down in
// internal/simd/_gen/sse.go and stairs.go. Whoever moves a field has to change both and
// generate.
func TestAssemblyKnowsTheStairs(t *testing.T) {
	var s narrowStairs
	var e narrowStair
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"table", unsafe.Offsetof(s.table), 232},
		{"at", unsafe.Offsetof(e.at), 0},
		{"shift", unsafe.Offsetof(e.shift), 8},
		{"page", unsafe.Offsetof(e.page), 16},
		{"an entry", unsafe.Sizeof(e), 32},
	} {
		if f.got != f.want {
			t.Errorf("%s is at %d, the assembly reads it at %d", f.name, f.got, f.want)
		}
	}
}

// What is behind the keys is left alone, and results that are too short are
// refused.
func TestSSEKeepsToItsSlices(t *testing.T) {
	tree := buildPaged(t, []uint32{1, 3, 5}, blocked.Geometry{K: 2})
	defer tree.Release()
	for _, how := range []Narrow{ByTable, ByCount} {
		for _, flight := range []int{-1, 0, 1, 2, 3, 100} {
			ranks := []int{-7, -7, -7, -7}
			RankSSE(tree, how, flight, nil, ranks)
			RankSSE(tree, how, flight, []uint32{0, 4, 9}, ranks)
			if ranks[0] != 0 || ranks[1] != 2 || ranks[2] != 3 || ranks[3] != -7 {
				t.Errorf("by %v, %d under way: %v", how, flight, ranks)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a short result slice was taken")
		}
	}()
	RankSSE(tree, ByTable, 8, []uint32{1, 2}, make([]int, 1))
}
