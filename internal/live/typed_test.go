package live_test

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// typed is a map with the type of its values, as the face has it.
type typed[V any] struct{ *live.Map }

func newMap[V any](key index.KeyType, cfg index.Config) (typed[V], error) {
	return loadMap[V](key, 0, nil, cfg)
}

func loadMap[V any](key index.KeyType, n int, span func(lo int, keys order.Keys, vals []V), cfg index.Config) (typed[V], error) {
	m, err := live.LoadMap(key, index.ValueTypeOf[V](), n, func(lo int, keys order.Keys, vals index.Column) { span(lo, keys, index.SliceOf[V](vals)) }, cfg, nil)
	return typed[V]{m}, err
}

func (m typed[V]) Get(key order.Probe) (V, bool) {
	v, ok := m.Map.Get(key)
	return index.ValueAs[V](v), ok
}

func (m typed[V]) Set(key order.Probe, v V) error {
	return m.Map.Set(key, index.ValueOf(index.ValueTypeOf[V]().Form(), v))
}

func (m typed[V]) Swap(key order.Probe, v V) (V, bool, error) {
	old, had, err := m.Map.Swap(key, index.ValueOf(index.ValueTypeOf[V]().Form(), v))
	return index.ValueAs[V](old), had, err
}

func (m typed[V]) Update(key order.Probe, f func(old V, had bool) (V, bool)) error {
	return m.Map.Update(key, func(old index.Value, had bool) (index.Value, bool) {
		v, keep := f(index.ValueAs[V](old), had)
		return index.ValueOf(index.ValueTypeOf[V]().Form(), v), keep
	})
}

func (m typed[V]) SetBatch(keys order.Keys, vals []V) error {
	return m.Apply(keys, nil, op.Set, index.ColumnOf(vals), nil, false)
}
