package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
)

//go:embed web/page.html
var pageText string

//go:embed web/page.css
var pageCSS string

//go:embed web/page.js
var pageJS string

// uPlot draws the lines: github.com/leeoniya/uPlot, version 1.6.32, MIT. Its
// licence is part of the page.
var (
	//go:embed web/uPlot.iife.min.js
	uplotJS string
	//go:embed web/uPlot.min.css
	uplotCSS string
	//go:embed web/uPlot.LICENSE
	uplotLicence string
)

// Known is an experiment of the registry.
type Known struct {
	Name, About, Figure string
}

// Report is everything that the page, and pictures for documents, are made of.
type Report struct {
	Papers []*Paper
	Sites  []*Site
	Known  []Known
	Notes  []string // omitted parts of the files
}

// New merges runs.
func New(runs []*Run, known []Known) (*Report, error) {
	papers, err := Papers()
	if err != nil {
		return nil, err
	}
	sites, notes := merge(runs, known)
	return &Report{Papers: papers, Sites: sites, Known: known, Notes: notes}, nil
}

// page is what the template shows.
type page struct {
	CSS, UplotCSS template.CSS
	JS, UplotJS   template.JS
	Licence       string
	Papers        []*paperView
	Sites         []*siteView
	Totals        []stateCount
	Notes         []string
	Panels        []*Panel // those that the script draws
}

type stateCount struct {
	State State
	Count int
}

type paperView struct {
	*Paper
	Items  []*itemView
	Counts []stateCount
}

type itemView struct {
	*Item
	ID      string
	Command string
	Claims  []*claim
	Plots   []*plotView
	Missing []string // experiments without results
	Sites   []*Site
}

// claim is one value of the paper with ours, one for each site.
type claim struct {
	*Value
	PaperText string
	Ours      []string
}

type plotView struct {
	Experiment string
	Table      string // where its rows are
	Site       string // empty if there is only one
	Panel      *Panel
	SVG        template.HTML
}

type siteView struct {
	*Site
	ID     string
	Tables []*tableView
}

type tableView struct {
	ID      string
	Name    string
	About   string
	PerOp   string
	Heads   []string
	Rows    [][]string
	LeftOut []string
	Notes   []string
}

// HTML returns the page.
func (rep *Report) HTML() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"class": stateClass, "sentence": sentence}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, rep.page()); err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	return out.Bytes(), nil
}

func stateClass(s State) string { return strings.ReplaceAll(string(s), " ", "-") }

// sentence begins a text with a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func (rep *Report) page() *page {
	p := &page{CSS: template.CSS(pageCSS), UplotCSS: template.CSS(uplotCSS), JS: template.JS(pageJS),
		UplotJS: template.JS(uplotJS), Licence: uplotLicence, Notes: rep.Notes}
	var all []*Item
	for _, paper := range rep.Papers {
		v := &paperView{Paper: paper, Counts: countStates(paper.Items)}
		for _, it := range paper.Items {
			v.Items = append(v.Items, rep.item(paper, it))
		}
		all = append(all, paper.Items...)
		p.Papers = append(p.Papers, v)
	}
	p.Totals = countStates(all)
	for i, s := range rep.Sites {
		p.Sites = append(p.Sites, tables(s, i))
	}
	for _, paper := range p.Papers {
		for _, it := range paper.Items {
			for _, plot := range it.Plots {
				if len(plot.Panel.Lines) > 0 {
					p.Panels = append(p.Panels, plot.Panel)
				}
			}
		}
	}
	return p
}

func countStates(items []*Item) (out []stateCount) {
	for _, state := range States {
		n := 0
		for _, it := range items {
			if it.State == state {
				n++
			}
		}
		out = append(out, stateCount{state, n})
	}
	return out
}

func (rep *Report) item(paper *Paper, it *Item) *itemView {
	v := &itemView{Item: it, ID: it.Anchor(paper), Command: it.Command()}
	for _, s := range rep.Sites {
		if slices.ContainsFunc(it.By, func(name string) bool { return s.find(name) != nil }) {
			v.Sites = append(v.Sites, s)
		}
	}
	for _, value := range it.Values {
		c := &claim{Value: value, PaperText: value.paperText()}
		for _, s := range v.Sites {
			text := ""
			if value.Ours != nil {
				if o, ok := value.Ours.apply(s, it); ok {
					text = o.text(value.Unit)
				}
			}
			c.Ours = append(c.Ours, text)
		}
		v.Claims = append(v.Claims, c)
	}
	for _, name := range it.By {
		v.Plots = append(v.Plots, rep.plots(v, name)...)
		if !slices.ContainsFunc(rep.Sites, func(s *Site) bool { return s.find(name) != nil }) {
			v.Missing = append(v.Missing, name)
		}
	}
	return v
}

// plots makes the plots of one experiment of an item. Only the main experiment
// is shown as the item wants it, the others as they are.
func (rep *Report) plots(v *itemView, name string) (out []*plotView) {
	view, lines := View{}, []*Line(nil)
	if name == v.By[0] {
		view, lines = v.Plot, v.Item.Table.lines()
	}
	for i, s := range rep.Sites {
		e := s.find(name)
		if e == nil {
			continue
		}
		for _, panel := range panels(view, e, v.ID+"-"+name+"-"+strconv.Itoa(i+1), lines) {
			plot := &plotView{Experiment: name, Panel: panel, Table: tableID(i, name)}
			if len(rep.Sites) > 1 {
				plot.Site = s.Name()
			}
			if len(panel.Lines) == 0 {
				plot.SVG = template.HTML(panel.SVG("", false))
			}
			out = append(out, plot)
		}
	}
	return out
}

func tableID(site int, name string) string { return fmt.Sprintf("m%d-%s", site+1, name) }

// tables makes the tables of all that a site has measured.
func tables(s *Site, at int) *siteView {
	v := &siteView{Site: s, ID: fmt.Sprintf("m%d", at+1)}
	for _, e := range s.Experiments {
		t := &tableView{ID: tableID(at, e.Name), Name: e.Name, About: e.About, PerOp: e.PerOp, LeftOut: e.LeftOut, Notes: e.Notes}
		t.Heads, t.Rows = e.table()
		v.Tables = append(v.Tables, t)
	}
	return v
}

// table returns heads and cells. A column without a value in any row is left
// out.
func (e *Experiment) table() (heads []string, rows [][]string) {
	type column struct {
		head string
		cell func(*Row) string
	}
	of := func(name string) func(*Row) string {
		return func(r *Row) string {
			if v, ok := r.value(name); ok {
				return digits(v)
			}
			return ""
		}
	}
	label := e.CaseName
	if label == "" {
		label = "case"
	}
	cols := []column{
		{"system", func(r *Row) string { return r.System }}, {label, func(r *Row) string { return r.Case }},
		{"n", func(r *Row) string { return sizeText(r.N) }}, {"threads", func(r *Row) string { return count(r.Threads) }},
		{"median ns", of(ofTime)}, {"Mops/s", of(ofRate)}, {"bytes/entry", of(ofBytes)},
		{"x Pando", func(r *Row) string {
			if r.RatioMedian == 0 {
				return ""
			}
			return digits(r.RatioMedian)
		}},
	}
	for _, name := range e.extraNames() {
		cols = append(cols, column{name, of(name)})
	}
	cols = slices.DeleteFunc(cols, func(c column) bool {
		return !slices.ContainsFunc(e.Rows, func(r *Row) bool { return c.cell(r) != "" })
	})
	for _, c := range cols {
		heads = append(heads, c.head)
	}
	for _, r := range e.Rows {
		var cells []string
		for _, c := range cols {
			cells = append(cells, c.cell(r))
		}
		rows = append(rows, cells)
	}
	return heads, rows
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// extraNames returns the names of an experiment's own columns, in order.
func (e *Experiment) extraNames() (names []string) {
	for _, r := range e.Rows {
		for name := range r.Extra {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
