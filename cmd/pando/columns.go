package main

import (
	"fmt"
	"strconv"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
)

// appendText parses a value as the column's type and appends it.
func appendText(c *table.Column, text string) error {
	var err error
	if c.Kind != (table.Kind{}) && c.Type != table.String {
		return appendKind(c, text)
	}
	if c.Kind.Of == cols.UUID {
		id, ok := table.ParseUUID(text)
		if !ok {
			return fmt.Errorf("%q is no %v", text, c.Kind)
		}
		c.String = append(c.String, id)
		return nil
	}
	switch c.Type {
	case table.Int64:
		c.Int64, err = parsed(c.Int64, text, func() (int64, error) { return strconv.ParseInt(text, 10, 64) })
	case table.Uint64:
		c.Uint64, err = parsed(c.Uint64, text, func() (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	case table.Int32:
		c.Int32, err = parsed(c.Int32, text, func() (int32, error) { n, err := strconv.ParseInt(text, 10, 32); return int32(n), err })
	case table.Uint32:
		c.Uint32, err = parsed(c.Uint32, text, func() (uint32, error) { n, err := strconv.ParseUint(text, 10, 32); return uint32(n), err })
	case table.Float64:
		c.Float64, err = parsed(c.Float64, text, func() (float64, error) { return strconv.ParseFloat(text, 64) })
	case table.Float32:
		c.Float32, err = parsed(c.Float32, text, func() (float32, error) { n, err := strconv.ParseFloat(text, 32); return float32(n), err })
	default:
		c.String = append(c.String, text)
	}
	if err != nil {
		return fmt.Errorf("%q is no %v", text, c.Type)
	}
	return nil
}

// appendKind parses a value as the column's kind, such as a date, and appends it.
func appendKind(c *table.Column, text string) error {
	v, err := table.ParseNumber(c.Kind, text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no %v", text, c.Kind)
	case c.Type == table.Int32:
		c.Int32 = append(c.Int32, int32(v))
	default:
		c.Int64 = append(c.Int64, v)
	}
	return nil
}

func parsed[T any](s []T, text string, parse func() (T, error)) ([]T, error) {
	v, err := parse()
	if err != nil {
		return s, err
	}
	return append(s, v), nil
}

// keyColumn parses arguments as keys of an index.
func keyColumn(ix typed.Index, texts []string) (*table.Column, error) {
	c := &table.Column{Field: keyField(ix)}
	for _, s := range texts {
		if err := appendText(c, s); err != nil {
			return nil, usagef("%w, but the keys of this index are", err)
		}
	}
	return c, nil
}

// cellText returns value i as text.
func cellText(c *table.Column, i int) string {
	if c.Kind != (table.Kind{}) && c.Kind.Of != cols.Binary {
		return table.CellText(c, i)
	}
	switch c.Type {
	case table.Int64:
		return strconv.FormatInt(c.Int64[i], 10)
	case table.Uint64:
		return strconv.FormatUint(c.Uint64[i], 10)
	case table.Int32:
		return strconv.FormatInt(int64(c.Int32[i]), 10)
	case table.Uint32:
		return strconv.FormatUint(uint64(c.Uint32[i]), 10)
	case table.Float64:
		return strconv.FormatFloat(c.Float64[i], 'g', -1, 64)
	case table.Float32:
		return strconv.FormatFloat(float64(c.Float32[i]), 'g', -1, 32)
	}
	return strconv.Quote(c.String[i])
}

// pick sets dst to the values of src in the given rows.
func pick(dst, src *table.Column, rows []int) {
	dst.Field = src.Field
	if dst.Null = nil; src.Null != nil {
		dst.Null = picked(nil, src.Null, rows)
	}
	if src.Foreign != nil {
		dst.Foreign = src.Foreign.Pick(rows)
		return
	}
	switch src.Type {
	case table.Int64:
		dst.Int64 = picked(dst.Int64, src.Int64, rows)
	case table.Uint64:
		dst.Uint64 = picked(dst.Uint64, src.Uint64, rows)
	case table.Int32:
		dst.Int32 = picked(dst.Int32, src.Int32, rows)
	case table.Uint32:
		dst.Uint32 = picked(dst.Uint32, src.Uint32, rows)
	case table.Float64:
		dst.Float64 = picked(dst.Float64, src.Float64, rows)
	case table.Float32:
		dst.Float32 = picked(dst.Float32, src.Float32, rows)
	default:
		dst.String = picked(dst.String, src.String, rows)
	}
}

func picked[T any](dst, src []T, rows []int) []T {
	dst = dst[:0]
	for _, r := range rows {
		dst = append(dst, src[r])
	}
	return dst
}

// names returns columns for a message: id (int64), name (string).
func names(schema []table.Field) string {
	text := ""
	for i, f := range schema {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s (%v)", f.Name, f.Type)
	}
	return text
}

// fillNulls replaces nulls by the first value of a column of the same type.
func fillNulls(c, with *table.Column) {
	for i, null := range c.Null {
		if !null {
			continue
		}
		switch c.Type {
		case table.Int64:
			c.Int64[i] = with.Int64[0]
		case table.Uint64:
			c.Uint64[i] = with.Uint64[0]
		case table.Int32:
			c.Int32[i] = with.Int32[0]
		case table.Uint32:
			c.Uint32[i] = with.Uint32[0]
		case table.Float64:
			c.Float64[i] = with.Float64[0]
		case table.Float32:
			c.Float32[i] = with.Float32[0]
		default:
			c.String[i] = with.String[0]
		}
	}
	clear(c.Null)
}
