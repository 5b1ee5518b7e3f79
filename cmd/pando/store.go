package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandostore"
	"github.com/spf13/cobra"
)

const storeLong = `A store is a folder with entries that change: one value a key, in key order. Each
change is on disk when its command returns, and survives kills and crashes. In Go it
is a pandostore.Store of the same types.

One process at a time has a store. While another does, get, range and export read
its newest checkpoint with --checkpoint: an ordinary index file, which all other
commands take as well.`

const storeExample = `  pando store init prices -t key=int64 -t price=float64
  pando store set prices 1003 12.5
  pando store get prices 1003
  pando store import prices more.parquet --key item --value price
  pando store range prices 1000 2000 --json
  pando store export prices -o prices.csv`

// newStore makes the command store, and those below it.
func newStore() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store COMMAND DIR",
		Short:   "Keep entries that change in a folder: init, set, get, import, ...",
		Long:    storeLong,
		Example: storeExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    runRoot,

		SuggestionsMinimumDistance: 2,
	}
	for _, c := range []*cobra.Command{
		newStoreInit(), newStoreInfo(), newStoreGet(), newStoreSet(), newStoreDelete(), newStoreRange(),
		newStoreImport(), newStoreExport(), newStoreCheckpoint(), newStoreVerify(), newStoreSalvage(),
	} {
		addTo(cmd, c)
	}
	return cmd
}

// hasStore reports whether a folder has a store. One that is empty, or not there, has none,
// and may get one; so may one in which a program was killed before makeStore was done.
func hasStore(path string) (info pandostore.Info, has bool, err error) {
	info, err = pandostore.Inspect(path)
	if err == nil {
		return info, !halfMade(path, info), nil
	}
	if names, e := os.ReadDir(path); errors.Is(e, fs.ErrNotExist) || e == nil && len(names) == 0 {
		return info, false, nil
	}
	return info, false, explainStore(path, err)
}

// halfMade reports whether a store has neither a checkpoint nor a change.
func halfMade(path string, info pandostore.Info) bool {
	if info.Checkpoint != nil {
		return false
	}
	found, err := pandostore.Verify(path)
	return err == nil && found.LogOperations == 0
}

// explainStore adds a next step to errors of stores.
func explainStore(path string, err error) error {
	fi, missing := os.Stat(path)
	switch {
	case err == nil:
		return nil
	case errors.Is(missing, fs.ErrNotExist):
		return fmt.Errorf("%s: no such folder; `pando store init %s -t key=TYPE` makes a store", path, path)
	case missing == nil && !fi.IsDir():
		return fmt.Errorf("%s is a file, and a store is a folder; `pando get` and its like ask index files", path)
	case errors.Is(err, pandostore.ErrLocked):
		return fmt.Errorf("%w; its newest checkpoint can be read meanwhile: get, range and export have --checkpoint", err)
	case errors.Is(err, pando.ErrFile) && strings.Contains(err.Error(), "Salvage"):
		return fmt.Errorf("%w; `pando store salvage %s NEW` does so", err, path)
	}
	return err
}

// openStore opens a store for changes and for queries.
func openStore(cmd *cobra.Command, path string, quiet bool, opts ...pandostore.Option) (typed.Store, error) {
	p := newProgress(cmd.ErrOrStderr(), quiet, "recovering")
	defer p.end()
	opts = append(opts, pandostore.Recovering(func(at pandostore.Progress) { p.update(at.Done, at.Total, -1) }))
	s, err := typed.OpenStore(path, opts...)
	return s, explainStore(path, err)
}

// shutStore closes a store, and returns the first error.
func shutStore(s typed.Store, err *error) {
	if closed := s.Close(); *err == nil {
		*err = closed
	}
}

// storeReader is how commands that ask a store open it: as it is, or its newest
// checkpoint.
type storeReader struct{ checkpoint bool }

func (r *storeReader) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.checkpoint, "checkpoint", false, "ask the newest checkpoint, without the changes since: also while another process has the store")
}

func (r *storeReader) open(cmd *cobra.Command, path string) (typed.Index, error) {
	info, err := pandostore.Inspect(path)
	switch {
	case err != nil:
		return nil, explainStore(path, err)
	case r.checkpoint && info.Checkpoint == nil:
		return nil, fmt.Errorf("%s has no checkpoint yet; `pando store checkpoint %s` writes one, and so does the program that has the store", path, path)
	case r.checkpoint:
		return anywhere.openIndex(info.Checkpoint.Path)
	}
	s, err := openStore(cmd, path, false)
	if err != nil {
		return nil, err
	}
	return withKinds(&storeIndex{s.Snapshot(), s}, info.Note), nil
}

// storeIndex is the entries of a store, which is closed with them.
type storeIndex struct {
	typed.Index
	s typed.Store
}

func (ix *storeIndex) Close() error { return errors.Join(ix.Index.Close(), ix.s.Close()) }

const storeInitLong = `Make a store in a folder that is not there, or is empty. --type says what its keys and
values are: key=TYPE, and NAME=TYPE for each column of values; without any of these
there are keys alone. ` + "`pando help types`" + ` lists the types. The store remembers the names
and the types, and get, range and export write columns of these names.

` + "`pando store import`" + ` makes a store by itself, with the types of its table.`

const storeInitExample = `  pando store init prices -t key=int64 -t price=float64
  pando store init seen -t key=string                      keys alone
  pando store init people -t key=uuid -t name=string -t born=date`

func newStoreInit() *cobra.Command {
	var columns []string
	cmd := &cobra.Command{
		Use:     "init DIR --type key=TYPE [--type NAME=TYPE]... [flags]",
		Short:   "Make a store",
		Long:    storeInitLong,
		Example: storeInitExample,
		Args:    takes(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := columnTypes(columns)
			if err != nil {
				return err
			}
			types, note, err := entryTypes(schema)
			if err != nil {
				return err
			}
			if _, has, err := hasStore(args[0]); err != nil {
				return err
			} else if has {
				return fmt.Errorf("%s is a store already; `pando store info %s` tells what is in it", args[0], args[0])
			}
			s, err := makeStore(args[0], types, note)
			if err != nil {
				return err
			}
			if err := s.Close(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: a store of %v\n", args[0], types)
			return err
		},
	}
	cmd.Flags().StringArrayVarP(&columns, "type", "t", nil, "`NAME=TYPE` of a column; the one called key has the keys (needed). May be repeated")
	return cmd
}

// columnTypes returns the columns that --type names, the keys first.
func columnTypes(texts []string) (schema []table.Field, err error) {
	o, err := (&input{types: texts}).tableOptions()
	if err != nil {
		return nil, err
	}
	if len(o.Types) < len(texts) {
		return nil, usagef("--type names a column twice")
	}
	if _, ok := o.Types["key"]; !ok {
		return nil, usagef("which type do the keys have? Add --type key=TYPE, such as key=int64 or key=string")
	}
	schema = []table.Field{{Name: "key", Type: o.Types["key"], Kind: o.Kinds["key"]}}
	for _, s := range texts {
		if name, _, _ := strings.Cut(s, "="); name != "key" {
			schema = append(schema, table.Field{Name: name, Type: o.Types[name], Kind: o.Kinds[name]})
		}
	}
	return schema, nil
}

// makeStore makes a store. Its first checkpoint, of nothing, has the note.
func makeStore(path string, t typed.Types, note string, opts ...pandostore.Option) (typed.Store, error) {
	s, err := typed.NewStore(path, t, append(opts, pandostore.Note(note))...)
	if err != nil {
		return nil, explainStore(path, err)
	}
	if err := s.Checkpoint(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

const storeInfoLong = `Tell what is in a store: its types, its newest checkpoint, and the log behind that.
Only heads of files are read, also while another process has the store. The last
line is how a Go program opens it.`

const storeInfoExample = `  pando store info prices
  pando info prices                        the same`

func newStoreInfo() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "info DIR [flags]",
		Short:   "Tell what is in a store",
		Long:    storeInfoLong,
		Example: storeInfoExample,
		Args:    takes(1, 1, "the folder of a store"),
		RunE:    func(cmd *cobra.Command, args []string) error { return storeInfo(cmd.OutOrStdout(), args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func storeInfo(out io.Writer, path string, asJSON bool) error {
	info, err := pandostore.Inspect(path)
	if err != nil {
		return explainStore(path, err)
	}
	if asJSON {
		return writeJSON(out, info)
	}
	line := infoLines(out)
	line("store", "%s", info.Path)
	printTypes(line, info.Key, info.Value, info.Note)
	if c := info.Checkpoint; c != nil {
		line("saved", "%s in %s, %s", many(int64(c.Len), "entry", "entries"), filepath.Base(c.Path), binary(c.Bytes))
	}
	line("log", "the changes since, in %s of %s", many(int64(info.Segments), "segment", "segments"), binary(info.LogBytes))
	if t, err := typed.StoreTypes(info); err == nil {
		line("in Go", "pandostore.Open[%s](%q)", inGo(t), info.Path)
	}
	return nil
}

const storeCheckpointLong = `Write all entries of a store to a checkpoint, an ordinary index file in its folder, and
remove the log before it: the store then opens faster and takes less room. A store
does so by itself when its log is as long as its last checkpoint. The name of the
file is printed; copy it for a backup.`

const storeCheckpointExample = `  pando store checkpoint prices
  cp $(pando store checkpoint prices) backup.pando`

func newStoreCheckpoint() *cobra.Command {
	quiet := false
	cmd := &cobra.Command{
		Use:     "checkpoint DIR [flags]",
		Short:   "Write a checkpoint, and remove the log before it",
		Long:    storeCheckpointLong,
		Example: storeCheckpointExample,
		Args:    takes(1, 1, "the folder of a store"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := openStore(cmd, args[0], quiet)
			if err != nil {
				return err
			}
			defer shutStore(s, &err)
			if err := s.Checkpoint(); err != nil {
				return err
			}
			info, err := pandostore.Inspect(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), info.Checkpoint.Path)
			return err
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return cmd
}

const storeVerifyLong = `Read a whole store and check it: every checksum of its newest checkpoint and of the log
behind it, the order of the keys, and that no part is missing. Nothing is changed.
The exit code is 1 if anything is wrong. A change that a crash has left unfinished
at the end of the log is not wrong: it was never acknowledged.`

const storeVerifyExample = `  pando store verify prices
  pando store verify prices --json`

func newStoreVerify() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "verify DIR [flags]",
		Short:   "Check a whole store",
		Long:    storeVerifyLong,
		Example: storeVerifyExample,
		Args:    takes(1, 1, "the folder of a store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := time.Now()
			found, err := pandostore.Verify(args[0])
			err = explainStore(args[0], err)
			if asJSON {
				return errors.Join(err, verdict(cmd.OutOrStdout(), args[0], err))
			}
			if err != nil {
				return err
			}
			end := ""
			if found.Torn > 0 || found.Void > 0 {
				end = "; the last change was not finished, and not acknowledged"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is whole: a checkpoint of %s, and %s behind it (checked in %v)%s\n", args[0],
				many(int64(found.CheckpointEntries), "entry", "entries"), many(found.LogOperations, "change", "changes"),
				time.Since(start).Round(time.Millisecond), end)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

const storeSalvageLong = `Make a store in the folder NEW of everything in a damaged store that is before the first
damage. NEW must be empty, or not be there. DIR is not changed. If the newest
checkpoint is damaged, an older one is taken, or the log from its beginning, if they
are still there. Look at NEW before you remove DIR.`

const storeSalvageExample = `  pando store verify prices                what is wrong?
  pando store salvage prices saved
  pando store range saved --reverse -n 5   what was saved?`

func newStoreSalvage() *cobra.Command {
	return &cobra.Command{
		Use:     "salvage DIR NEW",
		Short:   "Save what is before the damage of a store",
		Long:    storeSalvageLong,
		Example: storeSalvageExample,
		Args:    takes(2, 2, "the folder of a store and a new one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := pandostore.Salvage(args[0], args[1])
			if err != nil {
				return explainStore(args[0], err)
			}
			if got.Damage == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: all of %s, in which nothing is damaged\n", args[1], args[0])
				return err
			}
			from := "the log from its beginning"
			if got.Checkpoint != "" {
				from = got.Checkpoint + " and the log behind it"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, up to operation %s\ndamaged: %v\nnot saved: %s of the log behind the damage\n", args[1], from, thousands(int64(got.Next)-1), got.Damage, binary(got.Left))
			return err
		},
	}
}
