package simd

import "testing"

// garbageRoom returns n words at whose end memory ends.
func garbageRoom(t *testing.T, n int) []uint64 { return guarded(t, n) }
