package index

import (
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

// Engine answers for the keys of an index. Entries are told apart by their number in key
// order, their rank. An engine holds the values, too, and is a Holder, or it finds ranks
// for a sink and leaves values to Values. What else it can do, it says by having the
// methods of the interfaces below.
type Engine interface {
	// Seek returns the number of entries below key, and reports whether the entry of that
	// rank has it.
	Seek(key order.Probe) (rank int, equal bool)
	// After returns the number of entries up to key.
	After(key order.Probe) int
	// EndNear returns the first entry from rank on that is above key, which is likely near.
	EndNear(rank int, key order.Probe) int
	// Key returns the key of entry i.
	Key(i int) order.Probe
	// CopyKeys sets keys to those of the entries from lo on.
	CopyKeys(lo int, keys order.Keys)
	// Rank sets ranks[i] to the number of entries below keys[i].
	Rank(keys order.Keys, ranks []int)
	// RankAfter sets ranks[i] to the number of entries up to keys[i].
	RankAfter(keys order.Keys, ranks []int)

	// Body returns the layout, to be described, shown and written to files.
	Body() layout.Body
	// Attach gives the engine a device, where that is asked for. It returns where batches
	// run, and why.
	Attach(Config) (Device, string, error)
	// Report sets figures that change while an index is in use.
	Report(*Stats)
	// Release gives everything back.
	Release() error
}

// Holder is an engine that holds the values, too.
type Holder interface {
	// Get returns the value of the first entry equal to key, and reports whether there
	// is one.
	Get(key order.Probe) (v Value, found bool)
	// GetValues sets vals[i] to the value of the first entry equal to keys[i], or to zero,
	// and found[i], where found is not nil, to whether there is one. It returns the number
	// of keys found.
	GetValues(keys order.Keys, vals Column, found []bool) (hits int)
	// Val returns the value of entry i.
	Val(i int) Value
	// CopyEntries sets keys and vals to those of the entries from lo on. An error is that
	// of a GPU that alone has them.
	CopyEntries(lo int, keys order.Keys, vals Column) error
	// CopyRuns copies runs of entries: run i begins with entry first[i] and goes to
	// offsets[i] to offsets[i+1].
	CopyRuns(first, offsets []int, keys order.Keys, vals Column)
	// ReadValues hands values [lo, hi) to r. It must not be called unless Readable.
	ReadValues(lo, hi int, r *vector.Reader)
	// Readable reports whether values can be read many at a time.
	Readable() bool
}

// finder is an engine whose values lie elsewhere.
type finder interface {
	// FindEach hands the rank of each key to sink, -1 where it is not found.
	FindEach(keys order.Keys, sink exec.Sink) (hits int)
	// copyKeyRuns copies the keys of runs [from, to), as CopyRuns has them.
	copyKeyRuns(first, offsets []int, from, to int, keys order.Keys)
}

// packedFinder is a finder that takes strings one behind the other.
type packedFinder interface {
	findEach(keys exec.StringBatch, sink exec.Sink) (hits int)
}

// Prefixed is an engine for strings.
type Prefixed interface {
	// Prefix returns the entries [lo, hi) whose key begins with p.
	Prefix(p string) (lo, hi int)
	// AppendKey appends key i to dst.
	AppendKey(dst []byte, i int) []byte
}

// Selecter is a Holder that has a way of its own to select entries by their values.
type Selecter interface {
	// Select copies those of the entries [first, end) whose value satisfies c to the memory
	// that room returns for them.
	Select(first, end int, c vector.Condition, room func(n int) (order.Keys, Column))
}

// Compacter is an engine that an index can be built from without a copy of all entries.
type Compacter interface {
	// Compact builds the index, unless ok is false: then it has done nothing.
	Compact(cfg Config, codec *Codec) (ix *Index, ok bool, err error)
}

// Shower is an engine that shows a viewer something else than its Body.
type Shower interface{ Shown() any }
