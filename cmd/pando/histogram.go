package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

const histogramLong = `Count how the values of the entries with LO <= key <= HI are spread: in bins of equal
width from the least value to the greatest, or between bounds of your own. Without HI
the range goes to the end, and without LO it is the whole index. Values must be numbers.

A bin has the values from its first bound on and below the next; the last of equal
bins has the greatest value, too. With --bounds, the first bin has all values below the
first bound, and NaNs, and the last one all from the last bound on.`

const histogramExample = `  pando histogram sales.pando                 ten bins
  pando histogram sales.pando --bins 40
  pando histogram sales.pando 100 200 --bounds 0,10,100,1000
  pando histogram sales.pando --json          a line of JSON for each bin`

// mostBins is the greatest number of bins: people do not look at more.
const mostBins = 1_000_000

func newHistogram() *cobra.Command {
	f := &histogramFlags{bins: 10}
	cmd := &cobra.Command{
		Use:     "histogram FILE [LO [HI]] [flags]",
		Short:   "Count how the values between two keys are spread",
		Long:    histogramLong,
		Example: histogramExample,
		Args:    takes(1, 3, "an index file and two bounds"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("bins") && len(f.bounds) > 0 {
			return usagef("takes --bins or --bounds, not both")
		}
		if f.bins < 1 || f.bins > mostBins {
			return usagef("--bins %d: from 1 to %d are possible", int64(f.bins), mostBins)
		}
		return f.run(cmd.OutOrStdout(), args)
	}
	cmd.Flags().Var(&f.bins, "bins", "how many bins of equal width")
	cmd.Flags().StringSliceVar(&f.bounds, "bounds", nil, "bounds between bins, ascending: `A,B,…`")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print a line of JSON for each bin")
	return cmd
}

type histogramFlags struct {
	bins   count
	bounds []string
	asJSON bool
}

func (f *histogramFlags) run(out io.Writer, args []string) error {
	return summarized(args, func(ix typed.Index, s *typed.Summary) error {
		bounds := &table.Column{Field: valueField(ix, "value")}
		if len(f.bounds) > 0 {
			if err := ascendingBounds(bounds, f.bounds); err != nil {
				return err
			}
		} else if err := equalBins(s, int(f.bins), bounds); err != nil {
			return err
		}
		lo, hi, err := boundColumns(ix, args[1:])
		if err != nil {
			return err
		}
		counts := make([]int, bounds.Len()+1)
		ix.Histogram(lo, hi, bounds, counts)
		return f.write(out, s, bounds, counts)
	})
}

// equalBins sets bounds to those of bins of equal width.
func equalBins(s *typed.Summary, n int, bounds *table.Column) error {
	field := bounds.Field
	if text := cellText(&s.Min, 0); s.Count > 0 && (text == "NaN" || strings.HasSuffix(text, "Inf") || strings.HasSuffix(cellText(&s.Max, 0), "Inf")) {
		return fmt.Errorf("values from %s to %s cannot be divided into equal bins; give --bounds", text, cellText(&s.Max, 0))
	}
	s.Divide(n, bounds)
	bounds.Field = field
	return nil
}

// ascendingBounds parses texts into bounds.
func ascendingBounds(bounds *table.Column, texts []string) error {
	for i, text := range texts {
		if err := appendText(bounds, text); err != nil {
			return usagef("--bounds: %w, but the values of this index are", err)
		}
		if !ascends(bounds, i) {
			return usagef("--bounds: %s is not above %s", text, texts[i-1])
		}
	}
	return nil
}

// ascends reports whether the last bound, number i, is a number and above the one
// before.
func ascends(c *table.Column, i int) bool {
	switch c.Type {
	case table.Int64:
		return i == 0 || c.Int64[i] > c.Int64[i-1]
	case table.Uint64:
		return i == 0 || c.Uint64[i] > c.Uint64[i-1]
	case table.Int32:
		return i == 0 || c.Int32[i] > c.Int32[i-1]
	case table.Uint32:
		return i == 0 || c.Uint32[i] > c.Uint32[i-1]
	case table.Float64:
		return c.Float64[i] == c.Float64[i] && (i == 0 || c.Float64[i] > c.Float64[i-1])
	case table.Float32:
		return c.Float32[i] == c.Float32[i] && (i == 0 || c.Float32[i] > c.Float32[i-1])
	}
	return false
}

// write writes one line for each bin. The outer bins of equal width end with the
// least and the greatest value, those of given bounds nowhere.
func (f *histogramFlags) write(out io.Writer, s *typed.Summary, bounds *table.Column, counts []int) error {
	least, greatest := "", ""
	if len(f.bounds) == 0 && s.Count > 0 {
		least, greatest = cellText(&s.Min, 0), cellText(&s.Max, 0)
	}
	edges := []string{least}
	for i := range bounds.Len() {
		edges = append(edges, cellText(bounds, i))
	}
	edges = append(edges, greatest)
	if f.asJSON {
		return writeBins(out, edges, counts, isNumber(bounds.Kind))
	}
	printBins(out, edges, counts)
	return nil
}

// writeBins writes bins as JSON.
func writeBins(out io.Writer, edges []string, counts []int, numbers bool) error {
	for i, n := range counts {
		bin := map[string]any{"count": n}
		for at, name := range []string{"from", "to"} {
			if text := edges[i+at]; text != "" {
				bin[name] = jsonText(text, numbers)
			}
		}
		if err := writeJSON(out, bin); err != nil {
			return err
		}
	}
	return nil
}

// printBins prints bins with a bar for each.
func printBins(out io.Writer, edges []string, counts []int) {
	const bar = 40
	wide, most := 1, 1
	for _, e := range edges {
		wide = max(wide, len(e))
	}
	for _, n := range counts {
		most = max(most, n)
	}
	digits := len(fmt.Sprint(most))
	for i, n := range counts {
		line := fmt.Sprintf("%*s  %*s  %*d  %s", wide, edges[i], wide, edges[i+1], digits, n, strings.Repeat("#", (n*bar+most-1)/most))
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}
