package pandostore

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/pandostore/internal/disk"
)

// tree is a Tree under a name that is not exported: a Store has the methods by which it
// is read, and no way to change it beside the log.
type tree[K pando.Key, V any] = pando.Tree[K, V]

// Store is a Tree that outlives its process. Make one with Open.
//
// Any method may be called from any goroutine at any time. A Store is read as a Tree is, by
// all methods of pando.Index and by Snapshot; its readers wait for nothing that those of a
// Tree do not wait for. Whatever changes it is written to a log first. By default a change
// is durable when its method returns, and readers see nothing that is not.
//
// A change, also a batch of any size, survives a crash whole or not at all, and never
// without those that were acknowledged before it. To readers, a batch is what it is in a
// Tree. Values are kept as a Tree keeps them: of strings and slices of bytes it has copies, so
// that the caller may change a slice when the method has returned.
//
// After a write or a sync that fails, every change returns an error that wraps ErrReadOnly and
// the cause, for good: nobody can know what the disk has. Readers go on. Open finds all
// that was acknowledged.
type Store[K pando.Key, V any] struct {
	tree[K, V] // not a pointer, else the compiler makes its methods those of a Store that is copied, too
	c          core
	key        order.Type
	form       index.Form
}

// Open opens the store in a folder, which is made if it is not there. It loads the newest
// checkpoint and replays the log behind it. One process at a time can have a store open:
// others get ErrLocked.
//
// K and V must be the types that the store was made with, as with pando.Open, else Open
// returns pando.ErrType. Values that hold pointers and do not marshal themselves need
// pando.Values among the options of the tree. Open returns pando.ErrFile for a folder that is damaged or no
// store, with the name of the file and where; but for a log that ends in the midst of a
// change, as it does after a crash: such a change was not acknowledged, and is left out.
func Open[K pando.Key, V any](path string, opts ...Option) (*Store[K, V], error) {
	dir, err := disk.Dir(path)
	if err != nil {
		return nil, noFolder(err)
	}
	return open[K, V](dir, opts)
}

// open is Open in any folder.
func open[K pando.Key, V any](dir disk.Folder, opts []Option) (*Store[K, V], error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	s := new(Store[K, V])
	loaded := false
	load := func(name, note string) (t target, err error) {
		from, err := loadTree[K, V](dir, name, cfg.options(note))
		if err != nil {
			return t, err
		}
		t, loaded = targetOf(&s.tree), true
		t.h.Take(targetOf(from).h)
		val := index.ValueTypeOf[V]()
		s.key, s.form = order.TypeOf[K](), val.Form()
		return t, nil
	}
	if err := s.c.open(dir, cfg, load); err != nil {
		if loaded {
			s.tree.Close()
		}
		return nil, translate(dir, err)
	}
	return s, nil
}

// loadTree returns the tree of a checkpoint, or an empty one without a name.
func loadTree[K pando.Key, V any](dir disk.Folder, name string, opts []pando.Option) (*pando.Tree[K, V], error) {
	if name == "" {
		return pando.NewTree[K, V](opts...)
	}
	if path := dir.Path(name); path != "" {
		return pando.OpenTree[K, V](path, opts...)
	}
	f, err := whole(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return pando.ReadTree[K, V](f, opts...)
}

func (s *Store[K, V]) probe(key K) order.Probe { return order.Encode(s.key, key) }

func (s *Store[K, V]) value(v V) index.Value { return index.ValueOf(s.form, v) }

// Set sets the value of key.
func (s *Store[K, V]) Set(key K, val V) error {
	r := newRequest(setting)
	r.key, r.val = s.probe(key), s.value(val)
	return s.c.do(r)
}

// Swap sets the value of key, and returns the one it had.
func (s *Store[K, V]) Swap(key K, val V) (old V, had bool, err error) {
	r := newRequest(swapping)
	r.key, r.val = s.probe(key), s.value(val)
	err = s.c.do(r)
	return index.ValueAs[V](r.old), r.had, err
}

// Update sets the value of key to what f returns, or deletes the key where f returns
// false. f gets the value that the key has, and whether it has one. It runs once, while no other change
// is made: it must be quick, must not change the store, nor wait for a goroutine that
// does. It may read. What it returns is logged.
func (s *Store[K, V]) Update(key K, f func(old V, had bool) (val V, keep bool)) error {
	return s.update(s.probe(key), f)
}

func (s *Store[K, V]) update(key order.Probe, f func(old V, had bool) (val V, keep bool)) error {
	r := newRequest(updating)
	r.key = key
	r.f = func(old index.Value, had bool) (index.Value, bool) {
		val, keep := f(index.ValueAs[V](old), had)
		if !keep {
			return index.Value{}, false
		}
		return s.value(val), true
	}
	return s.c.do(r)
}

// Delete deletes key, and returns the value it had.
func (s *Store[K, V]) Delete(key K) (old V, had bool, err error) {
	return s.delete(s.probe(key))
}

func (s *Store[K, V]) delete(key order.Probe) (old V, had bool, err error) {
	r := newRequest(deleting)
	r.key = key
	err = s.c.do(r)
	return index.ValueAs[V](r.old), r.had, err
}

// DeleteRange deletes the entries with lo <= key <= hi, and returns how many there were.
// No other change is made meanwhile. If it returns an error, for want of memory, some of them may be
// gone; they are there again when the store is opened anew.
func (s *Store[K, V]) DeleteRange(lo, hi K) (deleted int, err error) {
	r := newRequest(deletingRange)
	r.batch.Kind, r.batch.Keys = op.Delete, order.KeysAs(s.key, []K{lo, hi})
	err = s.c.do(r)
	return r.n, err
}

// PopMin deletes the first entry, and returns it. It returns false if the store is empty.
func (s *Store[K, V]) PopMin() (key K, val V, ok bool, err error) { return s.pop(poppingMin) }

// PopMax deletes the last entry, and returns it. It returns false if the store is empty.
func (s *Store[K, V]) PopMax() (key K, val V, ok bool, err error) { return s.pop(poppingMax) }

func (s *Store[K, V]) pop(kind requestKind) (key K, val V, ok bool, err error) {
	r := newRequest(kind)
	if err = s.c.do(r); err == nil && r.had {
		key, val, ok = order.Decode[K](s.key, r.key), index.ValueAs[V](r.old), true
	}
	return key, val, ok, err
}

// SetBatch sets the values of many keys, which is many times faster than as many calls
// of Set. Of equal keys the last wins. All of it or nothing survives a crash, and it sets
// nothing if it returns an error.
func (s *Store[K, V]) SetBatch(keys []K, vals []V) error {
	return s.c.setBatch(order.KeysAs(s.key, keys), index.ColumnOf(vals))
}

// DeleteBatch deletes many keys. found[i], where found is not nil, reports whether keys[i]
// was there. It returns the number of entries deleted. found, if not nil, must be at least
// as long as keys.
func (s *Store[K, V]) DeleteBatch(keys []K, found []bool) (deleted int, err error) {
	return s.c.deleteBatch(order.KeysAs(s.key, keys), found)
}

// Apply does many operations, as pando.Tree.Apply does: operation i is ops[i] on keys[i];
// OpSet takes its new value from vals[i]. Then found[i] reports whether keys[i] was there just before
// operation i, and vals[i] becomes the value that it had then, or zero. Where found is nil
// nothing is reported, and vals are only read. All of it or nothing survives a crash.
func (s *Store[K, V]) Apply(ops []pando.Op, keys []K, vals []V, found []bool) error {
	n := len(keys)
	if len(ops) != n || len(vals) != n || found != nil && len(found) != n {
		return fmt.Errorf("%w: %d operations, %d keys, %d values, room for %d reports", pando.ErrLength, len(ops), n, len(vals), len(found))
	}
	for i, o := range ops {
		if o > pando.OpDelete {
			return fmt.Errorf("%w: operation %d is Op(%d); take OpGet, OpSet or OpDelete", pando.ErrOption, i, o)
		}
	}
	r := newRequest(batching)
	kinds := unsafe.Slice((*op.Kind)(unsafe.Pointer(unsafe.SliceData(ops))), n)
	r.batch, r.found = index.Batch{Kinds: kinds, Keys: order.KeysAs(s.key, keys), Vals: index.ColumnOf(vals)}, found
	return s.c.do(r)
}

// Sync makes everything durable that was acknowledged. It is for SyncEvery and NoSync:
// without them everything is.
func (s *Store[K, V]) Sync() error { return s.c.do(newRequest(syncing)) }

// Checkpoint writes a checkpoint of this moment, an ordinary file of Pando's, and then removes the log
// up to there. Changes go on meanwhile. An error leaves the store as it was, and the log
// in place.
func (s *Store[K, V]) Checkpoint() error { return s.c.writeCheckpoint() }

// Close makes everything durable that was acknowledged, and closes the store. Changes
// return pando.ErrClosed from then on; other methods panic, as those of a Tree do. A second Close does
// nothing.
func (s *Store[K, V]) Close() error { return s.c.close() }

// Log describes the log and the checkpoints of the store, and what Open has found. Stats
// describes the tree.
func (s *Store[K, V]) Log() Log { return s.c.stats() }

// text returns a key that is given as bytes, for keys that are strings.
func (s *Store[K, V]) text(method string, key []byte) order.Probe {
	s.mustBeText(method)
	return order.Probe{Text: unsafe.String(unsafe.SliceData(key), len(key))}
}

func (s *Store[K, V]) mustBeText(method string) {
	if s.key.Bits() != 0 {
		panic("pandostore: " + method + ": only strings can be given as bytes")
	}
}

// SetBytes is Set for a key that is a slice of bytes. Keys must be strings: it panics if
// they are not.
func (s *Store[K, V]) SetBytes(key []byte, val V) error {
	r := newRequest(setting)
	r.key, r.val = s.text("SetBytes", key), s.value(val)
	return s.c.do(r)
}

// SwapBytes is Swap for a key that is a slice of bytes. Keys must be strings: it panics if
// they are not.
func (s *Store[K, V]) SwapBytes(key []byte, val V) (old V, had bool, err error) {
	r := newRequest(swapping)
	r.key, r.val = s.text("SwapBytes", key), s.value(val)
	err = s.c.do(r)
	return index.ValueAs[V](r.old), r.had, err
}

// UpdateBytes is Update for a key that is a slice of bytes, which f must not change. Keys
// must be strings: it panics if they are not.
func (s *Store[K, V]) UpdateBytes(key []byte, f func(old V, had bool) (val V, keep bool)) error {
	return s.update(s.text("UpdateBytes", key), f)
}

// DeleteBytes is Delete for a key that is a slice of bytes. Keys must be strings: it
// panics if they are not.
func (s *Store[K, V]) DeleteBytes(key []byte) (old V, had bool, err error) {
	return s.delete(s.text("DeleteBytes", key))
}

// SetBatchBytes is SetBatch for string keys that lie one behind the other: key i is
// data[offsets[i]:offsets[i+1]].
func (s *Store[K, V]) SetBatchBytes(data []byte, offsets []int32, vals []V) error {
	return s.c.setBatch(s.texts("SetBatchBytes", data, offsets), index.ColumnOf(vals))
}

// SetBatchPacked is SetBatchBytes for values that lie one behind the other, too, as
// pando.Tree.SetBatchPacked is: the value of key i is vals[offsets[i]:offsets[i+1]]. Neither
// keys nor vals may change until it returns.
func (s *Store[K, V]) SetBatchPacked(keys []byte, ends []int32, vals []byte, offsets []int64) error {
	const method = "SetBatchPacked"
	texts := s.texts(method, keys, ends)
	val := index.ValueTypeOf[V]()
	val.MustSpanValues(method, vals, offsets, texts.Len())
	return s.c.setBatch(texts, val.Unpacked(vals, offsets))
}

// DeleteBatchBytes is DeleteBatch for string keys that lie one behind the other: key i is
// data[offsets[i]:offsets[i+1]].
func (s *Store[K, V]) DeleteBatchBytes(data []byte, offsets []int32, found []bool) (deleted int, err error) {
	return s.c.deleteBatch(s.texts("DeleteBatchBytes", data, offsets), found)
}

// texts returns keys that lie one behind the other in data.
func (s *Store[K, V]) texts(method string, data []byte, offsets []int32) order.Keys {
	s.mustBeText(method)
	if len(offsets) == 0 {
		panic("pandostore: " + method + ": no offsets; there is one more than there are keys")
	}
	keys := make([]string, len(offsets)-1)
	for i := range keys {
		key := data[offsets[i]:offsets[i+1]]
		keys[i] = unsafe.String(unsafe.SliceData(key), len(key))
	}
	return order.KeysAs(s.key, keys)
}

// OpenCheckpoint opens the newest checkpoint of a store, as pando.Open opens a file: also
// while another process changes the store. It returns an error that wraps
// fs.ErrNotExist if the store has none yet.
func OpenCheckpoint[K pando.Key, V any](path string, opts ...pando.Option) (*pando.Frozen[K, V], error) {
	return newestCheckpoint(path, func(file string) (*pando.Frozen[K, V], error) { return pando.Open[K, V](file, opts...) })
}
