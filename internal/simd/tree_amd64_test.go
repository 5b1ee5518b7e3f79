//go:build amd64 && !noasm

package simd

import (
	"testing"
	"unsafe"
)

// The assembly reads a Tree at the offsets listed in _gen/descend.go. Whoever
// moves a field has to change both and run go generate.
func TestAssemblyKnowsTheTree(t *testing.T) {
	var tree Tree
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"Base", unsafe.Offsetof(tree.Base), 0},
		{"Next", unsafe.Offsetof(tree.Next), 8},
		{"Levels", unsafe.Offsetof(tree.Levels), 136},
		{"Top", unsafe.Offsetof(tree.Top), 144},
		{"Fanout", unsafe.Offsetof(tree.Fanout), 152},
		{"Leaves", unsafe.Offsetof(tree.Leaves), 160},
		{"LastLeaf", unsafe.Offsetof(tree.LastLeaf), 168},
		{"LeafMask", unsafe.Offsetof(tree.LeafMask), 176},
		{"LeafShift", unsafe.Offsetof(tree.LeafShift), 184},
		{"Len", unsafe.Offsetof(tree.Len), 192},
		{"Distance", unsafe.Offsetof(tree.Distance), 200},
		{"Vals", unsafe.Offsetof(tree.Vals), 208},
		{"ValSize", unsafe.Offsetof(tree.ValSize), 216},
		{"From", unsafe.Offsetof(tree.From), 224},
		{"all of it", unsafe.Sizeof(tree), 232},
	} {
		if f.got != f.want {
			t.Errorf("%s is at %d, the assembly reads it at %d", f.name, f.got, f.want)
		}
	}
}
