// Package mutant leaves out one part of the code, to see whether a test
// notices. It does so in builds with the tag mutants alone, and costs nothing in
// others; the environment variable PANDO_MUTANT names the part.
//
//	if mutant.On && mutant.Is("seal") {
//		return
//	}
//
// Package tests/mutants tries all of them.
package mutant

import "os"

var chosen = os.Getenv("PANDO_MUTANT")

// Is reports whether a part is to be left out.
func Is(part string) bool { return chosen == part }
