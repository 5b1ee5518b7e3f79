// Package table reads rows from files and writes them to files, a batch of
// columns at a time. It knows CSV, TSV, newline-delimited JSON, Parquet,
// Arrow IPC, and raw little-endian numbers as the SOSD data sets have them.
//
// A reader holds a few batches and never the whole file. Text is cut into
// chunks and parsed on several goroutines, but batches come in the order of
// the file. A value is given as it stands in the file or not at all: a number
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
// dates, times and timestamps are Int32 or Int64 in their own unit, booleans
// the strings "true" and "false", and binary values strings.
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

// String gives the type's name, as ParseType takes it.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType gives the type of a name.
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

// MarshalText gives the type's name, so that JSON has it.
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
	Null    []bool // nil where there is no null

	spare []bool // Null's memory while there is no null
}

// Len gives the number of values, nulls among them.
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

// Reset takes all values out and keeps the memory.
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

// IsNull says whether value i is null.
func (c *Column) IsNull(i int) bool { return c.Null != nil && c.Null[i] }

// AppendNull adds a null.
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

// padNull brings Null, where there is one or a null is about to come, to n
// values.
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

// seal brings Null, where there is one, to the length of the values: values
// that are not null may have been added after the last null.
func (c *Column) seal() {
	if c.Null != nil {
		c.padNull(c.Len())
	}
}

// Batch is some rows, as columns of the same length.
type Batch struct {
	Columns []Column
	Rows    int
}

// Reset takes all rows out, keeps the memory, and gives the columns the names
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

// Source gives the rows of an input in its order.
type Source interface {
	// Schema gives the columns: those wanted, in the order asked for.
	Schema() []Field
	// Next fills b with the next rows, at least one, and gives io.EOF when
	// there are none left. The memory of b is reused; strings taken from it
	// stay good. An error stays: every later call gives it again.
	Next(b *Batch) error
	// Progress gives the bytes of input read so far and their total, 0 if
	// that is not known. It may be called while Next runs.
	Progress() (done, total int64)
	// Close ends reading, also before the end. It may be called twice.
	Close() error
}

// Options say how an input is read. The zero value finds out for itself.
type Options struct {
	// Format is csv, tsv, jsonl, parquet, arrow, sosd32, sosd64 (an 8-byte
	// count, then values), or u32, u64, i32, i64 (raw little-endian values).
	// "" goes by the name's ending, then by content. Input may be compressed
	// with gzip or zstd, which is seen by its first bytes.
	Format string
	// Columns are those wanted, in this order; nil is all. Where there is no
	// header, a column's name is its number, from 1.
	Columns []string
	// Types are forced types by column name. Others are inferred for text,
	// from the first rows, and the file's own for typed formats.
	Types map[string]Type
	// NoHeader says that the first line of a CSV file is data.
	NoHeader bool
	// Comma separates the fields of a CSV file: one ASCII character. 0 is a
	// comma, or a tab in a TSV file.
	Comma rune
	// Workers is the number of goroutines that parse. 0 is one for each core.
	Workers int
}

// Sink takes rows and writes them in some format.
type Sink interface {
	// Write adds rows. The batch may be reused afterwards.
	Write(b *Batch) error
	// Close writes what is left. It does not close the writer below.
	Close() error
}

// Formats lists the formats that Open reads.
func Formats() []string {
	return []string{"csv", "tsv", "jsonl", "parquet", "arrow", "sosd32", "sosd64", "u32", "u64", "i32", "i64"}
}

// Open opens an input. The path "-" is stdin. Parquet and Arrow files that
// come through a pipe are put into a temporary file first, because their
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
