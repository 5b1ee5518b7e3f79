//go:build !race

package epoch

// RaceOn reports whether the race detector is on.
const RaceOn = false

// Edges tells the race detector of a tree's changes: see race_on.go. Without one it is nothing.
type Edges struct{}

// Release comes before a key is set.
func (*Edges) Release(uint64) {}

// Acquire comes after a key was found.
func (*Edges) Acquire(uint64) {}

// ReleaseAll is Release for all keys.
func (*Edges) ReleaseAll() {}

// AcquireAll is Acquire for all keys.
func (*Edges) AcquireAll() {}

// EdgeOf returns the number of a key that is a string, for Release and Acquire.
func EdgeOf(string) uint64 { return 0 }
