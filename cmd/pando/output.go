package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pando-index/pando/internal/outlet"
)

// output tells where rows go and in which format.
type output struct {
	format, path string
	json, force  bool
	live         bool     // rows are written as soon as they are there
	more         []string // formats beyond those of package table
}

var rowFormats = []string{"text", "csv", "tsv", "jsonl", "arrow", "parquet"}

// shownFormats are those that a terminal can show.
var shownFormats = rowFormats[:4]

func (o *output) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "format", "f", "", "`FORMAT` of the output: "+strings.Join(append(rowFormats, o.more...), ", "))
	cmd.Flags().StringVarP(&o.path, "output", "o", "", "write to this `FILE` instead of stdout; its extension tells the format, and .gz or .zst behind it compresses")
	cmd.Flags().BoolVar(&o.json, "json", false, "the same as --format jsonl")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace the output file if it is there")
}

var extensions = map[string]string{
	".txt": "text", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow",
	".arrows": "arrow", ".ipc": "arrow", ".parquet": "parquet", ".pq": "parquet",
	".u32": "u32", ".u64": "u64", ".i32": "i32", ".i64": "i64", ".sosd32": "sosd32", ".sosd64": "sosd64",
}

// settle determines the format to write, and rejects output that is impossible,
// or would replace one of the files that the command reads, or another without
// --force.
func (o *output) settle(cmd *cobra.Command, reads ...string) error {
	if err := o.settleFormat(cmd); err != nil {
		return err
	}
	if o.path == "-" {
		o.path = ""
	}
	if err := mayWrite(cmd, o.path, reads); err != nil || o.toStdout() || o.force {
		return err
	}
	return mayReplace(o.path, false)
}

// settleFormat determines the format to write.
func (o *output) settleFormat(cmd *cobra.Command) error {
	switch {
	case o.json && o.format != "" && o.format != "jsonl":
		return usagef("--json and --format %s contradict each other", o.format)
	case o.json:
		o.format = "jsonl"
	case o.format == "" && o.path != "" && o.path != "-":
		ext := tableExt(o.path)
		if o.format = extensions[ext]; ext == "" {
			o.format = "text"
		} else if o.format == "" {
			return usagef("cannot tell from %q in which format to write; add --format, one of %s", o.path, strings.Join(append(rowFormats, o.more...), ", "))
		}
	case o.format == "":
		o.format = "text"
	}
	if ext := strings.ToLower(filepath.Ext(o.path)); slices.Contains([]string{".bz2", ".xz", ".zip"}, ext) {
		return usagef("cannot write %s; take .gz or .zst", ext)
	}
	known := append(slices.Clone(rowFormats), o.more...)
	if !slices.Contains(known, o.format) {
		return usagef("cannot write format %q; take one of %s", o.format, strings.Join(known, ", "))
	}
	if o.toStdout() && !slices.Contains(shownFormats, o.format) && isTerminal(cmd.OutOrStdout()) {
		return usagef("%s is no text for a terminal; send it to a file with -o FILE, or into a pipe", o.format)
	}
	return nil
}

func (o *output) toStdout() bool { return o.path == "" || o.path == "-" }

func isTerminal(w any) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// fileOf returns the file that a stream goes to or comes from, nil if it is none.
func fileOf(stream any) *os.File {
	if o, ok := stream.(*outlet.Outlet); ok {
		stream = o.W
	}
	f, _ := stream.(*os.File)
	return f
}

// write opens the output, calls do with a writer, and keeps the output if do
// succeeds. settle must have been called.
func (o *output) write(ctx context.Context, cmd *cobra.Command, do func(w io.Writer) error) error {
	if !o.toStdout() {
		return writeFile(ctx, o.path, func(w io.Writer) error { return compressed(o.path, w, do) })
	}
	w := bufio.NewWriterSize(cmd.OutOrStdout(), 256<<10)
	if err := do(w); err != nil {
		w.Flush() // rows that were right stay right
		return err
	}
	return w.Flush()
}

// flush writes buffered output, if there is any.
func flush(v any) error {
	if f, ok := v.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}

// compressed calls do with a writer that compresses as the path's extension says.
func compressed(path string, w io.Writer, do func(w io.Writer) error) error {
	var z io.WriteCloser
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz", ".gzip":
		z = gzip.NewWriter(w)
	case ".zst", ".zstd":
		var err error
		if z, err = zstd.NewWriter(w); err != nil {
			return err
		}
	default:
		return do(w)
	}
	if err := do(z); err != nil {
		return err
	}
	return z.Close()
}

// rows writes rows of a schema: do is called with a function that writes a
// batch.
func (o *output) rows(ctx context.Context, cmd *cobra.Command, schema []table.Field, do func(put func(*table.Batch) error) error) error {
	return o.write(ctx, cmd, func(w io.Writer) error {
		schema, split := apart(schema)
		sink, err := table.NewSink(w, o.format, schema)
		if err != nil {
			return err
		}
		put := sink.Write
		if split != nil {
			put = func(b *table.Batch) error {
				wide, err := split(b)
				if err != nil {
					return err
				}
				return sink.Write(wide)
			}
		}
		if o.live {
			write := put
			put = func(b *table.Batch) error { return errors.Join(write(b), flush(sink), flush(w)) }
		}
		if err := do(put); err != nil {
			return err
		}
		if w, ok := sink.(interface{ Warnings() []string }); ok {
			for _, text := range w.Warnings() {
				fmt.Fprintln(cmd.ErrOrStderr(), text)
			}
		}
		return sink.Close()
	})
}
