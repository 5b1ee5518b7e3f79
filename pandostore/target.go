package pandostore

import (
	"io"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// target is a tree without its types, as sequencer and recovery see it.
type target interface {
	columns() (*index.Columns, error)
	get(key order.Probe) (index.Value, bool)
	// beyond returns the first entry above a key, or the last below; of all entries
	// without a key.
	beyond(key *order.Probe, down bool) (order.Probe, index.Value, bool)
	swap(key order.Probe, val index.Value) (old index.Value, had bool, err error)
	set(key order.Probe, val index.Value) error
	delete(key order.Probe) (old index.Value, had bool)
	// apply does a batch. Where found is not nil, and operations are not all of one kind, it sets
	// values to those before. It returns how many entries were deleted if all operations delete.
	apply(b *index.Batch, found []bool) (deleted int, err error)
	deleteRange(keys order.Keys) (deleted int)
	snapshot() moment
	bind() // makes the memory limit count
	close() error
}

// moment is a snapshot without its types.
type moment interface {
	io.WriterTo
	Len() int
	Close() error
}

// typed is a target.
type typed[K pando.Key, V any] struct {
	*tree[K, V]
	key  order.Type
	form index.Form
}

func (t *typed[K, V]) columns() (*index.Columns, error) {
	return t.inside().Columns()
}

func (t *typed[K, V]) inside() *index.Inside {
	inside, _ := index.InsideOf(t.tree) // it is a pando.Tree
	return inside()
}

func (t *typed[K, V]) decode(key order.Probe) K { return order.Decode[K](t.key, key) }

func (t *typed[K, V]) keys(k order.Keys) []K { return unsafe.Slice((*K)(k.At()), k.Len()) }

func (t *typed[K, V]) get(key order.Probe) (index.Value, bool) {
	v, ok := t.tree.Get(t.decode(key))
	return index.ValueOf(t.form, v), ok
}

func (t *typed[K, V]) beyond(key *order.Probe, down bool) (at order.Probe, val index.Value, ok bool) {
	options := []pando.ScanOption{pando.Limit(1)}
	if down {
		options = append(options, pando.Reverse())
	}
	switch {
	case key != nil && down:
		options = append(options, pando.Before(t.decode(*key)))
	case key != nil:
		options = append(options, pando.After(t.decode(*key)))
	}
	for k, v := range t.tree.Scan(options...) {
		return order.Encode(t.key, k), index.ValueOf(t.form, v), true
	}
	return at, val, false
}

func (t *typed[K, V]) swap(key order.Probe, val index.Value) (index.Value, bool, error) {
	old, had, err := t.tree.Swap(t.decode(key), index.ValueAs[V](val))
	return index.ValueOf(t.form, old), had, err
}

func (t *typed[K, V]) set(key order.Probe, val index.Value) error {
	return t.tree.Set(t.decode(key), index.ValueAs[V](val))
}

func (t *typed[K, V]) delete(key order.Probe) (index.Value, bool) {
	old, had := t.tree.Delete(t.decode(key))
	return index.ValueOf(t.form, old), had
}

func (t *typed[K, V]) apply(b *index.Batch, found []bool) (deleted int, err error) {
	keys := t.keys(b.Keys)
	switch {
	case b.Kinds == nil && b.Kind == op.Set:
		return 0, t.tree.SetBatch(keys, index.SliceOf[V](b.Vals))
	case b.Kinds == nil && b.Kind == op.Delete:
		return t.tree.DeleteBatch(keys, found), nil
	}
	ops := unsafe.Slice((*pando.Op)(unsafe.Pointer(unsafe.SliceData(b.Kinds))), len(b.Kinds))
	return 0, t.tree.Apply(ops, keys, index.SliceOf[V](b.Vals), found)
}

func (t *typed[K, V]) deleteRange(keys order.Keys) int {
	k := t.keys(keys)
	return t.tree.DeleteRange(k[0], k[1])
}

func (t *typed[K, V]) snapshot() moment { return t.tree.Snapshot() }

func (t *typed[K, V]) bind() { t.inside().Bind() }

func (t *typed[K, V]) close() error { return t.tree.Close() }
