package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/spf13/cobra"
)

const sumLong = `Add up the values of the entries with LO <= key <= HI, on all cores. Without HI the
range goes to the end, and without LO it is the whole index. Values must be numbers.

Integers are added up exactly; a sum that does not fit their type is an error. So are
decimals, whose sum has as many digits behind the point as they have, and always fits.
Floating-point numbers are added in a fixed order, so that the same entries have the
same sum on any machine.`

const sumExample = `  pando sum sales.pando                      all
  pando sum sales.pando 20240101 20241231    a range of keys
  pando sum sales.pando --json`

func newSum() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "sum FILE [LO [HI]] [flags]",
		Short:   "Add up the values between two keys",
		Long:    sumLong,
		Example: sumExample,
		Args:    takes(1, 3, "an index file and two bounds"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return summarized(args, func(ix typed.Index, s *typed.Summary) error {
				if err := mustAdd(ix, s); err != nil {
					return err
				}
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), map[string]any{"count": s.Count, "sum": jsonText(sumText(ix, s), true)})
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), sumText(ix, s))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

const statsLong = `Tell count, sum, least, greatest and mean of the values of the entries with
LO <= key <= HI, on all cores. Without HI the range goes to the end, and without LO it
is the whole index. Values must be numbers. The least and the greatest are NaN if any
value is. For what a file is made of, see ` + "`pando info`" + `.`

const statsExample = `  pando stats sales.pando
  pando stats sales.pando 100 200
  pando stats sales.pando --json | jq .mean`

func newStats() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "stats FILE [LO [HI]] [flags]",
		Short:   "Sum, least, greatest and mean of the values between two keys",
		Long:    statsLong,
		Example: statsExample,
		Args:    takes(1, 3, "an index file and two bounds"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return summarized(args, func(ix typed.Index, s *typed.Summary) error {
				if asJSON {
					return writeJSON(cmd.OutOrStdout(), statsJSON(ix, s))
				}
				printStats(cmd.OutOrStdout(), ix, s)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// summarized calls do with the summary of the values between two bounds.
func summarized(args []string, do func(ix typed.Index, s *typed.Summary) error) error {
	ix, err := anywhere.openIndex(args[0])
	if err != nil {
		return err
	}
	defer ix.Close()
	lo, hi, err := boundColumns(ix, args[1:])
	if err != nil {
		return err
	}
	s, ok := ix.Summarize(lo, hi)
	if !ok {
		return noNumbers(ix)
	}
	for _, c := range []*table.Column{&s.Min, &s.Max} {
		c.Field = valueField(ix, "value")
	}
	return do(ix, &s)
}

// boundColumns returns bounds as columns, nil where they are not given.
func boundColumns(ix typed.Index, texts []string) (lo, hi *table.Column, err error) {
	bounds := [2]*table.Column{}
	for i, s := range texts {
		if bounds[i], err = keyColumn(ix, []string{s}); err != nil {
			return nil, nil, err
		}
	}
	return bounds[0], bounds[1], nil
}

// noNumbers is the error for values that cannot be added up.
func noNumbers(ix typed.Index) error {
	if t, ok := ix.Value(); ok {
		return fmt.Errorf("the values of this index are of type %v, and only numbers can be added up", t)
	}
	return fmt.Errorf("this index has no values to add up; count counts its keys")
}

// mustAdd returns an error if a sum means nothing, or does not fit.
func mustAdd(ix typed.Index, s *typed.Summary) error {
	kind := valueField(ix, "value").Kind
	if !isNumber(kind) {
		return fmt.Errorf("the values of this index are %v, whose sum means nothing; stats tells the least and the greatest", kind)
	}
	if s.Wrapped && kind.Of != cols.Decimal {
		return fmt.Errorf("the sum, about %.4g, does not fit %v; build the index with values of type float64", s.Mean*float64(s.Count), s.Sum.Type)
	}
	return nil
}

// isNumber reports whether values of a kind are numbers to people: they have a sum and
// a mean.
func isNumber(kind table.Kind) bool { return kind == (table.Kind{}) || kind.Of == cols.Decimal }

// sumText returns a sum that mustAdd allows.
func sumText(ix typed.Index, s *typed.Summary) string {
	if kind := valueField(ix, "value").Kind; kind.Of == cols.Decimal {
		return table.DecimalText(s.Total(), kind.Scale)
	}
	return cellText(&s.Sum, 0)
}

// mean returns the mean of numbers.
func mean(ix typed.Index, s *typed.Summary) float64 {
	kind := valueField(ix, "value").Kind
	if kind.Of != cols.Decimal {
		return s.Mean
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(kind.Scale)), nil)
	m, _ := new(big.Rat).SetFrac(s.Total(), scale.Mul(scale, big.NewInt(int64(s.Count)))).Float64()
	return m
}

func printStats(out io.Writer, ix typed.Index, s *typed.Summary) {
	line := func(name, text string) { fmt.Fprintf(out, "%-7s%s\n", name, text) }
	line("count", strconv.Itoa(s.Count))
	if s.Count == 0 {
		return
	}
	if mustAdd(ix, s) == nil {
		line("sum", sumText(ix, s))
	} else if s.Wrapped {
		line("sum", fmt.Sprintf("about %.4g, more than %v holds", s.Mean*float64(s.Count), s.Sum.Type))
	}
	line("min", cellText(&s.Min, 0))
	line("max", cellText(&s.Max, 0))
	if isNumber(valueField(ix, "value").Kind) {
		line("mean", strconv.FormatFloat(mean(ix, s), 'g', -1, 64))
	}
}

// statsJSON returns what is known: a sum that means nothing or does not fit, and
// everything but the count of no entries, is left out.
func statsJSON(ix typed.Index, s *typed.Summary) map[string]any {
	m := map[string]any{"count": s.Count}
	if s.Count == 0 {
		return m
	}
	if mustAdd(ix, s) == nil {
		m["sum"] = jsonText(sumText(ix, s), true)
	}
	m["min"], m["max"] = jsonCell(&s.Min), jsonCell(&s.Max)
	if isNumber(valueField(ix, "value").Kind) {
		m["mean"] = jsonFloat(mean(ix, s))
	}
	return m
}

// jsonCell returns the only cell of a column for JSON.
func jsonCell(c *table.Column) any { return jsonText(cellText(c, 0), isNumber(c.Kind)) }

// jsonText returns a cell's text for JSON, which has no NaN and no infinities:
// these and dates are strings.
func jsonText(text string, number bool) any {
	if f, err := strconv.ParseFloat(text, 64); err == nil && number && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Number(text)
	}
	return text
}

func jsonFloat(f float64) any { return jsonText(strconv.FormatFloat(f, 'g', -1, 64), true) }
