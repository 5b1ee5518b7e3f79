// Package typed holds Pando indexes whose key and value types are known only
// at run time: it is the one place where the name of a type that a command has
// read in a file, or inferred from a CSV, becomes a Go type.
//
// All seven types of package cols may be keys, and all seven or none may be
// values. Code here is compiled for a type and not for a pair of types: it works
// on indexes without types, as the face itself does.
package typed

import (
	"fmt"
	"io"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/table/cols"
)

// Index is a Pando index that takes and returns columns. Columns of keys must
// be of type Key(). Columns of values are set to type Value(); if there are no
// values they may be nil. Results replace the former contents of a column.
type Index interface {
	Key() cols.Type
	Value() (t cols.Type, ok bool) // false: keys alone
	Len() int
	Stats() pando.Stats

	// Get sets vals and found for each key, as GetBatch does. A null key is
	// never found. vals may be nil.
	Get(keys, vals *cols.Column, found []bool) (hits int)
	// GetEach is Get by one lookup after the other.
	GetEach(keys *cols.Column) (hits int)
	// GetAll sets vals to all values of all keys: those of keys[i] are
	// vals[offsets[i]:offsets[i+1]].
	GetAll(keys, vals *cols.Column) (offsets []int)
	// Ranges reads the entries lo[i] <= key <= hi[i], at most limit of each,
	// and returns their number.
	Ranges(lo, hi *cols.Column, limit int) (entries int)
	// Rank sets ranks[i] to the number of entries below keys[i].
	Rank(keys *cols.Column, ranks []int)
	// Span returns the ranks [first, end) of lo <= key <= hi. A nil bound is open.
	Span(lo, hi *cols.Column) (first, end int)
	// Prefix returns the ranks [first, end) of the keys that start with p. Keys
	// must be strings.
	Prefix(p string) (first, end int)
	// Entries sets keys and vals to entries first to first+n-1.
	Entries(first, n int, keys, vals *cols.Column)
	// Sample sets keys to those of the given ranks.
	Sample(ranks []int, keys *cols.Column)
	// Duplicates returns the number of entries whose key is also that of the
	// entry before, and the rank of the first of them.
	Duplicates() (n, first int)
	// Summarize sums up the values of lo <= key <= hi, where a nil bound is open.
	// It returns false if they are not numbers.
	Summarize(lo, hi *cols.Column) (s Summary, ok bool)
	// Histogram counts these values between bounds, a column of their type, as
	// pando.Histogram does.
	Histogram(lo, hi, bounds *cols.Column, counts []int) (ok bool)

	// Inside returns the view of the index that package pandoview asks for.
	Inside() *index.Inside

	WriteTo(w io.Writer) (int64, error)
	Close() error
}

// None is the name of the value type of an index without values.
const None = "none"

// Types are the types of an index.
type Types struct {
	Key    cols.Type
	Value  cols.Type
	Valued bool // false: keys alone, and Value means nothing
}

// String returns the types as in "uint64 → float64".
func (t Types) String() string {
	if !t.Valued {
		return t.Key.String() + " keys alone"
	}
	return t.Key.String() + " → " + t.Value.String()
}

// NewBuilder returns a builder for an index of these types.
func NewBuilder(t Types) *Builder {
	return &Builder{types: t, keys: kindOf(t.Key).newKeys(), vals: t.value().newRows()}
}

// value returns the kind of values.
func (t Types) value() kind {
	if !t.Valued {
		return cells[struct{}]{}
	}
	return kindOf(t.Value)
}

// Open opens an index file with the types it has.
func Open(path string, opts ...pando.Option) (Index, error) {
	info, err := pando.Inspect(path)
	if err != nil {
		return nil, err
	}
	t, err := FileTypes(info)
	if err != nil {
		return nil, err
	}
	o, err := configure(index.Opening, opts)
	if err != nil {
		return nil, err
	}
	return newIndex(t, func(key index.KeyType, val *index.ValueType) (*index.Index, error) {
		return index.OpenAs(key, val, o, func() (*index.File, error) { return index.OpenFile(path) })
	})
}

// configure applies options, which are functions of index.Options below their name.
func configure(d index.Door, opts []pando.Option) (*index.Options, error) {
	o := index.NewOptions()
	for _, opt := range opts {
		opt(o)
	}
	return o, o.Check(d)
}

// FileTypes returns the types of a file, or an error if commands cannot handle
// them: Go programs may write others.
func FileTypes(info pando.FileInfo) (Types, error) {
	return named(info.Path, info.Key, info.Value, "pando.Open")
}

// encodedPrefix is in front of the name of a type whose values a program has encoded itself.
const encodedPrefix = "encoded "

// named returns the types of these names. In Go, open opens what is at the path.
func named(path, key, value, open string) (t Types, err error) {
	if t.Key, err = cols.ParseType(key); err != nil {
		return t, fmt.Errorf("%s: has keys of type %s, which only a Go program can read; use %s", path, key, open)
	}
	if value == None {
		return t, nil
	}
	name := strings.TrimPrefix(value, encodedPrefix)
	if t.Value, err = cols.ParseType(name); err != nil || (name != value && t.Value != cols.String) {
		return t, fmt.Errorf("%s: has values of type %s, which only a Go program can read; use %s", path, value, open)
	}
	t.Valued = true
	return t, nil
}
