package main

import (
	"fmt"
	"strings"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/spf13/cobra"
)

// scanFlags are the flags of commands that write entries in key order.
type scanFlags struct {
	open opener
	bar  string // a verb for the progress that is shown; "" for none
	output
	selection
	limit   count
	reverse bool
}

func (f *scanFlags) flags(cmd *cobra.Command, limit string) {
	f.output.flags(cmd)
	f.selection.flags(cmd)
	cmd.Flags().VarP(&f.limit, "limit", "n", limit)
}

// reverseFlag adds the flag of commands that may begin at the other end.
func (f *scanFlags) reverseFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.reverse, "reverse", false, "begin with the greatest key; --limit then counts from there")
}

// span finds the ranks [first, end) of the entries to write.
type span func(ix typed.Index) (first, end int, err error)

// run writes the entries of a span.
func (f *scanFlags) run(cmd *cobra.Command, path string, find span) error {
	if err := f.settle(cmd, path); err != nil {
		return err
	}
	ix, err := f.open(cmd, path)
	if err != nil {
		return err
	}
	defer ix.Close()
	first, end, err := find(ix)
	if err != nil {
		return err
	}
	p := newProgress(cmd.ErrOrStderr(), f.bar == "" || f.toStdout() && isTerminal(cmd.OutOrStdout()), f.bar)
	p.rows = true
	withKeys, withVals, err := f.columns(ix)
	if err != nil {
		return err
	}
	schema := entrySchema(ix, withKeys, withVals)
	return f.rows(cmd.Context(), cmd, schema, func(put func(*table.Batch) error) error {
		defer p.end()
		all := end - first
		for first < end {
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			n := min(scanRows, end-first)
			at := first
			if f.reverse {
				at, end = end-n, end-n
			} else {
				first += n
			}
			b := entries(ix, at, n, withKeys, withVals)
			if f.reverse {
				b = reversed(b)
			}
			if err := put(b); err != nil {
				return err
			}
			done := all - (end - first)
			p.update(int64(done), int64(all), done)
		}
		return nil
	})
}

// scanRows is the number of entries that are copied out at a time.
const scanRows = 16 << 10

// entries returns entries as a batch.
func entries(ix typed.Index, first, n int, withKeys, withVals bool) *table.Batch {
	b := &table.Batch{Rows: n}
	var keys, vals table.Column
	ix.Entries(first, n, &keys, &vals)
	if withKeys {
		keys.Field = keyField(ix)
		b.Columns = append(b.Columns, keys)
	}
	if withVals {
		vals.Field = entrySchema(ix, false, true)[0]
		b.Columns = append(b.Columns, vals)
	}
	return b
}

// reversed returns the rows of a batch, the last first.
func reversed(b *table.Batch) *table.Batch {
	rows := make([]int, b.Rows)
	for i := range rows {
		rows[i] = b.Rows - 1 - i
	}
	out := &table.Batch{Columns: make([]table.Column, len(b.Columns)), Rows: b.Rows}
	for i := range b.Columns {
		pick(&out.Columns[i], &b.Columns[i], rows)
	}
	return out
}

// between finds the entries from texts[0] to texts[1]; bounds that are not
// given are open.
func between(texts []string) span {
	return func(ix typed.Index) (first, end int, err error) {
		bounds := [2]*table.Column{}
		for i, s := range texts {
			if bounds[i], err = keyColumn(ix, []string{s}); err != nil {
				return 0, 0, err
			}
		}
		first, end = ix.Span(bounds[0], bounds[1])
		return first, end, nil
	}
}

// withPrefix finds the keys that start with p.
func withPrefix(p string) span {
	return func(ix typed.Index) (first, end int, err error) {
		if keyField(ix).Kind.Of == cols.UUID {
			lo, hi, err := uuidBounds(p)
			if err != nil {
				return 0, 0, err
			}
			return between([]string{lo, hi})(ix)
		}
		if ix.Key() != table.String {
			return 0, 0, fmt.Errorf("only strings have prefixes, and the keys of this index are %v; ask for a range instead", ix.Key())
		}
		first, end = ix.Prefix(p)
		return first, end, nil
	}
}

// uuidBounds returns the least and the greatest UUID that starts with a text.
func uuidBounds(p string) (lo, hi string, err error) {
	const digits = 32
	p = strings.ReplaceAll(p, "-", "")
	if len(p) > digits || strings.Trim(strings.ToLower(p), "0123456789abcdef") != "" {
		return "", "", usagef("no uuid starts with %q, but the keys of this index are such", p)
	}
	left := digits - len(p)
	return p + strings.Repeat("0", left), p + strings.Repeat("f", left), nil
}

// limited cuts a span to its first entries, or its last.
func limited(s span, limit *count, last bool) span {
	return func(ix typed.Index) (int, int, error) {
		first, end, err := s(ix)
		if n := int(*limit); n > 0 && end-first > n {
			if last {
				first = end - n
			} else {
				end = first + n
			}
		}
		return first, end, err
	}
}

const rangeLong = `Write all entries with LO <= key <= HI, in key order. Without HI the range goes
to the end, and without LO it is the whole index. Both ends are included, and
need not be keys of the index.`

const rangeExample = `  pando range people.pando 100 200
  pando range people.pando -5 5 --limit 10       also negative bounds
  pando range people.pando 1000 -o rest.parquet  from 1000 to the end
  pando range people.pando 0 1000 --reverse -n 5 the last five up to 1000, the last first
  pando range people.pando --json                the whole index`

func newRange() *cobra.Command {
	f := &scanFlags{open: openFile}
	cmd := &cobra.Command{
		Use:     "range FILE [LO [HI]] [flags]",
		Short:   "Write the entries between two keys",
		Long:    rangeLong,
		Example: rangeExample,
		Args:    takes(1, 3, "an index file and two bounds"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], limited(between(args[1:]), &f.limit, f.reverse))
		},
	}
	f.flags(cmd, "write at most `N` entries; 0 is all")
	f.reverseFlag(cmd)
	return cmd
}

const prefixLong = `Write all entries whose key starts with P, in key order. Keys must be strings.`

const prefixExample = `  pando prefix urls.pando https://example.com/
  pando prefix words.pando auto --limit 10 --only key`

func newPrefix() *cobra.Command {
	f := &scanFlags{open: openFile}
	cmd := &cobra.Command{
		Use:     "prefix FILE P [flags]",
		Short:   "Write the entries whose key starts with a string",
		Long:    prefixLong,
		Example: prefixExample,
		Args:    takes(2, 2, "an index file and a prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], limited(withPrefix(args[1]), &f.limit, f.reverse))
		},
	}
	f.flags(cmd, "write at most `N` entries; 0 is all")
	f.reverseFlag(cmd)
	return cmd
}

// newEnd makes the commands head and tail.
func newEnd(name, short, long, example string, last bool) *cobra.Command {
	f := &scanFlags{open: openFile, limit: 10}
	cmd := &cobra.Command{
		Use:     name + " FILE [flags]",
		Short:   short,
		Long:    long,
		Example: example,
		Args:    takes(1, 1, "an index file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], limited(between(nil), &f.limit, last))
		},
	}
	f.flags(cmd, "how many entries; 0 is all")
	return cmd
}

func newHead() *cobra.Command {
	return newEnd("head", "Write the first entries", "Write the entries with the least keys, in key order.",
		"  pando head people.pando\n  pando head people.pando -n 1 --only key   the least key", false)
}

func newTail() *cobra.Command {
	return newEnd("tail", "Write the last entries", "Write the entries with the greatest keys, in key order.",
		"  pando tail people.pando\n  pando tail people.pando -n 1 --only key   the greatest key", true)
}

const countLong = `Count the entries with LO <= key <= HI, without reading them. Without HI the range
goes to the end, and without LO it is the whole index. With --prefix, count the
keys that start with a string.`

const countExample = `  pando count people.pando                   all
  pando count people.pando 100 200
  pando count people.pando 42 42             how often is 42 there?
  pando count urls.pando --prefix https:// --json`

func newCount() *cobra.Command {
	prefix, asJSON := "", false
	cmd := &cobra.Command{
		Use:     "count FILE [LO [HI]] [flags]",
		Short:   "Count the entries between two keys",
		Long:    countLong,
		Example: countExample,
		Args:    takes(1, 3, "an index file and two bounds"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		find := between(args[1:])
		if cmd.Flags().Changed("prefix") {
			if find = withPrefix(prefix); len(args) > 1 {
				return usagef("takes bounds or --prefix, not both")
			}
		}
		ix, err := anywhere.openIndex(args[0])
		if err != nil {
			return err
		}
		defer ix.Close()
		first, end, err := find(ix)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(cmd.OutOrStdout(), map[string]int{"count": end - first})
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), end-first)
		return err
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "count the keys that start with `P`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
