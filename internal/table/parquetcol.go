package table

import (
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// parquetColumn is a column of a row group that is being read.
type parquetColumn struct {
	name   string
	r      file.ColumnChunkReader
	most   int16   // definition level of a value that is not null
	levels []int16 // definition levels of a batch
	text   slab
	bytes  []parquet.ByteArray
	fixed  []parquet.FixedLenByteArray
	bools  []bool
}

// reader is the method set that the column readers of all types share.
type reader[T any] interface {
	ReadBatch(n int64, values []T, def, rep []int16) (rows int64, values_ int, err error)
}

// fill reads n values into an empty column.
func (p *parquetColumn) fill(c *Column, n int) (err error) {
	if p.most > 0 && len(p.levels) < n {
		p.levels = make([]int16, n)
	}
	switch r := p.r.(type) {
	case *file.Int64ColumnChunkReader:
		if c.Type == Uint64 {
			c.Uint64 = slices.Grow(c.Uint64, n)[:n]
			err = fillFixed(p, r, c, asSigned[int64](c.Uint64))
		} else {
			c.Int64 = slices.Grow(c.Int64, n)[:n]
			err = fillFixed(p, r, c, c.Int64)
		}
	case *file.Int32ColumnChunkReader:
		if c.Type == Uint32 {
			c.Uint32 = slices.Grow(c.Uint32, n)[:n]
			err = fillFixed(p, r, c, asSigned[int32](c.Uint32))
		} else {
			c.Int32 = slices.Grow(c.Int32, n)[:n]
			err = fillFixed(p, r, c, c.Int32)
		}
	case *file.Float64ColumnChunkReader:
		c.Float64 = slices.Grow(c.Float64, n)[:n]
		err = fillFixed(p, r, c, c.Float64)
	case *file.Float32ColumnChunkReader:
		c.Float32 = slices.Grow(c.Float32, n)[:n]
		err = fillFixed(p, r, c, c.Float32)
	default:
		c.String = slices.Grow(c.String, n)[:n]
		err = p.fillText(c)
	}
	return err
}

// asSigned returns unsigned numbers as the signed ones that Parquet stores.
func asSigned[S int32 | int64, U uint32 | uint64](u []U) []S {
	return unsafe.Slice((*S)(unsafe.Pointer(unsafe.SliceData(u))), len(u))
}

// fillFixed reads numbers. The file holds only those that are not null; they
// are spread afterwards.
func fillFixed[T any](p *parquetColumn, r reader[T], c *Column, values []T) error {
	got := 0
	for rows := 0; rows < len(values); {
		n, v, err := r.ReadBatch(int64(len(values)-rows), values[got:], p.def(rows, len(values)), nil)
		if err = p.step(n, v, rows, err); err != nil {
			return err
		}
		rows, got = rows+int(n), got+v
	}
	if got < len(values) {
		spread(values, c, p.levels, p.most, got)
	}
	return nil
}

// def returns the slice for the definition levels of rows i to j.
func (p *parquetColumn) def(i, j int) []int16 {
	if p.most == 0 {
		return nil
	}
	return p.levels[i:j]
}

// step checks the result of a read: the number of rows read must equal that of
// values and nulls together.
func (p *parquetColumn) step(rows int64, values, at int, err error) error {
	if err == nil {
		err = p.r.Err()
	}
	if err != nil {
		return &Error{Column: p.name, What: "the Parquet file is damaged", Err: err}
	}
	want := int(rows)
	if p.most > 0 {
		want = 0
		for _, l := range p.levels[at : at+int(rows)] {
			if l == p.most {
				want++
			}
		}
	}
	if rows == 0 || values != want {
		return &Error{Column: p.name, What: "the Parquet file is damaged: it has fewer values than its row group says"}
	}
	return nil
}

// spread moves values to the rows they belong to, from the end, and marks the
// others as null.
func spread[T any](values []T, c *Column, levels []int16, most int16, got int) {
	var zero T
	c.padNull(len(values))
	for i := len(values) - 1; i >= 0; i-- {
		if levels[i] == most {
			got--
			values[i] = values[got]
		} else {
			values[i] = zero
			c.Null[i] = true
		}
	}
}

// fillText reads strings page by page, because the memory of a page is invalid
// once the next one is read.
func (p *parquetColumn) fillText(c *Column) error {
	total, got := len(c.String), 0
	for rows := 0; rows < total; {
		n, v, err := p.readText(c.String[got:], total-rows, p.def(rows, total))
		if err = p.step(n, v, rows, err); err != nil {
			return err
		}
		rows, got = rows+int(n), got+v
	}
	if got < total {
		spread(c.String, c, p.levels, p.most, got)
	}
	return nil
}

// readText reads at most n values of a page.
func (p *parquetColumn) readText(into []string, n int, def []int16) (rows int64, v int, err error) {
	switch r := p.r.(type) {
	case *file.ByteArrayColumnChunkReader:
		p.bytes = slices.Grow(p.bytes[:0], n)[:n]
		rows, v, err = r.ReadBatchInPage(int64(n), p.bytes, def, nil)
		for i, b := range p.bytes[:v] {
			into[i] = p.text.copy(b)
		}
	case *file.FixedLenByteArrayColumnChunkReader:
		p.fixed = slices.Grow(p.fixed[:0], n)[:n]
		rows, v, err = r.ReadBatchInPage(int64(n), p.fixed, def, nil)
		for i, b := range p.fixed[:v] {
			into[i] = p.text.copy(b)
		}
	case *file.BooleanColumnChunkReader:
		p.bools = slices.Grow(p.bools[:0], n)[:n]
		rows, v, err = r.ReadBatchInPage(int64(n), p.bools, def, nil)
		for i, b := range p.bools[:v] {
			into[i] = truth(b)
		}
	default:
		err = wrong("cannot be read")
	}
	return rows, v, err
}
