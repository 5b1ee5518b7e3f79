// Package table reads rows from files and writes them to files, a batch of
// columns at a time. It supports CSV, TSV, newline-delimited JSON, Parquet,
// Arrow IPC, and raw little-endian numbers as in the SOSD data sets.
//
// A reader holds a few batches and never the whole file. Text is cut into
// chunks and parsed on several goroutines, but batches come in the order of
// the file. A value is returned exactly as in the file or not at all: a number
// that does not fit its column's type is an error with its line.
package table

import (
	"fmt"
	"io"
	"strings"
)

// Type is the type of a column's values.
type Type uint8

// The types that formats are mapped to. Narrower integers widen to 32 bits,
// dates, times and timestamps become Int32 or Int64 in their own unit,
// booleans the strings "true" and "false", and binary values strings.
const (
	Int64 Type = iota
	Uint64
	Int32
	Uint32
	Float64
	Float32
	String
)

var typeNames = [...]string{"int64", "uint64", "int32", "uint32", "float64", "float32", "string"}

// String returns the type's name, as accepted by ParseType.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType returns the type with a name.
func ParseType(s string) (Type, error) {
	for i, name := range typeNames {
		if strings.EqualFold(s, name) {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("%q is no type; take one of %s", s, strings.Join(typeNames[:], ", "))
}

// Field is a column's name and type.
type Field struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
}

// MarshalText returns the type's name, for JSON.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a type's name.
func (t *Type) UnmarshalText(b []byte) (err error) {
	*t, err = ParseType(string(b))
	return err
}

// Column holds the values of one column; only the slice of its Type is set.
// The value of a null is the zero value.
type Column struct {
	Field
	Int64   []int64
	Uint64  []uint64
	Int32   []int32
	Uint32  []uint32
	Float64 []float64
	Float32 []float32
	String  []string
	Null    []bool // nil if there are no nulls

	spare []bool // memory for Null while there is no null
}

// Len returns the number of values, including nulls.
func (c *Column) Len() int {
	switch c.Type {
	case Int64:
		return len(c.Int64)
	case Uint64:
		return len(c.Uint64)
	case Int32:
		return len(c.Int32)
	case Uint32:
		return len(c.Uint32)
	case Float64:
		return len(c.Float64)
	case Float32:
		return len(c.Float32)
	}
	return len(c.String)
}

// Reset removes all values and keeps the memory.
func (c *Column) Reset() {
	c.Int64, c.Uint64 = c.Int64[:0], c.Uint64[:0]
	c.Int32, c.Uint32 = c.Int32[:0], c.Uint32[:0]
	c.Float64, c.Float32 = c.Float64[:0], c.Float32[:0]
	clear(c.String) // so that old strings can be freed
	c.String = c.String[:0]
	if c.Null != nil {
		c.spare, c.Null = c.Null[:0], nil
	}
}

// IsNull reports whether value i is null.
func (c *Column) IsNull(i int) bool { return c.Null != nil && c.Null[i] }

// AppendNull appends a null.
func (c *Column) AppendNull() {
	n := c.Len()
	switch c.Type {
	case Int64:
		c.Int64 = append(c.Int64, 0)
	case Uint64:
		c.Uint64 = append(c.Uint64, 0)
	case Int32:
		c.Int32 = append(c.Int32, 0)
	case Uint32:
		c.Uint32 = append(c.Uint32, 0)
	case Float64:
		c.Float64 = append(c.Float64, 0)
	case Float32:
		c.Float32 = append(c.Float32, 0)
	default:
		c.String = append(c.String, "")
	}
	c.padNull(n)
	c.Null = append(c.Null, true)
}

// padNull extends Null to n values if there are nulls or one is about to be
// added.
func (c *Column) padNull(n int) {
	if c.Null == nil {
		c.Null = c.spare[:0]
		if c.Null == nil {
			c.Null = make([]bool, 0, max(n+1, 64))
		}
	}
	for len(c.Null) < n {
		c.Null = append(c.Null, false)
	}
}

// seal extends Null, if it is set, to the number of values: values that are
// not null may have been added after the last null.
func (c *Column) seal() {
	if c.Null != nil {
		c.padNull(c.Len())
	}
}

// Batch is a number of rows, as columns of the same length.
type Batch struct {
	Columns []Column
	Rows    int
}

// Reset removes all rows, keeps the memory, and sets the columns to the names
// and types of a schema.
func (b *Batch) Reset(schema []Field) {
	if len(b.Columns) != len(schema) {
		b.Columns = make([]Column, len(schema))
	}
	for i := range b.Columns {
		b.Columns[i].Reset()
		b.Columns[i].Field = schema[i]
	}
	b.Rows = 0
}

// Source returns the rows of an input in their order.
type Source interface {
	// Schema returns the columns: those wanted, in the requested order.
	Schema() []Field
	// Next fills b with the next rows, at least one, and returns io.EOF when
	// there are none left. The memory of b is reused; strings taken from it
	// stay valid. An error is permanent: every later call returns it again.
	Next(b *Batch) error
	// Progress returns the number of input bytes read so far and their total,
	// 0 if that is not known. It may be called while Next runs.
	Progress() (done, total int64)
	// Close stops reading, even before the end. It may be called twice.
	Close() error
}

// Options tell how an input is read. With the zero value everything is
// detected.
type Options struct {
	// Format is csv, tsv, jsonl, parquet, arrow, sosd32, sosd64 (an 8-byte
	// count, then values), or u32, u64, i32, i64 (raw little-endian values).
	// If it is "", the format is determined by the name's ending, or else by
	// content. Input may be compressed with gzip or zstd, which is detected by
	// its first bytes.
	Format string
	// Columns are the wanted columns, in this order; nil means all. If there
	// is no header, a column's name is its number, from 1.
	Columns []string
	// Types are forced types by column name. The types of other columns are
	// inferred from the first rows for text, and are the file's own for typed
	// formats.
	Types map[string]Type
	// NoHeader tells that the first line of a CSV file is data.
	NoHeader bool
	// Comma separates the fields of a CSV file: one ASCII character. 0 means a
	// comma, or a tab in a TSV file.
	Comma rune
	// Workers is the number of goroutines that parse. 0 means one per core.
	Workers int
}

// Sink writes rows in some format.
type Sink interface {
	// Write adds rows. The batch may be reused afterwards.
	Write(b *Batch) error
	// Close writes what is left. It does not close the underlying writer.
	Close() error
}

// Formats returns the formats that Open reads.
func Formats() []string {
	return []string{"csv", "tsv", "jsonl", "parquet", "arrow", "sosd32", "sosd64", "u32", "u64", "i32", "i64"}
}

// Open opens an input. The path "-" is stdin. Parquet and Arrow files that
// come through a pipe are first copied into a temporary file, because their
// table of contents is at the end.
func Open(path string, stdin io.Reader, o Options) (Source, error) {
	if err := o.check(path); err != nil {
		return nil, err
	}
	in, err := openInput(path, stdin)
	if err != nil {
		return nil, err
	}
	src, err := openFormat(in, o)
	if err != nil {
		in.Close()
		return nil, in.wrap(err)
	}
	return src, nil
}
