package simd

import "testing"

// garbageRoom gives words behind which memory ends.
func garbageRoom(t *testing.T, n int) []uint64 { return guarded(t, n) }
