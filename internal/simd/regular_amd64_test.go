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
		{"Control of Puts", unsafe.Offsetof(p.Control), 0},
		{"EpochIs of Puts", unsafe.Offsetof(p.EpochIs), 8},
		{"GenIs of Puts", unsafe.Offsetof(p.GenIs), 16},
		{"Root of Puts", unsafe.Offsetof(p.Root), 24},
		{"Height of Puts", unsafe.Offsetof(p.Height), 32},
		{"Keys of Puts", unsafe.Offsetof(p.Keys), 40},
		{"Vals of Puts", unsafe.Offsetof(p.Vals), 48},
		{"Places of Puts", unsafe.Offsetof(p.Places), 56},
		{"N of Puts", unsafe.Offsetof(p.N), 64},
		{"Dirty of Puts", unsafe.Offsetof(p.Dirty), 72},
		{"Done of Puts", unsafe.Offsetof(p.Done), 80},
		{"Added of Puts", unsafe.Offsetof(p.Added), 88},
		{"Dirtied of Puts", unsafe.Offsetof(p.Dirtied), 96},
		{"Old of Puts", unsafe.Offsetof(p.Old), 104},
		{"Had of Puts", unsafe.Offsetof(p.Had), 112},
		{"Leaf of Puts", unsafe.Offsetof(p.Leaf), 120},
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
