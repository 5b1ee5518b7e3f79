package pando

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/index"
)

// The errors that Pando returns wrap one of these, for errors.Is, and add what
// happened and what to do about it.
var (
	// ErrLength says that keys and values differ in number.
	ErrLength = errors.New("pando: keys and values differ in number")

	// ErrMemoryLimit says that an index would take more memory than
	// MemoryLimit allows.
	ErrMemoryLimit = errors.New("pando: memory limit")

	// ErrOutOfMemory says that the system has no more memory, or addresses (ulimit
	// -v), to give. Indexes out of use were collected before. Where addresses are
	// limited, some hundred MiB of them, if there are as many, are left to Go's
	// heap and to threads.
	ErrOutOfMemory = errors.New("pando: out of memory")

	// ErrTooLarge says that there are more keys than one index can hold.
	ErrTooLarge = errors.New("pando: too many keys")

	// ErrTooLong says that strings are too long for the layout asked for.
	// AutoLayout takes one that can hold them.
	ErrTooLong = errors.New("pando: strings too long")

	// ErrNoDevice says that the device asked for is not there.
	ErrNoDevice = errors.New("pando: no such device")

	// ErrDeviceLost says that a GPU was lost that alone held a Tree: see
	// DeviceOnly.
	ErrDeviceLost = errors.New("pando: GPU lost")

	// ErrLayout says that the layout asked for is not known, or cannot hold
	// keys and values of these types.
	ErrLayout = errors.New("pando: no such layout")

	// ErrOption says that an option has a value that makes no sense.
	ErrOption = errors.New("pando: bad option")

	// ErrFile says that a file is damaged, or not one of Pando's.
	ErrFile = errors.New("pando: bad file")

	// ErrEqualKeys says that a file has equal keys, which a Frozen keeps and a
	// Tree does not. Open takes it.
	ErrEqualKeys = errors.New("pando: equal keys")

	// ErrVersion says that a file was written by a later version of Pando.
	ErrVersion = errors.New("pando: file of a later version")

	// ErrType says that a file holds keys or values of another type.
	ErrType = errors.New("pando: other types in the file")

	// ErrClosed says that a Tree was closed.
	ErrClosed = errors.New("pando: used after Close")

	// ErrValues says that values hold pointers and do not marshal themselves, so
	// that a file needs the option Values for them; or that one cannot be
	// marshaled; or that encode does not keep its word.
	ErrValues = errors.New("pando: values need a codec")
)

// causes has the public error for each internal cause.
var causes = map[index.Cause]error{
	index.CauseLimit:    ErrMemoryLimit,
	index.CauseMemory:   ErrOutOfMemory,
	index.CauseTooLarge: ErrTooLarge,
	index.CauseTooLong:  ErrTooLong,
	index.CauseLayout:   ErrLayout,
	index.CauseDevice:   ErrNoDevice,
	index.CauseFile:     ErrFile,
	index.CauseVersion:  ErrVersion,
	index.CauseType:     ErrType,
	index.CauseValues:   ErrValues,
	index.CauseClosed:   ErrClosed,
	index.CauseLost:     ErrDeviceLost,
}

// translate returns an error of the floors below its public name.
func translate(err error) error {
	if public := causes[index.CauseOf(err)]; public != nil {
		return fmt.Errorf("%w: %w", public, err)
	}
	return err
}
