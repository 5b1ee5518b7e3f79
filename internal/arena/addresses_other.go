//go:build !linux

package arena

import "math"

// addressesLeft returns math.MaxInt64: how many addresses are left is known
// when the system refuses one.
func addressesLeft() int64 { return math.MaxInt64 }

// threads returns 0: nothing tells.
func threads() int { return 0 }

// addressLimit returns the bytes of addresses that the process may map in all.
func addressLimit() int64 { return math.MaxInt64 }
