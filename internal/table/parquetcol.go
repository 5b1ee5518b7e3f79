package table

import (
	"errors"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// parquetColumn is a column of a row group that is being read.
type parquetColumn struct {
	pages *parquet.FilePages
	most  byte // definition level of a value that is not null
	empty bool // all values are null

	digits bool // decimals that are kept as bytes

	page   parquet.Page
	left   int             // rows of the page
	levels []byte          // of these rows, where nulls can be
	values encoding.Values // of the page, without nulls, or of its dictionary
	codes  []int32         // of the page, where it has a dictionary
	coded  bool
	at     int      // values or codes that are behind
	of     any      // dictionary of words
	words  []string // the dictionary's values, where they are strings
	text   slab
	room   []string // for values that are not returned as strings
}

var errFewer = errors.New("it has fewer values than its row group says")

// fill reads n values into an empty column.
func (p *parquetColumn) fill(c *Column, n int) error {
	switch {
	case p.empty:
		c.Int32 = slices.Grow(c.Int32, n)[:n]
		clear(c.Int32)
		c.PadNull(n)
		for i := range c.Null {
			c.Null[i] = true
		}
		return nil
	case c.Type == Int64 && p.digits:
		c.Int64 = slices.Grow(c.Int64, n)[:n]
		return fillParts(p, c, c.Int64, p.someDecimals)
	case c.Type == Int64:
		c.Int64 = slices.Grow(c.Int64, n)[:n]
		return fillNumbers(p, c, c.Int64, (*encoding.Values).Int64)
	case c.Type == Uint64:
		c.Uint64 = slices.Grow(c.Uint64, n)[:n]
		return fillNumbers(p, c, c.Uint64, (*encoding.Values).Uint64)
	case c.Type == Int32:
		c.Int32 = slices.Grow(c.Int32, n)[:n]
		return fillNumbers(p, c, c.Int32, (*encoding.Values).Int32)
	case c.Type == Uint32:
		c.Uint32 = slices.Grow(c.Uint32, n)[:n]
		return fillNumbers(p, c, c.Uint32, (*encoding.Values).Uint32)
	case c.Type == Float64:
		c.Float64 = slices.Grow(c.Float64, n)[:n]
		return fillNumbers(p, c, c.Float64, (*encoding.Values).Double)
	case c.Type == Float32:
		c.Float32 = slices.Grow(c.Float32, n)[:n]
		return fillNumbers(p, c, c.Float32, (*encoding.Values).Float)
	}
	c.String = slices.Grow(c.String, n)[:n]
	return fillParts(p, c, c.String, p.someText)
}

// fillNumbers reads numbers; numbers gives those of a page.
func fillNumbers[T any](p *parquetColumn, c *Column, into []T, numbers func(*encoding.Values) []T) error {
	return fillParts(p, c, into, func(into []T) error {
		values := numbers(&p.values)
		if p.coded {
			return look(into, values, p.codes[p.at:])
		}
		if copy(into, values[min(p.at, len(values)):]) < len(into) {
			return errFewer
		}
		return nil
	})
}

// look sets values to those that codes stand for.
func look[T any](into, dictionary []T, codes []int32) error {
	if len(codes) < len(into) {
		return errFewer
	}
	for i := range into {
		code := codes[i]
		if uint(code) >= uint(len(dictionary)) {
			return errors.New("a code is beyond its dictionary")
		}
		into[i] = dictionary[code]
	}
	return nil
}

// fillParts fills a column page by page. some reads the next values of the page
// at hand: those that are not null. They are spread to their rows afterwards.
func fillParts[T any](p *parquetColumn, c *Column, into []T, some func(into []T) error) error {
	for row := 0; row < len(into); {
		n, got, err := p.part(len(into) - row)
		if err != nil {
			return err
		}
		part := into[row : row+n]
		if err := some(part[:got]); err != nil {
			return err
		}
		if got < n {
			c.PadNull(row + n)
			spread(part, c.Null[row:], p.levels, p.most, got)
		}
		p.at += got
		p.left -= n
		if p.most > 0 {
			p.levels = p.levels[n:]
		}
		row += n
	}
	c.Seal()
	return nil
}

// part returns how many of the next rows, at most the given number, are in the
// page at hand, and how many of them are not null. It goes to the next page where
// that has none left.
func (p *parquetColumn) part(most int) (rows, values int, err error) {
	for p.left == 0 {
		if err := p.turn(); err != nil {
			return 0, 0, err
		}
	}
	rows = min(most, p.left)
	if p.most == 0 {
		return rows, rows, nil
	}
	for _, l := range p.levels[:rows] {
		if l == p.most {
			values++
		}
	}
	return rows, values, nil
}

// turn goes to the next page.
func (p *parquetColumn) turn() (err error) {
	p.release()
	if p.page, err = p.pages.ReadPage(); err != nil {
		if err == io.EOF {
			err = errFewer
		}
		return err
	}
	p.left, p.at = int(p.page.NumValues()), 0
	p.levels = p.page.DefinitionLevels()
	if p.most > 0 && len(p.levels) != p.left {
		return errFewer
	}
	p.values, p.coded, p.codes = p.page.Data(), false, nil
	if d := p.page.Dictionary(); d != nil {
		p.coded, p.codes = true, p.values.Int32()
		p.values = d.Page().Data()
		if p.of != any(d) {
			p.of, p.words = d, nil
		}
	}
	return nil
}

// release returns the page's memory back.
func (p *parquetColumn) release() {
	if p.page != nil {
		parquet.Release(p.page)
		p.page = nil
	}
}

// close ends reading.
func (p *parquetColumn) close() {
	p.release()
	p.pages.Close()
}

// spread moves values to the rows they belong to, from the end, and marks the
// others as null.
func spread[T any](values []T, null []bool, levels []byte, most byte, got int) {
	var zero T
	for i := len(values) - 1; i >= 0; i-- {
		if levels[i] == most {
			got--
			values[i] = values[got]
		} else {
			values[i] = zero
			null[i] = true
		}
	}
}

// someText reads strings. They are copied: the page's memory is used again.
// Those of a dictionary are copied once.
func (p *parquetColumn) someText(into []string) error {
	if !p.coded {
		return p.texts(into, p.at)
	}
	if p.words == nil {
		p.words = make([]string, p.of.(parquet.Dictionary).Len())
		if err := p.texts(p.words, 0); err != nil {
			return err
		}
	}
	return look(into, p.words, p.codes[p.at:])
}

// texts sets strings to the values from a place on.
func (p *parquetColumn) texts(into []string, at int) error {
	switch p.values.Kind() {
	case encoding.ByteArray:
		data, ends := p.values.ByteArray()
		if at+len(into) >= len(ends) && len(into) > 0 {
			return errFewer
		}
		for i := range into {
			into[i] = p.text.copy(data[ends[at+i]:ends[at+i+1]])
		}
	case encoding.FixedLenByteArray:
		data, size := p.values.FixedLenByteArray()
		if (at+len(into))*size > len(data) {
			return errFewer
		}
		for i := range into {
			into[i] = p.text.copy(data[(at+i)*size : (at+i+1)*size])
		}
	case encoding.Boolean:
		bits := p.values.Boolean()
		if at+len(into) > 8*len(bits) {
			return errFewer
		}
		for i := range into {
			into[i] = truth(bits[(at+i)/8]>>((at+i)%8)&1 != 0)
		}
	default:
		return errors.New("it has values of another type than it says")
	}
	return nil
}
