package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/gen"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/demo"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

const benchLong = `Measure lookups, ranks and ranges on an index file, or on one of generated keys that
is made in memory. All keys asked for are in the index, in random order. Times
are the best of a few rounds; other programs on the machine make them worse. The
full benchmark, with other systems beside, is in the folder bench of the source.`

const benchExample = `  pando bench people.pando
  pando bench -n 64M                       uint64 keys and values, made in memory
  pando bench people.pando -d gpu:0 --queries 16M --json`

// benchFlags are the flags of bench.
type benchFlags struct {
	place
	rows, queries count
	seed          uint64
	json          bool
}

func newBench() *cobra.Command {
	f := &benchFlags{rows: 16_000_000, queries: 1_000_000}
	cmd := &cobra.Command{
		Use:     "bench [FILE] [flags]",
		Short:   "Measure an index, from a file or of generated keys",
		Long:    benchLong,
		Example: benchExample,
		Args:    takes(0, 1, "at most one index file"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.place.flags(cmd)
	cmd.Flags().VarP(&f.rows, "n", "n", "entries to generate where there is no file")
	cmd.Flags().Var(&f.queries, "queries", "number of keys to ask for")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of keys and queries")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// figures are the results of a benchmark.
type figures struct {
	File    string     `json:"file,omitempty"`
	Types   string     `json:"types"`
	Entries int        `json:"entries"`
	Bytes   int64      `json:"bytes"`
	OpenMS  float64    `json:"open_ms,omitempty"`  // until the first answer
	BuildMS float64    `json:"build_ms,omitempty"` // for generated keys
	Queries []figure   `json:"queries"`
	RanOn   demo.Place `json:"ran_on"`
}

// figure is one kind of query.
type figure struct {
	Name      string  `json:"query"`
	NS        float64 `json:"ns"`         // per query
	PerSecond float64 `json:"per_second"` // queries per second
}

func (f *benchFlags) run(cmd *cobra.Command, args []string) error {
	if f.queries < 1 || f.rows < 1 {
		return usagef("-n and --queries must be at least 1")
	}
	if len(args) > 0 && cmd.Flags().Changed("n") {
		return usagef("-n is for generated keys; leave it out with a file")
	}
	var r figures
	ix, err := f.index(args, &r, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer ix.Close()
	if ix.Len() == 0 {
		return fmt.Errorf("%s is empty: there is nothing to ask for", args[0])
	}
	r.Queries = f.measure(ix)
	s := ix.Stats()
	t := typed.Types{Key: ix.Key()}
	t.Value, t.Valued = ix.Value()
	r.Types, r.Entries, r.Bytes, r.RanOn = t.String(), s.Len, s.TotalBytes, demo.PlaceOf(s)
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	r.print(cmd.OutOrStdout())
	return nil
}

// index opens the file, or builds an index of generated keys.
func (f *benchFlags) index(args []string, r *figures, progress io.Writer) (typed.Index, error) {
	start := time.Now()
	if len(args) > 0 {
		ix, err := f.openIndex(args[0])
		if err != nil {
			return nil, err
		}
		if ix.Len() > 0 {
			var key table.Column
			ix.Sample([]int{ix.Len() / 2}, &key)
			ix.GetEach(&key)
		}
		r.File, r.OpenMS = args[0], milliseconds(time.Since(start))
		return ix, nil
	}
	opts, err := f.place.options()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "generating %s pairs ...\n", thousands(int64(f.rows)))
	rows, err := generated(int64(f.rows), f.seed)
	if err != nil {
		return nil, err
	}
	start = time.Now()
	ix, err := rows.Freeze(append(opts, pando.MemoryLimit(available()))...)
	r.BuildMS = milliseconds(time.Since(start))
	return ix, err
}

// generated gathers random pairs.
func generated(n int64, seed uint64) (*typed.Builder, error) {
	src, err := gen.New(gen.Spec{Rows: n, Dist: "uniform", Keys: "uint64", Value: "uint64", Seed: seed})
	if err != nil {
		return nil, err
	}
	rows := typed.NewBuilder(typed.Types{Key: table.Uint64, Value: table.Uint64, Valued: true})
	rows.Expect(int(n))
	var b table.Batch
	for rows.Len() < int(n) {
		if err := src.Next(&b); err != nil {
			return nil, err
		}
		rows.Add(&b.Columns[0], &b.Columns[1], nil)
	}
	return rows, nil
}

func milliseconds(t time.Duration) float64 { return float64(t.Nanoseconds()) / 1e6 }

// benchRounds is the number of times each query is run; the best round counts.
const benchRounds = 3

// rangeEntries is the number of entries in each range.
const rangeEntries = 16

// measure runs all kinds of queries.
func (f *benchFlags) measure(ix typed.Index) []figure {
	n := int(f.queries)
	rng := rand.New(rand.NewPCG(f.seed, 2))
	first, last := make([]int, n), make([]int, n)
	for i := range first {
		first[i] = rng.IntN(ix.Len())
		last[i] = min(first[i]+rangeEntries, ix.Len()) - 1
	}
	var keys, lo, hi, one, vals table.Column
	ix.Sample(first, &keys)
	ix.Sample(first[:(n+15)/16], &lo)
	ix.Sample(last[:(n+15)/16], &hi)
	ix.Sample(first[:(n+3)/4], &one)
	found, ranks := make([]bool, n), make([]int, n)
	var all []figure
	ask := func(name string, ops int, run func()) {
		least := time.Duration(0)
		for range benchRounds {
			if took := demo.Timed(run); least == 0 || took < least {
				least = took
			}
		}
		ns := float64(least.Nanoseconds()) / float64(ops)
		all = append(all, figure{name, ns, 1e9 / ns})
	}
	ask("get, in batches", n, func() { ix.Get(&keys, &vals, found) })
	ask("rank, in batches", n, func() { ix.Rank(&keys, ranks) })
	ask(fmt.Sprintf("range of %d, in batches", rangeEntries), lo.Len(), func() { ix.Ranges(&lo, &hi, rangeEntries) })
	ask("get, one at a time", one.Len(), func() { ix.GetEach(&one) })
	return all
}

// print writes figures for people.
func (r *figures) print(out io.Writer) {
	fmt.Fprintf(out, "%-26s %12s %18s\n", "query", "time", "a second")
	for _, q := range r.Queries {
		fmt.Fprintf(out, "%-26s %9.1f ns %18s\n", q.Name, q.NS, thousands(int64(q.PerSecond)))
	}
	if r.File != "" {
		fmt.Fprintf(out, "%-26s %9.2f ms\n", "open and first answer", r.OpenMS)
	} else {
		fmt.Fprintf(out, "%-26s %9.1f ms\n", "build", r.BuildMS)
	}
	fmt.Fprintf(out, "\nindex:  %s entries, %s, %s\n", thousands(int64(r.Entries)), r.Types, binary(r.Bytes))
	fmt.Fprintf(out, "ran on: %s\n", r.RanOn)
}
