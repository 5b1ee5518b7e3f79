package index

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
)

// The errors of the face, which says what each means. They are here since the floors
// below it have to name them.
var (
	ErrLength      = errors.New("pando: keys and values differ in number")
	ErrMemoryLimit = errors.New("pando: memory limit")
	ErrOutOfMemory = errors.New("pando: out of memory")
	ErrTooLarge    = errors.New("pando: too many keys")
	ErrTooLong     = errors.New("pando: strings too long")
	ErrNoDevice    = errors.New("pando: no such device")
	ErrDeviceLost  = errors.New("pando: GPU lost")
	ErrLayout      = errors.New("pando: no such layout")
	ErrOption      = errors.New("pando: bad option")
	ErrFile        = errors.New("pando: bad file")
	ErrEqualKeys   = errors.New("pando: equal keys")
	ErrVersion     = errors.New("pando: file of a later version")
	ErrType        = errors.New("pando: other types in the file")
	ErrClosed      = errors.New("pando: used after Close")
	ErrValues      = errors.New("pando: values need a codec")
)

// failure is an error with a cause: one of the above, which it does not wrap yet.
type failure struct {
	cause error
	error
}

func (f *failure) Unwrap() error { return f.error }

// Problem makes an error with a cause.
func Problem(cause error, format string, args ...any) error {
	return &failure{cause, fmt.Errorf(format, args...)}
}

// CauseOf returns the cause of an error, nil if it is not known.
func CauseOf(err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.cause
	case errors.Is(err, arena.ErrLimit):
		return ErrMemoryLimit
	case errors.Is(err, arena.ErrMemory):
		return ErrOutOfMemory
	case errors.Is(err, layout.ErrTooLarge):
		return ErrTooLarge
	case errors.Is(err, layout.ErrTooLong):
		return ErrTooLong
	}
	return nil
}

// Public returns an error as the face returns it: it wraps its cause, whose text comes
// first.
func Public(err error) error {
	if err == nil {
		return nil
	}
	if cause := CauseOf(err); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
