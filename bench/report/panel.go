package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Panel is one plot: lines over an axis, or bars where there are too few
// points for lines. The page's script draws lines from the JSON; bars, and all
// files, are SVG.
type Panel struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	XLabel string   `json:"xLabel"`
	YLabel string   `json:"yLabel"`
	LogX   bool     `json:"logX"`            // to base 2
	LogY   bool     `json:"logY"`            // to base 10
	Sizes  bool     `json:"sizes"`           // x counts entries: 64M
	Ticks  []string `json:"ticks,omitempty"` // names of x 0, 1, 2, ...; none: x is a number
	Lines  []*Line  `json:"lines,omitempty"`
	Groups []*Group `json:"groups,omitempty"` // of bars, if there are no lines
}

// Line is the points of one system.
type Line struct {
	Name   string       `json:"name"`
	Style  string       `json:"style"` // p0 to p3: Pando; q0 to q8: others; limit
	Points [][2]float64 `json:"points"`
	Dashed bool         `json:"dashed,omitempty"` // a limit's, or a paper's
}

// Group is bars that belong together.
type Group struct {
	Name string `json:"name"`
	Bars []*Bar `json:"bars"`
}

// Bar is one system.
type Bar struct {
	Name  string  `json:"name"`
	Style string  `json:"style"`
	Value float64 `json:"value"`
}

// The styles that Pando's systems and others get, in turn. They meet only
// where there are more than thirteen in all.
var (
	pandoStyles = []string{"p0", "p1", "p2", "p3", "q8", "q7", "q6", "q5", "q4", "q3", "q2", "q1", "q0"}
	otherStyles = []string{"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "p3", "p2", "p1", "p0"}
)

const (
	// fewestPoints is the number of places on an axis from which on lines show
	// more than bars.
	fewestPoints = 3
	// logFrom is the ratio of the greatest to the least value from which on a
	// linear axis would hide the least.
	logFrom = 30
)

// styles gives each system a style, the same in all panels of an experiment.
type styles struct {
	of     map[string]string
	pandos int
	others int
}

func (s *styles) style(r *Row, name string) string {
	if s.of == nil {
		s.of = map[string]string{}
	}
	if known, ok := s.of[name]; ok {
		return known
	}
	style := ""
	switch {
	case r.Limit():
		style = "limit"
	case r.Pando():
		style = pandoStyles[s.pandos%len(pandoStyles)]
		s.pandos++
	default:
		style = otherStyles[s.others%len(otherStyles)]
		s.others++
	}
	s.of[name] = style
	return style
}

// paper gives a line of a paper the style of the same system here, or one that
// is free.
func (s *styles) paper(line *Line) {
	name := strings.TrimPrefix(line.Name, "paper: ")
	for ours, style := range s.of {
		if ours == name || strings.HasPrefix(ours, name+"::") {
			line.Style = style
			return
		}
	}
	line.Style = s.style(&Row{System: line.Name}, line.Name)
}

// panels makes the plots of an experiment's rows, and puts lines of the paper
// beside rates by size.
func panels(v View, e *Experiment, id string, papers []*Line) (out []*Panel) {
	for y := range strings.SplitSeq(v.Y, "|") {
		v.Y = y
		out = append(out, panelsOf(v, e, papers)...)
	}
	for i, panel := range out {
		panel.ID = id + "-" + strconv.Itoa(i+1)
	}
	return out
}

// panelsOf makes the plots of one quantity.
func panelsOf(v View, e *Experiment, papers []*Line) (out []*Panel) {
	p := newPlotter(v, e)
	for _, key := range distinct(p.rows, p.panelKey) {
		rows := keep(p.rows, func(r *Row) bool { return p.panelKey(r) == key })
		panel := &Panel{Title: key, YLabel: p.yLabel(), XLabel: p.xLabel()}
		if p.x != "" && len(distinct(rows, p.xText)) >= fewestPoints {
			p.fillLines(panel, rows)
			p.addPapers(panel, papers)
		} else {
			p.fillGroups(panel, rows)
		}
		out = append(out, panel)
	}
	return out
}

// plotter is what the panels of one experiment share.
type plotter struct {
	view    View
	e       *Experiment
	rows    []*Row
	x, y    string
	threads bool // rows differ in them
	// caseSizes is set if every case has a size of its own.
	caseSizes bool
	styles    styles
}

func newPlotter(v View, e *Experiment) *plotter {
	p := &plotter{view: v, e: e, x: v.X, y: v.Y}
	if p.y == "" {
		p.y = ofRate
	}
	p.rows = keep(e.Rows, func(r *Row) bool {
		_, ok := r.value(p.y)
		return ok && matches(v.Case, r.Case)
	})
	if p.x == "" && len(distinct(p.rows, func(r *Row) int { return r.N })) > 1 {
		p.x = "n"
	}
	if p.x == "" && len(distinct(p.rows, func(r *Row) string { return r.Case })) > 1 {
		p.x = "case"
	}
	p.threads = len(distinct(keep(p.rows, func(r *Row) bool { return r.Threads > 0 }), func(r *Row) int { return r.Threads })) > 1
	cases := distinct(p.rows, func(r *Row) string { return r.Case })
	p.caseSizes = len(cases) > 1 && len(distinct(p.rows, (*Row).size)) == len(cases)
	return p
}

// size is a case with its number of entries.
func (r *Row) size() set { return set{label: r.Case, n: r.N} }

func keep(rows []*Row, ok func(*Row) bool) (out []*Row) {
	for _, r := range rows {
		if ok(r) {
			out = append(out, r)
		}
	}
	return out
}

// distinct returns the different values of rows, in the order of rows.
func distinct[T comparable](rows []*Row, of func(*Row) T) (out []T) {
	for _, r := range rows {
		if v := of(r); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// panelKey is what differs between panels, as their title says it.
func (p *plotter) panelKey(r *Row) string {
	switch {
	case p.x == "n" && r.Case != "":
		return p.caseText(r)
	case p.x == "n" || p.caseSizes:
		return ""
	}
	return sizeText(r.N) + " entries"
}

func (p *plotter) caseText(r *Row) string {
	if p.e.CaseName == "" {
		return r.Case
	}
	return p.e.CaseName + ": " + r.Case
}

// lineName is what a line stands for.
func (p *plotter) lineName(r *Row) string {
	name := r.System
	if p.view.Series == "case" {
		name = r.Case
	}
	if p.threads && r.Threads > 0 {
		name += fmt.Sprintf(", %d threads", r.Threads)
	}
	return name
}

// xText is a row's place on the axis, in words.
func (p *plotter) xText(r *Row) string {
	switch p.x {
	case "n":
		return sizeText(r.N)
	case "case":
		return r.Case
	}
	if v, ok := r.value(p.x); ok {
		return digits(v)
	}
	return ""
}

func (p *plotter) xLabel() string {
	switch p.x {
	case "n":
		return "entries"
	case "case":
		return p.e.CaseName
	}
	return p.x
}

func (p *plotter) yLabel() string {
	switch p.y {
	case ofRate:
		return "million operations a second"
	case ofTime:
		return "ns an operation"
	}
	return p.y
}

// fillLines makes a line for each system. Cases that are no numbers stand side
// by side, as bars.
func (p *plotter) fillLines(panel *Panel, rows []*Row) {
	places := distinct(rows, p.xText)
	if p.x == "case" {
		if _, ok := leadingNumber(places[0]); !ok {
			p.fillGroups(panel, rows)
			return
		}
		panel.Ticks = places
	}
	panel.Sizes, panel.LogX = p.x == "n", p.x != "case"
	for _, name := range distinct(rows, p.lineName) {
		line := &Line{Name: name}
		for _, r := range rows {
			if p.lineName(r) != name {
				continue
			}
			line.Style, line.Dashed = p.styles.style(r, name), r.Limit()
			y, _ := r.value(p.y)
			if x, ok := p.place(r, places); ok {
				line.Points = append(line.Points, [2]float64{x, y})
			}
		}
		slices.SortStableFunc(line.Points, func(a, b [2]float64) int { return int(math.Copysign(1, a[0]-b[0])) })
		if len(line.Points) > 0 {
			panel.Lines = append(panel.Lines, line)
		}
	}
	panel.LogY = wide(rows, p.y)
}

func (p *plotter) place(r *Row, places []string) (float64, bool) {
	switch p.x {
	case "n":
		return float64(r.N), true
	case "case":
		return float64(slices.Index(places, r.Case)), true
	}
	x, ok := r.value(p.x)
	return x, ok && x > 0
}

// addPapers adds what a paper has measured at sizes between the least and the
// greatest here.
func (p *plotter) addPapers(panel *Panel, papers []*Line) {
	if p.x != "n" || p.y != ofRate || len(panel.Lines) == 0 {
		return
	}
	low, high := math.Inf(1), 0.0
	for _, l := range panel.Lines {
		low, high = min(low, l.Points[0][0]), max(high, l.Points[len(l.Points)-1][0])
	}
	for _, l := range papers {
		line := &Line{Name: l.Name, Dashed: true}
		for _, q := range l.Points {
			if q[0] >= low && q[0] <= high {
				line.Points = append(line.Points, q)
			}
		}
		if len(line.Points) > 0 {
			p.styles.paper(line)
			panel.Lines = append(panel.Lines, line)
		}
	}
}

// wide reports whether values are too far apart for a linear axis.
func wide(rows []*Row, of string) bool {
	low, high := math.Inf(1), 0.0
	for _, r := range rows {
		if v, ok := r.value(of); ok && v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	return high > logFrom*low
}

// fillGroups makes a bar for each row, grouped by what would be the axis.
func (p *plotter) fillGroups(panel *Panel, rows []*Row) {
	group := p.xText
	if p.x == "" || p.x != "n" && p.x != "case" {
		group = func(*Row) string { return "" }
	}
	for _, name := range distinct(rows, group) {
		g := &Group{Name: name}
		switch {
		case p.x == "n":
			g.Name = name + " entries"
		case p.x == "case" && p.e.CaseName != "":
			g.Name = p.e.CaseName + ": " + name
		}
		for _, r := range rows {
			if group(r) == name {
				v, _ := r.value(p.y)
				g.Bars = append(g.Bars, &Bar{Name: p.lineName(r), Style: p.styles.style(r, p.lineName(r)), Value: v})
			}
		}
		panel.Groups = append(panel.Groups, g)
	}
}

// leadingNumber reads the number that a case begins with: 16k, 5 %, 1/64.
func leadingNumber(text string) (float64, bool) {
	end := strings.IndexFunc(text, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if end < 0 {
		end = len(text)
	}
	v, err := strconv.ParseFloat(text[:end], 64)
	return v, err == nil
}

// sizeText formats a count as bench reads it, in the largest unit that divides
// it.
func sizeText(n int) string {
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
