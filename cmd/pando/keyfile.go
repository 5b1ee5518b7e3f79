package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

// input is the flags that tell how a table is read.
type input struct {
	format    string
	header    bool
	noHeader  bool
	noQuotes  bool
	delimiter string
	types     []string
	nulls     []string
}

func (in *input) flags(cmd *cobra.Command, formatFlag string) {
	cmd.Flags().StringVar(&in.format, formatFlag, "", "`FORMAT` of the input; else by extension, then by content (see pando help formats)")
	cmd.Flags().BoolVar(&in.noHeader, "no-header", false, "the first line of a CSV is data; its columns are called 1, 2, ...")
	cmd.Flags().BoolVar(&in.header, "header", false, "the first line of a CSV, or of lines, has the names")
	cmd.Flags().StringVar(&in.delimiter, "delimiter", "", "`CHAR` between the fields of a CSV; else a tab for TSV, or what its first lines have")
	cmd.Flags().BoolVar(&in.noQuotes, "no-quotes", false, "a quote in a CSV is text like any other")
	cmd.Flags().StringArrayVar(&in.nulls, "null", nil, "`TEXT` of a CSV that stands for nothing, such as NA, NULL or \\N; may be repeated")
}

func (in *input) typeFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&in.types, "type", "t", nil, "`COL=TYPE`: read this column as int64, uint64, int32, uint32, float64, float32, string, date, timestamp[us], time[us], decimal[2], bool, uuid or binary; may be repeated")
}

// tableOptions returns the flags as options of package table.
func (in *input) tableOptions() (table.Options, error) {
	o := table.Options{Format: in.format, NoHeader: in.noHeader, Header: in.header, NoQuotes: in.noQuotes, Nulls: in.nulls, Types: map[string]table.Type{}, Kinds: map[string]table.Kind{}}
	if in.header && in.noHeader {
		return o, usagef("--header and --no-header contradict each other")
	}
	if d := in.delimiter; d != "" {
		if d == `\t` || d == "tab" {
			d = "\t"
		}
		if len(d) != 1 {
			return o, usagef("--delimiter %q; take one character, or tab", in.delimiter)
		}
		o.Comma = rune(d[0])
	}
	if in.format != "" && !slices.Contains(table.Formats(), in.format) {
		return o, usagef("cannot read format %q; take one of %s", in.format, strings.Join(table.Formats(), ", "))
	}
	for _, s := range in.types {
		col, name, ok := strings.Cut(s, "=")
		if !ok {
			return o, usagef("--type %s; write it as COL=TYPE, such as --type id=uint64", s)
		}
		t, err := table.ParseType(name)
		if err != nil {
			var kind table.Kind
			if kind, t, err = table.ParseKind(name); err != nil {
				return o, usageError{err}
			}
			o.Kinds[col] = kind
		}
		o.Types[col] = t
	}
	return o, nil
}

// hintHeader adds to an error about columns that they may be asked for by number,
// where the first line of a text seems to be data that was taken for names.
func (in *input) hintHeader(err error, path string, asked ...string) error {
	var e *table.Error
	if err == nil || in.noHeader || in.header || !errors.As(err, &e) || e.Advice != "" || !in.mayHaveHeader(path) {
		return err
	}
	_, list, missing := strings.Cut(e.What, "; there are: ")
	if !missing || !slices.ContainsFunc(append(strings.Split(list, ", "), asked...), looksLikeData) {
		return err
	}
	e.Advice = noHeaderHint
	return err
}

const noHeaderHint = "is the first line data? --no-header calls the columns 1, 2, ..."

// mayHaveHeader reports whether a table may be text whose first line has names.
func (in *input) mayHaveHeader(path string) bool {
	format := in.format
	if format == "" {
		format = extensions[tableExt(path)]
	}
	return slices.Contains([]string{"", "text", "csv", "tsv", "lines"}, format)
}

// looksLikeData reports whether a name of a column is one that data rather has.
func looksLikeData(name string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(name), 64)
	return err == nil
}

// whichColumn is the error where the column of keys is not told, and there are
// several.
func (in *input) whichColumn(path string, schema []table.Field) error {
	hint := ""
	if !in.noHeader && !in.header && in.mayHaveHeader(path) && slices.ContainsFunc(schema, func(f table.Field) bool { return looksLikeData(f.Name) }) {
		hint = "; " + noHeaderHint
	}
	return usagef("which column of %s has the keys? Add --key COL; there are %s%s", path, names(schema), hint)
}

// tellNotes prints decisions about an input that a flag could change.
func tellNotes(w io.Writer, src table.Source) {
	if s, ok := src.(interface{ Notes() []string }); ok {
		for _, n := range s.Notes() {
			fmt.Fprintln(w, n)
		}
	}
}

// tableExt returns the extension of a path, without that of a compression.
func tableExt(path string) string {
	path = strings.ToLower(path)
	for _, z := range table.Packed {
		path = strings.TrimSuffix(path, z)
	}
	return filepath.Ext(path)
}

// openKeys opens a file of keys of a type: one per line, or a column of a
// table.
func (in *input) openKeys(path, column string, stdin io.Reader, key table.Field) (table.Source, error) {
	ext := tableExt(path)
	isTable := looksLikeTable(path) && ext != ".txt" || in.format != "" || column != ""
	if in.format == "lines" || !isTable {
		return openLines(path, stdin, key)
	}
	o, err := in.tableOptions()
	if err != nil {
		return nil, err
	}
	if column == "" {
		if column, err = in.onlyColumn(path, o); err != nil {
			return nil, err
		}
	}
	o.Columns, o.Types = []string{column}, map[string]table.Type{column: key.Type}
	o.Kinds[column] = key.Kind
	src, err := table.Open(path, stdin, o)
	if err != nil {
		return nil, in.hintHeader(err, path, column)
	}
	return keySource{src}, nil
}

// keySource is a column of keys whose type is that of the index: to give another
// is no advice.
type keySource struct{ table.Source }

func (s keySource) Next(b *table.Batch) error {
	err := s.Source.Next(b)
	if e, ok := err.(*table.Error); ok && e.Advice != "" {
		plain := *e
		plain.Advice = "such a key cannot be in this index, so leave its row out"
		return &plain
	}
	return err
}

// onlyColumn returns the name of the only column of a table.
func (in *input) onlyColumn(path string, o table.Options) (string, error) {
	if path == "-" {
		return "", usagef("which column of stdin has the keys? Add --key COL")
	}
	src, err := table.Open(path, nil, o)
	if err != nil {
		return "", err
	}
	defer src.Close()
	if schema := src.Schema(); len(schema) != 1 {
		return "", in.whichColumn(path, schema)
	}
	return src.Schema()[0].Name, nil
}
