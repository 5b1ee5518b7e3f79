package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What the papers have, counted in them: figures and tables by number, and
// how many parts a figure has that were measured apart.
var counted = map[string]struct {
	figures, tables []string
	parts           map[string]int
}{
	"hbtree":   {figures: upTo(21), parts: map[string]int{"7": 2, "11": 2, "13": 2, "16": 3, "20": 2}},
	"gpubtree": {figures: upTo(4), parts: map[string]int{"4": 2}},
	"fast":     {figures: upTo(11), tables: upTo(2)},
	"duong": {figures: []string{"1.1", "1.2", "3.1", "3.2", "3.3", "3.4", "5.1", "5.2", "5.3", "5.4"},
		tables: []string{"5.1", "5.2", "5.3", "5.4"}},
	"cuart": {figures: upTo(18)},
}

func upTo(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(i+1))
	}
	return out
}

func papersOf(t *testing.T) []*Paper {
	t.Helper()
	papers, err := Papers()
	if err != nil {
		t.Fatal(err)
	}
	return papers
}

// Every figure and table of every paper is named exactly once, in its parts or
// as a whole.
func TestEveryFigureIsNamedOnce(t *testing.T) {
	number := regexp.MustCompile(`^[0-9.]+`)
	for _, p := range papersOf(t) {
		want, ok := counted[p.ID]
		if !ok {
			t.Errorf("%s is not a paper that was counted", p.ID)
		}
		named := map[string]map[string]int{"figure": {}, "table": {}, "text": {}}
		anchors := map[string]bool{}
		for _, it := range p.Items {
			named[it.Is][number.FindString(it.No)]++
			if anchors[it.Anchor(p)] {
				t.Errorf("%s: %s is there twice", p.ID, it.Name())
			}
			anchors[it.Anchor(p)] = true
		}
		for is, numbers := range map[string][]string{"figure": want.figures, "table": want.tables} {
			for _, no := range numbers {
				if got, parts := named[is][no], max(1, want.parts[no]); got != parts {
					t.Errorf("%s: %s %s is named %d times, not %d", p.ID, is, no, got, parts)
				}
			}
			for no := range named[is] {
				if !slices.Contains(numbers, no) {
					t.Errorf("%s has no %s %s", p.ID, is, no)
				}
			}
		}
	}
}

// The tables of the thesis were copied whole: sixteen sizes, eight columns, and
// only the implementation that crashed lacks values.
func TestTablesAreWhole(t *testing.T) {
	for _, p := range papersOf(t) {
		for _, it := range p.Items {
			if it.Table == nil {
				continue
			}
			for _, row := range it.Table.Rows {
				if len(row) != len(it.Table.Columns) {
					t.Errorf("%s, %s: a row of %d cells under %d heads", p.ID, it.Name(), len(row), len(it.Table.Columns))
				}
			}
			lines := it.Table.lines()
			if it.Table.Rates != (len(lines) == 7) {
				t.Errorf("%s, %s: %d lines", p.ID, it.Name(), len(lines))
			}
			for _, l := range lines {
				want := 16
				if l.Name == "paper: OWG" {
					want = 13
				}
				if len(l.Points) != want {
					t.Errorf("%s, %s, %s: %d points, not %d", p.ID, it.Name(), l.Name, len(l.Points), want)
				}
			}
		}
	}
}

// A file with a slip is refused, and the error says where it is.
func TestPapersWithSlips(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"id": "x", "items": [{"is": "figure", "no": "1", "shows": "it", "state": "redone"}]}`, "figure 1: redone, by []"},
		{`{"id": "x", "items": [{"is": "figure", "no": "1", "shows": "it", "state": "not yet"}]}`, "no reason"},
		{`{"id": "x", "items": [{"is": "figure", "no": "1", "shows": "it", "state": "lost", "why": "y"}]}`, `"lost" is no state`},
		{`{"id": "x", "items": [{"is": "plot", "no": "1", "shows": "it", "state": "drawing", "why": "y"}]}`, "neither figure nor table"},
		{`{"id": "x", "items": [{"is": "figure", "no": "1", "shows": "it", "state": "drawing", "why": "y", "values": [{"what": "a", "said": "b", "unit": "x", "at": "1"}]}]}`, "0 numbers in x"},
		{`{"id": "x", "itmes": []}`, "itmes"},
		{`{"id": `, "unexpected"},
	} {
		_, err := readPapers(fstest.MapFS{"papers/x.json": {Data: []byte(c.text)}}, []string{"x"})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "papers/x.json") {
			t.Errorf("%s: error %v does not say %q", c.text, err, c.want)
		}
	}
	if _, err := readPapers(fstest.MapFS{}, []string{"x"}); err == nil {
		t.Error("a paper without a file is read")
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "anything", true}, {"Pando", "Pando", true}, {"Pando", "Pando Tree", false}, {"Pando*", "Pando Tree", true},
		{"Pando, AVX* sequential", "Pando, AVX-512 sequential", true}, {"Pando, AVX* sequential", "Pando, AVX-512 sequential, one", false},
		{"a|b*", "b2", true}, {"a|b*", "c", false}, {"*", "", true}, {"*x*y", "axby", true}, {"*x*y", "axb", false},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("%q fits %q: %v", c.pattern, c.text, got)
		}
	}
}
