//go:build amd64 && unix && !noasm

package epoch

// Optimistic reports whether readers go without a lock. That takes a machine
// that keeps loads and stores in order, and memory that stays readable.
const Optimistic = true
