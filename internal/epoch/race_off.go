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

// ReleaseString is Release for a key that is a string.
func (*Edges) ReleaseString(string) {}

// AcquireString is Acquire for a key that is a string.
func (*Edges) AcquireString(string) {}
