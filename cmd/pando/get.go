package main

import (
	"context"
	"fmt"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

const getLong = `Look up keys and write each with its value. Keys are arguments, or come from a
file with --from: one a line, or a column of a table (CSV, TSV, JSON lines,
Parquet, Arrow, raw numbers). A file of millions of keys is answered in batches,
read, looked up and written at the same time.

Of equal keys in the index the first is given, or all with --all. A key given
as an argument that is not there makes the exit code 3; keys from a file that
are not there are left out, or null, or an error, by --missing.`

const getExample = `  pando get people.pando 42 43 -7          three keys, also negative ones
  pando get people.pando 42 --only value   for scripts: the value and nothing else
  pando get people.pando --from keys.txt -o found.parquet
  cut -f1 asked.tsv | pando get people.pando --from - --missing null --json`

// keyFile tells where keys that are not arguments come from.
type keyFile struct {
	from, key string
}

func (k *keyFile) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.from, "from", "", "read keys from this `KEYFILE`; - is stdin")
	cmd.Flags().StringVarP(&k.key, "key", "k", "", "`COL` of the keys, where --from is a table of several")
}

// getFlags are the flags of get.
type getFlags struct {
	open opener
	output
	input
	selection
	keyFile
	missing string
	all     bool
}

func newGet() *cobra.Command {
	where := &place{}
	f := &getFlags{open: where.openFor}
	cmd := &cobra.Command{
		Use:     "get FILE KEY... | get FILE --from KEYFILE [flags]",
		Short:   "Look up keys",
		Long:    getLong,
		Example: getExample,
		Args:    takes(1, -1, "an index file and keys"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	where.flags(cmd)
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "write all entries of a key that occurs several times, not only the first")
	return cmd
}

func (f *getFlags) flags(cmd *cobra.Command) {
	f.output.flags(cmd)
	f.input.flags(cmd, "from-format")
	f.selection.flags(cmd)
	f.keyFile.flags(cmd)
	cmd.Flags().StringVar(&f.missing, "missing", "skip", "`WHAT` to do about keys that are not there: skip, null or fail")
}

func (f *getFlags) run(cmd *cobra.Command, path string, keys []string) error {
	h, ok := map[string]how{"skip": inner, "null": left, "fail": inner}[f.missing]
	switch {
	case !ok:
		return usagef("--missing %q; take skip, null or fail", f.missing)
	case f.from != "" && len(keys) > 0:
		return usagef("takes keys as arguments or from a file, not both")
	case f.from == "" && len(keys) == 0:
		return usagef("which keys? Name them, or a file with --from")
	}
	if err := f.settle(cmd, path, f.from); err != nil {
		return err
	}
	ix, err := f.open(cmd, path)
	if err != nil {
		return err
	}
	defer ix.Close()
	p := &probe{ix: ix, how: h, all: f.all, must: f.missing == "fail"}
	withKeys, withVals, err := f.columns(ix)
	if err != nil {
		return err
	}
	if withKeys {
		p.keep = []int{0}
	}
	if withVals {
		p.value = &entrySchema(ix, false, true)[0]
	}
	if f.from == "" {
		return f.arguments(cmd, p, keys)
	}
	return f.file(cmd, p)
}

// arguments looks up keys of the command line. All keys found are written,
// even if others are not found.
func (f *getFlags) arguments(cmd *cobra.Command, p *probe, texts []string) error {
	keys, err := keyColumn(p.ix, texts)
	if err != nil {
		return err
	}
	j := &job{in: table.Batch{Columns: []table.Column{*keys}, Rows: len(texts)}, row: 1}
	p.must = false
	if err := p.work(j); err != nil {
		return err
	}
	err = f.rows(cmd.Context(), cmd, p.schema([]table.Field{keys.Field}), func(put func(*table.Batch) error) error { return put(&j.out) })
	if err != nil || p.hits == p.rows {
		return err
	}
	return missingKeys(p.ix, keys)
}

// missingKeys returns an error that names the keys that are not in the index.
func missingKeys(ix typed.Index, keys *table.Column) error {
	found := make([]bool, keys.Len())
	ix.Get(keys, nil, found)
	return missing(keys, found)
}

// missing returns an error that names the keys that were not found, if there are any.
func missing(keys *table.Column, found []bool) error {
	text := ""
	for i, ok := range found {
		if !ok {
			text += ", " + cellText(keys, i)
		}
	}
	if text == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", errNotFound, text[2:])
}

// file looks up the keys of a file.
func (f *getFlags) file(cmd *cobra.Command, p *probe) error {
	src, err := f.openKeys(f.from, f.key, cmd.InOrStdin(), keyField(p.ix))
	if err != nil {
		return err
	}
	defer src.Close()
	f.live = isLive(src)
	p.progress = newProgress(cmd.ErrOrStderr(), f.live || f.toStdout() && isTerminal(cmd.OutOrStdout()), "looking up")
	if err := f.stream(cmd, src, p); err != nil {
		return err
	}
	if p.hits < p.rows && p.how != left {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s keys were not found and left out; --missing null keeps them\n", thousands(p.rows-p.hits), thousands(p.rows))
	}
	return nil
}

// stream sends a source through a probe to the output.
func (o *output) stream(cmd *cobra.Command, src table.Source, p *probe) error {
	return o.rows(cmd.Context(), cmd, p.schema(src.Schema()), func(put func(*table.Batch) error) error {
		if p.progress != nil {
			defer p.progress.end()
		}
		read := 0
		return pipeline(cmd.Context(), src, p.work, func(j *job) error {
			if read += j.in.Rows; p.progress != nil {
				done, total := src.Progress()
				p.progress.update(done, total, read)
			}
			if j.out.Rows == 0 {
				return nil
			}
			return put(&j.out)
		})
	})
}

const rankLong = `Count the entries whose key is below each of the given keys. A key need not be
in the index. The rank of a key that is there is its place in key order, from 0.`

const rankExample = `  pando rank people.pando 1000             how many keys are below 1000?
  pando rank people.pando --from keys.txt --format csv`

// rankFlags are the flags of rank.
type rankFlags struct {
	place
	output
	input
	keyFile
}

func newRank() *cobra.Command {
	f := &rankFlags{}
	cmd := &cobra.Command{
		Use:     "rank FILE KEY... | rank FILE --from KEYFILE [flags]",
		Short:   "Count the entries below keys",
		Long:    rankLong,
		Example: rankExample,
		Args:    takes(1, -1, "an index file and keys"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	f.place.flags(cmd)
	f.output.flags(cmd)
	f.input.flags(cmd, "from-format")
	f.keyFile.flags(cmd)
	return cmd
}

func (f *rankFlags) run(cmd *cobra.Command, path string, texts []string) error {
	switch {
	case f.from != "" && len(texts) > 0:
		return usagef("takes keys as arguments or from a file, not both")
	case f.from == "" && len(texts) == 0:
		return usagef("which keys? Name them, or a file with --from")
	}
	if err := f.settle(cmd, path, f.from); err != nil {
		return err
	}
	ix, err := f.openFor(cmd, path)
	if err != nil {
		return err
	}
	defer ix.Close()
	if f.from == "" {
		keys, err := keyColumn(ix, texts)
		if err != nil {
			return err
		}
		j := &job{in: table.Batch{Columns: []table.Column{*keys}, Rows: len(texts)}}
		rankRows(ix, j)
		return f.rows(cmd.Context(), cmd, rankSchema(ix), func(put func(*table.Batch) error) error { return put(&j.out) })
	}
	src, err := f.openKeys(f.from, f.key, cmd.InOrStdin(), keyField(ix))
	if err != nil {
		return err
	}
	defer src.Close()
	f.live = isLive(src)
	return f.ranks(cmd.Context(), cmd, ix, src)
}

// ranks sends a source of keys through the index.
func (f *rankFlags) ranks(ctx context.Context, cmd *cobra.Command, ix typed.Index, src table.Source) error {
	return f.rows(ctx, cmd, rankSchema(ix), func(put func(*table.Batch) error) error {
		work := func(j *job) error { rankRows(ix, j); return nil }
		return pipeline(ctx, src, work, func(j *job) error { return put(&j.out) })
	})
}

func rankSchema(ix typed.Index) []table.Field {
	return []table.Field{keyField(ix), {Name: "rank", Type: table.Int64}}
}

// rankRows sets j.out to keys and their ranks. The rank of a null key is null.
func rankRows(ix typed.Index, j *job) {
	n := j.in.Rows
	if cap(j.ranks) < n {
		j.ranks, j.vals.Int64 = make([]int, n), make([]int64, n)
	}
	j.ranks, j.vals.Int64 = j.ranks[:n], j.vals.Int64[:n]
	ix.Rank(&j.in.Columns[0], j.ranks)
	for i, r := range j.ranks {
		j.vals.Int64[i] = int64(r)
	}
	schema := rankSchema(ix)
	j.vals.Field, j.vals.Null = schema[1], j.in.Columns[0].Null
	keys := j.in.Columns[0]
	keys.Name = "key"
	j.out = table.Batch{Columns: append(j.out.Columns[:0], keys, j.vals), Rows: n}
}
