//go:build amd64 && !noasm

package simd

import (
	"testing"
	"unsafe"
)

// The assembly reads a Regular, its nodes and a Change at the offsets listed in
// _gen/regular.go, and has the sizes listed in _gen/regularstairs.go. Whoever
// changes one has to change both and run go generate.
func TestAssemblyKnowsTheRegularTree(t *testing.T) {
	var (
		r Regular
		c Change
	)
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"Uppers", unsafe.Offsetof(r.Uppers), 0},
		{"Pilots", unsafe.Offsetof(r.Pilots), 8},
		{"Blocks", unsafe.Offsetof(r.Blocks), 16},
		{"Root", unsafe.Offsetof(r.Root), 24},
		{"Height", unsafe.Offsetof(r.Height), 32},
		{"Word", unsafe.Offsetof(c.Word), 0},
		{"Was", unsafe.Offsetof(c.Was), 8},
		{"Will", unsafe.Offsetof(c.Will), 16},
		{"Epoch", unsafe.Offsetof(c.Epoch), 24},
		{"EpochIs", unsafe.Offsetof(c.EpochIs), 32},
		{"Gen", unsafe.Offsetof(c.Gen), 40},
		{"GenIs", unsafe.Offsetof(c.GenIs), 48},
		{"Dst", unsafe.Offsetof(c.Dst), 56},
		{"Src", unsafe.Offsetof(c.Src), 80},
		{"Lines", unsafe.Offsetof(c.Lines), 104},
		{"a node's word", regularWord, 56},
		{"separators", regularSeps, 128},
		{"references, 32 bits", uintptr(regularRefs[uint32]()), 384},
		{"references, 64 bits", uintptr(regularRefs[uint64]()), 640},
		{"a pilot, 32 bits", uintptr(RegularPilot[uint32]()), 384},
		{"a pilot, 64 bits", uintptr(RegularPilot[uint64]()), 640},
		{"an upper node, 32 bits", uintptr(RegularUpper[uint32]()), 1152},
		{"an upper node, 64 bits", uintptr(RegularUpper[uint64]()), 1408},
		{"a block", RegularBlock, 4096},
		{"locked", WordLocked, 1},
		{"locked or dead", wordUnread, 5},
		{"the ring", regularRing, 256},
	} {
		if f.got != f.want {
			t.Errorf("%s: %d, in the assembly %d", f.name, f.got, f.want)
		}
	}
}
