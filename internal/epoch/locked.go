//go:build !amd64 || !unix || noasm

package epoch

// Optimistic reports whether readers go without a lock. Here they do not: a
// subtle protocol that cannot be tested is worse than a plain lock.
const Optimistic = false
