package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

const buildLong = `Read a table, build an index of one column as keys and, with --value, another as
values, and write it to a file. Rows may come in any order. The input is CSV, TSV
or JSON lines (gzip and zstd too), Parquet, Arrow or raw numbers; - is stdin.

Several inputs, or a pattern such as 'part-*.parquet', are read as one.

Types are inferred and shown; --type sets them. Equal keys are all kept, in the
order they came in, unless --duplicates refuse. The index is built in memory: an
input that will not fit into what is free, or what a control group, ulimit or
GOMEMLIMIT leaves the process, is refused before the machine swaps. The file appears
under its name only when it is whole.`

const buildExample = `  pando build people.csv -o people.pando --key id --value age
  pando build prices.parquet -o prices.pando --key item --value price --type item=uint32
  zcat log.jsonl.gz | pando build - --format jsonl -o seen.pando --key ip
  pando build osm_cellids_200M --format sosd64 -o cells.pando
  pando build 'part-*.parquet' -o all.pando --key id --value name --value price`

// buildFlags are the flags of build.
type buildFlags struct {
	rowFlags
	path       string
	duplicates string
	layout     layoutFlag
	force      bool
	json       bool
}

func newBuild() *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:     "build INPUT... -o FILE --key COL [--value COL] [flags]",
		Short:   "Build an index file from a table",
		Long:    buildLong,
		Example: buildExample,
		Args:    takes(1, -1, "an input: files, or - for stdin"),
		RunE:    f.run,
	}
	f.rowFlags.flags(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.path, "output", "o", "", "index `FILE` to write (needed)")
	fs.StringVar(&f.duplicates, "duplicates", "keep", "equal keys: `keep|refuse`")
	fs.Var(&f.layout, "layout", "how the index lies in the file: `"+layoutList("|")+"`")
	fs.BoolVar(&f.force, "force", false, "replace the output also if it is no Pando index")
	fs.BoolVar(&f.json, "json", false, "print a summary as JSON")
	return cmd
}

// summary is the result of a build.
type summary struct {
	Path       string  `json:"path"`
	Key        string  `json:"key"`
	Value      string  `json:"value"`
	Rows       int64   `json:"rows"`
	Skipped    int64   `json:"skipped"`
	Entries    int     `json:"entries"`
	Duplicates int     `json:"duplicates"`
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
}

func (f *buildFlags) run(cmd *cobra.Command, paths []string) error {
	start := time.Now()
	if err := f.check(cmd, paths); err != nil {
		return err
	}
	r, err := f.open(cmd, paths, nil)
	if err != nil {
		return err
	}
	defer r.src.Close()
	b := &build{buildFlags: f, reading: r, budget: newBudget(int64(f.memory))}
	if err := b.all(cmd.Context()); err != nil {
		return err
	}
	b.sum.Rows, b.sum.Skipped = b.read, b.skipped
	b.sum.Path, b.sum.Seconds = f.path, time.Since(start).Seconds()
	if f.json {
		return writeJSON(cmd.OutOrStdout(), b.sum)
	}
	b.sum.print(b.errs)
	return nil
}

// print describes the new index for people.
func (s *summary) print(w io.Writer) {
	if s.Skipped > 0 {
		fmt.Fprintf(w, "left out %s without a key or value\n", many(s.Skipped, "row", "rows"))
	}
	if s.Duplicates > 0 {
		fmt.Fprintf(w, "%s the key of another; `get --all` gives all of them\n", many(int64(s.Duplicates), "entry has", "entries have"))
	}
	fmt.Fprintf(w, "%s: %s, %s, in %.1f s (%s rows a second)\n", s.Path, many(int64(s.Entries), "entry", "entries"), binary(s.Bytes),
		s.Seconds, thousands(int64(float64(s.Rows)/s.Seconds)))
}

// check rejects flags that make no sense, before anything is read.
func (f *buildFlags) check(cmd *cobra.Command, paths []string) error {
	switch {
	case f.path == "" || f.path == "-":
		return usagef("where should the index go? Add -o FILE")
	case f.duplicates != "keep" && f.duplicates != "refuse":
		return usagef("--duplicates %q; take keep or refuse", f.duplicates)
	}
	if err := f.rowFlags.check(cmd); err != nil {
		return err
	}
	if err := mayWrite(cmd, f.path, paths); err != nil {
		return err
	}
	if !f.force {
		if err := mayReplace(f.path, true); err != nil {
			return err
		}
	}
	return canWrite(f.path)
}

// build is a build in progress.
type build struct {
	*buildFlags
	*reading
	budget budget
	rows   *typed.Builder
	sum    summary
}

// all builds the index and writes it.
func (b *build) all(ctx context.Context) error {
	defer b.budget.hold()()
	if err := b.begin(); err != nil {
		return err
	}
	b.rows = typed.NewBuilder(b.types)
	b.sum.Key, b.sum.Value = b.types.Key.String(), typed.None
	if b.types.Valued {
		b.sum.Value = b.types.Value.String()
	}
	if err := b.gather(ctx); err != nil {
		return err
	}
	ix, err := b.freeze()
	if err != nil {
		return err
	}
	defer ix.Close()
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.duplicates == "refuse" {
		if err := b.refuse(ix); err != nil {
			return err
		}
		return b.write(ctx, ix)
	}
	counted := make(chan int)
	go func() { n, _ := ix.Duplicates(); counted <- n }() // while the disk is busy
	err = b.write(ctx, ix)
	b.sum.Duplicates = <-counted
	return err
}

// gather gathers all rows.
func (b *build) gather(ctx context.Context) error {
	p := newProgress(b.errs, b.quiet, "reading")
	defer p.end()
	return pipeline(ctx, b.src, nil, func(j *job) error {
		keys, vals, drop, err := b.columns(j)
		if err != nil {
			return err
		}
		b.rows.Add(keys, vals, drop)
		done, total := b.src.Progress()
		p.update(done, total, b.rows.Len())
		return b.fits(done, total)
	})
}

// fits looks ahead: the rows to come are estimated from the bytes of input
// left. The builder is told the estimate too, so that it need not copy its
// rows over and over.
func (b *build) fits(done, total int64) error {
	n := b.rows.Len()
	if err := b.budget.check(b.rows.Need(n), n, false); err != nil {
		return err
	}
	if n < forecastAfter || done <= 0 || done > total {
		return nil
	}
	expected := int(float64(n) * float64(total) / float64(done))
	b.rows.Expect(expected + expected/8)
	return b.budget.check(b.rows.Need(expected), expected, true)
}

// forecastAfter is the number of rows from which on the total can be estimated:
// readers read ahead, and rows that they have read but not returned yet make
// early estimates too low.
const forecastAfter = 200_000

// freeze builds the index. The gathered rows count against the budget too.
func (b *build) freeze() (typed.Index, error) {
	n := b.rows.Len()
	if err := b.budget.check(b.rows.Need(n), n, false); err != nil {
		return nil, err
	}
	if !b.quiet && n > 1<<22 {
		fmt.Fprintf(b.errs, "building an index of %s rows ...\n", thousands(int64(n)))
	}
	opts := []pando.Option{pando.Note(b.note), pando.On(pando.CPU), pando.Layout(pando.LayoutKind(b.layout))}
	if b.budget.bytes > 0 {
		opts = append(opts, pando.MemoryLimit(b.budget.bytes))
	}
	ix, err := b.rows.Freeze(opts...)
	if errors.Is(err, pando.ErrMemoryLimit) || errors.Is(err, pando.ErrOutOfMemory) {
		return nil, fmt.Errorf("%w; take a machine with more memory, narrower types (--type), sorted input, or fewer rows", err)
	}
	if errors.Is(err, pando.ErrLayout) {
		return nil, fmt.Errorf("--layout %v: %w", &b.layout, err)
	}
	return ix, err
}

// refuse returns an error if any keys are equal.
func (b *build) refuse(ix typed.Index) error {
	n, first := ix.Duplicates()
	if n == 0 {
		return nil
	}
	var key table.Column
	ix.Entries(first, 1, &key, nil)
	lo, hi := ix.Span(&key, &key)
	return fmt.Errorf("key %s occurs %d times, and %s keys in all are not the first of theirs; --duplicates keep keeps them all",
		cellText(&key, 0), hi-lo, thousands(int64(n)))
}

// write writes the file.
func (b *build) write(ctx context.Context, ix typed.Index) error {
	b.sum.Entries = ix.Len()
	if !b.quiet && b.sum.Entries > 1<<22 {
		fmt.Fprintf(b.errs, "writing %s ...\n", b.path)
	}
	return writeFile(ctx, b.path, func(w io.Writer) (err error) {
		b.sum.Bytes, err = ix.WriteTo(w)
		return err
	})
}
