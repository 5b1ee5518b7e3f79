// Package typed holds Pando indexes whose key and value types are known only
// at run time: it is the one place where the name of a type that a command has
// read in a file, or inferred from a CSV, becomes a Go type parameter.
//
// All seven types of package cols may be keys, and all seven or none may be
// values: 56 instantiations of packages pando and pandostore. They are compiled here, apart from
// the commands, because that takes longer than anything else; the code here is
// compiled for a type and not for a pair wherever that can be.
package typed

import (
	"fmt"
	"io"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/pando-index/pando/pandostore"
	"github.com/pando-index/pando/pandoview"
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

	// Index is an index as package pandoview takes it.
	pandoview.Index

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

// makers are the constructors for one pair of types.
type makers struct {
	open    func(path string, opts []pando.Option) (Index, error)
	store   func(path string, encoded bool, opts []pandostore.Option) (Store, error)
	builder func() *Builder
}

// all holds the makers for each pair of types.
var all = func() map[Types]makers {
	m := map[Types]makers{}
	register[int64](m, cols.Int64)
	register[uint64](m, cols.Uint64)
	register[int32](m, cols.Int32)
	register[uint32](m, cols.Uint32)
	register[float64](m, cols.Float64)
	register[float32](m, cols.Float32)
	register[string](m, cols.String)
	return m
}()

// register adds the pairs of one key type with all value types.
func register[K pando.Key](m map[Types]makers, key cols.Type) {
	m[Types{Key: key}] = makersOf[K, struct{}]()
	m[Types{key, cols.Int64, true}] = makersOf[K, int64]()
	m[Types{key, cols.Uint64, true}] = makersOf[K, uint64]()
	m[Types{key, cols.Int32, true}] = makersOf[K, int32]()
	m[Types{key, cols.Uint32, true}] = makersOf[K, uint32]()
	m[Types{key, cols.Float64, true}] = makersOf[K, float64]()
	m[Types{key, cols.Float32, true}] = makersOf[K, float32]()
	m[Types{key, cols.String, true}] = makersOf[K, string]()
}

func makersOf[K pando.Key, V any]() makers {
	return makers{open: openFile[K, V], store: openStore[K, V], builder: func() *Builder {
		return &Builder{keys: new(keyList[K]), vals: new(list[V]), freeze: freezeRows[K, V]}
	}}
}

// NewBuilder returns a builder for an index of these types.
func NewBuilder(t Types) *Builder {
	if !t.Valued {
		t.Value = 0
	}
	return all[t].builder()
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
	return all[t].open(path, opts)
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

// cells returns the slice of a column that holds type T; nil for a T that is in
// no column.
func cells[T any](c *cols.Column) *[]T {
	var slot any
	switch any((*T)(nil)).(type) {
	case *int64:
		slot = &c.Int64
	case *uint64:
		slot = &c.Uint64
	case *int32:
		slot = &c.Int32
	case *uint32:
		slot = &c.Uint32
	case *float64:
		slot = &c.Float64
	case *float32:
		slot = &c.Float32
	case *string:
		slot = &c.String
	}
	p, _ := slot.(*[]T)
	return p
}

// typeOf returns the column type of T, and false for none.
func typeOf[T any]() (cols.Type, bool) {
	switch any((*T)(nil)).(type) {
	case *int64:
		return cols.Int64, true
	case *uint64:
		return cols.Uint64, true
	case *int32:
		return cols.Int32, true
	case *uint32:
		return cols.Uint32, true
	case *float64:
		return cols.Float64, true
	case *float32:
		return cols.Float32, true
	case *string:
		return cols.String, true
	}
	return 0, false
}

// options adds to opts the options that values of type V need.
func options[V any](opts []pando.Option) []pando.Option {
	if !isText[V]() {
		return opts
	}
	encode := func(dst []byte, s string) []byte { return append(dst, s...) }
	decode := func(b []byte) (string, error) { return string(b), nil }
	return append(opts[:len(opts):len(opts)], pando.Values(encode, decode))
}
