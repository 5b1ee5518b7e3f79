package typed

import (
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/pando-index/pando/pandostore"
)

// Store is a store that takes and returns columns, which must be of its types. Without values
// columns of them may be nil. Columns have no nulls here.
type Store interface {
	Len() int
	// Snapshot returns the entries of this moment, to be closed before the store is.
	Snapshot() Index
	// Set sets the values of keys. Of equal keys the last wins.
	Set(keys, vals *cols.Column) error
	// Delete deletes keys. found[i] reports whether keys[i] was there.
	Delete(keys *cols.Column, found []bool) (deleted int, err error)
	Checkpoint() error
	Log() pandostore.Log
	Close() error
}

// OpenStore opens the store in a folder with the types it has.
func OpenStore(path string, opts ...pandostore.Option) (Store, error) {
	info, err := pandostore.Inspect(path)
	if err != nil {
		return nil, err
	}
	t, err := StoreTypes(info)
	if err != nil {
		return nil, err
	}
	return all[t].store(path, strings.HasPrefix(info.Value, encodedPrefix), opts)
}

// NewStore makes a store of these types in a folder, or opens the one that is there.
func NewStore(path string, t Types, opts ...pandostore.Option) (Store, error) {
	if !t.Valued {
		t.Value = 0
	}
	return all[t].store(path, false, opts)
}

// StoreTypes returns the types of a store, or an error if commands cannot handle them.
func StoreTypes(info pandostore.Info) (Types, error) {
	return named(info.Path, info.Key, info.Value, "pandostore.Open")
}

// store is a Store of given types. As with index, it only calls Pando.
type store[K pando.Key, V any] struct{ s *pandostore.Store[K, V] }

func openStore[K pando.Key, V any](path string, encoded bool, opts []pandostore.Option) (Store, error) {
	if encoded {
		opts = append(opts[:len(opts):len(opts)], pandostore.Tree(options[V](nil)...))
	}
	s, err := pandostore.Open[K, V](path, opts...)
	if err != nil {
		return nil, err
	}
	return &store[K, V]{s}, nil
}

func (s *store[K, V]) Len() int            { return s.s.Len() }
func (s *store[K, V]) Snapshot() Index     { return &index[K, V]{s.s.Snapshot()} }
func (s *store[K, V]) Checkpoint() error   { return s.s.Checkpoint() }
func (s *store[K, V]) Log() pandostore.Log { return s.s.Log() }
func (s *store[K, V]) Close() error        { return s.s.Close() }

func (s *store[K, V]) Set(keys, vals *cols.Column) error {
	k := keysOf[K](keys)
	return s.s.SetBatch(k, valuesOf[V](vals, len(k)))
}

func (s *store[K, V]) Delete(keys *cols.Column, found []bool) (int, error) {
	return s.s.DeleteBatch(keysOf[K](keys), found)
}

// valuesOf returns the n values of a column. Those that are in no column take no memory.
func valuesOf[V any](c *cols.Column, n int) []V {
	if _, ok := typeOf[V](); !ok {
		return make([]V, n)
	}
	return *cells[V](c)
}
