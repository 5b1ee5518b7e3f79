package pando

import (
	"fmt"
	"io"
	"iter"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Index is what Frozen and Tree both are, for programs that only read.
type Index[K Key, V any] interface {
	Len() int
	Get(key K) (V, bool)
	Has(key K) bool
	GetBatch(keys []K, vals []V, found []bool) (hits int)
	Rank(key K) int
	RankBatch(keys []K, ranks []int)
	At(i int) (K, V)
	Min() (K, V, bool)
	Max() (K, V, bool)
	Floor(key K) (K, V, bool)
	Ceil(key K) (K, V, bool)
	All() iter.Seq2[K, V]
	Backward() iter.Seq2[K, V]
	Range(lo, hi K) iter.Seq2[K, V]
	Scan(opts ...ScanOption) iter.Seq2[K, V]
	Cursor() Cursor[K, V]
	Count(lo, hi K) int
	CountBatch(lo, hi []K, counts []int)
	RangeBatch(lo, hi []K, limit int) *Ranges[K, V]
	Prefix(p K) iter.Seq2[K, V]
	PrefixCount(p K) int
	Save(path string) error
	WriteTo(w io.Writer) (int64, error)
	Stats() Stats
	String() string
	Close() error
}

var (
	_ Index[int, int] = (*Frozen[int, int])(nil)
	_ Index[int, int] = (*Tree[int, int])(nil)

	_ Index[string, int] = (*Tree[string, int])(nil)
)

// GetBatch looks up many keys at once, as Frozen.GetBatch does. Each answer was
// right at some time during the call.
func (t *Tree[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	m := t.open()
	vals, found = results("GetBatch", vals, found, len(keys))
	hits = m.GetBatch(order.KeysAs(t.key.Type, keys), index.ColumnOf(vals), found)
	t.done()
	return hits
}

// Has reports whether there is an entry with the key.
func (t *Tree[K, V]) Has(key K) bool {
	ok := t.open().Has(t.probe(key))
	t.done()
	return ok
}

// Rank returns the number of entries with a key below key: exactly, if nobody
// writes meanwhile. The first call after writes counts what has changed.
func (t *Tree[K, V]) Rank(key K) int {
	n := t.open().Rank(t.probe(key), false)
	t.done()
	return n
}

// RankBatch sets ranks[i] to Rank(keys[i]). ranks must be at least as long as
// keys.
func (t *Tree[K, V]) RankBatch(keys []K, ranks []int) {
	m := t.open()
	mustHold("RankBatch", "ranks", len(ranks), len(keys))
	m.RankBatch(order.KeysAs(t.key.Type, keys), false, ranks[:len(keys)])
	t.done()
}

// At returns entry i in key order: exactly, if nobody writes meanwhile. It
// panics if i is not in [0, Len).
func (t *Tree[K, V]) At(i int) (K, V) {
	m := t.open()
	if i >= 0 {
		k, x, ok := m.At(i)
		v := index.ValueAs[V](x)
		t.done()
		if ok {
			return t.keyOf(k), v
		}
	}
	panic(fmt.Sprintf("pando: At(%d): the tree has %d entries", i, m.Len()))
}

// Count returns the number of entries with lo <= key <= hi: exactly, if nobody
// writes meanwhile.
func (t *Tree[K, V]) Count(lo, hi K) int {
	m := t.open()
	n := m.Rank(t.probe(hi), true) - m.Rank(t.probe(lo), false)
	t.done()
	return max(0, n)
}

// CountBatch sets counts[i] to Count(lo[i], hi[i]). lo and hi must be of the
// same length, counts at least as long.
func (t *Tree[K, V]) CountBatch(lo, hi []K, counts []int) {
	m := t.open()
	mustPair("CountBatch", len(lo), len(hi))
	mustHold("CountBatch", "counts", len(counts), len(lo))
	first := make([]int, len(lo))
	m.RankBatch(order.KeysAs(t.key.Type, lo), false, first)
	m.RankBatch(order.KeysAs(t.key.Type, hi), true, counts[:len(lo)])
	for i, n := range first {
		counts[i] = max(0, counts[i]-n)
	}
	t.done()
}

// RangeBatch answers many ranges at once, as Frozen.RangeBatch does. Each range
// is read as Range reads it; a GPU reads all of them at one moment.
func (t *Tree[K, V]) RangeBatch(lo, hi []K, limit int) *Ranges[K, V] {
	m := t.open()
	mustPair("RangeBatch", len(lo), len(hi))
	r := &Ranges[K, V]{Offsets: make([]int, len(lo)+1)}
	if m.RangeBatch(order.KeysAs(t.key.Type, lo), order.KeysAs(t.key.Type, hi), limit, r.Offsets, func(n int) (order.Keys, index.Column) {
		r.Keys, r.Vals = make([]K, n), make([]V, n)
		return order.KeysAs(t.key.Type, r.Keys), index.ColumnOf(r.Vals)
	}) {
		t.done()
		return r
	}
	const piece = 64
	parts := make([]Ranges[K, V], (len(lo)+piece-1)/piece)
	par.Run(m.Workers(), len(parts), par.Func(func(p int) {
		part := &parts[p]
		for i := p * piece; i < min((p+1)*piece, len(lo)); i++ {
			before := len(part.Keys)
			for k, v := range t.Range(lo[i], hi[i]) {
				part.Keys, part.Vals = append(part.Keys, k), append(part.Vals, v)
				if limit > 0 && len(part.Keys)-before == limit {
					break
				}
			}
			r.Offsets[i+1] = len(part.Keys) - before
		}
	}))
	for i := range lo {
		r.Offsets[i+1] += r.Offsets[i]
	}
	r.Keys, r.Vals = make([]K, 0, r.Offsets[len(lo)]), make([]V, 0, r.Offsets[len(lo)])
	for i := range parts {
		r.Keys, r.Vals = append(r.Keys, parts[i].Keys...), append(r.Vals, parts[i].Vals...)
	}
	t.done()
	return r
}

// PrefixCount returns the number of entries whose key starts with p: exactly, if
// nobody writes meanwhile. Keys must be strings: it panics if they are not.
func (t *Tree[K, V]) PrefixCount(p K) int {
	t.mustHaveStrings("PrefixCount")
	m := t.open()
	first := t.probe(p)
	n := m.Len()
	if end, ok := order.AfterPrefix(first.Text); ok {
		n = m.Rank(order.Probe{Text: end}, false)
	}
	n -= m.Rank(first, false)
	t.done()
	return max(0, n)
}

// mustHaveStrings panics where keys are not strings.
func (t *Tree[K, V]) mustHaveStrings(method string) {
	if t.key.Bits() != 0 {
		panic(fmt.Sprintf("pando: %s: only strings have prefixes, and the keys of this tree are %s; ask for a Range instead", method, t.key.Name))
	}
}

// Save writes the tree as it is at this moment to a file, which Open and
// OpenTree take, while writers go on. It makes a compact copy first. As with
// Frozen.Save the file appears whole or not at all.
func (t *Tree[K, V]) Save(path string) error {
	f, err := t.Freeze(On(CPU))
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Save(path)
}

// WriteTo writes the tree as it is at this moment to w, the same bytes that Save
// puts into a file.
func (t *Tree[K, V]) WriteTo(w io.Writer) (int64, error) {
	f, err := t.Freeze(On(CPU))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.WriteTo(w)
}

// Stats describes the tree.
func (t *Tree[K, V]) Stats() Stats {
	s := t.open().Stats()
	return stats(s)
}
