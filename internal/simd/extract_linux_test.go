package simd

import (
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// Strings of any length may lie at the very end of memory, or at its start.
func TestExtractReadsInside(t *testing.T) {
	rng := seed.Rand(t)
	words := guarded(t, 512)
	page := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4096)
	for i := range page {
		page[i] = byte(rng.Uint32())
	}
	which, got := []int{0}, []uint64{0}
	for length := range 30 {
		for _, key := range []string{unsafe.String(&page[4096-max(length, 1)], length), unsafe.String(&page[0], length)} {
			for at := range 35 {
				p := Program{Mask: [Windows]uint64{rng.Uint64() | 1}, At: [Windows]uint16{uint16(at)}}
				want := bitByBit(&p, key)
				for _, path := range Paths() {
					undo := Use(path)
					Extract(unsafe.Pointer(&p), 0, which, []string{key}, got)
					undo()
					if got[0] != want {
						t.Fatalf("%v: %d bytes from %d on: %#x, want %#x", path, length, at, got[0], want)
					}
				}
			}
		}
	}
}
