package index

import (
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/order"
)

// typed is a map with the type of its values, as the face has it.
type typed[V any] struct{ *Map }

func newMap[V any](key KeyType, cfg Config) (typed[V], error) {
	return loadMap[V](key, 0, nil, cfg)
}

func loadMap[V any](key KeyType, n int, span func(lo int, keys order.Keys, vals []V), cfg Config) (typed[V], error) {
	m, err := LoadMap(key, ValueTypeOf[V](), n, func(lo int, keys order.Keys, vals Column) { span(lo, keys, SliceOf[V](vals)) }, cfg, nil)
	return typed[V]{m}, err
}

func (m typed[V]) Get(key order.Probe) (V, bool) {
	v, ok := m.Map.Get(key)
	return ValueAs[V](v), ok
}

func (m typed[V]) Set(key order.Probe, v V) error {
	return m.Map.Set(key, ValueOf(m.val.Kept(), v))
}

func (m typed[V]) Swap(key order.Probe, v V) (V, bool, error) {
	old, had, err := m.Map.Swap(key, ValueOf(m.val.Kept(), v))
	return ValueAs[V](old), had, err
}

func (m typed[V]) Update(key order.Probe, f func(old V, had bool) (V, bool)) error {
	return m.Map.Update(key, func(old Value, had bool) (Value, bool) {
		v, keep := f(ValueAs[V](old), had)
		return ValueOf(m.val.Kept(), v), keep
	})
}

func (m typed[V]) SetBatch(keys order.Keys, vals []V) error {
	return m.Apply(keys, nil, bplus.Set, ColumnOf(vals), nil, false)
}
