// Package invariant states what the author of a piece of code knew to be true.
// The statements are checked in builds with the tag invariants, in which the
// tests run once more, and cost nothing in others.
//
//	if invariant.On {
//		invariant.Check(held <= flight, "%d buckets are under way, the most is %d", held, flight)
//	}
//
// The constant around the call keeps the arguments from being computed.
package invariant

import "fmt"

// Check panics with a sentence if what must be true is not.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
