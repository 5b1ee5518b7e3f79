package pando

import "github.com/pando-index/pando/internal/index"

// The errors that Pando returns wrap one of these, for errors.Is, and add what
// happened and what to do about it.
var (
	// ErrLength says that keys and values differ in number.
	ErrLength = index.ErrLength

	// ErrMemoryLimit says that an index would take more memory than
	// MemoryLimit allows.
	ErrMemoryLimit = index.ErrMemoryLimit

	// ErrOutOfMemory says that the system has no more memory, or addresses (ulimit
	// -v), to give. Indexes out of use were collected before. Where addresses are
	// limited, some hundred MiB of them, if there are as many, are left to Go's
	// heap and to threads.
	ErrOutOfMemory = index.ErrOutOfMemory

	// ErrTooLarge says that there are more keys than one index can hold.
	ErrTooLarge = index.ErrTooLarge

	// ErrTooLong says that strings are too long for the layout asked for.
	// AutoLayout takes one that can hold them.
	ErrTooLong = index.ErrTooLong

	// ErrNoDevice says that the device asked for is not there.
	ErrNoDevice = index.ErrNoDevice

	// ErrDeviceLost says that a GPU was lost that alone held a Tree: see
	// DeviceOnly.
	ErrDeviceLost = index.ErrDeviceLost

	// ErrLayout says that the layout asked for is not known, or cannot hold
	// keys and values of these types.
	ErrLayout = index.ErrLayout

	// ErrOption says that an option has a value that makes no sense.
	ErrOption = index.ErrOption

	// ErrFile says that a file is damaged, or not one of Pando's.
	ErrFile = index.ErrFile

	// ErrEqualKeys says that a file has equal keys, which a Frozen keeps and a
	// Tree does not. Open takes it.
	ErrEqualKeys = index.ErrEqualKeys

	// ErrVersion says that a file was written by a later version of Pando.
	ErrVersion = index.ErrVersion

	// ErrType says that a file holds keys or values of another type.
	ErrType = index.ErrType

	// ErrClosed says that a Tree was closed.
	ErrClosed = index.ErrClosed

	// ErrValues says that values hold pointers and do not marshal themselves, so
	// that a file needs the option Values for them; or that one cannot be
	// marshaled; or that encode does not keep its word.
	ErrValues = index.ErrValues
)
