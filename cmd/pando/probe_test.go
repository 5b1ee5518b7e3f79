package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table"
)

// Every kind of join returns the rows that a nested loop returns, in the same
// order.
func TestProbeAgainstNestedLoop(t *testing.T) {
	rng := seed.Rand(t)
	for range 200 {
		entries := make([][2]int64, rng.IntN(40))
		for i := range entries {
			entries[i] = [2]int64{rng.Int64N(20), int64(i) + 100}
		}
		ix := indexOf(t, entries)
		for _, h := range []how{inner, left, semi, anti} {
			for _, all := range []bool{false, true} {
				j := randomJob(rng)
				want := nestedLoop(j, entries, h, all)
				p := &probe{ix: ix, on: 1, how: h, all: all, keep: []int{0, 1}}
				if h == inner || h == left {
					p.value = &table.Field{Name: "value", Type: table.Int64}
				}
				if err := p.work(j); err != nil {
					t.Fatal(err)
				}
				if got := rowsOf(&j.out); !slices.Equal(got, want) {
					t.Errorf("%s, all %v:\n%v\nwant\n%v", h, all, got, want)
				}
			}
		}
		ix.Close()
	}
}

func indexOf(t *testing.T, entries [][2]int64) typed.Index {
	b := typed.NewBuilder(typed.Types{Key: table.Int64, Value: table.Int64, Valued: true})
	keys, vals := table.Column{}, table.Column{}
	for _, e := range entries {
		keys.Int64, vals.Int64 = append(keys.Int64, e[0]), append(vals.Int64, e[1])
	}
	b.Add(&keys, &vals, nil)
	ix, err := b.Freeze(pando.On(pando.CPU))
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// randomJob is a batch of names and keys, some of which are null.
func randomJob(rng *rand.Rand) *job {
	j := &job{in: table.Batch{Columns: make([]table.Column, 2), Rows: rng.IntN(30)}}
	name, key := &j.in.Columns[0], &j.in.Columns[1]
	name.Type = table.String
	nulls := rng.IntN(2) == 0
	for i := range j.in.Rows {
		name.String = append(name.String, fmt.Sprint("row", i))
		if nulls && rng.IntN(5) == 0 {
			key.AppendNull()
			continue
		}
		key.Int64 = append(key.Int64, rng.Int64N(25))
		if key.Null != nil {
			key.Null = append(key.Null, false)
		}
	}
	return j
}

// nestedLoop joins in the simplest possible way.
func nestedLoop(j *job, entries [][2]int64, h how, all bool) (rows []string) {
	name, key := &j.in.Columns[0], &j.in.Columns[1]
	for i := range j.in.Rows {
		row := name.String[i] + " " + shown(key, i)
		var matches []string
		for _, e := range entries {
			if !key.IsNull(i) && e[0] == key.Int64[i] && (all || len(matches) == 0) {
				matches = append(matches, fmt.Sprint(e[1]))
			}
		}
		switch {
		case h == semi && len(matches) > 0, h == anti && len(matches) == 0:
			rows = append(rows, row)
		case h == left && len(matches) == 0:
			rows = append(rows, row+" null")
		case h == inner || h == left:
			for _, m := range matches {
				rows = append(rows, row+" "+m)
			}
		}
	}
	return rows
}

func rowsOf(b *table.Batch) (rows []string) {
	for i := range b.Rows {
		row := b.Columns[0].String[i]
		for c := range b.Columns[1:] {
			row += " " + shown(&b.Columns[c+1], i)
		}
		rows = append(rows, row)
	}
	return rows
}

func shown(c *table.Column, i int) string {
	if c.IsNull(i) {
		return "null"
	}
	return cellText(c, i)
}
