package contest

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// result is one experiment's outcome.
type result struct {
	Name     string   `json:"name"`
	About    string   `json:"about"`
	Figure   string   `json:"figure,omitempty"`
	PerOp    string   `json:"operation,omitempty"`
	CaseName string   `json:"case_name,omitempty"`
	GPU      *GPUInfo `json:"gpu,omitempty"`
	Rows     []*Row   `json:"rows"`
	Skipped  []string `json:"left_out,omitempty"`
	Notes    []string `json:"notes,omitempty"`

	faster string
	extra  []ExtraColumn
}

// ExtraColumn is a column of one experiment.
type ExtraColumn struct {
	Name   string
	Format func(float64) string
}

// Result returns what the session has measured so far.
func (s *Session) Result() *result {
	return &result{Name: s.Exp.Name, About: s.Exp.About, Figure: s.Exp.Figure, PerOp: s.Exp.Per,
		GPU: s.GPUInfo, Rows: append([]*Row{}, s.Rows...), Skipped: s.Skipped, Notes: s.notes,
		CaseName: s.Exp.CaseName, faster: s.Exp.Faster, extra: s.Exp.Extra}
}

// Print writes the heading, the table and a list of omissions.
func (r *result) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s\n", r.Name, r.About)
	if r.PerOp != "" {
		fmt.Fprintf(w, "one operation: %s\n", r.PerOp)
	}
	if r.GPU != nil {
		fmt.Fprintf(w, "GPU: %s\n", r.GPU)
	}
	if len(r.Rows) > 0 {
		fmt.Fprintln(w)
		writeTable(w, r.columns(), r.Rows)
	}
	for _, line := range r.Skipped {
		fmt.Fprintf(w, "left out: %s\n", line)
	}
	for _, line := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", line)
	}
	if noisy := r.noisy(); noisy > 0 {
		fmt.Fprintf(w, "noisy: in %d of %d rows the median is %.0f %% or more above the best: measure again when the machine is quiet\n",
			noisy, len(r.Rows), 100*(noisyFrom-1))
	}
}

// noisyFrom is the ratio of median to best from which a row says more about
// the machine's other work than about the system.
const noisyFrom = 1.3

func (r *result) noisy() (rows int) {
	for _, row := range r.Rows {
		if row.Median > noisyFrom*row.Best {
			rows++
		}
	}
	return rows
}

// column is one column of a table. A cell without a value is "-".
type column struct {
	head string
	left bool // words are aligned left, numbers right
	cell func(*Row) string
}

func (r *result) columns() []column {
	cols := []column{{"system", true, func(r *Row) string { return r.System }}}
	if r.CaseName != "" {
		cols = append(cols, column{r.CaseName, true, func(r *Row) string { return r.Case }})
	}
	cols = append(cols,
		column{"n", false, func(r *Row) string { return SizeText(r.N) }},
		column{"threads", false, func(r *Row) string { return count(r.Threads) }},
		column{"best ns/op", false, func(r *Row) string { return Number(r.Best) }},
		column{"median ns/op", false, func(r *Row) string { return Number(r.Median) }},
		column{"Mops/s", false, func(r *Row) string { return Number(perMicrosecond(r.Median)) }},
		column{"bytes/entry", false, func(r *Row) string { return Number(r.BytesPerEntry) }},
		r.ratioColumn())
	for _, e := range r.extra {
		cols = append(cols, column{e.Name, false, func(r *Row) string {
			if v, ok := r.Extra[e.Name]; ok {
				return e.Format(v)
			}
			return "-"
		}})
	}
	return cols
}

// ratioColumn compares rows with the reference.
func (r *result) ratioColumn() column {
	if r.faster == "" {
		return column{"x Pando", false, func(r *Row) string { return Ratio(r.RatioMedian) }}
	}
	return column{r.faster, false, func(r *Row) string {
		if r.RatioMedian == 0 {
			return "-"
		}
		return Ratio(1 / r.RatioMedian)
	}}
}

// writeTable aligns the columns. A column without a value in any row is left
// out.
func writeTable(w io.Writer, cols []column, rows []*Row) {
	var heads []column
	var widths []int
	for _, c := range cols {
		width, empty := utf8.RuneCountInString(c.head), true
		for _, r := range rows {
			text := c.cell(r)
			width = max(width, utf8.RuneCountInString(text))
			empty = empty && text == "-"
		}
		if !empty {
			heads, widths = append(heads, c), append(widths, width)
		}
	}
	line := func(text func(column) string) {
		var b strings.Builder
		for i, c := range heads {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(pad(text(c), widths[i], c.left))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	line(func(c column) string { return c.head })
	for i, r := range rows {
		if i > 0 && !together(rows[i-1], r) {
			fmt.Fprintln(w) // a gap between sets
		}
		line(func(c column) string { return c.cell(r) })
	}
}

// together reports whether two rows belong together: to one contest, or as
// counts for one size.
func together(a, b *Row) bool {
	return a.group == b.group && a.Case == b.Case && (a.N == b.N || len(b.Rounds) > 0)
}

func pad(text string, width int, left bool) string {
	gap := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if left {
		return text + gap
	}
	return gap + text
}

// Number formats a number with three digits or more, and never an exponent.
func Number(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v < 0.1: // a GPU's nanoseconds
		return strconv.FormatFloat(v, 'f', 4, 64)
	case v < 1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Ratio formats a ratio.
func Ratio(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Whole formats a number without its fraction.
func Whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// Percent formats a percentage, 0 included.
func Percent(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Plain formats a number with two decimals, 0 included.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func count(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func perMicrosecond(ns float64) float64 {
	if ns == 0 {
		return 0
	}
	return 1000 / ns
}

// SizeText formats n as --n reads it, in the largest unit that divides
// it.
func SizeText(n int) string {
	for _, u := range []struct {
		shift  uint
		letter string
	}{{30, "G"}, {20, "M"}, {10, "k"}} {
		if n > 0 && n%(1<<u.shift) == 0 {
			return strconv.Itoa(n>>u.shift) + u.letter
		}
	}
	return strconv.Itoa(n)
}
