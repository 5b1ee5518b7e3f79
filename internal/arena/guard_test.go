//go:build guard && unix

package arena

import (
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"
)

// A block with its slack can be read, and not a byte behind it: as it is built,
// as a file is mapped, and after Release.
func TestBlocksLieBeforeAGuard(t *testing.T) {
	for _, size := range []int{0, 1, 63, 64, 65, 4095, 4096, 4097, 100_000} {
		for _, slack := range []int{0, 64, 4096, 12_352} {
			b, err := New([]int{128, size}, slack, HugeAll, 0)
			if err != nil {
				t.Fatal(err)
			}
			end := roundUp(128+size, Align)
			if len(b.Memory()) != end {
				t.Errorf("%d bytes: %d of memory, want %d", size, len(b.Memory()), end)
			}
			endsAt(t, b, end+slack)
			b.Release()
			endsAt(t, b, end+slack)
			runtime.KeepAlive(b)
		}
	}
	f, _ := somefile(t, 8192)
	for _, slack := range []int{0, 4096} {
		b, err := Map(f, 8192, []Part{{0, 8192}}, slack, 0)
		if err != nil {
			t.Fatal(err)
		}
		endsAt(t, b, 8192+slack)
		b.Release()
		endsAt(t, b, 8192+slack)
		runtime.KeepAlive(b)
	}
}

// endsAt checks that a block can be read up to its byte n, and not beyond.
func endsAt(t *testing.T, b *Block, n int) {
	t.Helper()
	if n > 0 && faults(b, n-1) || !faults(b, n) || !faults(b, n+guard-1) || !faults(b, -guard) {
		t.Errorf("a block that must end at byte %d does not", n)
	}
}

// faults reports whether byte i of a block cannot be read.
func faults(b *Block, i int) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	sink = *(*byte)(unsafe.Add(b.Base(), i))
	return false
}

var sink byte
