package table

import (
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// AppendJSON implements cols.Foreign. It puts a row together from the values of
// its leaves: a value's definition level tells how much of its path is there, and
// its repetition level which list it goes on with.
func (f *parquetForeign) AppendJSON(buf []byte, i int) []byte {
	row := &parquetRow{}
	for _, l := range f.leaves {
		row.leaves = append(row.leaves, l.values[l.start[i]:l.start[i+1]])
	}
	first := 0
	return row.value(buf, f.column, &first)
}

// parquetRow is the values of a row's leaves that are not used yet.
type parquetRow struct{ leaves [][]parquet.Value }

// value adds the value of a column. leaf is the number of its first leaf; it is
// set to that of the first leaf after it.
func (r *parquetRow) value(buf []byte, c *parquet.Column, leaf *int) []byte {
	first, level := *leaf, c.MaxDefinitionLevel()
	if len(r.leaves[first]) == 0 {
		return append(buf, "null"...) // damaged, but for the caller to say
	}
	there := r.leaves[first][0].DefinitionLevel() >= level
	switch {
	case c.Repeated() && !there:
		r.skip(c, leaf)
		return append(buf, "[]"...)
	case !there:
		r.skip(c, leaf)
		return append(buf, "null"...)
	case !c.Repeated():
		return r.body(buf, c, leaf)
	}
	buf = append(buf, '[')
	for {
		*leaf = first
		buf = r.body(buf, c, leaf)
		if rest := r.leaves[first]; len(rest) == 0 || rest[0].RepetitionLevel() != c.MaxRepetitionLevel() {
			return append(buf, ']')
		}
		buf = append(buf, ',')
	}
}

// skip takes a value, which stands for nothing, from all leaves of a column.
func (r *parquetRow) skip(c *parquet.Column, leaf *int) {
	if c.Leaf() {
		if len(r.leaves[*leaf]) > 0 {
			r.leaves[*leaf] = r.leaves[*leaf][1:]
		}
		*leaf++
		return
	}
	for _, child := range c.Columns() {
		r.skip(child, leaf)
	}
}

// body adds a value that is there: a leaf's, or a group's.
func (r *parquetRow) body(buf []byte, c *parquet.Column, leaf *int) []byte {
	if c.Leaf() {
		if len(r.leaves[*leaf]) == 0 {
			panic(wrong("the Parquet file is damaged: a list has fewer values than it says"))
		}
		v := r.leaves[*leaf][0]
		r.leaves[*leaf] = r.leaves[*leaf][1:]
		*leaf++
		return appendParquetJSON(buf, c.Type(), v)
	}
	children := c.Columns()
	if inner := parquetListed(c); inner != nil {
		return r.value(buf, inner, leaf)
	}
	if only := parquetWrapped(c); only != nil {
		return r.value(buf, only, leaf)
	}
	for i, child := range children {
		lead := byte(',')
		if i == 0 {
			lead = '{'
		}
		buf = append(appendJSON(append(buf, lead), child.Name()), ':')
		buf = r.value(buf, child, leaf)
	}
	if len(children) == 0 {
		buf = append(buf, '{')
	}
	return append(buf, '}')
}

// parquetListed returns the repeated column of a list or a map, which is all that
// such a group has.
func parquetListed(c *parquet.Column) *parquet.Column {
	l := c.Type().LogicalType()
	if l == nil || len(c.Columns()) != 1 || !c.Columns()[0].Repeated() {
		return nil
	}
	switch l.Value.(type) {
	case *format.ListType, *format.MapType:
		return c.Columns()[0]
	}
	return nil
}

// parquetWrapped returns the element of a list, where c is the repeated group
// around it.
func parquetWrapped(c *parquet.Column) *parquet.Column {
	if !c.Repeated() || len(c.Columns()) != 1 {
		return nil
	}
	switch c.Name() {
	case "list", "bag", "array", "element":
		return c.Columns()[0]
	}
	return nil
}
