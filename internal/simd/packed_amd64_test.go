//go:build amd64 && !noasm

package simd

import (
	"testing"
	"unsafe"
)

// The assembly reads a Packed and its rows at the offsets listed in
// _gen/packed.go. Whoever moves a field has to change both and run go
// generate.
func TestAssemblyKnowsPacked(t *testing.T) {
	var p Packed
	var r row
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"Table", unsafe.Offsetof(p.Table), 0},
		{"Words", unsafe.Offsetof(p.Words), 8},
		{"Last", unsafe.Offsetof(p.Last), 16},
		{"End", unsafe.Offsetof(p.End), 24},
		{"Len", unsafe.Offsetof(p.Len), 32},
		{"Distance", unsafe.Offsetof(p.Distance), 40},
		{"Shift", unsafe.Offsetof(p.Shift), 48},
		{"Vals", unsafe.Offsetof(p.Vals), 56},
		{"ValSize", unsafe.Offsetof(p.ValSize), 64},
		{"rows", unsafe.Offsetof(p.rows), 72},
		{"an entry", unsafe.Sizeof(PackedEntry{}), 16},
		{"bit", unsafe.Offsetof(r.bit), 0},
		{"first", unsafe.Offsetof(r.first), 64},
		{"right", unsafe.Offsetof(r.right), 128},
		{"mask", unsafe.Offsetof(r.mask), 192},
		{"a row", unsafe.Sizeof(r), 256},
	} {
		if f.got != f.want {
			t.Errorf("%s is at %d, the assembly reads it at %d", f.name, f.got, f.want)
		}
	}
}
