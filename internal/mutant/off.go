//go:build !mutants

package mutant

// On reports whether one part of the code can be left out.
const On = false
