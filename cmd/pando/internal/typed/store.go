package typed

import (
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/live"
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
	return openStore(path, t, strings.HasPrefix(info.Value, encodedPrefix), opts)
}

// NewStore makes a store of these types in a folder, or opens the one that is there.
func NewStore(path string, t Types, opts ...pandostore.Option) (Store, error) {
	return openStore(path, t, false, opts)
}

// StoreTypes returns the types of a store, or an error if commands cannot handle them.
func StoreTypes(info pandostore.Info) (Types, error) {
	return named(info.Path, info.Key, info.Value, "pandostore.Open")
}

// store is a Store, over one without types.
type store struct {
	types Types
	key   keyKind
	val   kind
	s     live.Store
}

func openStore(path string, t Types, encoded bool, opts []pandostore.Option) (Store, error) {
	if encoded { // strings, by a codec of their own that leaves them as they are
		encode := func(dst []byte, s string) []byte { return append(dst, s...) }
		decode := func(b []byte) (string, error) { return string(b), nil }
		opts = append(opts[:len(opts):len(opts)], pandostore.Tree(pando.Values(encode, decode)))
	}
	s := &store{types: t, key: kindOf(t.Key), val: t.value()}
	key, typ := s.key.key()
	var err error
	s.s, err = live.OpenStore(path, key, typ, s.val.value(), opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *store) Len() int            { return s.s.Len() }
func (s *store) Checkpoint() error   { return s.s.Checkpoint() }
func (s *store) Log() pandostore.Log { return s.s.(interface{ Log() pandostore.Log }).Log() }
func (s *store) Close() error        { return s.s.Close() }

func (s *store) Snapshot() Index {
	_, typ := s.key.key()
	return &untyped{types: s.types, key: s.key, typ: typ, val: s.val, h: s.s.Snapshot()}
}

func (s *store) Set(keys, vals *cols.Column) error {
	k := s.key.keys(keys)
	return s.s.SetBatch(k, s.val.room(vals, k.Len()))
}

func (s *store) Delete(keys *cols.Column, found []bool) (int, error) {
	return s.s.DeleteBatch(s.key.keys(keys), found)
}
