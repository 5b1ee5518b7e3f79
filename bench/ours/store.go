package ours

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/pandostore"
)

// Names of a store's rows.
const (
	NameStore       = "Pando Store"
	NameStoreNoSync = "Pando Store, NoSync"
)

// DurableStore is Pando's tree that outlives its process.
type DurableStore struct {
	name string
	*pandostore.Store[uint64, uint64]
}

// MakeDurable opens stores with some options.
func MakeDurable(name string, opts ...pandostore.Option) peers.DurableMaker {
	return peers.DurableMaker{Name: name, Open: func(dir string) (peers.Durable, error) { return OpenDurable(name, dir, opts...) }}
}

// OpenDurable opens a store.
func OpenDurable(name, dir string, opts ...pandostore.Option) (*DurableStore, error) {
	s, err := pandostore.Open[uint64, uint64](dir, append(opts, pandostore.Tree(pando.On(pando.CPU)))...)
	return &DurableStore{name, s}, err
}

// Name returns the name of its row.
func (s *DurableStore) Name() string { return s.name }

// Get looks up one key.
func (s *DurableStore) Get(key uint64) (uint64, bool, error) {
	v, ok := s.Store.Get(key)
	return v, ok, nil
}

// DurableTree is the same tree without a log, behind the same interface: what memory alone would
// give.
type DurableTree struct{ TreeStore }

// NewDurableTree returns an empty one, with the name of its row.
func NewDurableTree(name string) (*DurableTree, error) {
	t, err := NewTreeStore(0)
	if err != nil {
		return nil, err
	}
	t.name = name
	return &DurableTree{*t}, nil
}

// Set sets one key.
func (t *DurableTree) Set(key, val uint64) error { return t.Tree.Set(key, val) }

// Get looks up one key.
func (t *DurableTree) Get(key uint64) (uint64, bool, error) {
	v, ok := t.Tree.Get(key)
	return v, ok, nil
}

// Close frees what it holds.
func (t *DurableTree) Close() error { return t.Tree.Close() }
