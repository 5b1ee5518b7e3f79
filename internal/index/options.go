package index

import (
	"fmt"
	"os"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/snapshot"
)

// Options are a Config as the face's options set it.
type Options struct {
	Config
	Given  OptionSet
	Values *Codec // nil for that of the type
}

// NewOptions returns what holds where no option is given.
func NewOptions() *Options {
	return &Options{Config: Config{Layout: layout.Auto, Pages: HugeAll}}
}

// LayoutName is the name of a layout, in the face and in Stats.
type LayoutName = layout.Kind

// Pages says which parts of an index are put on huge pages.
type Pages = arena.Pages

const (
	SmallPages = arena.Small
	HugeInner  = arena.HugeInner
	HugeAll    = arena.HugeAll
)

// OptionSet is a set of options.
type OptionSet uint16

const (
	OptOn OptionSet = 1 << iota
	OptDeviceOnly
	OptWorkers
	OptMemoryLimit
	OptHugePages
	OptLayout
	OptDeviceMemory
	OptResponseTime
	OptValues
	OptVerified
	OptNote
	OptContext
)

// optionNames are the names of the options, in the order of their bits.
var optionNames = [...]string{"On", "DeviceOnly", "Workers", "MemoryLimit", "HugePages", "Layout", "DeviceMemory", "ResponseTime", "Values", "Verified", "Note", "Context"}

// Door is a family of functions that take options, with the set of options that they
// use.
type Door struct {
	name  string
	takes OptionSet
}

// usual are the options that every function uses.
const usual = OptOn | OptWorkers | OptMemoryLimit | OptLayout | OptDeviceMemory | OptValues

// The doors. A Tree that is opened from a file reads all of it, and checks every
// checksum in any case.
var (
	Freezing    = Door{"Freeze", usual | OptHugePages | OptResponseTime | OptNote | OptContext}
	Opening     = Door{"Open", usual | OptResponseTime | OptNote | OptVerified}
	Treeing     = Door{"NewTree", usual | OptDeviceOnly | OptNote}
	TreeOpening = Door{"OpenTree", usual | OptDeviceOnly | OptNote | OptVerified}
)

// refuse returns ErrOption if an option is given that the functions of d do not use.
func (d Door) refuse(given OptionSet) error {
	for i, name := range optionNames {
		if given&^d.takes&(1<<i) != 0 {
			return fmt.Errorf("%w: %s does not use %s; leave it out", ErrOption, d.name, name)
		}
	}
	return nil
}

// Check returns an error for options that a door does not use, or whose values make no
// sense, and replaces Auto by a device where the environment names one.
func (o *Options) Check(d Door) error {
	if err := d.refuse(o.Given); err != nil {
		return err
	}
	switch {
	case o.Workers < 0:
		return fmt.Errorf("%w: Workers(%d); 0 means one for each core", ErrOption, o.Workers)
	case o.Room < 0:
		return fmt.Errorf("%w: DeviceMemory(%d); 0 means all that is free", ErrOption, o.Room)
	case o.Response < 0:
		return fmt.Errorf("%w: ResponseTime(%v); 0 means no bound", ErrOption, o.Response)
	case o.Limit < 0:
		return fmt.Errorf("%w: MemoryLimit(%d); 0 means no limit", ErrOption, o.Limit)
	case len(o.Note) > snapshot.MaxNote:
		return fmt.Errorf("%w: Note of %d bytes; %d is the most", ErrOption, len(o.Note), snapshot.MaxNote)
	}
	return o.pickDevice()
}

// pickDevice replaces Auto by a device and returns ErrNoDevice for one that cannot
// be.
func (o *Options) pickDevice() error {
	asked := "On(" + o.Device.String() + ")"
	if o.Device.Kind == Auto {
		env := os.Getenv("PANDO_DEVICE")
		d, err := ParseDevice(env)
		if err != nil {
			return fmt.Errorf("%w: PANDO_DEVICE=%q; set it to auto, cpu, gpu:0 or hybrid:0, or unset it", ErrNoDevice, env)
		}
		o.Device, asked = d, "PANDO_DEVICE="+env
	}
	if o.Device.Ordinal < 0 {
		return fmt.Errorf("%w: %s: GPUs count from 0", ErrNoDevice, asked)
	}
	return nil
}

// Codec returns the codec among the options, or else that of the type of values; nil if
// there is none.
func (o *Options) Codec(val *ValueType) (*Codec, error) {
	switch codec := o.Values; {
	case codec == nil:
		return DefaultCodec(val), nil
	case codec.Type != val.typ:
		return nil, fmt.Errorf("%w: Values is for another type than the index's, %v", ErrOption, val.typ)
	case codec.Encode == nil || codec.Decode == nil:
		return nil, fmt.Errorf("%w: Values needs both encode and decode", ErrOption)
	default:
		return codec, nil
	}
}

// Goroutines returns the most goroutines that a build uses.
func (c *Config) Goroutines() int { return par.Workers(c.Workers) }

// Each calls do with each number below n, on as many goroutines as a build uses.
func (c *Config) Each(n int, do func(i int)) { par.Run(c.Goroutines(), n, par.Func(do)) }

// Stopped reports whether the build is to be stopped.
func (c *Config) Stopped() bool { return c.Context != nil && c.Context.Err() != nil }
