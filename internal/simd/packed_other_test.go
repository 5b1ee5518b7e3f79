//go:build !linux

package simd

import "testing"

// garbageRoom returns n words; that nothing is read past them is tested on
// Linux.
func garbageRoom(_ *testing.T, n int) []uint64 { return make([]uint64, n) }
