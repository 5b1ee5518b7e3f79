//go:build cgo

package arena

// threadBytes is the addresses of a thread that is not started yet: with cgo, the C
// library gives it a stack of 8 MiB, and 64 MiB of its own for malloc.
const threadBytes = 72 << 20
