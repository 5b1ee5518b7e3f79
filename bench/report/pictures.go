package report

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pictures returns every plot of the page as an SVG that stands alone, by file
// name.
func (rep *Report) Pictures() map[string]string {
	out := map[string]string{}
	for _, paper := range rep.page().Papers {
		for _, it := range paper.Items {
			for _, plot := range it.Plots {
				title := paper.Short + ", " + it.Name() + ": " + plot.Experiment
				out[plot.Panel.ID+".svg"] = plot.Panel.SVG(title, true)
			}
		}
	}
	return out
}

// lookupsFrom is the experiment of the README's picture.
const lookupsFrom = "point-u64"

// Lookups draws Pando's default beside every peer: the largest size on one
// thread, of the machine with the largest.
func (rep *Report) Lookups() (string, error) {
	var rows []*Row
	var site *Site
	for _, s := range rep.Sites {
		e := s.find(lookupsFrom)
		if e == nil {
			continue
		}
		n := 0
		for _, r := range e.Rows {
			if r.Threads == 1 {
				n = max(n, r.N)
			}
		}
		if len(rows) == 0 || n > rows[0].N {
			rows = keep(e.Rows, func(r *Row) bool {
				return r.N == n && r.Threads == 1 && r.Median > 0 && !r.Limit() && (r.Reference || !r.Pando())
			})
			site = s
		}
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("no results of %s on one thread to draw: measure them with 'go run . run %s --json FILE'", lookupsFrom, lookupsFrom)
	}
	p := newPlotter(View{}, &Experiment{Rows: rows})
	panel := &Panel{YLabel: "one thread; " + site.Machine.String()}
	p.fillGroups(panel, rows)
	bars := panel.Groups[0].Bars
	for i, b := range bars { // Pando and others are all there is to tell apart
		b.Style = "q4"
		if rows[i].Pando() {
			b.Name, b.Style = "Pando, GetBatch", "p0"
		}
	}
	slices.SortStableFunc(bars, func(a, b *Bar) int { return cmp.Compare(b.Value, a.Value) })
	return panel.SVG(fmt.Sprintf("Million lookups a second: %s pairs of uint64, random hits", sizeText(rows[0].N)), true), nil
}

// Marks in a document, between which its pictures are named.
const (
	marksBegin = "<!-- pictures: make pictures fills this in -->"
	marksEnd   = "<!-- end of pictures -->"
)

// documentPictures are the pictures that a README shows where they exist,
// relative to it, with what they show.
var documentPictures = []struct{ path, shows string }{
	{"docs/pictures/lookups.svg", "Lookups a second beside other maps"},
	{"docs/pictures/tree.png", "A tree in the viewer"},
}

// FillMarks names the pictures that exist between the marks of a document.
func FillMarks(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), marksBegin+"\n")
	_, after, ended := strings.Cut(rest, marksEnd)
	if !ok || !ended {
		return fmt.Errorf("%s: it has no lines %q and %q", path, marksBegin, marksEnd)
	}
	var lines strings.Builder
	for _, p := range documentPictures {
		_, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(p.path)))
		switch {
		case err == nil:
			fmt.Fprintf(&lines, "![%s](%s)\n\n", p.shows, p.path)
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	return os.WriteFile(path, []byte(before+marksBegin+"\n"+lines.String()+marksEnd+after), 0o666)
}
