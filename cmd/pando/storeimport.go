package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandostore"
	"github.com/spf13/cobra"
)

const storeImportLong = `Read tables and set an entry for each row: one column is the keys and, with --value,
others are the values, as for ` + "`pando build`" + `. Of rows with equal keys the last wins, and keys
that the store has already get the new values. Rows go into the store as they are
read, whatever the size of the table; the store itself is in memory.

A store that is not there is made, with the types of the table; --type sets others. For
one that is there, columns are read as the types it has; without --key and --value
they are those that ` + "`pando store export`" + ` writes.

Everything is on disk when the command ends well. If it does not, a beginning of the rows
is in the store; the same import again does them all.`

const storeImportExample = `  pando store import prices prices.parquet --key item --value price
  pando store import prices 'more-*.csv' --key item --value price
  pando store export prices -f arrow | pando store import copy - -k key -v price`

// importFlags are the flags of import.
type importFlags struct {
	rowFlags
	json bool
}

func newStoreImport() *cobra.Command {
	f := &importFlags{}
	cmd := &cobra.Command{
		Use:     "import DIR INPUT... [--key COL] [--value COL] [flags]",
		Short:   "Set the rows of a table",
		Long:    storeImportLong,
		Example: storeImportExample,
		Args:    takes(2, -1, "the folder of a store and an input: files, or - for stdin"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	f.rowFlags.flags(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print a summary as JSON")
	return cmd
}

// imported is the result of an import.
type imported struct {
	Path    string  `json:"path"`
	Made    bool    `json:"made"`
	Rows    int64   `json:"rows"`
	Skipped int64   `json:"skipped"`
	Added   int     `json:"added"`
	Entries int     `json:"entries"`
	Seconds float64 `json:"seconds"`
}

// importing is an import under way.
type importing struct {
	*reading
	store typed.Store // nil until the first rows are there, if it is to be made
	opts  []pandostore.Option
	sum   imported
}

func (f *importFlags) run(cmd *cobra.Command, path string, inputs []string) (err error) {
	start := time.Now()
	if err := f.check(cmd); err != nil {
		return err
	}
	info, has, err := hasStore(path)
	if err != nil {
		return err
	}
	b := newBudget(int64(f.memory))
	defer b.hold()()
	im := &importing{opts: []pandostore.Option{pandostore.NoSync()}, sum: imported{Path: path, Made: !has}}
	if b.bytes > 0 {
		im.opts = append(im.opts, pandostore.Tree(pando.MemoryLimit(b.bytes)))
	}
	var fixed []table.Field
	if has {
		ix, err := im.open(cmd, path, f.quiet)
		if err != nil {
			return err
		}
		ix = withKinds(ix, info.Note)
		if fixed, err = f.columnsOf(ix, inputs[0]); err != nil {
			im.store.Close()
			return err
		}
	}
	if im.reading, err = f.rowFlags.open(cmd, inputs, fixed); err == nil {
		err = im.all(cmd, f.quiet)
		im.src.Close()
	}
	if err = im.end(err, cmd.Context().Err() != nil); err != nil {
		return err
	}
	im.sum.Seconds = time.Since(start).Seconds()
	if f.json {
		return writeJSON(cmd.OutOrStdout(), im.sum)
	}
	im.print()
	return nil
}

// open opens the store, and returns an index that is closed and tells its types.
func (im *importing) open(cmd *cobra.Command, path string, quiet bool) (ix typed.Index, err error) {
	if im.store, err = openStore(cmd, path, quiet, im.opts...); err != nil {
		return nil, err
	}
	im.sum.Added = -im.store.Len()
	ix = im.store.Snapshot()
	return ix, ix.Close()
}

// columnsOf returns the columns to read for a store that is there, and sets --key and
// --value where they are not given.
func (f *importFlags) columnsOf(ix typed.Index, input string) (fixed []table.Field, err error) {
	var values []table.Field
	if _, valued := ix.Value(); valued {
		values = partsOf(valueField(ix, besideKey(valueName(ix))))
		if p, ok := valueField(ix, "").Native.(parts); ok && len(f.values) > 0 {
			values = p.fields // by their own names
		}
	}
	if f.key == "" && len(values) == 0 {
		o, err := f.tableOptions()
		if err != nil {
			return nil, err
		}
		if f.key, err = f.onlyColumn(input, o); err != nil {
			return nil, err
		}
	} else if f.key == "" {
		f.key = "key"
	}
	if len(f.values) == 0 {
		for _, v := range values {
			f.values = append(f.values, v.Name)
		}
	}
	if len(f.values) != len(values) {
		return nil, usagef("--value %d times; the values of the store have %s", len(f.values), many(int64(len(values)), "column", "columns"))
	}
	key := keyField(ix)
	key.Name = f.key
	fixed = []table.Field{key}
	for i, v := range values {
		fixed = append(fixed, table.Field{Name: f.values[i], Type: v.Type, Kind: v.Kind})
	}
	return fixed, nil
}

// all reads the tables and sets their rows.
func (im *importing) all(cmd *cobra.Command, quiet bool) error {
	if err := im.begin(); err != nil {
		return err
	}
	p := newProgress(cmd.ErrOrStderr(), quiet, "importing")
	defer p.end()
	err := pipeline(cmd.Context(), im.src, nil, func(j *job) error {
		keys, vals, drop, err := im.columns(j)
		if err != nil {
			return err
		}
		if drop != nil {
			if keys = without(keys, drop); vals != nil {
				vals = without(vals, drop)
			}
		}
		if err := im.make(); err != nil {
			return err
		}
		if err := im.store.Set(keys, vals); err != nil {
			im.read -= int64(j.in.Rows)
			return err
		}
		done, total := im.src.Progress()
		p.update(done, total, int(im.read))
		return nil
	})
	if err != nil {
		return err
	}
	return im.make() // also for a table without rows
}

// make makes the store if it was not there.
func (im *importing) make() (err error) {
	if im.store == nil {
		im.store, err = makeStore(im.sum.Path, im.types, im.note, im.opts...)
	}
	return err
}

// end closes the store, which makes it durable, and says how far an import came that has
// failed.
func (im *importing) end(err error, interrupted bool) error {
	if im.store == nil {
		return err
	}
	im.sum.Entries = im.store.Len()
	closed := im.store.Close()
	if err == nil {
		err = closed
	}
	if im.reading != nil {
		im.sum.Rows, im.sum.Skipped = im.read, im.skipped
		im.sum.Added += im.sum.Entries
	}
	state := fmt.Sprintf("the first %s are in %s, and the same import again does all", many(im.sum.Rows, "row", "rows"), im.sum.Path)
	switch {
	case err == nil || im.sum.Rows == 0:
		return err
	case interrupted && closed == nil:
		return interruption{state}
	case errors.Is(err, pando.ErrMemoryLimit) || errors.Is(err, pando.ErrOutOfMemory):
		return fmt.Errorf("%w; a store is in memory, all of it; %s", err, state)
	}
	return fmt.Errorf("%w; %s", err, state)
}

func (im *importing) print() {
	s := &im.sum
	if s.Skipped > 0 {
		fmt.Fprintf(im.errs, "left out %s without a key or value\n", many(s.Skipped, "row", "rows"))
	}
	made := ""
	if s.Made {
		made = "a new store, "
	}
	fmt.Fprintf(im.errs, "%s: %s%s, %s of them new, from %s in %.1f s (%s a second)\n", s.Path, made, many(int64(s.Entries), "entry", "entries"),
		thousands(int64(s.Added)), many(s.Rows, "row", "rows"), s.Seconds, thousands(int64(float64(s.Rows)/s.Seconds)))
}
