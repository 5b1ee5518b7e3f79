package rig

import "github.com/pando-index/pando/internal/device"

// What a device is to the library, under names that experiments use.
type (
	Device = device.Device
	Stream = device.Stream
	Event  = device.Event
	Ptr    = device.Ptr
)

// Errors of a device.
var (
	ErrNoDriver    = device.ErrNoDriver
	ErrNoDevice    = device.ErrNoDevice
	ErrOutOfMemory = device.ErrOutOfMemory
	ErrLost        = device.ErrLost
)
