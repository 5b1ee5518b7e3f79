package pando

import (
	"iter"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Freeze builds an index of keys and their values. The keys need not be
// sorted; input that is sorted already builds faster. Nothing is kept of the
// slices. Where V takes no memory (struct{}), vals may be nil.
func Freeze[K Key, V any](keys []K, vals []V, opts ...Option) (*Frozen[K, V], error) {
	return frozen[K, V](freeze(order.KeysOf(keys), index.KeyTypeOf[K](), index.ColumnOf(vals), index.ValueTypeOf[V](), opts))
}

// freeze is Freeze without types.
func freeze(keys order.Keys, key index.KeyType, vals index.Column, val *index.ValueType, opts []Option) (*index.Index, error) {
	c, err := configure(index.Freezing, opts)
	if err != nil {
		return nil, err
	}
	return index.Freeze(keys, key, vals, val, c)
}

// firstPairs is the number of pairs that FreezeSeq first makes room for.
const firstPairs = 64

// FreezeSeq builds an index of the pairs of a sequence, which need not be
// sorted. It gathers them in slices first: Freeze needs less memory.
func FreezeSeq[K Key, V any](pairs iter.Seq2[K, V], opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(index.Freezing, opts)
	if err != nil {
		return nil, err
	}
	var g gathered[K, V]
	g.from(pairs, c)
	return frozen[K, V](g.freeze(c))
}

// gathered is pairs in parts, of which each is copied once, when all are there.
type gathered[K Key, V any] struct {
	keys [][]K
	vals [][]V
}

// from gathers the pairs of a sequence, until the build is to be stopped. A part is half
// as large as all before it.
func (g *gathered[K, V]) from(pairs iter.Seq2[K, V], c *config) {
	n, keys, vals := 0, []K(nil), []V(nil)
	for k, v := range pairs {
		if len(keys) == cap(keys) {
			g.add(keys, vals)
			size := max(firstPairs, n/2)
			keys, vals = make([]K, 0, size), make([]V, 0, size)
		}
		keys, vals = append(keys, k), append(vals, v)
		if n++; n%1024 == 0 && c.Stopped() {
			break // freeze says why
		}
	}
	g.add(keys, vals)
}

func (g *gathered[K, V]) add(keys []K, vals []V) {
	if len(keys) > 0 {
		g.keys, g.vals = append(g.keys, keys), append(g.vals, vals)
	}
}

// freeze makes an index of the pairs.
func (g *gathered[K, V]) freeze(c *config) (*index.Index, error) {
	keys, vals := make([]order.Keys, len(g.keys)), make([]index.Column, len(g.keys))
	for i := range keys {
		keys[i], vals[i] = order.KeysOf(g.keys[i]), index.ColumnOf(g.vals[i])
	}
	*g = gathered[K, V]{} // parts are garbage once they are copied
	return index.FreezeParts(keys, index.KeyTypeOf[K](), vals, index.ValueTypeOf[V](), c)
}
