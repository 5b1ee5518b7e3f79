package peers

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/allegro/bigcache/v3"
	"github.com/coocood/freecache"
	"github.com/tidwall/btree"
)

// ByteStore is a map of strings to slices of bytes that can be changed. It keeps copies of
// its own of both.
type ByteStore interface {
	Name() string
	// Set makes one call a key.
	Set(keys []string, vals [][]byte) error
	// Get makes one call a key, in the way that allocates least, and sets got[i] to the first
	// 8 bytes of the value, 0 where there is none. It counts the hits.
	Get(q []string, got []uint64) (hits int)
	// Delete makes one call a key.
	Delete(keys []string) error
	Close()
}

// ByteStoreMaker makes an empty store.
type ByteStoreMaker struct {
	Name string
	Make func(entries, valueBytes int) (ByteStore, error) // there will be about so many
}

// ByteStores returns the maps of bytes that are not Pando's.
func ByteStores() []ByteStoreMaker {
	return []ByteStoreMaker{
		{NameGoMap, func(int, int) (ByteStore, error) { return &mapBytes{map[string][]byte{}}, nil }},
		{NameTidwallMap, func(int, int) (ByteStore, error) { return &tidwallBytes{new(btree.Map[string, []byte])}, nil }},
		{nameFreecache, newFreecache},
		{nameFastcache, newFastcache},
		{nameBigcache, newBigcache},
	}
}

const (
	nameFreecache = "coocood/freecache"
	nameFastcache = "VictoriaMetrics/fastcache"
	nameBigcache  = "allegro/bigcache"
)

// cacheBytes is the memory that a cache is given, so that it drops nothing: they spread entries
// over parts of one size, some of which get more than others.
func cacheBytes(entries, valueBytes int) int { return max(64<<20, entries*(valueBytes+64)*3/2) }

// firstOf returns the first 8 bytes of a value.
func firstOf(v []byte) uint64 { return binary.LittleEndian.Uint64(v) }

type mapBytes struct{ m map[string][]byte }

func (t *mapBytes) Name() string { return NameGoMap }
func (t *mapBytes) Close()       { t.m = nil }

func (t *mapBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		if _, ok := t.m[k]; !ok {
			k = strings.Clone(k)
		}
		t.m[k] = bytes.Clone(vals[i])
	}
	return nil
}

func (t *mapBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		if v, ok := t.m[k]; ok {
			got[i] = firstOf(v)
			hits++
		}
	}
	return hits
}

func (t *mapBytes) Delete(keys []string) error {
	for _, k := range keys {
		delete(t.m, k)
	}
	return nil
}

type tidwallBytes struct{ tree *btree.Map[string, []byte] }

func (t *tidwallBytes) Name() string { return NameTidwallMap }
func (t *tidwallBytes) Close()       { t.tree = nil }

func (t *tidwallBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		t.tree.Set(strings.Clone(k), bytes.Clone(vals[i]))
	}
	return nil
}

func (t *tidwallBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		if v, ok := t.tree.Get(k); ok {
			got[i] = firstOf(v)
			hits++
		}
	}
	return hits
}

func (t *tidwallBytes) Delete(keys []string) error {
	for _, k := range keys {
		t.tree.Delete(k)
	}
	return nil
}

type freecacheBytes struct {
	c        *freecache.Cache
	key, buf []byte
}

func newFreecache(entries, valueBytes int) (ByteStore, error) {
	return &freecacheBytes{c: freecache.NewCache(cacheBytes(entries, valueBytes)), buf: make([]byte, 64<<10)}, nil
}

func (t *freecacheBytes) Name() string { return nameFreecache }
func (t *freecacheBytes) Close()       { t.c = nil }

func (t *freecacheBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		t.key = append(t.key[:0], k...)
		if err := t.c.Set(t.key, vals[i], 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *freecacheBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		t.key = append(t.key[:0], k...)
		if v, err := t.c.GetWithBuf(t.key, t.buf); err == nil {
			got[i] = firstOf(v)
			hits++
		}
	}
	return hits
}

func (t *freecacheBytes) Delete(keys []string) error {
	for _, k := range keys {
		t.key = append(t.key[:0], k...)
		t.c.Del(t.key)
	}
	return nil
}

type fastcacheBytes struct {
	c        *fastcache.Cache
	key, buf []byte
}

func newFastcache(entries, valueBytes int) (ByteStore, error) {
	return &fastcacheBytes{c: fastcache.New(cacheBytes(entries, valueBytes))}, nil
}

func (t *fastcacheBytes) Name() string { return nameFastcache }
func (t *fastcacheBytes) Close()       { t.c.Reset() }

func (t *fastcacheBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		t.key = append(t.key[:0], k...)
		t.c.Set(t.key, vals[i])
	}
	return nil
}

func (t *fastcacheBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		t.key = append(t.key[:0], k...)
		if v, ok := t.c.HasGet(t.buf[:0], t.key); ok {
			got[i], t.buf = firstOf(v), v
			hits++
		}
	}
	return hits
}

func (t *fastcacheBytes) Delete(keys []string) error {
	for _, k := range keys {
		t.key = append(t.key[:0], k...)
		t.c.Del(t.key)
	}
	return nil
}

type bigcacheBytes struct {
	c    *bigcache.BigCache
	once sync.Once
}

func newBigcache(entries, valueBytes int) (ByteStore, error) {
	cfg := bigcache.DefaultConfig(1000 * time.Hour)
	cfg.CleanWindow, cfg.Verbose = 0, false
	cfg.MaxEntriesInWindow, cfg.MaxEntrySize = entries, valueBytes
	c, err := bigcache.New(context.Background(), cfg)
	return &bigcacheBytes{c: c}, err
}

func (t *bigcacheBytes) Name() string { return nameBigcache }
func (t *bigcacheBytes) Close()       { t.once.Do(func() { t.c.Close() }) }

func (t *bigcacheBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		if err := t.c.Set(k, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *bigcacheBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		if v, err := t.c.Get(k); err == nil {
			got[i] = firstOf(v)
			hits++
		}
	}
	return hits
}

func (t *bigcacheBytes) Delete(keys []string) error {
	for _, k := range keys {
		if err := t.c.Delete(k); err != nil && err != bigcache.ErrEntryNotFound {
			return err
		}
	}
	return nil
}
