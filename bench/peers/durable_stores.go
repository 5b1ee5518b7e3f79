//go:build stores

package peers

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"go.etcd.io/bbolt"
)

func init() {
	durables = []DurableMaker{{"pebble", openPebble}, {"bbolt", openBolt}, {"badger", openBadger}}
}

// word returns a number as bytes that have its order.
func word(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// put writes a number over 8 bytes.
func put(b []byte, n uint64) []byte { binary.BigEndian.PutUint64(b, n); return b }

// silent is a logger of pebble's that says nothing.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

type pebbleStore struct{ db *pebble.DB }

func openPebble(dir string) (Durable, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}})
	return pebbleStore{db}, err
}

func (pebbleStore) Name() string { return "pebble" }

func (p pebbleStore) Set(key, val uint64) error { return p.db.Set(word(key), word(val), pebble.Sync) }

func (p pebbleStore) SetBatch(keys, vals []uint64) error {
	b := p.db.NewBatchWithSize(32 * len(keys))
	defer b.Close()
	var k, v [8]byte
	for i, key := range keys {
		if err := b.Set(put(k[:], key), put(v[:], vals[i]), nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.Sync)
}

func (p pebbleStore) Get(key uint64) (uint64, bool, error) {
	v, done, err := p.db.Get(word(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	val := binary.BigEndian.Uint64(v)
	return val, true, done.Close()
}

func (p pebbleStore) Close() error { return p.db.Close() }

type boltStore struct {
	db      *bbolt.DB
	writers atomic.Int64 // in Set
}

var boltBucket = []byte("pairs")

func openBolt(dir string) (Durable, error) {
	db, err := bbolt.Open(filepath.Join(dir, "bolt.db"), 0o666, nil)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
	return &boltStore{db: db}, err
}

func (*boltStore) Name() string { return "bbolt" }

// Set uses Batch where several goroutines call it, by which they share a transaction. It
// waits for company, so that one alone is better off without.
func (b *boltStore) Set(key, val uint64) error {
	change := b.db.Batch
	if b.writers.Add(1) == 1 {
		change = b.db.Update
	}
	defer b.writers.Add(-1)
	return change(func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Put(word(key), word(val)) })
}

func (b *boltStore) SetBatch(keys, vals []uint64) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(boltBucket)
		for i, key := range keys { // it keeps the bytes until the transaction ends
			if err := bucket.Put(word(key), word(vals[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *boltStore) Get(key uint64) (val uint64, ok bool, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket(boltBucket).Get(word(key)); v != nil {
			val, ok = binary.BigEndian.Uint64(v), true
		}
		return nil
	})
	return val, ok, err
}

func (b *boltStore) Close() error { return b.db.Close() }

type badgerStore struct{ db *badger.DB }

func openBadger(dir string) (Durable, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil))
	return badgerStore{db}, err
}

func (badgerStore) Name() string { return "badger" }

func (b badgerStore) Set(key, val uint64) error {
	return b.db.Update(func(tx *badger.Txn) error { return tx.Set(word(key), word(val)) })
}

// SetBatch is several transactions, since one has a limit: no batch is whole here.
func (b badgerStore) SetBatch(keys, vals []uint64) error {
	w := b.db.NewWriteBatch()
	defer w.Cancel()
	for i, key := range keys {
		if err := w.Set(word(key), word(vals[i])); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (b badgerStore) Get(key uint64) (val uint64, ok bool, err error) {
	err = b.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get(word(key))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return item.Value(func(v []byte) error { val, ok = binary.BigEndian.Uint64(v), true; return nil })
	})
	return val, ok, err
}

func (b badgerStore) Close() error { return b.db.Close() }
