package live

import (
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/vector"
)

// Tree is a mutable tree: a map from keys, in their order, to values of at most 8 bytes. A
// Map is made of one; table.go names them all. Any method may be called from any goroutine at
// any time, unless it says otherwise.
//
// A tree with a copy on a GPU is a Tree around another: methods that read host memory wait
// until all accepted batches are there. A tree on a GPU alone returns the GPU's errors; its
// methods that return none panic when the GPU is lost, since they have no right answer.
//
// What else a tree can do, it says by having the methods of the interfaces below.
type Tree interface {
	Reader
	Writer
	Body
	// Shown returns the tree, for a viewer.
	Shown() any
}

// Reader reads the entries of a tree.
type Reader interface {
	// Get returns the value of key, and reports whether there is one.
	Get(key order.Probe) (val uint64, ok bool)
	// GetBatch looks keys up, and returns the number of keys found. vals is the memory of
	// the results, of size bytes each; found may be nil. use, unless it is nil, is called
	// with spans of results while the values that they stand for are valid; a tree that has to
	// repeat a span calls it again.
	GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int)
	// Rank returns the number of entries below key, or up to it.
	Rank(key order.Probe, after bool) int
	// RankBatch sets ranks[i] to Rank(keys[i]).
	RankBatch(keys order.Keys, after bool, ranks []int)
	// At returns entry i in key order, and false if there is none.
	At(i int) (key order.Probe, val uint64, ok bool)
	// Cursor returns a cursor. Its Move comes first.
	Cursor() TreeCursor
	// Freeze takes a snapshot.
	Freeze() (Moment, error)
}

// Writer changes a tree. An error has changed nothing.
type Writer interface {
	// Set sets the value of key, and returns the one it had.
	Set(key order.Probe, val uint64) (old uint64, had bool, err error)
	// Delete deletes key, and returns the value it had.
	Delete(key order.Probe) (old uint64, had bool, err error)
	// Update sets the value of key to the result of f for the old one, or deletes key where f
	// returns false. f may run more than once, with nothing locked; gen is the generation in
	// which old was read, for Generations.Current.
	Update(key order.Probe, f func(old uint64, had bool, gen uint64) (val uint64, keep bool)) (old uint64, had bool, err error)
	// Pop deletes the least entry, or the greatest, and returns it.
	Pop(greatest bool) (key order.Probe, val uint64, ok bool, err error)
	// DeleteRange deletes the entries from lo to hi, and returns how many there were. gone,
	// unless it is nil, is called with the value of each.
	DeleteRange(lo, hi order.Probe, gone func(val uint64)) (int, error)
	// Apply does a batch of operations, as if one after the other. An error has changed
	// nothing unless half of b is set then.
	Apply(b *changes) error
}

// Body is a tree apart from its entries. bplus.Tree and radix.Tree implement it.
type Body interface {
	// Len returns the number of entries. It is exact if no writer runs meanwhile.
	Len() int
	// Bytes returns the bytes of host memory that nodes take; Kept returns how many of them
	// are old states that only snapshots need.
	Bytes() int64
	Kept() int64
	// Check returns an error for the first thing that is not as it must be. Nobody may
	// write meanwhile.
	Check() error
	// Close gives the memory back that no snapshot needs. It waits for batches under way.
	Close()
	Closed() bool
}

// TreeCursor reads the entries of a tree one after the other. It is for one goroutine.
type TreeCursor interface {
	// Next returns the next entry, and false if there is none.
	Next() (key order.Probe, val uint64, ok bool)
	// Undo goes back to before the entry that Next has returned last.
	Undo()
	// Move makes Next return the first entry within an edge, upwards or down. It returns
	// false, and Next must not be called, if there can be none.
	Move(from index.Edge, down bool) bool
	// Done gives the cursor's memory to a later one.
	Done()
}

// changes is a batch of operations as a Tree takes it.
type changes struct {
	keys  order.Keys
	kinds []op.Kind // nil where all are of one kind
	kind  op.Kind
	vals  []byte // of size bytes each
	size  int
	old   []byte // like vals, and may be the same memory; nil if nobody asks
	found []bool
	// deleted, of a DeleteCounter and unless it is nil, gets the number of entries
	// that were deleted. All operations delete, and found is nil.
	deleted *int
	half    bool // some operations are done though Apply has returned an error
	// seen, unless it is nil, is called with the value that a Get has found
	// while it is in the tree, as bplus.Ops.Seen is; row is the operation's
	// number.
	seen func(row int, bits uint64)
}

// Boxer is a Tree whose values may stand for memory of the map's: numbers of boxes, or Refs.
type Boxer interface {
	Generations() Generations
}

// Generations says how long a value that was read from a tree is valid. radix.Tree and
// bplus.Tree implement it, the latter where its codes are as wide as values are here.
type Generations interface {
	// Gen returns the generation, for Current.
	Gen() uint64
	// Itself returns the clock, for the patience of readers.
	Itself() *epoch.Clock
	// Current reports whether no value given to Retire that was in use in a generation has
	// been freed since: all that was read meanwhile is valid.
	Current(gen uint64) bool
	// Epoch returns the present epoch, for Retire.
	Epoch() uint64
	// Retire takes values that are no longer in the tree. born is the epoch in which each was
	// put in, or an earlier one.
	Retire(vals, born []uint64)
	// OnFree sets the function that gets retired values when no reader and no snapshot can
	// need them.
	OnFree(f func(vals []uint64))
	// OnOver sets the function that is called when the memory of the tree and of all its
	// snapshots is given back. It comes after OnFree.
	OnOver(f func())
	// Newest returns the epoch of the newest snapshot, and 0 if there is none.
	Newest() uint64
	// Reclaim frees retired values and nodes as far as it may, and reports whether others wait
	// for the end of a generation.
	Reclaim() (more bool)
	// Beside sets the function that returns the bytes beside those of nodes that count
	// against the tree's limit.
	Beside(f func() int64)
}

// Attacher is a Tree that may have a copy on a GPU.
type Attacher interface {
	// Attach gives the tree, with values of valSize bytes, a copy on a GPU if that is asked
	// for, or if it is left open and pays. It returns the tree with its copy, or without one;
	// where batches run, and why.
	Attach(cfg index.Config, valSize int) (t Tree, where index.Device, why string, err error)
}

// OnGPU is a Tree that is on a GPU, or has a copy there.
type OnGPU interface {
	// Down returns why the GPU is not used any more, and nil if it is.
	Down() error
	// DeviceBytes returns the bytes of the GPU's memory that are in use.
	DeviceBytes() int64
}

// DeleteCounter is a Tree that counts the keys a batch deletes, which costs less than to
// report them key by key.
type DeleteCounter interface{ CountsDeleted() }

// PackedGetter is a Tree that takes strings one behind the other.
type PackedGetter interface {
	// GetPacked looks strings up, and reports whether it has.
	GetPacked(keys packing.Strings, vals []byte, size int, found []bool) (hits int, ok bool)
}

// Ranger is a Tree that can read many ranges at once.
type Ranger interface {
	// Ranges sets offsets, asks for memory, and sets it to the entries from lo[i]
	// to hi[i] for each i, limit of them at most where that is above 0. It returns
	// false if it has done nothing.
	Ranges(lo, hi order.Keys, limit int, offsets []int, room func(n int) (order.Keys, []byte), size int) bool
}

// Valued is a Tree whose values can be read, selected and changed many at a time, over the
// entries from one code to another.
type Valued interface {
	ReadValues(lo, hi uint64, size int, r *vector.Reader)
	SelectValues(lo, hi uint64, s *selecting)
	Transform(s *span, entries int, f bplus.Changer) (int, error)
}

// Vectored is a Valued that may have values on a device, which then sums up those
// from lo[i] to hi[i] for each i, or counts those from lo to hi between at most
// kernel.MaxBounds bounds. It reports whether it has.
type Vectored interface {
	Summarize(t vector.Type, lo, hi []uint64, out []vector.Summary) bool
	Histogram(t vector.Type, lo, hi uint64, bounds []uint64, counts []int) bool
}
