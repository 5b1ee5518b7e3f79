package main

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

const joinLong = `Look up a column of a table in an index, and write the table's rows with the value
found. The table is read, looked up and written in batches, so that it may be
larger than memory. Its columns are written as they are: text is not parsed, and
columns of Parquet and Arrow keep their types. --type parses one on the way. Only
into Parquet and Arrow, columns of CSV get the types that ` + "`pando build`" + ` infers,
where no digit is lost in the first rows; one that a later row would lose is an
error. --type COL=string keeps a column as text.

  --how inner   rows whose key is in the index, with its value (the default)
  --how left    all rows; the value is null where the key is not in the index
  --how semi    rows whose key is in the index, without the value
  --how anti    rows whose key is not in the index

Of equal keys in the index the first is taken; --all writes a row for each, as
SQL does. A null key is in no index, nor is one that is not of the type of its keys,
such as 0.5 where they are integers; how many are not is told. Equal numbers match
however they are written: 1003, 1003.0 and 1.003e3.`

const joinExample = `  pando join prices.pando orders.csv --on item -o priced.parquet
  pando join prices.pando orders.csv --on item --how left --as price
  pando join blocked.pando visits.jsonl.gz --on ip --how anti --json
  cat orders.csv | pando join prices.pando - --on item --format csv`

// joinFlags are the flags of join.
type joinFlags struct {
	place
	output
	input
	on, as, how string
	columns     []string
	all, quiet  bool
}

func newJoin() *cobra.Command {
	f := &joinFlags{}
	cmd := &cobra.Command{
		Use:     "join FILE INPUT... --on COL [flags]",
		Short:   "Add the values of an index to the rows of a table",
		Long:    joinLong,
		Example: joinExample,
		Args:    takes(2, -1, "an index file and a table"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	f.place.flags(cmd)
	f.output.flags(cmd)
	f.input.flags(cmd, "input-format")
	f.input.typeFlag(cmd)
	cmd.Flags().StringVar(&f.on, "on", "", "`COL` of the table to look up (needed)")
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "`COL,...` of the table to write, in this order; else all")
	cmd.Flags().StringVar(&f.as, "as", "", "`NAME` of the column of values instead of its own; where they have several, names between commas")
	cmd.Flags().StringVar(&f.how, "how", "inner", "`WHICH` rows to write: inner, left, semi or anti")
	cmd.Flags().BoolVar(&f.all, "all", false, "write a row for each of several equal keys, not only the first")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show neither progress nor how many rows were found")
	return cmd
}

func (f *joinFlags) run(cmd *cobra.Command, path string, tables []string) error {
	h := how(f.how)
	switch {
	case !slices.Contains([]how{inner, left, semi, anti}, h):
		return usagef("--how %q; take inner, left, semi or anti", f.how)
	case f.on == "":
		return usagef("which column of %s has the keys? Add --on COL", tables[0])
	}
	if err := f.settle(cmd, append([]string{path}, tables...)...); err != nil {
		return err
	}
	ix, err := f.openFor(cmd, path)
	if err != nil {
		return err
	}
	defer ix.Close()
	p := &probe{ix: ix, how: h, all: f.all}
	if _, ok := ix.Value(); h == inner || h == left {
		if !ok {
			return usagef("%s has keys alone, so there is no value to add; take --how semi or --how anti", path)
		}
		value, err := namedParts(ix, f.as, cmd.Flags().Changed("as"))
		if err != nil {
			return err
		}
		p.value = &value
	}
	src, err := f.openTables(cmd, tables, p)
	if err != nil {
		return err
	}
	defer src.Close()
	if !f.quiet {
		tellNotes(cmd.ErrOrStderr(), src)
	}
	if err := f.fit(p, tables[0], src); err != nil {
		return err
	}
	p.progress = newProgress(cmd.ErrOrStderr(), f.quiet || f.toStdout() && isTerminal(cmd.OutOrStdout()), "joining")
	if err := f.stream(cmd, src, p); err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), p.tally())
	}
	return nil
}

// openTables opens the tables. The column to look up is read apart, as the index's
// key type; all others are passed on.
func (f *joinFlags) openTables(cmd *cobra.Command, paths []string, p *probe) (table.Source, error) {
	o, err := f.tableOptions()
	if err != nil {
		return nil, err
	}
	o.Pass, o.Whole, o.Columns = true, f.output.format == "jsonl", f.columns
	o.Typed = f.output.format == "parquet" || f.output.format == "arrow"
	o.Probe = keyField(p.ix)
	o.Probe.Name = f.on
	if p.value != nil {
		o.Taken = p.valueNames()
	}
	src, err := openTables(paths, cmd.InOrStdin(), o)
	return src, f.hintHeader(err, paths[0], append(f.columns, f.on)...)
}

// fit tells a probe about the table: its last column is looked up, and the others
// are written.
func (f *joinFlags) fit(p *probe, path string, src table.Source) error {
	schema := src.Schema()
	p.on = len(schema) - 1
	for i := range schema[:p.on] {
		p.keep = append(p.keep, i)
	}
	for _, name := range p.valueNames() {
		taken := hasName(src, name) && schema[0].Form == table.Object
		for _, c := range schema[:p.on] {
			taken = taken || c.Name == name && c.Form != table.Object
		}
		if taken {
			return usagef("%s has a column %q already; name that of the values with --as", path, name)
		}
	}
	return nil
}

// hasName reports whether a source that does not tell all its columns by its schema
// has one of a name.
func hasName(src table.Source, name string) bool {
	s, ok := src.(interface{ Names() []string })
	return ok && slices.Contains(s.Names(), name)
}
