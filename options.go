package pando

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/index"
)

// Option changes how an index is built and where it runs. Without options, an
// index uses the best that the machine has. A function returns ErrOption for an
// option that it does not use: no option is ignored.
type Option func(*config)

// config is all options together.
type config = index.Options

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
		return Device{}, index.Public(err)
	}
	return Device{d}, nil
}

// On says where queries run. The default is Auto.
func On(d Device) Option {
	return func(c *config) { c.Device, c.Given = d.d, c.Given|index.OptOn }
}

// Workers sets the greatest number of goroutines that a build or a batch uses,
// the caller's included. 0, the default, means one for each core.
func Workers(n int) Option {
	return func(c *config) { c.Workers, c.Given = n, c.Given|index.OptWorkers }
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
	return func(c *config) { c.Limit, c.Layouts, c.Given = bytes, index.AllLayouts, c.Given|index.OptMemoryLimit }
}

// Context makes a build stop when ctx is done: Freeze, FreezeSeq, the functions
// like FreezeMerge and Tree.Freeze then give all memory back and return an error
// that wraps ctx.Err(). They check ctx between their steps and, while they sort and
// write leaves, every few tens of thousands of entries on each worker. The finished
// index is not bound to ctx.
func Context(ctx context.Context) Option {
	return func(c *config) { c.Context, c.Given = ctx, c.Given|index.OptContext }
}

// DeviceMemory bounds the GPU memory that an index takes, buffers included. An
// index that would need more keeps as many of its upper levels there as fit,
// and the CPU searches the levels below. 0, the default, means all free memory
// of the GPU.
func DeviceMemory(bytes int64) Option {
	return func(c *config) { c.Room, c.Given = bytes, c.Given|index.OptDeviceMemory }
}

// DeviceOnly makes a Tree on a GPU, On(GPU(0)), live there alone, without a copy
// in host memory. Batches of changes are then several times as fast, and if the
// GPU is lost, the tree is lost with it: methods that return an error return
// ErrDeviceLost from then on, and the others panic. Each single operation costs a
// trip to the GPU, some tens of microseconds. Keys must be numbers, and values at
// most 8 bytes wide. Without a GPU, or without the import of package cuda, the
// tree is refused with ErrNoDevice.
func DeviceOnly() Option {
	return func(c *config) { c.DeviceOnly, c.Given = true, c.Given|index.OptDeviceOnly }
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
	return func(c *config) { c.Response, c.Given = d, c.Given|index.OptResponseTime }
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
	return func(c *config) { c.Pages, c.Given = mode.pages(), c.Given|index.OptHugePages }
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
	// Chunked is a B+-tree in the memory of a GPU, its leaves in chunks. Stats reports
	// it for a Tree with DeviceOnly and for its snapshots. Freeze does not take it.
	Chunked
)

// Note attaches a text of at most 1022 bytes to the index, such as a description of
// its keys. Save and WriteTo put it into the file, and Inspect returns it. The
// command pando notes there which numbers are dates. Programs before version 3 of the
// format cannot read such a file.
func Note(text string) Option {
	return func(c *config) { c.Note, c.Given = text, c.Given|index.OptNote }
}

// Layout sets the layout of the index. The default is AutoLayout.
func Layout(kind LayoutKind) Option {
	return func(c *config) {
		c.Layout, c.Layouts, c.Given = index.LayoutName(kind.String()), index.AllLayouts, c.Given|index.OptLayout
	}
}

// configure applies options, and checks them for the functions of a door.
func configure(d index.Door, opts []Option) (*config, error) {
	c := index.NewOptions()
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: nil; leave it out instead", ErrOption)
		}
		o(c)
	}
	if err := c.Check(d); err != nil {
		return nil, err
	}
	if !slices.Contains(pageModes[:], c.Pages) {
		return nil, fmt.Errorf("%w: HugePages(%d); take HugeAll, HugeInner or SmallPages", ErrOption, c.Pages)
	}
	if !slices.Contains(layoutNames[:], string(c.Layout)) {
		return nil, fmt.Errorf("%w: Layout%s; take AutoLayout, Pairs, Apart, Implicit, Blocked, Compressed or Radix", ErrLayout, strings.TrimPrefix(string(c.Layout), "LayoutKind"))
	}
	return c, nil
}

// pageModes are the modes as the floors below have them.
var pageModes = [...]index.Pages{HugeAll: index.HugeAll, HugeInner: index.HugeInner, SmallPages: index.SmallPages}

// pages returns the mode as the floors below have it; an unknown one is as unknown there.
func (m PageMode) pages() index.Pages {
	if int(m) < len(pageModes) {
		return pageModes[m]
	}
	return index.Pages(m)
}

// String returns the mode's name.
func (m PageMode) String() string { return m.pages().String() }

// layoutNames are the names of the layouts, as the internal packages know them.
var layoutNames = [...]string{"auto", "pairs", "apart", "implicit", "blocked", "compressed", "bplus", "radix", "chunked"}

// Layouts returns the kinds that Layout takes.
func Layouts() []LayoutKind {
	kinds := make([]LayoutKind, BPlus) // BPlus and Chunked are for a Tree alone
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
