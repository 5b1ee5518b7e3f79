package pandohttp

import (
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandoserver"
	"github.com/pando-index/pando/pandoserver/internal/sum"
)

// single answers with one row.
func (q *request) single(schema []table.Field, fill func(a *answer)) error {
	a, err := q.answer(schema)
	if err != nil {
		return err
	}
	fill(a)
	a.row()
	return a.end("")
}

// number answers with one row of one number.
func (q *request) oneNumber(name string, n int) error {
	return q.single([]table.Field{{Name: name, Type: table.Int64}}, func(a *answer) { a.int(0, n) })
}

func (q *request) listIndexes() error {
	if err := q.known(); err != nil {
		return err
	}
	schema := []table.Field{{Name: "name", Type: table.String}, {Name: "entries", Type: table.Int64}, {Name: "key", Type: table.String},
		{Name: "value", Type: table.String}, {Name: "writable", Type: table.String, Kind: boolean}}
	a, err := q.answer(schema)
	if err != nil {
		return err
	}
	for _, x := range *q.s.indexes.Load() {
		if !q.sees(x) {
			continue
		}
		src := x.Source()
		key, val := "binary", "binary"
		if t, ok := src.(Typed); ok {
			key, val = t.Types()
		}
		_, changes := src.(pandoserver.Changer)
		c := a.batch.Columns
		c[0].String = append(c[0].String, x.Name())
		a.int(1, src.Len())
		c[2].String = append(c[2].String, key)
		c[3].String = append(c[3].String, val)
		c[4].String = append(c[4].String, strconv.FormatBool(changes))
		a.row()
	}
	return a.end("")
}

func (q *request) rangeOf() error {
	b, err := q.bounds()
	if err != nil {
		return err
	}
	return q.list(b)
}

func (q *request) prefixOf() error {
	b, err := q.prefixed(q.args.Get("prefix"))
	if err != nil {
		return err
	}
	return q.list(b)
}

// list answers with the entries within bounds, as many as are asked for.
func (q *request) list(b pandoserver.Bounds) error {
	limit, err := q.limit()
	if err != nil {
		return err
	}
	if b.Descending, err = q.flag("reverse"); err != nil {
		return err
	}
	keys, err := q.flag("keys")
	if err != nil {
		return err
	}
	at, err := q.placeOf()
	if err != nil {
		return err
	}
	if err := q.mayRange(b); err != nil {
		return err
	}
	schema, err := q.fields(!keys)
	if err != nil {
		return err
	}
	if _, err := q.from(at, b); err != nil {
		return err
	}
	a, err := q.answer(schema)
	if err != nil {
		return err
	}
	defer a.drop()
	more, err := q.walk(a, b, &at, limit)
	if err != nil {
		return err
	}
	if !more {
		at = place{}
	}
	return a.end(at.cursor())
}

// walk adds entries within bounds from a place on, which it moves. more reports whether there are others.
//
// While a client does not take what is written, nothing of a tree is held: the walk goes on by the key that it has
// come to. A file does not change, so there it goes straight on.
func (q *request) walk(a *answer, b pandoserver.Bounds, at *place, limit int) (more bool, err error) {
	_, changes := q.src.(pandoserver.Changer)
	for again, n := true, 0; again; {
		again = false
		rest, err := q.from(*at, b)
		if err != nil {
			return false, err
		}
		start := *at
		for key, val := range q.src.Scan(rest) {
			if start.n > 0 && key == start.key {
				start.n--
				continue
			}
			if n == limit {
				return true, nil
			}
			if a.full() {
				if changes {
					again = true
					break
				}
				if err := a.flush(); err != nil {
					return false, err
				}
			}
			if err := a.entry(key, val); err != nil {
				return false, err
			}
			at.pass(key)
			n++
		}
		if again {
			if err := a.flush(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (q *request) getKeys() error {
	keys := q.args["key"]
	if err := q.may(keys...); err != nil {
		return err // before look, which asks about no keys first
	}
	return q.look(func(yield func([]string, error) bool) { yield(keys, nil) })
}

func (q *request) getBody() error {
	_ = q.control.EnableFullDuplex() // keys come while answers go
	return q.look(q.keyBatches())
}

// look answers with the entries of keys.
func (q *request) look(batches iter.Seq2[[]string, error]) error {
	missing := q.args.Get("missing")
	if !slices.Contains([]string{"", "skip", "null", "fail"}, missing) {
		return bad("missing=%q; take skip, null or fail", origin.Clip(missing))
	}
	if err := q.may(); err != nil {
		return err // whatever the body says
	}
	schema, err := q.fields(true)
	if err != nil {
		return err
	}
	a, err := q.answer(schema)
	if err != nil {
		return err
	}
	defer a.drop()
	for keys, err := range batches {
		if err != nil {
			return err
		}
		if err := q.may(keys...); err != nil {
			return err
		}
		if err := q.lookUp(a, keys, missing); err != nil {
			return err
		}
	}
	return a.end("")
}

// lookUp adds the entries of keys.
func (q *request) lookUp(a *answer, keys []string, missing string) error {
	var vals [][]byte
	var found []bool
	for len(keys) > 0 {
		if err := q.goesOn(); err != nil {
			return err // keys that are not there write nothing, which would see it
		}
		n := min(len(keys), q.on.AtOnce(), batchRows)
		vals, found = append(vals[:0], make([][]byte, n)...), append(found[:0], make([]bool, n)...)
		q.src.GetBatch(keys[:n], vals, found)
		for i, key := range keys[:n] {
			switch {
			case found[i]:
				if err := a.entry(key, vals[i]); err != nil {
					return err
				}
			case missing == "fail":
				return wrong(http.StatusNotFound, "the key %q is not there; missing=skip leaves such keys out", origin.Clip(key))
			case missing == "null":
				if err := a.text(0, "key", key); err != nil {
					return err
				}
				if len(a.schema) > 1 {
					a.null(1)
				}
				a.row()
			}
			vals[i] = nil
			if a.full() {
				if err := a.flush(); err != nil {
					return err
				}
			}
		}
		keys = keys[n:]
	}
	return nil
}

func (q *request) countOf() error {
	b, err := q.bounds()
	if err == nil {
		err = q.mayRange(b)
	}
	if err != nil {
		return err
	}
	return q.oneNumber("count", q.src.Count(b))
}

func (q *request) rankOf() error {
	b := pandoserver.Bounds{Hi: q.args.Get("key"), To: pandoserver.Without}
	err := q.checks(b)
	if err == nil {
		err = q.mayRange(b)
	}
	if err != nil {
		return err
	}
	return q.oneNumber("rank", q.src.Count(b))
}

// one answers with one entry, or none.
func (q *request) one(key string, val []byte, ok bool) error {
	schema, err := q.fields(true)
	if err != nil {
		return err
	}
	a, err := q.answer(schema)
	if err != nil {
		return err
	}
	defer a.drop()
	if ok {
		if err := a.entry(key, val); err != nil {
			return err
		}
	}
	return a.end("")
}

func (q *request) atRank() error {
	i, err := q.number("rank", 0)
	if err == nil {
		err = q.mayRange(pandoserver.Bounds{})
	}
	if err != nil {
		return err
	}
	if i < 0 {
		i += q.src.Len()
	}
	if i < 0 {
		return q.one("", nil, false)
	}
	key, val, ok := q.src.At(i)
	return q.one(key, val, ok)
}

func (q *request) floorOf() error {
	return q.first(pandoserver.Bounds{Hi: q.args.Get("key"), To: pandoserver.With, Descending: true})
}

func (q *request) ceilOf() error {
	return q.first(pandoserver.Bounds{Lo: q.args.Get("key"), From: pandoserver.With})
}

// first answers with the first entry within bounds.
func (q *request) first(b pandoserver.Bounds) error {
	err := q.checks(b)
	if err == nil {
		err = q.mayRange(b)
	}
	if err != nil {
		return err
	}
	for key, val := range q.src.Scan(b) {
		return q.one(key, val, true)
	}
	return q.one("", nil, false)
}

// goesOn returns an error if the client has gone, or if the request has been under way for too long.
func (q *request) goesOn() error {
	if err := q.r.Context().Err(); err != nil {
		return err
	}
	if q.began.Add(q.s.cfg.longest).Before(time.Now()) {
		return wrong(http.StatusServiceUnavailable, "the request took longer than %v; ask for less at once", q.s.cfg.longest)
	}
	return nil
}

// values calls yield with the values of a range as numbers.
func (q *request) values(yield func(val []byte, x float64)) error {
	b, err := q.bounds()
	if err == nil {
		err = q.mayRange(b)
	}
	if err != nil {
		return err
	}
	n := 0
	for key, val := range q.src.Scan(b) {
		if n++; n%1024 == 0 {
			if err := q.goesOn(); err != nil {
				return err
			}
		}
		x, err := strconv.ParseFloat(textOf(val), 64)
		if err != nil {
			return wrong(http.StatusUnprocessableEntity, "the value of %q is not a number; take a range without that key", origin.Clip(key))
		}
		yield(val, x)
	}
	return nil
}

func (q *request) aggregate() error {
	var s sum.Sum
	if err := q.values(s.Add); err != nil {
		return err
	}
	total := table.Float64
	if s.Whole || s.Count == 0 {
		total = table.Int64
	}
	schema := []table.Field{{Name: "count", Type: table.Int64}, {Name: "sum", Type: total}, {Name: "min", Type: table.Float64},
		{Name: "max", Type: table.Float64}, {Name: "mean", Type: table.Float64}}
	return q.single(schema, func(a *answer) {
		a.int(0, s.Count)
		if total == table.Int64 {
			a.batch.Columns[1].Int64 = append(a.batch.Columns[1].Int64, s.Exact)
		} else {
			a.float(1, s.Sum)
		}
		for i, x := range []float64{s.Low, s.High, s.Mean()} {
			if s.Count == 0 {
				a.null(2 + i)
			} else {
				a.float(2+i, x)
			}
		}
	})
}

func (q *request) histogram() error {
	var bounds []float64
	for _, text := range q.args["bound"] {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) {
			return bad("bound=%q; take a number", origin.Clip(text))
		}
		bounds = append(bounds, x)
	}
	if !slices.IsSorted(bounds) {
		return bad("bounds do not ascend; write the lowest first")
	}
	counts := make([]int, len(bounds)+1)
	if err := q.values(func(_ []byte, x float64) { counts[sum.Bin(bounds, x)]++ }); err != nil {
		return err
	}
	a, err := q.answer([]table.Field{{Name: "from", Type: table.Float64}, {Name: "to", Type: table.Float64}, {Name: "count", Type: table.Int64}})
	if err != nil {
		return err
	}
	for i, n := range counts {
		if i == 0 {
			a.null(0)
		} else {
			a.float(0, bounds[i-1])
		}
		if i == len(bounds) {
			a.null(1)
		} else {
			a.float(1, bounds[i])
		}
		a.int(2, n)
		a.row()
		if a.full() {
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	return a.end("")
}
