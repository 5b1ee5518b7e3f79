//go:build !cgo

package arena

// threadBytes is the addresses of a thread that is not started yet: without cgo its
// stack is of Go's heap.
const threadBytes = 64 << 10
