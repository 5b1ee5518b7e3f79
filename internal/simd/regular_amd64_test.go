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
		p Puts
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
		{"Epoch of Puts", unsafe.Offsetof(p.Epoch), 0},
		{"EpochIs of Puts", unsafe.Offsetof(p.EpochIs), 8},
		{"Gen of Puts", unsafe.Offsetof(p.Gen), 16},
		{"GenIs of Puts", unsafe.Offsetof(p.GenIs), 24},
		{"Keys", unsafe.Offsetof(p.Keys), 32},
		{"Vals", unsafe.Offsetof(p.Vals), 40},
		{"Places", unsafe.Offsetof(p.Places), 48},
		{"N", unsafe.Offsetof(p.N), 56},
		{"Done", unsafe.Offsetof(p.Done), 64},
		{"Added", unsafe.Offsetof(p.Added), 72},
		{"Old", unsafe.Offsetof(p.Old), 80},
		{"Had", unsafe.Offsetof(p.Had), 88},
		{"Leaf", unsafe.Offsetof(p.Leaf), 96},
		{"Dirty", unsafe.Offsetof(p.Dirty), 104},
		{"Dirtied", unsafe.Offsetof(p.Dirtied), 112},
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
