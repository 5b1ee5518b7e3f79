package main

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
)

// how tells which rows a probe keeps.
type how string

const (
	inner how = "inner" // rows that are found, with the value
	left  how = "left"  // all rows, with the value or null
	semi  how = "semi"  // rows that are found
	anti  how = "anti"  // rows that are not found
)

// probe looks up the rows of an input in an index. Both get and join are
// probes.
type probe struct {
	ix    typed.Index
	on    int // column of the keys
	how   how
	all   bool         // a row for each value of a key that occurs several times
	must  bool         // fail at the first key that is not found
	keep  []int        // columns of the input that go to the output
	value *table.Field // column of values in the output; nil: none

	progress   *progress // nil for none
	rows, hits int64     // counts over the input
	misfits    int64     // rows whose key is not of the index's type
	several    int64     // rows whose key occurs several times, where all are written
	picks      []int     // scratch: rows kept, repeated as often as they are found
}

// schema returns the columns of the output for those of an input.
func (p *probe) schema(in []table.Field) (out []table.Field) {
	for _, c := range p.keep {
		out = append(out, in[c])
	}
	if p.value != nil {
		out = append(out, *p.value)
	}
	return out
}

// valueNames returns the names of the columns of values in the output.
func (p *probe) valueNames() (names []string) {
	if p.value == nil {
		return nil
	}
	for _, f := range partsOf(*p.value) {
		names = append(names, f.Name)
	}
	return names
}

// tally says how many rows were found.
func (p *probe) tally() string {
	text := fmt.Sprintf("%s: %s in the index, %s not", many(p.rows, "row", "rows"), thousands(p.hits), thousands(p.rows-p.hits))
	if p.misfits > 0 {
		is := " no " + keyField(p.ix).TypeName()
		text += "; " + many(p.misfits, "key is"+is, "keys are"+is)
	}
	if p.several > 0 {
		text += fmt.Sprintf("; %s there several times", many(p.several, "key is", "keys are"))
	}
	return text
}

// work looks up a batch and sets j.out to the rows that are kept.
func (p *probe) work(j *job) error {
	keys := &j.in.Columns[p.on]
	p.rows += int64(j.in.Rows)
	p.misfits += int64(j.in.Misfits)
	if p.all && (p.how == inner || p.how == left) {
		p.allMatches(j, keys)
		return nil
	}
	j.found = slices.Grow(j.found[:0], j.in.Rows)[:j.in.Rows]
	vals := &j.vals
	if p.value == nil {
		vals = nil
	}
	hits := p.ix.Get(keys, vals, j.found)
	p.hits += int64(hits)
	if p.must && hits < j.in.Rows {
		i := slices.Index(j.found, false)
		return fmt.Errorf("key %s in row %d: %w", cellText(keys, i), j.row+int64(i), errNotFound)
	}
	p.choose(j, hits)
	return nil
}

// choose sets j.out according to the results.
func (p *probe) choose(j *job, hits int) {
	rows := j.in.Rows
	switch {
	case p.how == left:
		j.vals.Null = nil
		if hits < rows {
			j.vals.Null = invert(j.found)
		}
		p.pass(j)
	case p.how == anti && hits == 0, p.how != anti && hits == rows:
		p.pass(j)
	default:
		want := p.how != anti
		p.picks = p.picks[:0]
		for i, f := range j.found {
			if f == want {
				p.picks = append(p.picks, i)
			}
		}
		p.pickRows(j, p.picks)
	}
}

// invert returns the negation of each element.
func invert(s []bool) []bool {
	out := make([]bool, len(s))
	for i, b := range s {
		out[i] = !b
	}
	return out
}

// pass puts all rows into the output, without copying any.
func (p *probe) pass(j *job) {
	j.out.Columns = j.out.Columns[:0]
	for _, c := range p.keep {
		j.out.Columns = append(j.out.Columns, j.in.Columns[c])
	}
	if p.value != nil {
		j.vals.Field = *p.value
		j.out.Columns = append(j.out.Columns, j.vals)
	}
	j.out.Rows = j.in.Rows
}

// pickRows puts some rows of the input and their values into the output.
func (p *probe) pickRows(j *job, rows []int) {
	p.pickInput(j, rows)
	if p.value != nil {
		c := table.Column{}
		pick(&c, &j.vals, rows)
		c.Field = *p.value
		j.out.Columns = append(j.out.Columns, c)
	}
}

// pickInput puts some rows of the input into the output.
func (p *probe) pickInput(j *job, rows []int) {
	j.out.Columns = make([]table.Column, len(p.keep), len(p.keep)+1)
	for i, c := range p.keep {
		pick(&j.out.Columns[i], &j.in.Columns[c], rows)
	}
	j.out.Rows = len(rows)
}

// allMatches sets j.out to one row per entry found. Values already come in the
// order of the rows, so only rows without a match need a gap inserted.
func (p *probe) allMatches(j *job, keys *table.Column) {
	vals := &j.vals
	if p.value == nil {
		vals = nil
	}
	offsets := p.ix.GetAll(keys, vals)
	p.picks = p.picks[:0]
	var from []int // index of each output row's value, or -1 for none
	missed := false
	for i := range j.in.Rows {
		lo, hi := offsets[i], offsets[i+1]
		for at := lo; at < hi; at++ {
			p.picks, from = append(p.picks, i), append(from, at)
		}
		if hi > lo+1 {
			p.several++
		}
		if hi > lo {
			p.hits++
		} else if p.how == left {
			p.picks, from, missed = append(p.picks, i), append(from, -1), true
		}
	}
	p.pickInput(j, p.picks)
	if p.value == nil {
		return
	}
	if missed {
		j.vals = withGaps(&j.vals, from)
	}
	j.vals.Field = *p.value
	j.out.Columns = append(j.out.Columns, j.vals)
}

// withGaps returns the values at the given indexes, and null for -1.
func withGaps(c *table.Column, from []int) table.Column {
	c.AppendNull() // the value for rows that have none
	last := c.Len() - 1
	places := slices.Clone(from)
	for i, at := range places {
		if at < 0 {
			places[i] = last
		}
	}
	var out table.Column
	pick(&out, c, places)
	return out
}
