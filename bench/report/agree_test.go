package report

import (
	"slices"
	"strings"
	"testing"
)

// keptReport is the report of the results that are kept.
func keptReport(t *testing.T) *Report {
	t.Helper()
	runs, err := Load([]string{"../results"})
	if err != nil {
		t.Fatal(err)
	}
	var known []Known
	for _, r := range runs {
		for _, e := range r.Experiments {
			known = append(known, Known{Name: e.Name, About: e.About, Figure: e.Figure})
		}
	}
	rep, err := New(runs, known)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// A figure's table and its charts are of the same numbers: whatever a value in the
// table is made of is a bar or a point of a chart beside it. What is given as the
// time of an operation may be drawn as a rate.
func TestTablesAgreeWithCharts(t *testing.T) {
	rep := keptReport(t)
	values := 0
	for _, paper := range rep.Papers {
		for _, it := range paper.Items {
			v := rep.item(paper, it)
			for _, value := range it.Values {
				if value.Ours == nil {
					continue
				}
				name := value.Ours.experiment(it)
				if !slices.Contains(it.By, name) {
					t.Errorf("%s, %s: %q is of %s, which the figure does not show", paper.ID, it.Name(), value.What, name)
				}
				for _, s := range v.Sites {
					for _, cells := range value.Ours.cells(s, it) {
						for _, c := range cells {
							if values++; !drawn(v.Plots, name, c) {
								t.Errorf("%s, %s: %q is made of %s %.4g of %s, %q, which no chart shows", paper.ID, it.Name(), value.What, c.of, c.value, c.System, c.Case)
							}
						}
					}
				}
			}
		}
	}
	if values < 100 {
		t.Errorf("only %d values were compared", values)
	}
}

// drawn reports whether a chart of an experiment has a value as a bar or a point.
func drawn(plots []*plotView, experiment string, c cell) bool {
	p := plotter{y: c.of}
	if c.of == ofTime {
		p.y, c.value = ofRate, 1000/c.value
	}
	for _, plot := range plots {
		if plot.Experiment != experiment || plot.Panel.YLabel != p.yLabel() {
			continue
		}
		for _, g := range plot.Panel.Groups {
			if slices.ContainsFunc(g.Bars, func(b *Bar) bool { return c.named(b.Name) && b.Value == c.value }) {
				return true
			}
		}
		for _, l := range plot.Panel.Lines {
			if c.named(l.Name) && slices.ContainsFunc(l.Points, func(q [2]float64) bool { return q[1] == c.value }) {
				return true
			}
		}
	}
	return false
}

// named reports whether a line or bar of this name may be the cell's.
func (c cell) named(name string) bool {
	return strings.HasPrefix(name, c.System) || c.Case != "" && strings.HasPrefix(name, c.Case)
}

// A reason for what is missing says what it takes: it does not wait for what has run.
func TestReasonsDoNotWait(t *testing.T) {
	for _, paper := range papersOf(t) {
		for _, it := range paper.Items {
			for _, word := range []string{"waits for", "not been measured yet"} {
				if strings.Contains(it.Why, word) {
					t.Errorf("%s, %s: %s", paper.ID, it.Name(), it.Why)
				}
			}
		}
	}
}
