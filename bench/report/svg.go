package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Sizes of a picture in its own units. Text is 12 high; a letter is taken to
// be 6.9 wide, which is a little more than most are.
const (
	svgWidth    = 720
	plotHeight  = 260
	leftMargin  = 56
	rightMargin = 16
	topMargin   = 34
	barHeight   = 16
	barStep     = 22
	groupStep   = 26
	letterWidth = 6.9
)

// svgStyle has both colour schemes, so that a picture fits the page that shows
// it. The colours of systems are those of web/page.css.
const svgStyle = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1c2430}
.title{font-size:14px;font-weight:600}.soft{fill:#5b6675}.grid{stroke:#d8dee6}.axis{stroke:#8d97a5}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}.dot,.bar{fill:var(--c)}
.p0{--c:#0a7f5a}.p1{--c:#1f6fd0}.p2{--c:#00858f}.p3{--c:#5a52c9}.q0{--c:#c9660a}.q1{--c:#b3261e}.q2{--c:#8a5a00}.q3{--c:#a626a4}.q4{--c:#64748b}.q5{--c:#c2185b}.q6{--c:#6b8e00}.q7{--c:#374151}.q8{--c:#b0708f}.limit{--c:#8d97a5}
@media (prefers-color-scheme:dark){text{fill:#e6eaf0}.soft{fill:#9aa5b4}.grid{stroke:#313a46}.axis{stroke:#6d7886}
.p0{--c:#3ecf9b}.p1{--c:#6aa8ff}.p2{--c:#36c9d6}.p3{--c:#a39bff}.q0{--c:#ff9d4d}.q1{--c:#ff7b72}.q2{--c:#d9a441}.q3{--c:#e07fdf}.q4{--c:#a3acb9}.q5{--c:#ff80ab}.q6{--c:#b5d33d}.q7{--c:#dbe2ea}.q8{--c:#e3b8cf}.limit{--c:#7d8795}}
</style>
`

// canvas collects the elements of a picture.
type canvas struct {
	b      strings.Builder
	height float64
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// num formats a coordinate: a tenth of a unit is finer than a screen shows.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func (c *canvas) text(x, y float64, class, anchor, text string) {
	c.add(`<text x="%s" y="%s" class="%s" text-anchor="%s">%s</text>`, num(x), num(y), class, anchor, html.EscapeString(text))
}

func (c *canvas) rule(x1, y1, x2, y2 float64, class string) {
	c.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`, num(x1), num(y1), num(x2), num(y2), class)
}

// svg returns the picture, with its style if it is to stand alone.
func (c *canvas) svg(name string, alone bool) string {
	style, size := "", ""
	if alone {
		style, size = svgStyle, fmt.Sprintf(` width="%d" height="%s"`, svgWidth, num(c.height))
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %s\"%s role=\"img\" aria-label=\"%s\">\n%s%s</svg>\n",
		svgWidth, num(c.height), size, html.EscapeString(name), style, c.b.String())
}

// SVG draws the panel, with a title if there is one to tell what it is of. Alone
// it carries its style; otherwise the page has style and title.
func (p *Panel) SVG(title string, alone bool) string {
	c, name := &canvas{}, p.Title
	if title != "" {
		title = strings.TrimSuffix(title+", "+p.Title, ", ")
		name = title
	}
	if len(p.Lines) > 0 {
		p.drawLines(c, title)
	} else {
		p.drawBars(c, title)
	}
	return c.svg(strings.TrimPrefix(name+": "+p.YLabel, ": "), alone)
}

// drawBars draws horizontal bars, so that names have room.
func (p *Panel) drawBars(c *canvas, title string) {
	widest, most := 0.0, 0.0
	for _, g := range p.Groups {
		for _, b := range g.Bars {
			widest = max(widest, float64(len([]rune(b.Name)))*letterWidth)
			most = max(most, b.Value)
		}
	}
	left := min(widest+16, svgWidth/2)
	right := float64(svgWidth - 84) // a bar's value stands behind it
	y := 4.0
	if title != "" {
		y = 20
		c.text(4, y, "title", "start", title)
		y += 14
	}
	for _, g := range p.Groups {
		if g.Name != "" {
			y += groupStep
			c.text(4, y-8, "soft", "start", g.Name)
		}
		for _, b := range g.Bars {
			width := 0.0
			if most > 0 {
				width = b.Value / most * (right - left)
			}
			c.text(left-8, y+barHeight-4, "name", "end", fit(b.Name, left-12))
			c.add(`<rect x="%s" y="%s" width="%s" height="%d" rx="2" class="bar %s"/>`, num(left), num(y), num(max(width, 1)), barHeight, b.Style)
			c.text(left+max(width, 1)+6, y+barHeight-4, "soft", "start", digits(b.Value))
			y += barStep
		}
	}
	y += 14
	c.text(left, y, "soft", "start", p.YLabel)
	c.height = y + 8
}

// fit cuts a name that would be wider than its room.
func fit(name string, room float64) string {
	letters := []rune(name)
	if most := int(room / letterWidth); len(letters) > most && most > 1 {
		return string(letters[:most-1]) + "…"
	}
	return name
}

// frame maps values to the picture.
type frame struct {
	left, right, top, bottom float64
	xs, ys                   scale
}

func (f *frame) at(x, y float64) (px, py float64) {
	return f.left + f.xs.part(x)*(f.right-f.left), f.bottom - f.ys.part(y)*(f.bottom-f.top)
}

// drawLines draws lines with points, and names them below.
func (p *Panel) drawLines(c *canvas, title string) {
	f := p.frame()
	if title != "" {
		c.text(4, 20, "title", "start", title)
	}
	c.text(4, f.top-8, "soft", "start", p.YLabel)
	for _, v := range f.ys.ticks() {
		_, y := f.at(f.xs.low, v)
		c.rule(f.left, y, f.right, y, "grid")
		c.text(f.left-6, y+4, "soft", "end", digits(v))
	}
	c.rule(f.left, f.bottom, f.right, f.bottom, "axis")
	p.drawX(c, f)
	for _, l := range p.Lines {
		var points []string
		for _, q := range l.Points {
			x, y := f.at(q[0], q[1])
			points = append(points, num(x)+","+num(y))
		}
		dashes := ""
		if l.Dashed {
			dashes = ` stroke-dasharray="5 4"`
		}
		c.add(`<polyline class="line %s" points="%s"%s/>`, l.Style, strings.Join(points, " "), dashes)
		for _, q := range l.Points {
			x, y := f.at(q[0], q[1])
			c.add(`<circle cx="%s" cy="%s" r="3" class="dot %s"/>`, num(x), num(y), l.Style)
		}
	}
	p.drawLegend(c, f.bottom+44)
}

func (p *Panel) frame() *frame {
	f := &frame{left: leftMargin, right: svgWidth - rightMargin, top: topMargin + 20, bottom: topMargin + plotHeight}
	f.xs, f.ys = emptyScale(p.LogX), emptyScale(p.LogY)
	for _, l := range p.Lines {
		for _, q := range l.Points {
			f.xs.include(q[0])
			f.ys.include(q[1])
		}
	}
	if p.LogY { // a little room, so that no point lies on the frame
		f.ys.low, f.ys.high = f.ys.low/1.3, f.ys.high*1.3
	} else {
		f.ys.include(0)
	}
	return f
}

// drawX labels the places of points; where they are too many, some of them.
func (p *Panel) drawX(c *canvas, f *frame) {
	seen, last := map[float64]bool{}, math.Inf(-1)
	for _, l := range p.Lines {
		for _, q := range l.Points {
			if seen[q[0]] {
				continue
			}
			seen[q[0]] = true
			x, _ := f.at(q[0], f.ys.low)
			c.rule(x, f.bottom, x, f.bottom+4, "axis")
			if text := p.xName(q[0]); math.Abs(x-last) > float64(len(text)+1)*letterWidth {
				c.text(x, f.bottom+18, "soft", "middle", text)
				last = x
			}
		}
	}
	c.text((f.left+f.right)/2, f.bottom+32, "soft", "middle", p.XLabel)
}

func (p *Panel) xName(x float64) string {
	switch {
	case int(x) < len(p.Ticks):
		return p.Ticks[int(x)]
	case p.Sizes:
		return sizeText(int(x))
	}
	return digits(x)
}

func (p *Panel) drawLegend(c *canvas, y float64) {
	x := float64(leftMargin)
	y += 8
	for _, l := range p.Lines {
		width := 28 + float64(len([]rune(l.Name)))*letterWidth
		if x > leftMargin && x+width > svgWidth-rightMargin {
			x, y = leftMargin, y+20
		}
		c.add(`<rect x="%s" y="%s" width="12" height="12" rx="2" class="bar %s"/>`, num(x), num(y-10), l.Style)
		c.text(x+18, y, "name", "start", l.Name)
		x += width + 10
	}
	c.height = y + 14
}

// scale is an axis from its least to its greatest value.
type scale struct {
	low, high float64
	log       bool
}

func emptyScale(log bool) scale { return scale{low: math.Inf(1), high: math.Inf(-1), log: log} }

func (s *scale) include(v float64) {
	if s.log && v <= 0 {
		return
	}
	s.low, s.high = min(s.low, v), max(s.high, v)
}

// part returns where between low and high a value is, from 0 to 1.
func (s *scale) part(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(max(v, s.low))
	}
	if !(high > low) {
		return 0.5
	}
	return (v - low) / (high - low)
}

// ticks returns round values of the axis, five or so. A linear axis is made to
// end at one.
func (s *scale) ticks() (out []float64) {
	if s.log {
		for v := math.Pow(10, math.Ceil(math.Log10(s.low)-1e-9)); v <= s.high*1.000001; v *= 10 {
			out = append(out, v)
		}
		if len(out) < 2 {
			return []float64{s.low, s.high}
		}
		return out
	}
	step := roundStep((s.high - s.low) / 5)
	for v := s.low; v < s.high+step*0.999; v += step {
		out = append(out, v)
	}
	s.high = max(s.high, out[len(out)-1])
	return out
}

// roundStep returns 1, 2 or 5 times a power of ten, at least v.
func roundStep(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}
