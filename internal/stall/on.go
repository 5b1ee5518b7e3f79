//go:build stalls

package stall

// On reports whether there are points at which tests can hold goroutines up.
const On = true
