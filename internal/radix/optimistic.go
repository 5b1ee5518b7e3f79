//go:build amd64 && unix && !noasm

package radix

// optimistic reports whether readers go without a lock. That takes a machine
// that keeps loads and stores in order, and memory that stays readable.
const optimistic = true
