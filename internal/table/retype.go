package table

import (
	"slices"
	"strconv"

	"github.com/pando-index/pando/internal/table/cols"
)

// misfit is told of a value that does not fit: its row, its text and why. Where it
// returns false, the rest is left as it is.
type misfit func(row int, text []byte, why problem) bool

// retypeColumn gives a column another type, value by value. It says which value does
// not fit, if one does not; its line is the row, from 1.
func retypeColumn(c *Column, to Field) (err *Error) {
	convertColumn(c, to, func(row int, text []byte, why problem) bool {
		err = why.explain(to, string(text))
		err.Line = row + 1
		return false
	})
	return err
}

// probeColumn gives a column another type. A value that does not fit becomes null;
// it returns how many do not.
func probeColumn(c *Column, to Field) (misfits int) {
	convertColumn(c, to, func(row int, _ []byte, _ problem) bool {
		setNull(c, row)
		misfits++
		return true
	})
	return misfits
}

// convertColumn gives a column another type, value by value. Values go by way of their
// text, so the rules are those of CSV: 1.00 is the integer 1, and 0.50 is none. Of dates
// and times, the numbers are wanted where a number is.
func convertColumn(c *Column, to Field, bad misfit) {
	from := *c
	if to.Kind.Of == cols.Other && to.Type != String && from.Kind.Of != cols.Decimal {
		from.Kind = Kind{}
	}
	c.Kind = to.Kind
	if c.Type == to.Type && (from.Kind == to.Kind || c.Type == String && from.Kind.Of != cols.UUID && !parsedText(to.Kind)) {
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
		if why := appendText(c, buf, &text); why != fine && !bad(row, buf, why) {
			return
		}
	}
	c.Seal()
	if from.Type != to.Type {
		dropValues(c, from.Type)
	}
}

// parsedText reports whether strings of a kind are not what their text is.
func parsedText(k Kind) bool { return k.Of == cols.UUID || k.Of == cols.Boolean }

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

// retypeBatch gives the columns of a batch the types of a schema. The line of an error
// is the row, from 1.
func retypeBatch(b *Batch, schema []Field, probes bool) error {
	for i := range b.Columns {
		c := &b.Columns[i]
		if c.Foreign != nil {
			continue
		}
		if probes && i == len(b.Columns)-1 {
			b.Misfits += probeColumn(c, schema[i])
			continue
		}
		if err := retypeColumn(c, schema[i]); err != nil {
			return err
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
	probes bool                 // in the last column, a value that is not of the type is null
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
