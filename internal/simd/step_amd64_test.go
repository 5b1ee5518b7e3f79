//go:build amd64 && !noasm

package simd

import (
	"testing"
	"unsafe"
)

// The assembly reads a flatStep and Stairs at the offsets listed in
// _gen/step.go and _gen/stairs.go. Whoever moves a field has to change both
// and run go generate.
func TestAssemblyKnowsTheStep(t *testing.T) {
	var (
		s     flatStep
		down  Stairs
		entry stair
	)
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"here", unsafe.Offsetof(s.here), 0},
		{"next", unsafe.Offsetof(s.next), 40},
		{"fan", unsafe.Offsetof(s.fan), 80},
		{"last", unsafe.Offsetof(s.last), 88},
		{"at", unsafe.Offsetof(s.here.at), 0},
		{"page", unsafe.Offsetof(s.here.page), 8},
		{"mask", unsafe.Offsetof(s.here.mask), 16},
		{"shift", unsafe.Offsetof(s.here.shift), 24},
		{"sub", unsafe.Offsetof(s.here.sub), 32},
		{"flat", unsafe.Offsetof(down.flat), 232},
		{"table", unsafe.Offsetof(down.table), 240},
		{"at of a stair", unsafe.Offsetof(entry.at), 0},
		{"shift of a stair", unsafe.Offsetof(entry.shift), 8},
		{"page of a stair", unsafe.Offsetof(entry.page), 16},
		{"a stair", unsafe.Sizeof(entry), 32},
	} {
		if f.got != f.want {
			t.Errorf("%s is at %d, the assembly reads it at %d", f.name, f.got, f.want)
		}
	}
}
