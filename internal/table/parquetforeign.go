package table

import (
	"errors"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pando-index/pando/internal/table/cols"
)

// parquetForeign is the values of a column that is passed on as it is: those of
// all its leaves, with the levels that tell how they are nested.
type parquetForeign struct {
	column *parquet.Column
	leaves []parquetLeaf
}

// parquetLeaf is the values of a leaf. Those of row i are values[start[i]:start[i+1]].
type parquetLeaf struct {
	values []parquet.Value
	start  []int
}

// parquetPlain reports whether columns here hold all that a column's type says.
func parquetPlain(c *parquet.Column) bool {
	if !c.Leaf() || c.MaxRepetitionLevel() > 0 || c.MaxDefinitionLevel() > 1 {
		return false
	}
	logical := c.Type().LogicalType()
	switch c.Type().Kind() {
	case parquet.Float, parquet.Double:
		return true
	case parquet.Int32, parquet.Int64:
		if logical == nil {
			return true
		}
		n, ok := logical.Value.(*format.IntType)
		return ok && n.BitWidth >= 32
	case parquet.ByteArray:
		if logical == nil {
			return false
		}
		_, text := logical.Value.(*format.StringType)
		return text
	}
	return false
}

// parquetBytes reports whether a type is one of bytes, of which nothing is said.
func parquetBytes(t parquet.Type) bool {
	return t.LogicalType() == nil && parquetKind(t).Of == cols.Binary
}

// parquetNested reads a column of a row group whose values are passed on.
type parquetNested struct {
	column *parquet.Column
	leaves []*parquetLeafReader
}

// parquetLeafReader reads the values of a leaf, row by row.
type parquetLeafReader struct {
	pages  *parquet.FilePages
	room   *limited // where a stranger sends them, values may take so much
	page   parquet.Page
	values parquet.ValueReader
	ahead  []parquet.Value // read, but of no row that was returned
	ended  bool
}

// fill reads n rows.
func (p *parquetNested) fill(c *Column, n int) error {
	f := &parquetForeign{column: p.column}
	for _, l := range p.leaves {
		leaf, err := l.rows(n)
		if err != nil {
			return err
		}
		f.leaves = append(f.leaves, leaf)
	}
	c.Foreign = f
	if !p.column.Optional() {
		return nil
	}
	first := f.leaves[0]
	for i := range n {
		if first.values[first.start[i]].DefinitionLevel() == 0 {
			c.PadNull(n)
			c.Null[i] = true
		}
	}
	return nil
}

func (p *parquetNested) close() {
	for _, l := range p.leaves {
		parquet.Release(l.page)
		l.pages.Close()
	}
}

// rows returns the values of the next n rows. A row ends where the next begins,
// or at the end of the row group.
func (l *parquetLeafReader) rows(n int) (leaf parquetLeaf, err error) {
	leaf.values, l.ahead = l.ahead, nil
	for at, rows := 0, 0; ; {
		for ; at < len(leaf.values); at++ {
			if leaf.values[at].RepetitionLevel() > 0 {
				continue
			}
			if rows == n {
				l.ahead = append(l.ahead, leaf.values[at:]...)
				leaf.values = leaf.values[:at:at]
				break
			}
			leaf.start = append(leaf.start, at)
			rows++
		}
		if len(l.ahead) > 0 || l.ended {
			break
		}
		if leaf.values, err = l.more(leaf.values); err != nil {
			return leaf, err
		}
	}
	if len(leaf.start) != n {
		return leaf, errFewer
	}
	leaf.start = append(leaf.start, len(leaf.values))
	return leaf, nil
}

// more appends some values. Their bytes are copied: the page's memory is used
// again.
func (l *parquetLeafReader) more(values []parquet.Value) ([]parquet.Value, error) {
	if l.values == nil {
		parquet.Release(l.page)
		page, err := l.pages.ReadPage()
		if l.page = page; err != nil {
			l.ended = errors.Is(err, io.EOF)
			if l.ended {
				err = nil
			}
			return values, err
		}
		l.values = page.Values()
	}
	var room [512]parquet.Value
	n, err := l.values.ReadValues(room[:])
	for _, v := range room[:n] {
		if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
			l.room.check(len(v.ByteArray()))
		}
		values = append(values, v.Clone())
	}
	if errors.Is(err, io.EOF) {
		l.values, err = nil, nil
	}
	return values, err
}

// Len implements cols.Foreign.
func (f *parquetForeign) Len() int { return len(f.leaves[0].start) - 1 }

// Pick implements cols.Foreign.
func (f *parquetForeign) Pick(rows []int) cols.Foreign {
	out := &parquetForeign{column: f.column}
	for _, l := range f.leaves {
		var leaf parquetLeaf
		for _, r := range rows {
			leaf.start = append(leaf.start, len(leaf.values))
			leaf.values = append(leaf.values, l.values[l.start[r]:l.start[r+1]]...)
		}
		leaf.start = append(leaf.start, len(leaf.values))
		out.leaves = append(out.leaves, leaf)
	}
	return out
}

// Kind implements cols.Foreign.
func (f *parquetForeign) Kind() cols.Kind {
	if c := f.column; c.Leaf() && c.MaxRepetitionLevel() == 0 && c.Type().Kind() == parquet.Boolean {
		return cols.Kind{Of: cols.Boolean}
	} else if c.Leaf() && c.MaxRepetitionLevel() == 0 {
		return parquetKind(c.Type())
	}
	return cols.Kind{}
}

// parquetKind returns the kind of a type, common to all formats.
func parquetKind(t parquet.Type) cols.Kind {
	l := t.LogicalType()
	if l == nil {
		if k := t.Kind(); !isInterval(t) && (k == parquet.ByteArray || k == parquet.FixedLenByteArray) {
			return cols.Kind{Of: cols.Binary}
		}
		return cols.Kind{}
	}
	switch l := l.Value.(type) {
	case *format.IntType:
		if l.IsSigned {
			return cols.Kind{Of: cols.Integer, Bits: int(l.BitWidth)}
		}
		return cols.Kind{Of: cols.Integer, Bits: -int(l.BitWidth)}
	case *format.UUIDType:
		return cols.Kind{Of: cols.UUID}
	case *format.BsonType:
		return cols.Kind{Of: cols.Binary}
	case *format.TimeType:
		return cols.Kind{Of: cols.Time, Unit: parquetUnit(l.Unit)}
	case *format.DateType:
		return cols.Kind{Of: cols.Date}
	case *format.TimestampType:
		return cols.Kind{Of: cols.Timestamp, Unit: parquetUnit(l.Unit), UTC: l.IsAdjustedToUTC}
	case *format.DecimalType:
		if l.Precision > mostScale && l.Precision <= widest && l.Scale >= 0 {
			return cols.Kind{Of: cols.Wide, Scale: int(l.Scale)}
		}
		if l.Scale >= 0 && l.Scale <= mostScale && l.Precision <= mostScale {
			return cols.Kind{Of: cols.Decimal, Scale: int(l.Scale)}
		}
	}
	return cols.Kind{}
}

func parquetUnit(u format.TimeUnit) time.Duration {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return time.Millisecond
	case *format.MicroSeconds:
		return time.Microsecond
	}
	return time.Nanosecond
}

// Int implements cols.Foreign.
func (f *parquetForeign) Int(i int) int64 {
	v := f.leaves[0].values[f.leaves[0].start[i]]
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return 1
		}
		return 0
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return parquetUnscaled(v).Int64()
	}
	return v.Int64()
}

// AppendBytes implements cols.Foreign.
func (f *parquetForeign) AppendBytes(buf []byte, i int) []byte {
	v := f.leaves[0].values[f.leaves[0].start[i]]
	if f.Kind().Of == cols.Wide {
		return appendWide(buf, parquetUnscaled(v))
	}
	return append(buf, v.ByteArray()...)
}

// AppendText implements cols.Foreign.
func (f *parquetForeign) AppendText(buf []byte, i int) []byte {
	if f.column.Leaf() && f.column.MaxRepetitionLevel() == 0 {
		return appendParquetText(buf, f.column.Type(), f.leaves[0].values[f.leaves[0].start[i]])
	}
	return f.AppendJSON(buf, i)
}

// parquetCopy is a column of another file as one of a file to be written.
type parquetCopy struct{ *parquet.Column }

// Encoding implements parquet.Node.Encoding: the writer's own.
func (c parquetCopy) Encoding() encoding.Encoding { return nil }

// Compression implements parquet.Node.Compression: the writer's own.
func (c parquetCopy) Compression() compress.Codec { return nil }

// Fields implements parquet.Node.Fields.
func (c parquetCopy) Fields() (fields []parquet.Field) {
	for _, f := range c.Columns() {
		fields = append(fields, parquetCopy{f})
	}
	return fields
}
