package main

import (
	"bufio"
	le "encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/pando-index/pando/cmd/pando/internal/gen"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

const genExample = `  pando gen -n 1M -o people.csv                      a million rows, key and value
  pando gen -n 16M --keys uint64 --dist zipf -o skewed.parquet
  pando gen -n 200M --keys uint64 --value none -f sosd64 -o uniform_200M_uint64
  pando gen -n 16M --dist gaps --value none --limit 1M -o keys.txt
                                                     a million keys of those that the
                                                     same command without --limit has`

func genLong() string {
	text := `Make a table to try things with: a column of keys and one of values. Rows depend
only on the flags, so that the same command always makes the same table. They
are made as they are written, so that tables may be larger than memory.

Integer values are the number of the row, floats are prices, strings names.

Distributions of keys:
`
	for _, d := range gen.Dists() {
		text += fmt.Sprintf("  %-10s %s\n", d, gen.About(d))
	}
	return text + `
Kinds of keys: ` + strings.Join(gen.KeyKinds(), ", ") + `.
Integers are not negative, and phones look as TPC-H has them.`
}

// genFlags are the flags of gen.
type genFlags struct {
	output
	spec        gen.Spec
	rows, limit count
	quiet       bool
}

var rawFormats = []string{"sosd32", "sosd64", "u32", "u64", "i32", "i64"}

func newGen() *cobra.Command {
	f := &genFlags{rows: 1000, output: output{more: rawFormats}}
	cmd := &cobra.Command{
		Use:     "gen [flags]",
		Short:   "Make a table of keys to try sizes and distributions",
		Long:    genLong(),
		Example: genExample,
		Args:    takes(0, 0, "no argument"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.output.flags(cmd)
	fs := cmd.Flags()
	fs.VarP(&f.rows, "n", "n", "number of rows; 16M and 1G are understood")
	fs.Var(&f.limit, "limit", "write at most the first `N` rows; 0 is all")
	fs.StringVar(&f.spec.Dist, "dist", "uniform", "`DISTRIBUTION`: "+strings.Join(gen.Dists(), ", "))
	fs.StringVar(&f.spec.Keys, "keys", "int64", "`KIND` of keys: "+strings.Join(gen.KeyKinds(), ", "))
	fs.StringVar(&f.spec.Value, "value", "int64", "`TYPE` of values, or none; raw formats have none")
	fs.Float64Var(&f.spec.Skew, "skew", 0.99, "skew of zipf: 0 is uniform, 1 and more very skewed")
	fs.Uint64Var(&f.spec.Seed, "seed", 1, "the same seed, the same table")
	fs.BoolVar(&f.spec.Sorted, "sorted", false, "rows in the order of their keys, which takes memory for some distributions")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (f *genFlags) run(cmd *cobra.Command) error {
	if err := f.settle(cmd); err != nil {
		return err
	}
	raw := rawType(f.format)
	f.spec.Rows, f.spec.Limit = int64(f.rows), int64(f.limit)
	if raw != nil {
		if cmd.Flags().Changed("value") && f.spec.Value != "none" {
			return usagef("%s holds keys alone; take --value none, or another format", f.format)
		}
		f.spec.Value = "none"
		if !cmd.Flags().Changed("keys") {
			f.spec.Keys = raw.String()
		}
	}
	if f.spec.Skew < 0 {
		return usagef("--skew %v; take 0 or more", f.spec.Skew)
	}
	src, err := gen.New(f.spec)
	if err != nil {
		return usageError{err}
	}
	if t := src.Schema()[0].Type; raw != nil && t != *raw {
		return usagef("%s holds %v keys, not %s; leave --keys out", f.format, *raw, f.spec.Keys)
	}
	if raw != nil {
		_, rows := src.Progress()
		return f.write(cmd.Context(), cmd, func(w io.Writer) error { return f.raw(cmd, w, src, rows) })
	}
	return f.rowsOf(cmd, src)
}

// rowsOf writes the rows of a source and shows the progress.
func (f *genFlags) rowsOf(cmd *cobra.Command, src table.Source) error {
	return f.output.rows(cmd.Context(), cmd, src.Schema(), func(put func(*table.Batch) error) error {
		return f.each(cmd, src, put)
	})
}

// each passes all batches of a source on. Progress is not shown if the rows go
// to the same terminal.
func (f *genFlags) each(cmd *cobra.Command, src table.Source, put func(*table.Batch) error) error {
	p := newProgress(cmd.ErrOrStderr(), f.quiet || f.toStdout(), "writing")
	p.rows = true
	defer p.end()
	made := 0
	return pipeline(cmd.Context(), src, nil, func(j *job) error {
		made += j.in.Rows
		done, total := src.Progress()
		p.update(done, total, made)
		return put(&j.in)
	})
}

// rawType returns the type of keys in a raw format, nil for other formats.
func rawType(format string) *table.Type {
	t, ok := map[string]table.Type{
		"sosd32": table.Uint32, "sosd64": table.Uint64,
		"u32": table.Uint32, "u64": table.Uint64, "i32": table.Int32, "i64": table.Int64,
	}[format]
	if !ok {
		return nil
	}
	return &t
}

// raw writes keys as little-endian numbers; in SOSD's format, their count
// comes first.
func (f *genFlags) raw(cmd *cobra.Command, w io.Writer, src table.Source, rows int64) error {
	out := bufio.NewWriterSize(w, 1<<20)
	if strings.HasPrefix(f.format, "sosd") {
		if err := le.Write(out, le.LittleEndian, rows); err != nil {
			return err
		}
	}
	err := f.each(cmd, src, func(b *table.Batch) error {
		c := &b.Columns[0]
		switch c.Type {
		case table.Uint32:
			return le.Write(out, le.LittleEndian, c.Uint32)
		case table.Int32:
			return le.Write(out, le.LittleEndian, c.Int32)
		case table.Uint64:
			return le.Write(out, le.LittleEndian, c.Uint64)
		}
		return le.Write(out, le.LittleEndian, c.Int64)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
