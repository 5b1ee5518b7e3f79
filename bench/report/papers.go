// Package report makes a page of result files: every figure and table of the
// papers that Pando follows, with what the paper says, what was measured here,
// and why a figure is missing.
package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// The papers in the order of the page. Values are those of a paper's text and
// tables. Points that a paper only plots are not among them.
//
//go:embed papers/*.json
var paperFiles embed.FS

var paperOrder = []string{"hbtree", "gpubtree", "fast", "duong", "cuart"}

// Paper is one paper with all its figures and tables.
type Paper struct {
	ID       string  `json:"id"`
	Short    string  `json:"short"`
	Title    string  `json:"title"`
	Authors  string  `json:"authors"`
	Venue    string  `json:"venue"`
	Hardware string  `json:"hardware"` // what the paper measured on
	Items    []*Item `json:"items"`
}

// State says what has become of a figure.
type State string

// The states of an item.
const (
	Redone  State = "redone"
	InPart  State = "in part" // Why says what is missing
	NotYet  State = "not yet" // Why says what it takes
	Drawing State = "drawing" // nothing in it was measured
)

// States in the order of the page's counts.
var States = []State{Redone, InPart, NotYet, Drawing}

// Item is a figure, a part of one, a table, or something that a paper only
// says in its text.
type Item struct {
	Is      string   `json:"is"` // figure, table or text
	No      string   `json:"no"` // as the paper counts: 16(a), 5.2
	Shows   string   `json:"shows"`
	State   State    `json:"state"`
	By      []string `json:"by,omitempty"`      // experiments, the main one first
	Run     string   `json:"run,omitempty"`     // what follows "go run . run"
	Differs string   `json:"differs,omitempty"` // from the paper
	Why     string   `json:"why,omitempty"`
	Plotted bool     `json:"plotted,omitempty"` // the paper has points of which only the text's are known
	Plot    View     `json:"plot,omitzero"`
	Values  []*Value `json:"values,omitempty"`
	Table   *Table   `json:"table,omitempty"`
}

// View is what of an experiment's rows a plot shows.
type View struct {
	Case   string `json:"case,omitempty"`   // pattern; empty: all cases
	X      string `json:"x,omitempty"`      // n, case, or the name of a column; empty: n where there are several
	Y      string `json:"y,omitempty"`      // rate, time, or the name of a column; empty: rate; several, a plot each, between |
	Series string `json:"series,omitempty"` // case: a line a case, not a system
}

// places reports whether a row has a place on the plot's axis.
func (v View) places(r *Row) bool {
	if v.X == "" || v.X == "n" || v.X == "case" {
		return true
	}
	_, ok := r.value(v.X)
	return ok
}

// Value is one thing that a paper says about a figure.
type Value struct {
	What  string    `json:"what"`
	Said  string    `json:"said"`            // in the paper's measure
	Paper []float64 `json:"paper,omitempty"` // one number, or the ends of a range, in Unit; none for words
	Unit  string    `json:"unit"`
	At    string    `json:"at"`             // the section or table
	From  string    `json:"from,omitempty"` // table, plot (read by eye); empty: text
	Ours  *Measure  `json:"ours,omitempty"` // nil: not measured
}

// Measure picks rows of an experiment and makes one number, or a range, of
// them. Patterns have * for anything and | between alternatives.
type Measure struct {
	Exp    string `json:"exp,omitempty"` // empty: the item's first
	Of     string `json:"of"`            // rate, time, or the name of a column
	System string `json:"system,omitempty"`
	Case   string `json:"case,omitempty"`
	N      int    `json:"n,omitempty"`
	Over   *Base  `json:"over,omitempty"` // nil: the value itself, not a ratio
	Pick   string `json:"pick,omitempty"` // mean (and the range), range, max or min; empty: mean
}

// Base is the row of the same set that a row is compared with.
type Base struct {
	Of     string `json:"of,omitempty"`     // empty: as above
	System string `json:"system,omitempty"` // empty: the row's own
	Case   string `json:"case,omitempty"`   // empty: the row's own
	// Threads is 0 for the row's own.
	Threads int `json:"threads,omitempty"`
}

// Table is a table as the paper prints it.
type Table struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Rates is set if rows are a number of entries as a power of two, the
	// milliseconds of a system for as many operations, and how many times as fast
	// others are. A cell without a number is none.
	Rates bool `json:"rates,omitempty"`
}

// lines returns a table of rates as lines, in million operations a second.
func (t *Table) lines() (out []*Line) {
	if t == nil || !t.Rates {
		return nil
	}
	for col := 1; col < len(t.Columns); col++ {
		name, _, _ := strings.Cut(t.Columns[col], ",")
		line := &Line{Name: "paper: " + name, Dashed: true}
		for _, row := range t.Rows {
			power, err1 := strconv.Atoi(strings.TrimPrefix(row[0], "2^"))
			ms, err2 := strconv.ParseFloat(row[1], 64)
			speed, err3 := 1.0, error(nil)
			if col > 1 {
				speed, err3 = strconv.ParseFloat(row[col], 64)
			}
			if err1 == nil && err2 == nil && err3 == nil {
				n := float64(int(1) << power)
				line.Points = append(line.Points, [2]float64{n, speed * n / ms / 1000})
			}
		}
		out = append(out, line)
	}
	return out
}

// Papers reads the papers that are part of the program.
func Papers() ([]*Paper, error) {
	return readPapers(paperFiles, paperOrder)
}

func readPapers(files fs.FS, ids []string) ([]*Paper, error) {
	var out []*Paper
	for _, id := range ids {
		name := "papers/" + id + ".json"
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		p := &Paper{}
		if err := dec.Decode(p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, it := range p.Items {
			if err := it.check(); err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", name, it.Is, it.No, err)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// check reports what an item lacks.
func (it *Item) check() error {
	switch {
	case it.Is != "figure" && it.Is != "table" && it.Is != "text":
		return fmt.Errorf("%q is neither figure nor table nor text", it.Is)
	case it.No == "" || it.Shows == "":
		return fmt.Errorf("it has no number, or does not say what it shows")
	case (it.State == Redone || it.State == InPart) != (len(it.By) > 0):
		return fmt.Errorf("%s, by %v", it.State, it.By)
	case len(it.By) > 0 && it.Run == "":
		return fmt.Errorf("no command")
	case it.State != Redone && it.Why == "":
		return fmt.Errorf("%s, and no reason", it.State)
	case it.State != Redone && it.State != InPart && it.State != NotYet && it.State != Drawing:
		return fmt.Errorf("%q is no state", it.State)
	}
	for _, v := range it.Values {
		if err := v.check(); err != nil {
			return fmt.Errorf("%s: %w", v.What, err)
		}
	}
	return nil
}

func (v *Value) check() error {
	switch {
	case v.What == "" || v.Said == "" || v.Unit == "" || v.At == "":
		return fmt.Errorf("a value says what, what the paper says, in which unit and where")
	case len(v.Paper) > 2 || (len(v.Paper) == 0) != (v.Unit == "words"):
		return fmt.Errorf("%d numbers in %s", len(v.Paper), v.Unit)
	case v.From != "" && v.From != "table" && v.From != "plot":
		return fmt.Errorf("read from %q", v.From)
	case v.Ours != nil && v.Ours.Of == "":
		return fmt.Errorf("it does not say what is measured")
	}
	return nil
}

// Name returns "figure 16(a)".
func (it *Item) Name() string {
	if it.Is == "text" {
		return "section " + it.No
	}
	return it.Is + " " + it.No
}

// Anchor returns the item's address within the page.
func (it *Item) Anchor(p *Paper) string {
	plain := strings.NewReplacer("(", "", ")", "", " ", "-", ".", "-").Replace(it.No)
	return p.ID + "-" + it.Is + "-" + plain
}

// Command returns the shell line that measures the item, or nothing.
func (it *Item) Command() string {
	if it.Run == "" {
		return ""
	}
	return "cd bench && go run . run " + it.Run + " --json results.json"
}

// matches reports whether text fits a pattern: alternatives between |, in which
// * stands for anything. The empty pattern fits everything.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	for alternative := range strings.SplitSeq(pattern, "|") {
		if glob(alternative, text) {
			return true
		}
	}
	return false
}

func glob(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	for i := len(first); i <= len(text); i++ {
		if glob(rest, text[i:]) {
			return true
		}
	}
	return false
}
