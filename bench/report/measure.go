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

// apply takes a measure of a site; ok is false if it has no such rows.
func (m *Measure) apply(s *Site, it *Item) (outcome, bool) {
	name := m.Exp
	if name == "" && len(it.By) > 0 {
		name = it.By[0]
	}
	e := s.find(name)
	if e == nil {
		return outcome{}, false
	}
	var all []float64
	for _, r := range e.Rows {
		if !matches(m.System, r.System) || !matches(m.Case, r.Case) || m.N != 0 && r.N != m.N {
			continue
		}
		v, ok := r.value(m.Of)
		if ok && m.Over != nil {
			v, ok = m.Over.ratio(v, m.Of, r, e.Rows)
		}
		if ok {
			all = append(all, v)
		}
	}
	return pick(m.Pick, all)
}

// ratio divides a row's value by that of the base's row in the same set.
func (b *Base) ratio(v float64, of string, r *Row, rows []*Row) (float64, bool) {
	if b.Of != "" {
		of = b.Of
	}
	for _, q := range rows {
		sameSet := q.Case == r.Case && q.N == r.N && (q.Threads == r.Threads || q.Threads == 0 || r.Threads == 0)
		if !sameSet || b.System == "" && q != r || !matches(b.System, q.System) {
			continue
		}
		if base, ok := q.value(of); ok && base != 0 {
			return v / base, true
		}
	}
	return 0, false
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
