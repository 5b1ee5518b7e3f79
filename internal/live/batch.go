package live

import (
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/stall"
)

// Batches of a Map.

// GetBatch sets vals[i] to the value of keys[i], or to zero, and found[i], where
// found is not nil, to whether there is one. It returns the number of keys found.
func (m *Map) GetBatch(keys order.Keys, vals index.Column, found []bool) (hits int) {
	if m.apart == nil {
		return m.tree.GetBatch(keys, m.val.Bytes(vals), m.size, found, nil)
	}
	if found == nil {
		found = make([]bool, keys.Len())
	}
	if n := keys.Len(); n > 0 && vals.At() == keys.At() {
		out := m.val.Zeros(n) // a tree that tries again needs the keys again
		hits = m.GetBatch(keys, out, found)
		m.val.CopyAll(vals, out, 1)
		return hits
	}
	slots := make([]uint64, keys.Len())
	return m.tree.GetBatch(keys, arena.Bytes(slots), 8, found, func(lo, hi int) {
		m.apart.getAll(m.val.Part(vals, lo, hi), slots[lo:hi], found[lo:hi])
	})
}

// GetPacked is GetBatch for strings that lie one behind the other, as Arrow has them.
func (m *Map) GetPacked(data []byte, offsets []int32, vals index.Column, found []bool) (hits int) {
	if p, ok := m.tree.(PackedGetter); ok && m.apart == nil {
		if hits, ok := p.GetPacked(packing.Strings{Data: data, Offsets: offsets}, m.val.Bytes(vals), m.size, found); ok {
			return hits
		}
	}
	return m.GetBatch(order.KeysAs(m.key.Type, index.Unpacked(data, offsets)), vals, found)
}

// Apply does a batch of operations, as if one after the other. kinds is nil
// where all are of one kind. vals become the values before where report is
// true; found may be nil where it is not.
func (m *Map) Apply(keys order.Keys, kinds []op.Kind, kind op.Kind, vals index.Column, found []bool, report bool) error {
	m.awaitKeys(keys)
	c := changes{keys: keys, kinds: kinds, kind: kind, size: m.size, found: found}
	if m.apart == nil {
		if vals.Len() > 0 {
			c.vals = m.val.Bytes(vals)
		} else {
			c.size = 0
		}
		if report {
			c.old = c.vals
		}
		return m.failed(m.tree.Apply(&c))
	}
	return m.applyApart(&c, vals, report)
}

// DeleteBatch deletes keys, and returns how many were there. found, unless it is
// nil, says which.
func (m *Map) DeleteBatch(keys order.Keys, found []bool) (deleted int, err error) {
	if _, counts := m.tree.(DeleteCounter); counts && found == nil && m.apart == nil {
		m.awaitKeys(keys)
		err = m.tree.Apply(&changes{keys: keys, kind: op.Delete, deleted: &deleted})
		return deleted, m.failed(err)
	}
	if found == nil {
		found = make([]bool, keys.Len())
	}
	err = m.Apply(keys, nil, op.Delete, index.Column{}, found, false)
	for _, f := range found {
		if f {
			deleted++
		}
	}
	return deleted, err
}

// applyApart is Apply where values lie apart.
func (m *Map) applyApart(c *changes, vals index.Column, report bool) error {
	if report {
		m.take()
		defer m.took()
	}
	n := c.keys.Len()
	words, was := make([]uint64, n), make([]uint64, n)
	found := c.found
	if found == nil {
		found = make([]bool, n)
	}
	c.vals, c.old, c.size, c.found = arena.Bytes(words), arena.Bytes(was), 8, found
	var got []index.Value // others may free the value that a Get finds, so it is read at once
	if report && c.kinds != nil {
		got = make([]index.Value, n)
		c.seen = func(i int, bits uint64) { got[i] = m.value(bits) }
	}
	change := func() error {
		made, err := m.putApart(c, words, vals)
		if err != nil {
			return err
		}
		switch err = m.tree.Apply(c); {
		case err != nil && c.half: // some of the values are in the tree, and nobody knows which
			return index.Problem(index.ErrMemoryLimit, "memory has failed in the midst of a batch, some of which is done: %v", err)
		case err != nil:
			m.unused(made...)
		}
		return err
	}
	if err := change(); err != nil {
		if err = m.again(err, change); err != nil {
			return m.failed(err)
		}
	}
	stall.At("live: value taken out")
	var out []uint64
	for i := range words {
		var v index.Value
		switch k := c.kind; {
		case !found[i]:
		case k != op.Get || c.kinds != nil && c.kinds[i] != op.Get:
			if report {
				v = m.value(was[i])
			}
			out = append(out, was[i])
		case got != nil:
			v = got[i]
		}
		if report {
			m.val.Store(m.val.Place(vals, i), v)
		}
	}
	m.gone(out, make([]uint64, len(out)))
	return nil
}

// putApart puts the values that a batch sets, and returns their words: in their place, and as
// a list.
func (m *Map) putApart(c *changes, words []uint64, vals index.Column) (made []uint64, err error) {
	if c.kinds == nil {
		if c.kind != op.Set {
			return nil, nil
		}
		err = m.apart.putAll(words, vals, nil, m.epoch())
		return slices.Clone(words), err
	}
	var rows []int
	for i, k := range c.kinds {
		if k == op.Set {
			rows = append(rows, i)
		}
	}
	made = make([]uint64, len(rows))
	if err := m.apart.putAll(made, vals, rows, m.epoch()); err != nil {
		return nil, err
	}
	for i, r := range rows {
		words[r] = made[i]
	}
	return made, nil
}
