package simd

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

func TestPackRegular(t *testing.T) {
	packRegularAlike[uint32](t)
	packRegularAlike[uint64](t)
}

// packRegularAlike packs leaves of every size on every path.
func packRegularAlike[C Code](t *testing.T) {
	rng := seed.Rand(t)
	half := LineBytes / 2 / int(unsafe.Sizeof(C(0)))
	most := RegularFanout * half
	memory := func() (pilot, block unsafe.Pointer, all []byte) {
		all = make([]byte, RegularBlock+RegularPilot[C]()+LineBytes)
		at := unsafe.Pointer(&all[0])
		at = unsafe.Add(at, -uintptr(at)%LineBytes)
		return unsafe.Add(at, RegularBlock), at, unsafe.Slice((*byte)(at), RegularBlock+RegularPilot[C]())
	}
	keys, vals := make([]C, most+half), make([]C, most+half)
	key := C(0)
	for i := range keys {
		key += 1 + C(rng.IntN(1000))
		keys[i], vals[i] = key, C(rng.Uint64())
	}
	for n := RegularFanout; n <= most; n++ {
		pilot, block, want := memory()
		full := packRegularGo(RegularSeps[C](pilot), block, keys[:n], vals[:n])
		RegularSeps[C](pilot)[RegularFanout-1] = ^C(0)
		for _, path := range Paths() {
			undo := Use(path)
			pilot, block, got := memory()
			f := PackRegular(pilot, block, keys[:n], vals[:n], ^C(0))
			undo()
			if f != full || !slices.Equal(got, want) {
				t.Fatalf("%v, %d entries: full lines %b, not %b, or other bytes", path, n, f, full)
			}
		}
	}
}
