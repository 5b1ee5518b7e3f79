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
	if !table.AppendText(c, text) {
		return fmt.Errorf("%q is no %s", text, c.Field.TypeName())
	}
	return nil
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
