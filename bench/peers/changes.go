package peers

import (
	"runtime"
	"sync"

	"github.com/dgraph-io/ristretto/v2/z"
	google "github.com/google/btree"
	tidwall "github.com/tidwall/btree"
	"github.com/zhangyunhao116/skipmap"
)

// The names of peers that only the experiments on changes have.
const (
	nameZTree       = "ristretto z.Tree"
	nameSkipmap     = "skipmap"
	nameTidwallLock = "tidwall/btree Map, mutex"
)

// Stores returns the peers that one goroutine changes.
func Stores() []StoreMaker {
	return append([]StoreMaker{MakeTidwallStore(), MakeGoogleStore(), makeZStore(), MakeSkipStore()}, moreStores...)
}

// Peers that a build tag adds.
var (
	moreStores     []StoreMaker
	moreTextStores []TextStoreMaker
)

// MakeTidwallStore returns tidwall/btree's Map.
func MakeTidwallStore() StoreMaker {
	return StoreMaker{NameTidwallMap, 64, func() (Store, error) { return &tidwallStore{new(tidwall.Map[uint64, uint64])}, nil }}
}

// MakeGoogleStore returns google/btree's BTreeG.
func MakeGoogleStore() StoreMaker {
	return StoreMaker{NameGoogle, 64, func() (Store, error) {
		return &googleStore{google.NewG(googleDegree, lessPair[uint64])}, nil
	}}
}

func makeZStore() StoreMaker {
	return StoreMaker{nameZTree, 96, func() (Store, error) { return &zStore{tree: z.NewTree("bench")}, nil }} // its buffer doubles
}

// MakeSkipStore returns skipmap, which several goroutines may change.
func MakeSkipStore() StoreMaker {
	return StoreMaker{nameSkipmap, 150, func() (Store, error) { return &skipStore{skipmap.NewUint64[uint64]()}, nil }}
}

// MakeTidwallLockStore returns tidwall/btree's Map behind a mutex.
func MakeTidwallLockStore() StoreMaker {
	return StoreMaker{nameTidwallLock, 64, func() (Store, error) {
		return &tidwallLockStore{tidwallStore: tidwallStore{new(tidwall.Map[uint64, uint64])}}, nil
	}}
}

// tidwallStore is tidwall/btree's Map, at its default degree.
type tidwallStore struct{ tree *tidwall.Map[uint64, uint64] }

func (t *tidwallStore) Name() string { return NameTidwallMap }

func (t *tidwallStore) Len() int { return t.tree.Len() }

func (t *tidwallStore) Close() { t.tree = nil }

func (t *tidwallStore) Load(keys, vals []uint64) error {
	for i, k := range keys {
		t.tree.Load(k, vals[i])
	}
	return nil
}

func (t *tidwallStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		t.tree.Set(k, vals[i])
	}
	return nil
}

func (t *tidwallStore) Get(q, vals []uint64, found []bool) (hits int) {
	return (&tidwallMap[uint64]{tree: t.tree}).Get(q, vals, found)
}

func (t *tidwallStore) Delete(keys []uint64) (deleted int) {
	for _, k := range keys {
		if _, ok := t.tree.Delete(k); ok {
			deleted++
		}
	}
	return deleted
}

func (t *tidwallStore) Scan() (keySum, valSum uint64) {
	return (&tidwallMap[uint64]{tree: t.tree}).Scan()
}

func (t *tidwallStore) Walk(from uint64, n int) (keySum, valSum uint64) {
	t.tree.Ascend(from, func(k, v uint64) bool {
		keySum, valSum = keySum+k, valSum+v
		n--
		return n > 0
	})
	return keySum, valSum
}

// tidwallLockStore is the same behind a mutex, as a program with several
// goroutines would have it.
type tidwallLockStore struct {
	tidwallStore
	mu sync.Mutex
}

func (t *tidwallLockStore) Name() string { return nameTidwallLock }

func (t *tidwallLockStore) Shared() {}

func (t *tidwallLockStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		t.mu.Lock()
		t.tree.Set(k, vals[i])
		t.mu.Unlock()
	}
	return nil
}

// googleStore is google/btree's BTreeG.
type googleStore struct{ tree *google.BTreeG[pair[uint64]] }

func (t *googleStore) Name() string { return NameGoogle }

func (t *googleStore) Len() int { return t.tree.Len() }

func (t *googleStore) Close() { t.tree = nil }

func (t *googleStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		t.tree.ReplaceOrInsert(pair[uint64]{k, vals[i]})
	}
	return nil
}

func (t *googleStore) Get(q, vals []uint64, found []bool) (hits int) {
	return (&googleG[uint64]{tree: t.tree}).Get(q, vals, found)
}

func (t *googleStore) Delete(keys []uint64) (deleted int) {
	for _, k := range keys {
		if _, ok := t.tree.Delete(pair[uint64]{key: k}); ok {
			deleted++
		}
	}
	return deleted
}

func (t *googleStore) Scan() (keySum, valSum uint64) {
	return (&googleG[uint64]{tree: t.tree}).Scan()
}

func (t *googleStore) Walk(from uint64, n int) (keySum, valSum uint64) {
	t.tree.AscendGreaterOrEqual(pair[uint64]{key: from}, func(p pair[uint64]) bool {
		keySum, valSum = keySum+p.key, valSum+p.val
		n--
		return n > 0
	})
	return keySum, valSum
}

// zStore is the tree of ristretto's package z. It has no delete of a key, no
// iteration from a key on and no length, and takes neither the least nor the two
// greatest keys, nor a value of 0.
type zStore struct {
	tree *z.Tree
}

func (t *zStore) Name() string { return nameZTree }

func (t *zStore) Close() { t.tree.Close() } // frees memory; there is nothing to lose

func (t *zStore) Bytes() int64 { return int64(t.tree.Stats().Bytes) }

// Len counts: the key that the tree reserves has the value 0, which is none.
func (t *zStore) Len() (n int) {
	t.tree.IterateKV(func(_, val uint64) uint64 {
		if val != 0 {
			n++
		}
		return 0 // leaves it as it is
	})
	return n
}

func (t *zStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		t.tree.Set(k, vals[i])
	}
	return nil
}

func (t *zStore) Get(q, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		v := t.tree.Get(k)
		vals[i], found[i] = v, v != 0
		if v != 0 {
			hits++
		}
	}
	return hits
}

func (t *zStore) Scan() (keySum, valSum uint64) {
	t.tree.IterateKV(func(k, v uint64) uint64 {
		if v != 0 {
			keySum, valSum = keySum+k, valSum+v
		}
		return 0
	})
	return keySum, valSum
}

// skipStore is zhangyunhao116/skipmap's map of uint64. It has no iteration from
// a key on.
type skipStore struct{ list *skipmap.Uint64Map[uint64] }

func (t *skipStore) Name() string { return nameSkipmap }

func (t *skipStore) Len() int { return t.list.Len() }

func (t *skipStore) Close() { t.list = nil }

func (t *skipStore) Shared() {}

func (t *skipStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		t.list.Store(k, vals[i])
	}
	return nil
}

func (t *skipStore) Get(q, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		v, ok := t.list.Load(k)
		vals[i], found[i] = v, ok
		if ok {
			hits++
		}
	}
	return hits
}

func (t *skipStore) Delete(keys []uint64) (deleted int) {
	for _, k := range keys {
		if t.list.Delete(k) {
			deleted++
		}
	}
	return deleted
}

func (t *skipStore) Scan() (keySum, valSum uint64) {
	t.list.Range(func(k, v uint64) bool {
		keySum, valSum = keySum+k, valSum+v
		return true
	})
	return keySum, valSum
}

// Snapshotter is a store that can keep its present state aside.
type Snapshotter interface {
	Store
	Deleter
	Snapshot() (drop func())
}

// Snapshot of tidwall's Map is its Copy, which shares nodes until they change.
func (t *tidwallStore) Snapshot() (drop func()) {
	kept := t.tree.Copy()
	return func() { runtime.KeepAlive(kept) }
}
