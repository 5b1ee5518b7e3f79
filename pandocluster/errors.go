package pandocluster

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandoserver"
)

// A key, and a value, must fit in what nodes send each other.
const (
	mostKey   = 128 << 10
	mostValue = 16 << 20
)

var (
	// ErrUnavailable is returned where a range has no leader, or too few replicas, for as long as Options.Timeout: nothing
	// was done.
	ErrUnavailable = fmt.Errorf("pandocluster: nothing was done: %w", pandoserver.ErrDown)
	// ErrUnknown is returned where nobody knows whether a change was made, or will be.
	ErrUnknown = errors.New("pandocluster: nobody knows whether the change was made")
	// ErrTooLong is returned for a change that no cluster takes: nothing was done, and nothing would be later.
	ErrTooLong = fmt.Errorf("pandocluster: nothing was done: a key has at most %d bytes, a value %d, a change in one range %d, and what it returns %d",
		mostKey, mostValue, machine.MostBatch, machine.MostResult)
	// ErrClosed is returned by a node that was closed, or has failed.
	ErrClosed = errors.New("pandocluster: the node was closed")

	errBusy    = errors.New("the range has too much under way")
	errRefused = errors.New("pandocluster: the range refuses what this program asks for, and nothing was done")
)

// Unavailable is what a read panics with that has no other way to say that it cannot be answered.
type Unavailable struct{ Err error }

func (u *Unavailable) Error() string { return u.Err.Error() }
func (u *Unavailable) Unwrap() error { return u.Err }

// wrong returns an error of kind with its cause.
func wrong(kind, cause error) error {
	if cause == nil {
		return kind
	}
	return fmt.Errorf("%w: %w", kind, cause)
}
