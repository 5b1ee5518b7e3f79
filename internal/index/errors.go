package index

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
)

// Cause is why something failed, for callers that give errors public names.
type Cause uint8

const (
	CauseUnknown Cause = iota
	CauseLimit         // the memory limit
	CauseMemory        // the system's memory
	CauseTooLarge
	CauseTooLong
	CauseLayout
	CauseDevice
	CauseFile
	CauseVersion
	CauseType
	CauseValues
	CauseClosed
	CauseLost // a GPU that alone held something
)

// failure is an error with a cause.
type failure struct {
	cause Cause
	error
}

func (f *failure) Unwrap() error { return f.error }

// Problem makes an error with a cause.
func Problem(c Cause, format string, args ...any) error {
	return &failure{c, fmt.Errorf(format, args...)}
}

// CauseOf returns the cause of an error.
func CauseOf(err error) Cause {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.cause
	case errors.Is(err, arena.ErrLimit):
		return CauseLimit
	case errors.Is(err, arena.ErrMemory):
		return CauseMemory
	case errors.Is(err, layout.ErrTooLarge):
		return CauseTooLarge
	case errors.Is(err, layout.ErrTooLong):
		return CauseTooLong
	}
	return CauseUnknown
}
