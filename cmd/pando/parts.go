package main

import (
	"slices"
	"strings"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
)

// parts are the columns that a value is made of, where it is an object of several. A
// field of values has them as its native type, and output.rows takes them apart.
type parts struct {
	fields []table.Field // as the file's note has them
	names  []string      // that they are written with
}

// newParts returns columns that are written with their own names. One that is called as
// the column of keys is gets another.
func newParts(fields []table.Field) parts {
	p := parts{fields: fields}
	for _, f := range fields {
		p.names = append(p.names, besideKey(f.Name))
	}
	return p
}

// besideKey returns the name of a column of values that is written beside the keys.
func besideKey(name string) string {
	if name == "key" {
		return "value.key"
	}
	return name
}

// written returns the columns with the names that they are written with.
func (p parts) written() []table.Field {
	out := slices.Clone(p.fields)
	for i, name := range p.names {
		out[i].Name = name
	}
	return out
}

// part is one of them as a file's note has it.
type part struct {
	Name string     `json:"name"`
	Type table.Type `json:"type"`
	Kind string     `json:"kind,omitempty"`
}

// partNotes returns columns for a note.
func partNotes(fields []table.Field) (notes []part) {
	for _, f := range fields {
		notes = append(notes, part{f.Name, f.Type, f.Kind.String()})
	}
	return notes
}

// partFields returns the columns that a note tells of.
func partFields(notes []part) (fields []table.Field) {
	for _, p := range notes {
		fields = append(fields, table.Field{Name: p.Name, Type: p.Type, Kind: kindFor(p.Kind, p.Type)})
	}
	return fields
}

// partsOf returns the columns that a field is made of: itself, unless it has parts.
func partsOf(f table.Field) []table.Field {
	if p, ok := f.Native.(parts); ok {
		return p.written()
	}
	return []table.Field{f}
}

// namedParts returns the column of an index's values for a join. Values keep their
// names, unless as has one for each, between commas.
func namedParts(ix typed.Index, as string, given bool) (table.Field, error) {
	if !given {
		as = valueName(ix)
	}
	f := valueField(ix, as)
	p, ok := f.Native.(parts)
	if !ok {
		return f, nil
	}
	p.names = strings.Split(as, ",")
	if !given {
		p.names = p.names[:0]
		for _, f := range p.fields {
			p.names = append(p.names, f.Name)
		}
	}
	if len(p.names) != len(p.fields) {
		return f, usagef("--as %s; the values have %d columns, so give %d names between commas", as, len(p.fields), len(p.fields))
	}
	f.Native = p
	return f, nil
}

// apart returns a schema in which values of several columns are these columns, and a
// function that does the same with a batch; nil where there are none.
func apart(schema []table.Field) (out []table.Field, split func(*table.Batch) (*table.Batch, error)) {
	any := false
	for _, f := range schema {
		_, ok := f.Native.(parts)
		any = any || ok
		out = append(out, partsOf(f)...)
	}
	if !any {
		return schema, nil
	}
	return out, func(b *table.Batch) (*table.Batch, error) {
		wide := &table.Batch{Rows: b.Rows}
		for i := range b.Columns {
			p, ok := schema[i].Native.(parts)
			if !ok {
				wide.Columns = append(wide.Columns, b.Columns[i])
				continue
			}
			columns, err := table.Unpack(&b.Columns[i], p.fields)
			if err != nil {
				return nil, err
			}
			for i, name := range p.names {
				columns[i].Name = name
			}
			wide.Columns = append(wide.Columns, columns...)
		}
		return wide, nil
	}
}
