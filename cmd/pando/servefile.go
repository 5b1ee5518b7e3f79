package main

import (
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandoserver"
)

// fileSource returns an index of any types as a server takes it: keys and values are texts
// there, as commands write them. On a GPU lookups of several clients are done together.
func fileSource(ix typed.Index, path string) pandoserver.Source {
	f := textFile{ix: ix, version: versionOf(path)}
	if ix.Stats().Device != pando.CPU {
		f.gather = pandoserver.NewGatherer(f.look)
	}
	if ix.Key() == table.String && keyField(ix).Kind == (table.Kind{}) {
		return f
	}
	return numberFile{f}
}

// versionOf returns what tells a state of a file from others. A file that is open is not changed: it is replaced.
func versionOf(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return time.Now().String()
	}
	return fmt.Sprint(path, fi.Size(), fi.ModTime().UnixNano())
}

// textFile is an index whose keys are strings.
type textFile struct {
	ix      typed.Index
	version string
	gather  *pandoserver.Gatherer // nil where a lookup by itself is as quick
}

func (f textFile) Len() int { return f.ix.Len() }

func (f textFile) Stats() pando.Stats { return f.ix.Stats() }

// Version tells what is in the file, for tags of answers.
func (f textFile) Version() string { return f.version }

// Types returns the types of keys and values, by which HTTP has columns.
func (f textFile) Types() (key, value string) {
	key = keyField(f.ix).TypeName()
	if _, valued := f.ix.Value(); valued {
		value = f.values().TypeName()
	}
	return key, value
}

// GetBatch looks up those keys that are of the right type. Others are not there.
func (f textFile) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	if f.gather != nil {
		return f.gather.GetBatch(keys, vals, found)
	}
	return f.look(keys, vals, found)
}

func (f textFile) look(keys []string, vals [][]byte, found []bool) (hits int) {
	field := keyField(f.ix)
	column, at := &table.Column{Field: field}, make([]int, 0, len(keys))
	for i, k := range keys {
		vals[i], found[i] = nil, false
		if appendText(&table.Column{Field: field}, k) == nil && appendText(column, k) == nil {
			at = append(at, i)
		}
	}
	var results table.Column
	had := make([]bool, len(at))
	hits = f.ix.Get(column, &results, had)
	results.Field = f.values()
	for j, i := range at {
		if found[i] = had[j]; had[j] {
			vals[i] = f.value(&results, j)
		}
	}
	return hits
}

// values returns the column of values.
func (f textFile) values() table.Field { return valueField(f.ix, "value") }

// value returns a value as text, which is empty where there are keys alone.
func (f textFile) value(c *table.Column, i int) []byte {
	if _, valued := f.ix.Value(); !valued {
		return []byte{}
	}
	return []byte(table.CellText(c, i))
}

// span returns the ranks of the entries within bounds: none if one is of another type.
func (f textFile) span(b pandoserver.Bounds) (first, end int) {
	first, end = 0, f.ix.Len()
	if b.From != pandoserver.Open {
		lo, err := keyColumn(f.ix, []string{b.Lo})
		if err != nil {
			return 0, 0
		}
		if first, _ = f.ix.Span(lo, nil); b.From == pandoserver.Without {
			_, first = f.ix.Span(nil, lo)
		}
	}
	if b.To != pandoserver.Open {
		hi, err := keyColumn(f.ix, []string{b.Hi})
		if err != nil {
			return 0, 0
		}
		if _, end = f.ix.Span(nil, hi); b.To == pandoserver.Without {
			end, _ = f.ix.Span(hi, nil)
		}
	}
	return first, max(first, end)
}

func (f textFile) Count(b pandoserver.Bounds) int {
	first, end := f.span(b)
	return end - first
}

func (f textFile) At(i int) (key string, val []byte, ok bool) {
	if i < 0 || i >= f.ix.Len() {
		return "", nil, false
	}
	keys, vals := f.entries(i, 1)
	return table.CellText(keys, 0), f.value(vals, 0), true
}

// entries returns some entries as columns.
func (f textFile) entries(first, n int) (keys, vals *table.Column) {
	keys, vals = new(table.Column), new(table.Column)
	f.ix.Entries(first, n, keys, vals)
	keys.Field, vals.Field = keyField(f.ix), f.values()
	return keys, vals
}

// Scan copies entries out some at a time: few at first, since many scans want no more.
func (f textFile) Scan(b pandoserver.Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		first, end := f.span(b)
		for page := 1; first < end; page = min(2*page, 1024) {
			n := min(page, end-first)
			at := first
			if b.Descending {
				end -= n
				at = end
			} else {
				first += n
			}
			keys, vals := f.entries(at, n)
			for j := range n {
				i := j
				if b.Descending {
					i = n - 1 - j
				}
				if !yield(table.CellText(keys, i), f.value(vals, i)) {
					return
				}
			}
		}
	}
}

// numberFile is an index whose keys are numbers, or texts in another order than that of what
// is written. A file does not change, so that the place of a key serves as its code.
type numberFile struct{ textFile }

// Check returns an error if a text is no key.
func (f numberFile) Check(key string) error {
	return appendText(&table.Column{Field: keyField(f.ix)}, key)
}

// Code returns how many keys are below.
func (f numberFile) Code(key string) uint64 {
	first, _ := f.span(pandoserver.Bounds{Lo: key, From: pandoserver.With})
	return uint64(first)
}

// From returns the keys from a place on.
func (f numberFile) From(code uint64) pandoserver.Bounds {
	key, _, ok := f.At(int(min(code, uint64(f.ix.Len()))))
	if !ok { // a client has made it up
		return pandoserver.Bounds{}
	}
	return pandoserver.Bounds{Lo: key, From: pandoserver.With}
}
