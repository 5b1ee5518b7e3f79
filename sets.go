package pando

import (
	"cmp"
	"iter"

	"github.com/pando-index/pando/internal/index"
)

// Merge iterates over the entries of two indexes in key order. All are yielded:
// where both have a key, those of a come before those of b.
func Merge[K Key, V any](a, b Index[K, V]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { merge(a, b, part[K]{}, yield) }
}

// Intersect iterates over the entries of a whose key is in b, too, in key order.
// Where one index is much smaller than the other, it searches rather than reads
// all of it.
func Intersect[K Key, V, W any](a Index[K, V], b Index[K, W]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { filter(a, b, true, part[K]{}, yield) }
}

// Difference iterates over the entries of a whose key is not in b, in key order.
func Difference[K Key, V, W any](a Index[K, V], b Index[K, W]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { filter(a, b, false, part[K]{}, yield) }
}

// FreezeMerge makes an index of the entries that Merge yields, on all cores.
func FreezeMerge[K Key, V any](a, b Index[K, V], opts ...Option) (*Frozen[K, V], error) {
	larger := splitters(a, opts)
	if b.Len() > a.Len() {
		larger = splitters(b, opts)
	}
	return freezeParts(larger, opts, func(p part[K], yield func(K, V) bool) { merge(a, b, p, yield) })
}

// FreezeIntersection makes an index of the entries that Intersect yields, on all
// cores.
func FreezeIntersection[K Key, V, W any](a Index[K, V], b Index[K, W], opts ...Option) (*Frozen[K, V], error) {
	return freezeParts(splitters(a, opts), opts, func(p part[K], yield func(K, V) bool) { filter(a, b, true, p, yield) })
}

// FreezeDifference makes an index of the entries that Difference yields, on all
// cores.
func FreezeDifference[K Key, V, W any](a Index[K, V], b Index[K, W], opts ...Option) (*Frozen[K, V], error) {
	return freezeParts(splitters(a, opts), opts, func(p part[K], yield func(K, V) bool) { filter(a, b, false, p, yield) })
}

// part is the keys from one on before another; either may be missing.
type part[K Key] struct {
	from, before       K
	hasFrom, hasBefore bool
}

// first takes a cursor to the first entry of the part.
func first[K Key, V any](p part[K], c Cursor[K, V]) bool {
	if p.hasFrom {
		return c.Seek(p.from)
	}
	return c.First()
}

// has reports whether a key is before the end of the part.
func (p part[K]) has(key K) bool { return !p.hasBefore || cmp.Compare(key, p.before) < 0 }

// merge yields the entries of both in a part.
func merge[K Key, V any](a, b Index[K, V], p part[K], yield func(K, V) bool) {
	x, y := a.Cursor(), b.Cursor()
	inX, inY := first(p, x), first(p, y)
	var i, j K
	if inX {
		i = x.Key()
	}
	if inY {
		j = y.Key()
	}
	for inX || inY {
		if inX && (!inY || cmp.Compare(i, j) <= 0) {
			if !p.has(i) || !yield(i, x.Value()) {
				return
			}
			if inX = x.Next(); inX {
				i = x.Key()
			}
			continue
		}
		if !p.has(j) || !yield(j, y.Value()) {
			return
		}
		if inY = y.Next(); inY {
			j = y.Key()
		}
	}
}

// filter yields the entries of a in a part whose key is in b, or is not.
func filter[K Key, V, W any](a Index[K, V], b Index[K, W], shared bool, p part[K], yield func(K, V) bool) {
	x, y := a.Cursor(), b.Cursor()
	in, more := first(p, x), first(p, y)
	var i, j K
	if in {
		i = x.Key()
	}
	if more {
		j = y.Key()
	}
	for in && p.has(i) {
		if more && cmp.Compare(j, i) < 0 {
			j, more = forward(y, i)
		}
		if has := more && cmp.Compare(i, j) == 0; has == shared {
			if !yield(i, x.Value()) {
				return
			}
		} else if shared { // nothing of a before b's next key is wanted
			if !more {
				return
			}
			i, in = forward(x, j)
			continue
		}
		if in = x.Next(); in {
			i = x.Key()
		}
	}
}

// nearSteps is the number of steps that a cursor takes before it searches.
const nearSteps = 8

// forward takes a cursor to the first entry with a key from key on.
func forward[K Key, V any](c Cursor[K, V], key K) (K, bool) {
	for range nearSteps {
		if !c.Next() {
			return key, false
		}
		if k := c.Key(); cmp.Compare(k, key) >= 0 {
			return k, true
		}
	}
	if !c.Seek(key) {
		return key, false
	}
	return c.Key(), true
}

// partEntries is the entries of a part, at least: fewer are not worth a worker.
const partEntries = 4096

// splitters returns keys that cut an index into equal parts, some for each core.
// They are read one after the other: a tree may have fewer entries by then.
func splitters[K Key, V any](ix Index[K, V], opts []Option) (keys []K) {
	c, err := configure(index.Freezing, opts)
	if err != nil {
		return nil // freezeParts returns it
	}
	n := ix.Len()
	parts := min(4*c.Goroutines(), n/partEntries)
	for i := 1; i < parts; i++ {
		k, ok := keyNumber(ix, i*(n/parts))
		if ok && (len(keys) == 0 || cmp.Compare(keys[len(keys)-1], k) < 0) {
			keys = append(keys, k)
		}
	}
	return keys
}

// keyNumber returns the key of entry i, and false if there is none.
func keyNumber[K Key, V any](ix Index[K, V], i int) (key K, ok bool) {
	t, isTree := ix.(*Tree[K, V])
	if !isTree {
		key, _ = ix.At(i)
		return key, true
	}
	key, _, ok = t.entry(t.c.At(i))
	return key, ok
}

// freezeParts gathers the entries that each part yields on a worker of its own,
// and makes an index of all.
func freezeParts[K Key, V any](cuts []K, opts []Option, each func(p part[K], yield func(K, V) bool)) (*Frozen[K, V], error) {
	c, err := configure(index.Freezing, opts)
	if err != nil {
		return nil, err
	}
	g := gathered[K, V]{make([][]K, len(cuts)+1), make([][]V, len(cuts)+1)}
	c.Each(len(g.keys), func(i int) {
		var p part[K]
		if i > 0 {
			p.from, p.hasFrom = cuts[i-1], true
		}
		if i < len(cuts) {
			p.before, p.hasBefore = cuts[i], true
		}
		keys, vals := g.keys[i], g.vals[i]
		each(p, func(k K, v V) bool {
			keys, vals = append(keys, k), append(vals, v)
			return len(keys)%1024 != 0 || !c.Stopped() // freeze says why
		})
		g.keys[i], g.vals[i] = keys, vals
	})
	return frozen[K, V](g.freeze(c))
}
