// Package op names what trees have in common for their callers: the kinds of operations
// in a batch, and the errors of a build and of a change.
package op

import "errors"

// Kind is what an operation of a batch does.
type Kind uint8

const (
	Get Kind = iota
	Set
	Delete
)

var (
	// ErrLimit says that a change needs more memory than the tree may have.
	ErrLimit = errors.New("over the memory limit")
	// ErrStopped says that a build, or the sorting before it, was stopped on its way.
	ErrStopped = errors.New("stopped")
	// ErrClosed says that the tree was closed.
	ErrClosed = errors.New("tree is closed")
)
