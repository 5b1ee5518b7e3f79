package main

import (
	"fmt"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandostore"
	"github.com/spf13/cobra"
)

const storeGetLong = `Look up keys in a store and write each with its value, as ` + "`pando get`" + ` does in a file.
To open a store takes as long as to read it, so ask for many keys at once: as
arguments, or from a file with --from.`

const storeGetExample = `  pando store get prices 1003 1005
  pando store get prices 1003 --only value
  pando store get prices --from keys.txt -o found.parquet
  pando store get prices 1003 --checkpoint   also while a program has the store`

func newStoreGet() *cobra.Command {
	r := &storeReader{}
	f := &getFlags{open: r.open}
	cmd := &cobra.Command{
		Use:     "get DIR KEY... | get DIR --from KEYFILE [flags]",
		Short:   "Look up keys",
		Long:    storeGetLong,
		Example: storeGetExample,
		Args:    takes(1, -1, "the folder of a store and keys"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	f.flags(cmd)
	r.flags(cmd)
	return cmd
}

const storeRangeLong = `Write all entries of a store with LO <= key <= HI, in key order, as ` + "`pando range`" + ` does
of a file. Without HI the range goes to the end, and without LO it is all.`

const storeRangeExample = `  pando store range prices 1000 2000
  pando store range prices --reverse -n 5    the last five`

func newStoreRange() *cobra.Command {
	r := &storeReader{}
	f := &scanFlags{open: r.open}
	cmd := &cobra.Command{
		Use:     "range DIR [LO [HI]] [flags]",
		Short:   "Write the entries between two keys",
		Long:    storeRangeLong,
		Example: storeRangeExample,
		Args:    takes(1, 3, "the folder of a store and two bounds"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], limited(between(args[1:]), &f.limit, f.reverse))
		},
	}
	f.flags(cmd, "write at most so many; 0 is all")
	f.reverseFlag(cmd)
	r.flags(cmd)
	return cmd
}

const storeExportLong = `Write all entries of a store to a table, in key order: those of one moment. Its columns
are called key and as the values are, so that ` + "`pando store import`" + ` takes it as it is. Rows
are written as they are read.`

const storeExportExample = `  pando store export prices -o prices.parquet
  pando store export prices -f csv | head`

func newStoreExport() *cobra.Command {
	r := &storeReader{}
	f := &scanFlags{open: r.open, bar: "writing"}
	quiet := false
	cmd := &cobra.Command{
		Use:     "export DIR [-o FILE] [flags]",
		Short:   "Write all entries to a table",
		Long:    storeExportLong,
		Example: storeExportExample,
		Args:    takes(1, 1, "the folder of a store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if quiet {
				f.bar = ""
			}
			return f.run(cmd, args[0], between(nil))
		},
	}
	f.output.flags(cmd)
	f.selection.flags(cmd)
	r.flags(cmd)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return cmd
}

const storeSetLong = `Set the values of keys: pairs of a key and a value, or keys alone in a store of such. All
of them are on disk when the command ends well, and none if it does not. A value of
several columns is a JSON object of them.

Many rows are faster by ` + "`pando store import`" + `.`

const storeSetExample = `  pando store set prices 1003 12.5
  pando store set prices 1003 12.5 1004 -4   two of them, also negative ones
  pando store set people ada '{"born":"1815-12-10","town":"London"}'`

func newStoreSet() *cobra.Command {
	return &cobra.Command{
		Use:     "set DIR KEY VALUE [KEY VALUE]... | set DIR KEY...",
		Short:   "Set the values of keys",
		Long:    storeSetLong,
		Example: storeSetExample,
		Args:    takes(2, -1, "the folder of a store, and keys with their values"),
		RunE:    func(cmd *cobra.Command, args []string) error { return storeSet(cmd, args[0], args[1:]) },
	}
}

func storeSet(cmd *cobra.Command, path string, texts []string) (err error) {
	s, ix, err := openForChange(cmd, path)
	if err != nil {
		return err
	}
	defer shutStore(s, &err)
	_, valued := ix.Value()
	ix.Close()
	if !valued {
		keys, err := keyColumn(ix, texts)
		if err != nil {
			return err
		}
		return s.Set(keys, nil)
	}
	if len(texts)%2 != 0 {
		return usagef("the key %s has no value; write KEY VALUE for each", texts[len(texts)-1])
	}
	var keyTexts []string
	field := valueField(ix, valueName(ix))
	vals := &table.Column{Field: table.Field{Name: field.Name, Type: field.Type, Kind: field.Kind}}
	for i := 0; i < len(texts); i += 2 {
		keyTexts = append(keyTexts, texts[i])
		if err := appendText(vals, texts[i+1]); err != nil {
			return usagef("%w, but the values of this store are", err)
		}
	}
	if p, ok := field.Native.(parts); ok {
		if _, err := table.Unpack(vals, p.fields); err != nil {
			return usagef("a value of this store is a JSON object of %s: %w", names(p.fields), err)
		}
	}
	keys, err := keyColumn(ix, keyTexts)
	if err != nil {
		return err
	}
	return s.Set(keys, vals)
}

// openForChange opens a store. The index tells its types and kinds, also when it is
// closed, as it is to be before the store is changed much.
func openForChange(cmd *cobra.Command, path string, opts ...pandostore.Option) (typed.Store, typed.Index, error) {
	info, err := pandostore.Inspect(path)
	if err != nil {
		return nil, nil, explainStore(path, err)
	}
	s, err := openStore(cmd, path, false, opts...)
	if err != nil {
		return nil, nil, err
	}
	return s, withKinds(s.Snapshot(), info.Note), nil
}

const storeDeleteLong = `Delete keys from a store: arguments, or those of a file with --from. All of them are gone
from the disk when the command ends well. A key given as an argument that is not
there makes the exit code 3; the others are deleted all the same.`

const storeDeleteExample = `  pando store delete prices 1003 1004
  pando store delete prices --from gone.txt`

// deleteFlags are the flags of delete.
type deleteFlags struct {
	input
	keyFile
}

func newStoreDelete() *cobra.Command {
	f := &deleteFlags{}
	cmd := &cobra.Command{
		Use:     "delete DIR KEY... | delete DIR --from KEYFILE [flags]",
		Short:   "Delete keys",
		Long:    storeDeleteLong,
		Example: storeDeleteExample,
		Args:    takes(1, -1, "the folder of a store and keys"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	f.input.flags(cmd, "from-format")
	f.keyFile.flags(cmd)
	return cmd
}

func (f *deleteFlags) run(cmd *cobra.Command, path string, texts []string) (err error) {
	switch {
	case f.from != "" && len(texts) > 0:
		return usagef("takes keys as arguments or from a file, not both")
	case f.from == "" && len(texts) == 0:
		return usagef("which keys? Name them, or a file with --from")
	}
	s, ix, err := openForChange(cmd, path)
	if err != nil {
		return err
	}
	defer shutStore(s, &err)
	ix.Close()
	if f.from != "" {
		return f.file(cmd, s, ix)
	}
	keys, err := keyColumn(ix, texts)
	if err != nil {
		return err
	}
	found := make([]bool, keys.Len())
	if _, err := s.Delete(keys, found); err != nil {
		return err
	}
	return missing(keys, found)
}

// file deletes the keys of a file.
func (f *deleteFlags) file(cmd *cobra.Command, s typed.Store, ix typed.Index) error {
	src, err := f.openKeys(f.from, f.key, cmd.InOrStdin(), keyField(ix))
	if err != nil {
		return err
	}
	defer src.Close()
	p := newProgress(cmd.ErrOrStderr(), isLive(src), "deleting")
	asked, deleted := int64(0), int64(0)
	err = pipeline(cmd.Context(), src, nil, func(j *job) error {
		keys := &j.in.Columns[0]
		if keys.Null != nil {
			keys = without(keys, keys.Null)
		}
		n, err := s.Delete(keys, nil)
		asked, deleted = asked+int64(j.in.Rows), deleted+int64(n)
		done, total := src.Progress()
		p.update(done, total, int(asked))
		return err
	})
	p.end()
	if cmd.Context().Err() != nil {
		return interruption{fmt.Sprintf("%s were deleted", many(deleted, "key", "keys"))}
	}
	if err != nil {
		return fmt.Errorf("%w; %s were deleted before that", err, many(deleted, "key", "keys"))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s deleted, %s were not there\n", many(deleted, "key", "keys"), thousands(asked-deleted))
	return nil
}

// without returns a column without some of its rows.
func without(c *table.Column, drop []bool) *table.Column {
	var rows []int
	for i, d := range drop {
		if !d {
			rows = append(rows, i)
		}
	}
	out := new(table.Column)
	pick(out, c, rows)
	out.Null = nil
	return out
}
