// Package cols has columns of values, and the rows that they make. Readers and
// writers of tables and indexes hand them to each other. It is apart from
// package table so that a package that only takes columns need not wait for the
// formats to compile.
package cols

import (
	"fmt"
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

// String returns the type's name, as ParseType takes it.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType returns the type of a name.
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
	// Kind tells the meaning of the values beyond their type, such as numbers that
	// are dates.
	Kind Kind `json:"-"`
	// Exact tells that text which numbers do not keep as it is, such as 007, is an
	// error: the type is a guess.
	Exact bool `json:"-"`
	// Form tells how strings are to be taken.
	Form Form `json:"-"`
	// Native is the type that a column of Foreign values has in its file, in the
	// words of that format's library; nil for all others, which have a Type.
	Native any `json:"-"`
}

// MarshalText returns the type's name, so that JSON has it.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a type's name.
func (t *Type) UnmarshalText(b []byte) (err error) {
	*t, err = ParseType(string(b))
	return err
}

// TypeName returns the name of a column's type, for people, as ParseType and ParseKind take it.
func (f Field) TypeName() string {
	if f.Kind != (Kind{}) {
		return f.Kind.String()
	}
	return f.Type.String()
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
	Foreign Foreign

	spare []bool // Null's memory while there is no null
}

// Len returns the number of values, nulls among them.
func (c *Column) Len() int {
	if c.Foreign != nil {
		return c.Foreign.Len()
	}
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
	c.Foreign = nil
	clear(c.String) // so that old strings can be freed
	c.String = c.String[:0]
	if c.Null != nil {
		c.spare, c.Null = c.Null[:0], nil
	}
}

// IsNull reports whether value i is null.
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
	c.PadNull(n)
	c.Null = append(c.Null, true)
}

// PadNull brings Null, where there is one or a null is about to come, to n
// values.
func (c *Column) PadNull(n int) {
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

// Seal brings Null, where there is one, to the length of the values: values
// that are not null may have been added after the last null.
func (c *Column) Seal() {
	if c.Null != nil {
		c.PadNull(c.Len())
	}
}

// SetType returns the column another type and takes the nulls from it, whose memory
// it does not use again. Values stay in the slices they are in.
func (c *Column) SetType(t Type) { c.Type, c.Null, c.spare = t, nil, nil }

// Batch is some rows, as columns of the same length.
type Batch struct {
	Columns []Column
	Rows    int
	// Misfits is how many values of a column that is looked up are null because they
	// are not of its type.
	Misfits int
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
	b.Rows, b.Misfits = 0, 0
}
