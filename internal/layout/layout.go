// Package layout defines layouts by small interfaces, each for callers that
// need just that. A layout is bytes plus a step: flat arrays and offsets, never
// pointers, and a way to come closer to a key. It owns all of itself: its
// bytes, how they are built and read, its kernels' launches, its sections in a
// file, its statistics, a structural Check.
//
// Two families are there. A layout of numbers implements Numbers[C] for keys
// of fixed width, as codes of 32 or 64 bits (package order), and its trees
// implement Tree[C]. A layout of strings implements Strings, and its trees
// StringTree. An ability that only some have is an interface of its own, which
// callers ask for by a type assertion: a layout that cannot do it does not have
// the method.
//
//	Paired         values come with the search, out of the key's own line
//	Stepped        a search can be cut at a level
//	SteppedPairs   both
//	Valued         values lie in the layout
//	StringCopier   strings are copied out
//	ValueFetcher   searches prefetch values that lie elsewhere
//	OnDevice       it can lie on a device (device.go)
//	Surveyed       how large it will be depends on the keys themselves
package layout

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/par"
)

// Code is a key of fixed width as layouts hold it.
type Code interface{ uint32 | uint64 }

// Name names a layout, or a request for one.
type Name string

const (
	Auto  Name = "auto"  // whatever is best
	Pairs Name = "pairs" // keys and values side by side
	Apart Name = "apart" // values in a column of their own
)

var (
	// ErrUnsorted is the error for keys that are not in order.
	ErrUnsorted = errors.New("keys are not sorted")
	// ErrTooLarge is the error for more keys than a layout can tell apart.
	ErrTooLarge = errors.New("too many keys for one tree")
	// ErrTooLong is the error for strings that are too long for a layout.
	ErrTooLong = errors.New("strings too long")
)

// Config says how to build.
type Config struct {
	Pairs   bool        // values lie beside their keys; ValSize is then the key's width
	ValSize int         // bytes of a value that is kept in the layout; 0 for none
	Pages   arena.Pages // which memory goes on huge pages
	Limit   int64       // most bytes to take; 0 for no limit
	Beside  int64       // of the limit, bytes that are taken already; layouts of strings heed it
	Workers int         // goroutines that build; 0 for one per core
	// Stop reports whether to give up, and once it does, goes on to; nil never does.
	// It is asked every few milliseconds, on all workers. Building then gives
	// op.ErrStopped and leaves nothing behind.
	Stop func() bool
}

// Source is the input of a build: n sorted keys and their values.
type Source[C Code] struct {
	Len int
	// Codes are the keys, where they lie in memory as codes already.
	Codes []C
	// Encode, where Codes is nil, sets dst to the codes from key lo on. It is
	// called from several goroutines.
	Encode func(dst []C, lo int)
	// Vals points at the values in key order, of Config.ValSize each; nil where
	// that is 0, or where Both is set.
	Vals unsafe.Pointer
	// Both, where Codes and Vals are nil, sets keys as Encode does, and vals, of
	// Config.ValSize each, to their values, in one pass. keys may be nil. It is
	// called from several goroutines.
	Both func(keys []C, vals []byte, lo int)
}

// Span returns keys [lo, hi) as codes: its own, or encoded into buf, which is
// made if it is too short.
func (src *Source[C]) Span(lo, hi int, buf []C) []C {
	if src.Codes != nil {
		return src.Codes[lo:hi]
	}
	if cap(buf) < hi-lo {
		buf = make([]C, hi-lo)
	}
	buf = buf[:hi-lo]
	src.Encode(buf, lo)
	return buf
}

// CopyVals sets dst to the values from entry lo on, of size bytes each.
func (src *Source[C]) CopyVals(dst []byte, lo, size int) {
	if src.Both != nil {
		src.Both(nil, dst, lo)
		return
	}
	par.Copy(dst, unsafe.Slice((*byte)(unsafe.Add(src.Vals, lo*size)), len(dst)), 1)
}

// Searcher finds keys.
type Searcher[C Code] interface {
	// Rank sets ranks[i] to the number of entries below keys[i].
	Rank(keys []C, ranks []int)
	// Find sets ranks[i] to the number of the first entry equal to keys[i],
	// or -1.
	Find(keys []C, ranks []int)
	// Seek returns the number of entries below key, and reports whether the
	// entry there is equal to it.
	Seek(key C) (rank int, equal bool)
}

// Entries reads entries by their number in key order.
type Entries[C Code] interface {
	Len() int
	Key(i int) C
	CopyKeys(dst []C, lo int) // of the entries from lo on
	Prefetch(lo, n int)       // the keys of n entries from lo on are wanted soon
}

// Valued reads values that lie in the layout.
type Valued interface {
	Val(i int) unsafe.Pointer
	CopyVals(dst []byte, lo int) // of the entries from lo on
}

// ValueFetcher is a layout whose Find prefetches the values of the entries it
// finds from a column outside of it: size bytes each, the first at vals, which
// must outlive the layout.
type ValueFetcher interface {
	PrefetchFrom(vals unsafe.Pointer, size int)
}

// Paired is a layout that holds a value of the key's width beside each key.
type Paired[C Code] interface {
	// GetPairs sets vals[i] to the value of the first entry equal to keys[i],
	// or to 0, and found[i], where found is not nil, to whether there is one. It
	// returns the number of keys found.
	GetPairs(keys, vals []C, found []bool) (hits int)
}

// NodeWords is the size of a node in the words of 8 bytes that places count;
// kernels count nodes.
const NodeWords = 8

// Stepped is a layout whose searches can be cut at any level: the inner levels
// are 0 to Depth-1, level Depth holds the entries. A place is where a search has
// come to on a level, in words. Where a search begins below the root, its place
// is handed in where its result will be.
type Stepped[C Code] interface {
	Depth() int
	// Descend takes queries from one level to another: places[i] becomes the
	// place that keys[i] leads to.
	Descend(from, to int, keys []C, places []int)
	RankFrom(from int, keys []C, ranks []int)
	FindFrom(from int, keys []C, ranks []int)
}

// SteppedPairs is Stepped for a layout that is Paired. The places of searches
// that begin below the root are in vals.
type SteppedPairs[C Code] interface {
	GetPairsFrom(from int, keys, vals []C, found []bool) (hits int)
}

// Body is the methods that every layout has.
type Body interface {
	Stats() Stats
	// Format and Shape say how the layout lies in a file, Segments which memory
	// that is: one for each section of the format, then, where values lie in a
	// column of the layout, that column.
	Format() *files.Format
	Shape() Shape
	Segments() [][]byte
	// Check returns an error for the first thing that is not as it must be.
	Check() error
	// Release gives the memory back. Readers that are on their way read
	// nonsense, but do not fault; see arena.Block.
	Release()
}

// Tree is a tree of a layout of numbers.
type Tree[C Code] interface {
	Searcher[C]
	Entries[C]
	Body
}

// Numbers is a layout of keys of fixed width.
type Numbers[C Code] interface {
	// Name is the layout's name.
	Name() Name
	// Formats lists the formats of the layout in files.
	Formats() []*files.Format
	// Settle reports whether the layout serves the request for n keys with
	// values of valSize bytes in it (0 for none), and whether values will lie
	// beside their keys.
	Settle(asked Name, n, valSize int) (pairs, ok bool)
	// Need returns the bytes that a tree of n keys takes at most.
	Need(n int, cfg Config) (int64, error)
	// Build makes a tree. Keys that are not in order give ErrUnsorted, most
	// often at once, and leave nothing behind; equal keys stay in the order they
	// come in. Nothing of the source is kept.
	Build(src Source[C], cfg Config) (Tree[C], error)
	// Outline returns the segments that a tree in a file must have.
	Outline(n int, in InFile) (Outline, error)
	// Open makes a tree over a block whose first segments are as Outline has
	// them. Nothing of it is read: even if the bytes are damaged, no search
	// leaves the block. Check reports whether they are a tree.
	Open(n int, in InFile, b *arena.Block) (Tree[C], error)
}

// Surveyed is a layout of numbers whose size depends on the keys.
type Surveyed[C Code] interface {
	// Survey returns the bytes that a tree of these sorted keys takes.
	Survey(src Source[C], cfg Config) (int64, error)
	// Least returns the bytes that a tree of n keys takes, whatever they are.
	Least(n int, cfg Config) (int64, error)
}

// StringTree is a tree of a layout of strings.
type StringTree interface {
	Len() int
	Seek(key string) (rank int, equal bool) // strings below key; whether the one there is key
	After(key string) int                   // strings up to key
	Key(i int) string
	Find(keys []string, ranks []int) // the first that is keys[i], or -1
	Rank(keys []string, ranks []int) // strings below keys[i]
	Body
}

// StringCopier is a tree of strings that lie in memory of its own, so that they
// are copied before they are handed out.
type StringCopier interface {
	// CopyKeys sets dst to the strings from lo on, several of them in one piece of
	// memory.
	CopyKeys(dst []string, lo int)
	// AppendKey appends string i to dst, as append does.
	AppendKey(dst []byte, i int) []byte
	// EndNear returns the first string from rank on that is above key, which is
	// likely to be near.
	EndNear(rank int, key string) int
}

// Strings is a layout of strings.
type Strings interface {
	Name() Name
	Formats() []*files.Format
	Serves(asked Name) bool
	// Need returns the bytes that a tree of these strings takes at least,
	// whatever their order. It returns ErrTooLong or ErrTooLarge for strings
	// that the layout cannot hold in any order.
	Need(keys []string, cfg Config) (int64, error)
	// Build makes a tree of strings in the given order; nil means as they are,
	// which must be sorted. Nothing of keys is kept. A tree that takes more than
	// Need says is refused, where that breaks the limit, before anything is taken;
	// so are strings that the layout cannot hold in this order.
	Build(keys []string, order []int, cfg Config) (StringTree, error)
	Outline(n int, in InFile) (Outline, error)
	Open(n int, in InFile, b *arena.Block) (StringTree, error)
}

// Shape is the part of a file's header about a tree beside its format.
type Shape struct {
	Fanout     int // children of an inner node
	Levels     int // inner levels
	PageLevels int // binary levels of a page of inner nodes
}

// InFile is a tree as a file describes it.
type InFile struct {
	Format *files.Format
	Shape
	ValSize  int     // bytes of a value in the layout
	Sections []int64 // sizes of the sections, the layout's own first
}

// Outline is the segments that a tree in a file must have.
type Outline struct {
	Shape
	Sizes []int // of its segments; -1 where any size will do
	Slack int   // bytes that must be readable behind them
}

// Stats describes the parts of a tree.
type Stats struct {
	Kind       Name // Pairs and Apart where the layout has both
	Levels     int  // inner levels
	Fanout     int
	InnerBytes int64
	LeafBytes  int64
	ValueBytes int64 // column of values in the layout
	TotalBytes int64 // all of it, with padding where the layout has one block
	OnHeap     bool  // it lies in Go memory
}

// The sections that several layouts have.
var (
	SectionInner    = files.SectionKind{Number: 1, Name: "inner"}     // inner nodes of a tree
	SectionLeaves   = files.SectionKind{Number: 2, Name: "leaves"}    // leaves of a tree
	SectionKeyBytes = files.SectionKind{Number: 6, Name: "key bytes"} // strings, one behind the other
)

// CheckSegments returns an error for the first segment of a block that is not
// as large as an outline has it.
func (o *Outline) CheckSegments(b *arena.Block) error {
	for i, size := range o.Sizes {
		if got := len(b.Segment(i)); size >= 0 && got != size {
			return fmt.Errorf("segment %d has %d bytes, want %d", i, got, size)
		}
	}
	return nil
}
