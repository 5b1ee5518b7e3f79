package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandostore"
	"github.com/spf13/cobra"
)

// rowFlags are the flags of commands that make entries of the rows of a table.
type rowFlags struct {
	input
	key               string
	values            []string
	skipNulls         bool
	nullValue         string
	replaceNullValues bool
	memory            size
	quiet             bool
}

func (f *rowFlags) flags(cmd *cobra.Command) {
	f.input.flags(cmd, "format")
	f.input.typeFlag(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.key, "key", "k", "", "`COL` of the keys (needed, unless there is only one)")
	fs.StringArrayVarP(&f.values, "value", "v", nil, "`COL` of the values; without, there are keys alone. They are written again by their names. May be repeated")
	fs.BoolVar(&f.skipNulls, "skip-nulls", false, "leave out rows without a key or value, instead of failing")
	fs.StringVar(&f.nullValue, "null-value", "", "`VALUE` for rows that have none, instead of failing")
	fs.Var(&f.memory, "memory", "most memory to use, such as 8G; 0 is what the machine has free. Limits of the process (control group, ulimit, GOMEMLIMIT) hold in any case")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show neither types nor progress")
}

// check rejects flags that make no sense, before anything is read.
func (f *rowFlags) check(cmd *cobra.Command) error {
	f.replaceNullValues = cmd.Flags().Changed("null-value")
	switch {
	case len(slices.Compact(slices.Sorted(slices.Values(f.values)))) < len(f.values):
		return usagef("--value names a column twice")
	case f.replaceNullValues && len(f.values) != 1:
		return usagef("--null-value needs --value, and only one")
	}
	return nil
}

// reading is tables that are read to become entries.
type reading struct {
	f       *rowFlags
	src     table.Source
	errs    io.Writer
	types   typed.Types
	note    string        // about the columns
	nothing *table.Column // the value that stands for null, if one was given

	read, skipped int64 // rows
}

// open opens tables with the key as their first column, and values as those that
// follow. Columns in fixed have these types, and others their own.
func (f *rowFlags) open(cmd *cobra.Command, paths []string, fixed []table.Field) (*reading, error) {
	o, err := f.tableOptions()
	if err != nil {
		return nil, err
	}
	for _, c := range fixed {
		if _, asked := o.Types[c.Name]; asked {
			return nil, usagef("--type %s: the store has a type for it; leave that out", c.Name)
		}
		o.Types[c.Name], o.Kinds[c.Name] = c.Type, c.Kind
	}
	if f.key != "" {
		o.Columns = append([]string{f.key}, f.values...)
	}
	src, err := openTables(paths, cmd.InOrStdin(), o)
	if err != nil {
		return nil, f.hintHeader(err, paths[0], append(f.values, f.key)...)
	}
	if schema := src.Schema(); f.key == "" && (len(schema) != 1 || len(f.values) > 0) {
		src.Close()
		return nil, f.whichColumn(paths[0], schema)
	}
	r := &reading{f: f, src: src, errs: cmd.ErrOrStderr()}
	if f.quiet {
		r.errs = io.Discard
	}
	return r, nil
}

// begin determines the types.
func (r *reading) begin() (err error) {
	tellNotes(r.errs, r.src)
	schema := r.src.Schema()
	fmt.Fprintf(r.errs, "key   %s: %s\n", schema[0].Name, schema[0].TypeName())
	for _, c := range schema[1:] {
		fmt.Fprintf(r.errs, "value %s: %s\n", c.Name, c.TypeName())
	}
	if len(schema) > 2 {
		fmt.Fprintln(r.errs, "to Go, each value is a JSON object of these, as a string")
	}
	if r.types, r.note, err = entryTypes(schema); err != nil {
		return err
	}
	if r.f.replaceNullValues {
		r.nothing = &table.Column{Field: table.Field{Type: schema[1].Type, Kind: schema[1].Kind}}
		if err := appendText(r.nothing, r.f.nullValue); err != nil {
			return usagef("--null-value: %w, but the values are", err)
		}
	}
	return nil
}

// entryTypes returns the types of entries with these columns, the keys first, and the note
// about them.
func entryTypes(schema []table.Field) (t typed.Types, text string, err error) {
	t.Key = schema[0].Type
	var value table.Kind
	name := ""                // of the column of values, if there is one
	var several []table.Field // columns of values, if they are more than one
	switch {
	case len(schema) == 2:
		t.Value, t.Valued = schema[1].Type, true
		value, name = schema[1].Kind, schema[1].Name
	case len(schema) > 2:
		t.Value, t.Valued = table.String, true
		several = schema[1:]
	}
	if text = noteText(schema[0].Kind, value, name, several); len(text) > pandostore.MaxNote {
		return t, "", usagef("a file has no room for the names of these %d columns; take fewer columns of values, or shorter names", len(several))
	}
	return t, text, nil
}

// columns returns keys and values of a batch, and which rows to leave out.
func (r *reading) columns(j *job) (keys, vals *table.Column, drop []bool, err error) {
	keys = &j.in.Columns[0]
	if r.types.Valued {
		vals = &j.in.Columns[1]
	}
	if len(j.in.Columns) > 2 {
		vals = objects(j.in.Columns[1:], j.in.Rows)
	}
	if drop, err = r.nulls(j, keys, vals); err == nil {
		r.read += int64(j.in.Rows)
	}
	return keys, vals, drop, err
}

// objects returns columns as one, of JSON objects.
func objects(columns []table.Column, rows int) *table.Column {
	return &table.Column{Field: table.Field{Name: "value", Type: table.String}, String: table.Pack(columns, rows)}
}

// nulls returns which rows to leave out.
func (r *reading) nulls(j *job, keys, vals *table.Column) (drop []bool, err error) {
	if vals != nil && vals.Null != nil && r.nothing != nil {
		fillNulls(vals, r.nothing)
	}
	for _, c := range []*table.Column{keys, vals} {
		if c == nil || c.Null == nil {
			continue
		}
		i := slices.Index(c.Null, true)
		switch {
		case i < 0:
			continue
		case !r.f.skipNulls && c == keys:
			return nil, fmt.Errorf("row %d has no key (column %q); --skip-nulls leaves such rows out", j.row+int64(i), c.Name)
		case !r.f.skipNulls:
			return nil, fmt.Errorf("row %d has no value (column %q); --skip-nulls leaves such rows out, --null-value V gives them one", j.row+int64(i), c.Name)
		}
		if drop == nil {
			drop = make([]bool, j.in.Rows)
		}
		for i, null := range c.Null {
			drop[i] = drop[i] || null
		}
	}
	for _, d := range drop {
		if d {
			r.skipped++
		}
	}
	return drop, nil
}
