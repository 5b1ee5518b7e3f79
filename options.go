package pando

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/snapshot"
)

// Option changes how an index is built and where it runs. Without options, an
// index uses the best that the machine has. A function returns ErrOption for an
// option that it does not use: no option is ignored.
type Option func(*config)

type config struct {
	given    optionSet
	device   Device
	solo     bool
	workers  int
	limit    int64
	loose    bool // the limit of a tree does not count yet: see index.Loose
	pages    PageMode
	layout   LayoutKind
	layouts  *index.Layouts
	room     int64
	response time.Duration
	values   *index.Codec
	verified bool
	note     string
	context  index.Stopper
}

// optionSet is a set of options.
type optionSet uint16

const (
	optOn optionSet = 1 << iota
	optDeviceOnly
	optWorkers
	optMemoryLimit
	optHugePages
	optLayout
	optDeviceMemory
	optResponseTime
	optValues
	optVerified
	optNote
	optContext
)

// optionNames are the names of the options, in the order of their bits.
var optionNames = [...]string{"On", "DeviceOnly", "Workers", "MemoryLimit", "HugePages", "Layout", "DeviceMemory", "ResponseTime", "Values", "Verified", "Note", "Context"}

// door is a family of functions that take options, with the set of options that they
// use.
type door struct {
	name  string
	takes optionSet
}

// usual are the options that every function uses.
const usual = optOn | optWorkers | optMemoryLimit | optLayout | optDeviceMemory | optValues

// The doors. A Tree that is opened from a file reads all of it, and checks every
// checksum in any case.
var (
	freezing    = door{"Freeze", usual | optHugePages | optResponseTime | optNote | optContext}
	opening     = door{"Open", usual | optResponseTime | optNote | optVerified}
	treeing     = door{"NewTree", usual | optDeviceOnly | optNote}
	treeOpening = door{"OpenTree", usual | optDeviceOnly | optNote | optVerified}
)

// refuse returns ErrOption if an option is given that the functions of d do not use.
func (d door) refuse(given optionSet) error {
	for i, name := range optionNames {
		if given&^d.takes&(1<<i) != 0 {
			return fmt.Errorf("%w: %s does not use %s; leave it out", ErrOption, d.name, name)
		}
	}
	return nil
}

// Device says where queries run: Auto, CPU, GPU(i) or Hybrid(i).
type Device struct{ d index.Device }

var (
	// Auto picks the fastest device, a GPU only in a program that imports
	// package cuda. The environment variable PANDO_DEVICE, if set to "cpu",
	// "gpu:0" or "hybrid:0", overrides it.
	Auto = Device{index.Device{Kind: index.Auto}}
	// CPU runs everything on the cores of the machine.
	CPU = Device{index.Device{Kind: index.CPU}}
)

// GPU keeps a copy of the index in the memory of GPU i and runs batches there, in a
// program that links the driver:
//
//	import _ "github.com/pando-index/pando/cuda"
//
// A program without that import, a machine without a GPU, or one without enough
// memory, answers on the CPU, and Stats says why. For a number beyond the machine's
// GPUs the functions that take the option return ErrNoDevice.
func GPU(i int) Device { return Device{index.Device{Kind: index.GPU, Ordinal: i}} }

// Hybrid searches inner nodes on GPU i and leaves on the CPU: for an index
// larger than the GPU's memory. The CPU searches upper levels, too, as far as
// that balances both, and answers a whole batch where it is faster alone.
//
// For string keys, the GPU holds partial keys and the host the strings
// themselves, which the CPU compares. That pays for long keys such as URLs that
// do not fit the GPU's memory; where they fit, GPU(i) is several times as fast
// (docs/hybrid.md).
//
// For a Tree of numbers, the GPU holds a mirror of the inner nodes and takes
// large batches of GetBatch down to the leaves; the CPU does everything else.
func Hybrid(i int) Device { return Device{index.Device{Kind: index.Hybrid, Ordinal: i}} }

// String returns the device as ParseDevice takes it: "auto", "cpu", "gpu:0".
func (d Device) String() string { return d.d.String() }

// ParseDevice returns the device of a name: "auto", "cpu", "gpu:0", "hybrid:0".
// The empty name is Auto, and a GPU without a number is the first. For any
// other name it returns ErrNoDevice.
func ParseDevice(name string) (Device, error) {
	d, err := index.ParseDevice(name)
	if err != nil {
		return Device{}, translate(err)
	}
	return Device{d}, nil
}

// On says where queries run. The default is Auto.
func On(d Device) Option {
	return func(c *config) { c.device, c.given = d, c.given|optOn }
}

// Workers sets the greatest number of goroutines that a build or a batch uses,
// the caller's included. 0, the default, means one for each core.
func Workers(n int) Option {
	return func(c *config) { c.workers, c.given = n, c.given|optWorkers }
}

// MemoryLimit bounds the memory that a build takes: the index and the scratch
// space for sorting together. The finished index takes less. A build that would
// need more returns ErrMemoryLimit, as a rule before it allocates anything. The
// exception is unsorted input in layout Compressed, or where AutoLayout may
// choose it, because the size of compressed keys is known only once they are
// sorted. Such a build fails early if even the least it can need is over the
// limit; otherwise it sorts within the limit first, and frees that memory if it
// then fails.
//
// The limit does not count values in Go memory, which are strings and all with
// pointers but slices of bytes, nor a build's own tables, which take a few bytes a
// key at most. 0, the default, means no limit.
func MemoryLimit(bytes int64) Option {
	return func(c *config) { c.limit, c.layouts, c.given = bytes, index.AllLayouts, c.given|optMemoryLimit }
}

// Context makes a build stop when ctx is done: Freeze, FreezeSeq, the functions
// like FreezeMerge and Tree.Freeze then give all memory back and return an error
// that wraps ctx.Err(). They check ctx between their steps and, while they sort and
// write leaves, every few tens of thousands of entries on each worker. The finished
// index is not bound to ctx.
func Context(ctx context.Context) Option {
	return func(c *config) { c.context, c.given = ctx, c.given|optContext }
}

// DeviceMemory bounds the GPU memory that an index takes, buffers included. An
// index that would need more keeps as many of its upper levels there as fit,
// and the CPU searches the levels below. 0, the default, means all free memory
// of the GPU.
func DeviceMemory(bytes int64) Option {
	return func(c *config) { c.room, c.given = bytes, c.given|optDeviceMemory }
}

// DeviceOnly makes a Tree on a GPU, On(GPU(0)), live there alone, without a copy
// in host memory. Batches of changes are then several times as fast, and if the
// GPU is lost, the tree is lost with it: methods that return an error return
// ErrDeviceLost from then on, and the others panic. Each single operation costs a
// trip to the GPU, some tens of microseconds. Keys must be numbers, and values at
// most 8 bytes wide. Without a GPU, or without the import of package cuda, the
// tree is refused with ErrNoDevice.
func DeviceOnly() Option {
	return func(c *config) { c.solo, c.given = true, c.given|optDeviceOnly }
}

// ResponseTime bounds how long a query of a batch may wait inside the index for
// others. A large batch over a large index is answered faster if its queries are
// partitioned by sub-tree, and one sub-tree is searched after the other; but then
// the first answer comes hardly earlier than the last. With a bound, the CPU
// partitions only as many queries at a time as it can answer within d, at the rate
// it has measured so far; where those are too few to gain anything, it answers each
// query as it comes. The bound is a guide, not a promise: a machine that is busy
// with other things takes longer. 0, the default, means no bound. The option does
// not change the buckets in which queries travel to a GPU. It is for a Frozen.
func ResponseTime(d time.Duration) Option {
	return func(c *config) { c.response, c.given = d, c.given|optResponseTime }
}

// PageMode says which parts of an index are put on huge pages.
type PageMode uint8

const (
	HugeAll    PageMode = iota // inner nodes and leaves: the fastest, the default
	HugeInner                  // inner nodes only
	SmallPages                 // none
)

// HugePages sets which parts of an index are put on huge pages, where the
// system has them: 2 MiB pages, or 1 GiB pages if enough are reserved.
// Indexes below 4 MiB are on small pages in any case. It is for building a Frozen.
func HugePages(mode PageMode) Option {
	return func(c *config) { c.pages, c.given = mode, c.given|optHugePages }
}

// LayoutKind names the data structure that an index has in memory.
type LayoutKind uint8

const (
	// AutoLayout chooses Compressed for strings and Implicit for all other
	// keys, with two exceptions. Other keys are Compressed where MemoryLimit
	// leaves no room for Implicit and Compressed is at least 1.5 times smaller;
	// for unsorted keys that is decided after sorting. Strings are Apart where
	// Compressed cannot hold them: where 64 neighbours in key order have more
	// than 4 GiB together.
	AutoLayout LayoutKind = iota
	// Pairs is Implicit with keys beside their values, so that a hit costs one
	// cache miss. Keys and values must both be 4 bytes wide in the index (keys
	// of up to 32 bits are) or both 8, and values free of pointers.
	Pairs
	// Apart is Implicit with keys and values in arrays of their own: for any
	// value type, and 6 % smaller, but a hit costs two cache misses. For string
	// keys it is one sorted list, searched by halving.
	Apart
	// Implicit is a B+-tree without pointers, its nodes one cache line each:
	// Pairs where it can be, else Apart, and Stats say which.
	Implicit
	// Blocked is the FAST paper's tree: its inner nodes are grouped into pages,
	// so that a search touches few of them. Its leaves are those of Implicit.
	// On the machines measured Implicit is faster (docs/layouts.md). Strings
	// cannot be kept in it.
	Blocked
	// Compressed keeps integers and floats as small differences within a page,
	// where they lie close together: the smallest for them. Strings are found by
	// the bits in which they differ: the fastest for them, at some 9 bytes beside
	// each string, where Apart takes 8.
	Compressed
	// BPlus is a B+-tree with room in its leaves. Stats reports it for a Tree of
	// numbers and for its snapshots. Freeze does not take it.
	BPlus
	// Radix is an adaptive radix tree. A Tree of strings is one, and so is a Tree
	// of numbers with Layout(Radix). A Frozen with Layout(Radix) is built once and
	// as small as its keys allow, with the keys in order beside it. On the
	// machines measured the default is faster (docs/trie.md). It stays on the CPU.
	Radix
)

// Note attaches a text of at most 1022 bytes to the index, such as a description of
// its keys. Save and WriteTo put it into the file, and Inspect returns it. The
// command pando notes there which numbers are dates. Programs before version 3 of the
// format cannot read such a file.
func Note(text string) Option {
	return func(c *config) { c.note, c.given = text, c.given|optNote }
}

// Layout sets the layout of the index. The default is AutoLayout.
func Layout(kind LayoutKind) Option {
	return func(c *config) { c.layout, c.layouts, c.given = kind, index.AllLayouts, c.given|optLayout }
}

// configure applies options and checks their values.
func configure(d door, opts []Option) (config, error) {
	c := config{}
	for _, o := range opts {
		if o == nil {
			return c, fmt.Errorf("%w: nil; leave it out instead", ErrOption)
		}
		o(&c)
	}
	if err := d.refuse(c.given); err != nil {
		return c, err
	}
	if c.workers < 0 {
		return c, fmt.Errorf("%w: Workers(%d); 0 means one for each core", ErrOption, c.workers)
	}
	if c.room < 0 {
		return c, fmt.Errorf("%w: DeviceMemory(%d); 0 means all that is free", ErrOption, c.room)
	}
	if c.response < 0 {
		return c, fmt.Errorf("%w: ResponseTime(%v); 0 means no bound", ErrOption, c.response)
	}
	if c.limit < 0 {
		return c, fmt.Errorf("%w: MemoryLimit(%d); 0 means no limit", ErrOption, c.limit)
	}
	if len(c.note) > snapshot.MaxNote {
		return c, fmt.Errorf("%w: Note of %d bytes; %d is the most", ErrOption, len(c.note), snapshot.MaxNote)
	}
	if c.pages > SmallPages {
		return c, fmt.Errorf("%w: HugePages(%d); take HugeAll, HugeInner or SmallPages", ErrOption, c.pages)
	}
	if int(c.layout) >= len(layoutNames) {
		return c, fmt.Errorf("%w: Layout(%d); take AutoLayout, Pairs, Apart, Implicit, Blocked, Compressed or Radix", ErrLayout, c.layout)
	}
	return c, c.pickDevice()
}

// pickDevice replaces Auto by a device and returns ErrNoDevice for one that cannot
// be.
func (c *config) pickDevice() error {
	asked := "On(" + c.device.String() + ")"
	if c.device == Auto {
		env := os.Getenv("PANDO_DEVICE")
		d, err := index.ParseDevice(env)
		if err != nil {
			return fmt.Errorf("%w: PANDO_DEVICE=%q; set it to auto, cpu, gpu:0 or hybrid:0, or unset it", ErrNoDevice, env)
		}
		c.device, asked = Device{d}, "PANDO_DEVICE="+env
	}
	if c.device.d.Ordinal < 0 {
		return fmt.Errorf("%w: %s: GPUs count from 0", ErrNoDevice, asked)
	}
	return nil
}

// index returns the options as package index takes them.
func (c *config) index() index.Config {
	return index.Config{
		Device: c.device.d, DeviceOnly: c.solo, Workers: c.workers, Limit: c.limit, Loose: c.loose, Pages: c.pages.arena(), Layout: layout.Kind(c.layout.String()), Layouts: c.layouts,
		Room: c.room, Response: c.response, Verified: c.verified, Note: c.note,
		Context: c.context,
	}
}

// arena returns the page mode in the arena's words.
func (m PageMode) arena() arena.Pages {
	switch m {
	case HugeInner:
		return arena.HugeInner
	case SmallPages:
		return arena.Small
	}
	return arena.HugeAll
}

// pageMode is the inverse of PageMode.arena.
func pageMode(p arena.Pages) PageMode {
	for m := HugeAll; m < SmallPages; m++ {
		if m.arena() == p {
			return m
		}
	}
	return SmallPages
}

// String returns the mode's name.
func (m PageMode) String() string { return m.arena().String() }

// layoutNames are the names of the layouts, as the internal packages know them.
var layoutNames = [...]string{"auto", "pairs", "apart", "implicit", "blocked", "compressed", "bplus", "radix"}

// Layouts returns the kinds that Layout takes.
func Layouts() []LayoutKind {
	kinds := make([]LayoutKind, BPlus) // BPlus is for a Tree alone
	for i := range kinds {
		kinds[i] = LayoutKind(i)
	}
	return append(kinds, Radix)
}

// layoutNamed returns the layout with a name.
func layoutNamed(name string) LayoutKind {
	return LayoutKind(slices.Index(layoutNames[:], name))
}

// String returns the layout's name.
func (k LayoutKind) String() string {
	if int(k) < len(layoutNames) {
		return layoutNames[k]
	}
	return "LayoutKind(" + strconv.Itoa(int(k)) + ")"
}
