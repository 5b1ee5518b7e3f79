package report

import (
	"math"
	"slices"
	"strconv"
)

// outcome is what a Measure makes of a site's rows.
type outcome struct {
	mid, low, high float64
	count          int
}

// cell is one value of a row.
type cell struct {
	*Row
	of    string
	value float64
}

// apply takes a measure of a site; ok is false if it has no such rows.
func (m *Measure) apply(s *Site, it *Item) (outcome, bool) {
	var all []float64
	for _, c := range m.cells(s, it) {
		v := c[0].value
		if m.Over != nil {
			v /= c[1].value
		}
		all = append(all, v)
	}
	return pick(m.Pick, all)
}

// experiment returns the name of what a measure is taken of.
func (m *Measure) experiment(it *Item) string {
	if m.Exp == "" && len(it.By) > 0 {
		return it.By[0]
	}
	return m.Exp
}

// cells returns what a measure is taken of, each with what it is divided by, if
// anything.
func (m *Measure) cells(s *Site, it *Item) (all [][]cell) {
	name := m.experiment(it)
	e := s.find(name)
	if e == nil {
		return nil
	}
	for _, r := range e.Rows {
		if name == it.By[0] && !it.Plot.places(r) { // cut short
			continue
		}
		if !matches(m.System, r.System) || !matches(m.Case, r.Case) || m.N != 0 && r.N != m.N {
			continue
		}
		v, ok := r.value(m.Of)
		if !ok {
			continue
		}
		c := []cell{{r, m.Of, v}}
		if m.Over != nil {
			base, ok := m.Over.cell(m.Of, r, e.Rows)
			if !ok {
				continue
			}
			c = append(c, base)
		}
		all = append(all, c)
	}
	return all
}

// cell returns what a row's value is divided by: that of the base's row in the same
// set, or in the base's own case.
func (b *Base) cell(of string, r *Row, rows []*Row) (cell, bool) {
	if b.Of != "" {
		of = b.Of
	}
	system, label := b.System, b.Case
	if label == "" {
		label = r.Case
	}
	for _, q := range rows {
		threads := q.Threads == r.Threads || q.Threads == 0 || r.Threads == 0
		if b.Threads > 0 {
			threads = q.Threads == b.Threads
		}
		sameSet := q.Case == label && q.N == r.N && threads
		if !sameSet || system == "" && q.System != r.System || !matches(system, q.System) {
			continue
		}
		if base, ok := q.value(of); ok && base != 0 {
			return cell{q, of, base}, true
		}
	}
	return cell{}, false
}

// pick makes one outcome of all values. The mean is the geometric one, since
// most are ratios.
func pick(how string, all []float64) (outcome, bool) {
	if len(all) == 0 {
		return outcome{}, false
	}
	out := outcome{low: slices.Min(all), high: slices.Max(all), count: len(all)}
	logs := 0.0
	for _, v := range all {
		logs += math.Log(v)
	}
	out.mid = math.Exp(logs / float64(len(all)))
	switch how {
	case "max":
		out.mid, out.count = out.high, 1
	case "min":
		out.mid, out.count = out.low, 1
	case "range":
		out.mid = math.NaN()
	}
	return out, true
}

// text returns an outcome in a unit: "2.1 (1.8 to 2.4)".
func (o outcome) text(unit string) string {
	scale := 1.0
	if unit == "%" {
		scale = 100
	}
	show := func(v float64) string { return digits(v * scale) }
	spread := show(o.low) + " to " + show(o.high)
	switch {
	case o.count == 1 || show(o.low) == show(o.high):
		if math.IsNaN(o.mid) {
			return show(o.low)
		}
		return show(o.mid)
	case math.IsNaN(o.mid):
		return spread
	}
	return show(o.mid) + " (" + spread + ")"
}

// digits formats a number with three digits, and never an exponent.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// paperText returns the paper's number in the same unit.
func (v *Value) paperText() string {
	switch len(v.Paper) {
	case 0:
		return v.Said
	case 1:
		return digits(v.Paper[0])
	}
	return digits(v.Paper[0]) + " to " + digits(v.Paper[1])
}
