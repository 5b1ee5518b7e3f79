package table

import (
	"slices"
	"strconv"

	"github.com/pando-index/pando/internal/table/cols"
)

// retypeColumn returns a column another type, value by value. It says which value does not fit, if
// one does not.
func retypeColumn(c *Column, to Field) (row int, bad problem) {
	convertColumn(c, to, func(at int, why problem) bool {
		row, bad = at, why
		return false
	})
	return row, bad
}

// probeColumn gives a column another type. What does not fit is null.
func probeColumn(c *Column, to Field) {
	convertColumn(c, to, func(row int, _ problem) bool {
		setNull(c, row)
		return true
	})
}

// convertColumn gives a column another type, value by value. misfit is told of each
// value that does not fit; where it returns false, the rest is left as it is. Values go
// by way of their text, so the rules are those of CSV.
func convertColumn(c *Column, to Field, misfit func(row int, bad problem) bool) {
	from := *c
	if to.Kind.Of == cols.Other && to.Type != String {
		from.Kind = Kind{} // then its numbers are wanted
	}
	c.Kind = to.Kind
	if c.Type == to.Type && (from.Kind == to.Kind || c.Type == String && from.Kind.Of != cols.UUID && to.Kind.Of != cols.UUID) {
		return
	}
	if c.Type == to.Type { // the values make room for their own
		from.Int32, from.Int64, from.String, from.Null = slices.Clone(from.Int32), slices.Clone(from.Int64), slices.Clone(from.String), slices.Clone(from.Null)
		dropValues(c, c.Type)
	}
	c.SetType(to.Type)
	var text slab
	var buf []byte
	for row := range from.Len() {
		if from.IsNull(row) {
			c.AppendNull()
			continue
		}
		buf = appendPlain(&from, buf[:0], row)
		if bad := appendText(c, buf, &text); bad != fine && !misfit(row, bad) {
			return
		}
	}
	c.Seal()
	if from.Type != to.Type {
		dropValues(c, from.Type)
	}
}

// dropValues empties the slice of a type that the column no longer has.
func dropValues(c *Column, t Type) {
	switch t {
	case Int64:
		c.Int64 = c.Int64[:0]
	case Uint64:
		c.Uint64 = c.Uint64[:0]
	case Int32:
		c.Int32 = c.Int32[:0]
	case Uint32:
		c.Uint32 = c.Uint32[:0]
	case Float64:
		c.Float64 = c.Float64[:0]
	case Float32:
		c.Float32 = c.Float32[:0]
	default:
		clear(c.String)
		c.String = c.String[:0]
	}
}

// appendPlain adds a value's text, floats without an exponent, so that whole
// ones can be read as integers.
func appendPlain(c *Column, buf []byte, row int) []byte {
	if c.Kind.Of != cols.Other && c.Type != String {
		return appendKind(buf, c.Kind, kindNumber(c, row))
	}
	switch c.Type {
	case String:
		return append(buf, textOf(c, row)...)
	case Float64:
		return strconv.AppendFloat(buf, c.Float64[row], 'f', -1, 64)
	case Float32:
		return strconv.AppendFloat(buf, float64(c.Float32[row]), 'f', -1, 32)
	}
	return appendNumberText(c, buf, row)
}

// retypeBatch returns the columns of a batch the types of a schema. The line of an
// error is the row, from 1.
func retypeBatch(b *Batch, schema []Field, probes bool) error {
	for i := range b.Columns {
		c := &b.Columns[i]
		if c.Foreign != nil {
			continue
		}
		if probes && i == len(b.Columns)-1 {
			probeColumn(c, schema[i])
			continue
		}
		native := *c
		if row, bad := retypeColumn(c, schema[i]); bad != fine {
			e := bad.explain(schema[i], string(appendPlain(&native, nil, row)))
			e.Line = row + 1
			return e
		}
		c.Name = schema[i].Name
	}
	return nil
}

// forced returns a schema with the requested types.
func forced(native []Field, o Options) []Field {
	schema := make([]Field, len(native))
	for i, f := range native {
		if t, ok := o.Types[f.Name]; ok {
			f.Type, f.Kind = t, o.Kinds[f.Name]
		}
		schema[i] = f
	}
	if o.Probe.Name != "" {
		schema[len(schema)-1] = o.Probe
	}
	return schema
}

// serial is a source that reads and converts in Next itself.
type serial struct {
	in     *input
	schema []Field
	fill   func(b *Batch) error // reads the next rows, in their native types
	probes bool                 // in the last column, what is not of the type is null
	rows   int
	err    error
}

// Schema implements Source.Schema.
func (s *serial) Schema() []Field { return s.schema }

// Next implements Source.Next.
func (s *serial) Next(b *Batch) error {
	if s.err != nil {
		return s.err
	}
	err := s.fill(b)
	if err == nil {
		err = retypeBatch(b, s.schema, s.probes)
	}
	if err = s.in.wrap(err); err != nil {
		if e, ok := err.(*Error); ok && e.Line > 0 {
			e.Line += s.rows
		}
		s.err = err
		return err
	}
	s.rows += b.Rows
	return nil
}

// Progress implements Source.Progress.
func (s *serial) Progress() (done, total int64) { return s.in.Progress() }

// Close implements Source.Close.
func (s *serial) Close() error { return s.in.Close() }
