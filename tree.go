package pando

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Tree is a mutable ordered map: one value a key, kept in key order. Make one
// with NewTree, TreeOf or OpenTree.
//
// Any method may be called from any goroutine at any time. Readers take no lock
// and never wait for writers; writers of numbers wait only for others that change
// the same few hundred keys, or for a short change of the tree's upper nodes, those
// of strings for others that change the same node.
//
// A single operation is atomic: readers see it whole or not at all, at one moment
// between its begin and its end. A batch (SetBatch, DeleteBatch, Apply) is atomic key
// by key: all that it does to one key is one change, which readers see whole or not at
// all; but while it runs they may see some keys changed and others not yet, whatever
// their order in the batch. When it returns they see all of it. Take a Snapshot before
// or after for a state that no batch is in the middle of. What Apply reports is as if
// its operations were done one after the other.
//
// Keys are numbers of any type, kept in a B+-tree, or strings of any bytes and any
// length, kept in a radix tree.
//
// What other maps have under names of their own:
//
//   - get or set, compare and swap: Update, whose function sees the old value;
//   - clear: DeleteRange from the key of Min to that of Max, or a new tree;
//   - delete at a cursor: Delete of the cursor's key. The cursor goes on behind it.
//
// After Close every method panics, or returns ErrClosed where it returns an error. A
// program that shuts down closes its trees last: http.Server.Shutdown, for one, returns
// when no handler is running any more, and then nobody reads the tree.
type Tree[K Key, V any] struct {
	m      *index.Map
	key    index.KeyType
	val    *index.ValueType
	kept   bool // what val reports
	config config
	pieces par.Pool[piece[K, V]]
	closed atomic.Bool
}

// NewTree returns an empty tree.
//
// Of the options, MemoryLimit bounds the memory of its nodes: what would take
// more is ErrMemoryLimit, and changes nothing. What deletes is never refused; while
// a snapshot is open it may take more, since what the snapshot has is kept. Values
// and Workers mean what they mean for Freeze.
func NewTree[K Key, V any](opts ...Option) (*Tree[K, V], error) {
	return newTree[K, V](0, nil, opts)
}

// TreeOf returns a tree of keys and their values, which need not be sorted; of
// equal keys the last wins. Nothing is kept of the slices. Where V takes no
// memory (struct{}), vals may be nil.
func TreeOf[K Key, V any](keys []K, vals []V, opts ...Option) (*Tree[K, V], error) {
	var v V
	if len(keys) != len(vals) && (vals != nil || unsafe.Sizeof(v) > 0) {
		return nil, fmt.Errorf("%w: %d keys, %d values", ErrLength, len(keys), len(vals))
	}
	if ascending(keys) {
		return newTree[K, V](len(keys), func(lo int, to order.Keys, out index.Column) { copyPart(keys, vals, lo, to, index.SliceOf[V](out)) }, opts)
	}
	t, err := NewTree[K, V](opts...)
	if err != nil {
		return nil, err
	}
	if vals == nil {
		vals = make([]V, len(keys))
	}
	if err := t.SetBatch(keys, vals); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// ascending reports whether keys ascend without equal ones.
func ascending[K Key](keys []K) bool {
	for i := 1; i < len(keys); i++ {
		if !(keys[i-1] < keys[i]) {
			return false
		}
	}
	return len(keys) == 0 || keys[0] == keys[0] // NaN is not even equal to itself
}

// copyPart copies entries from lo on.
func copyPart[K Key, V any](keys []K, vals []V, lo int, to order.Keys, out []V) {
	n := to.Len()
	copy(unsafe.Slice((*K)(to.At()), n), keys[lo:lo+n])
	if vals != nil {
		copy(out, vals[lo:lo+n])
	}
}

// OpenTree returns a tree of what a file holds that a Tree, or a Frozen without
// equal keys, has saved. It reads the whole file, checks every checksum, and keeps
// nothing of it: a file that is damaged anywhere is ErrFile. One with equal keys, of
// which a tree could keep but one each, is ErrEqualKeys.
func OpenTree[K Key, V any](path string, opts ...Option) (*Tree[K, V], error) {
	f, err := Open[K, V](path, append(opts[:len(opts):len(opts)], On(CPU), Layout(AutoLayout), Verified())...)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ix := f.open()
	t, err := newTree[K, V](ix.Len(), ix.CopyOut, opts)
	if err != nil {
		return nil, err
	}
	if err := t.m.Check(); err != nil {
		t.Close()
		if key, found := f.firstTwice(); found {
			return nil, fmt.Errorf("%w: %s has %v more than once, and a Tree keeps one value a key; Open takes the file, or Set each of its entries in an empty Tree, which keeps the last of equal ones",
				ErrEqualKeys, path, key)
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrFile, path, err)
	}
	return t, nil
}

// firstTwice returns the first key that the index has more than once.
func (f *Frozen[K, V]) firstTwice() (key K, found bool) {
	const piece = 4096
	ix := f.open()
	for lo := 0; lo+1 < ix.Len(); lo += piece - 1 { // the last key of a piece is the first of the next
		keys := make([]K, min(piece, ix.Len()-lo))
		ix.CopyKeys(lo, order.KeysAs(f.key.Type, keys))
		for i := 1; i < len(keys); i++ {
			if a, b := keys[i-1], keys[i]; a == b || a != a && b != b { // NaN is not even equal to itself
				return b, true
			}
		}
	}
	return key, false
}

func newTree[K Key, V any](n int, span func(lo int, keys order.Keys, vals index.Column), opts []Option) (*Tree[K, V], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	val := index.ValueTypeOf[V]()
	codec, err := codecOf(val, c)
	if err != nil {
		return nil, err
	}
	t := &Tree[K, V]{key: index.KeyTypeOf[K](), val: val, kept: val.Kept(), config: c, pieces: par.NewPool[piece[K, V]]()}
	if t.m, err = index.LoadMap(t.key, val, n, span, c.index(), codec); err != nil {
		return nil, translate(err)
	}
	return t, nil
}

// open panics if the tree was closed.
func (t *Tree[K, V]) open() *index.Map {
	if t.closed.Load() {
		panic("pando: Tree used after Close")
	}
	return t.m
}

// done panics if the tree was closed while an answer was read.
func (t *Tree[K, V]) done() {
	if t.closed.Load() {
		panic("pando: Tree closed while it was in use")
	}
}

// failed returns an error under its public name.
func (t *Tree[K, V]) failed(err error) error {
	if err == nil {
		return nil
	}
	return translate(err)
}

// must panics over an error of a method that returns none: the tree was closed.
func (t *Tree[K, V]) must(err error) {
	if err != nil {
		t.open()
		panic("pando: " + err.Error())
	}
}

func (t *Tree[K, V]) probe(key K) order.Probe { return order.Encode(t.key.Type, key) }

func (t *Tree[K, V]) keyOf(p order.Probe) K { return order.Decode[K](t.key.Type, p) }

// Len returns the number of entries: exactly, if nobody writes meanwhile.
func (t *Tree[K, V]) Len() int { return t.open().Len() }

// Get returns the value of key, and reports whether there is one.
func (t *Tree[K, V]) Get(key K) (V, bool) {
	x, ok := t.open().Get(t.probe(key))
	v := index.ValueAs[V](x)
	t.done()
	return v, ok
}

// Set sets the value of key.
func (t *Tree[K, V]) Set(key K, val V) error {
	return t.failed(t.m.Set(t.probe(key), index.ValueOf(t.kept, val)))
}

// Swap sets the value of key, and returns the one it had.
func (t *Tree[K, V]) Swap(key K, val V) (old V, had bool, err error) {
	x, had, err := t.m.Swap(t.probe(key), index.ValueOf(t.kept, val))
	return index.ValueAs[V](x), had, t.failed(err)
}

// Update sets the value of key to what f returns, or deletes the key where f
// returns false. f gets the value that the key has, and whether it has one.
//
// The change is made only if the key still has that value: where somebody else has
// changed it meanwhile, f runs again with the new one. Changes of other keys, and
// snapshots, do not make it run again. After a few runs others that want to change the
// key wait for this update, so that it ends.
//
// Nothing is locked while f runs. It may take its time and call any method of the tree,
// but it must not change key itself, over which Update panics, nor wait for another
// goroutine that does.
func (t *Tree[K, V]) Update(key K, f func(old V, had bool) (val V, keep bool)) error {
	return t.failed(t.m.Update(t.probe(key), func(old index.Value, had bool) (index.Value, bool) {
		val, keep := f(index.ValueAs[V](old), had)
		if !keep {
			return index.Value{}, false
		}
		return index.ValueOf(t.kept, val), true
	}))
}

// Delete deletes key, and returns the value it had.
func (t *Tree[K, V]) Delete(key K) (old V, had bool) {
	x, had, err := t.m.Delete(t.probe(key))
	t.must(err)
	return index.ValueAs[V](x), had
}

// DeleteRange deletes the entries with lo <= key <= hi, and returns how many
// there were. It is atomic for a few hundred keys at a time; of strings, for each
// key. Others read and write meanwhile: they may find the first keys of the range
// gone and later ones still there, and what they put behind keys that are gone
// stays.
func (t *Tree[K, V]) DeleteRange(lo, hi K) (deleted int) {
	deleted, err := t.open().DeleteRange(t.probe(lo), t.probe(hi))
	t.must(err)
	return deleted
}

// PopMin deletes the first entry, and returns it. It returns false if the tree
// is empty.
func (t *Tree[K, V]) PopMin() (K, V, bool) { return t.pop(false) }

// PopMax deletes the last entry, and returns it. It returns false if the tree is
// empty.
func (t *Tree[K, V]) PopMax() (K, V, bool) { return t.pop(true) }

func (t *Tree[K, V]) pop(greatest bool) (K, V, bool) {
	k, x, ok, err := t.m.Pop(greatest)
	t.must(err)
	v := index.ValueAs[V](x)
	if !ok {
		var none K
		return none, v, false
	}
	return t.keyOf(k), v, true
}

// Op is an operation of a batch.
type Op uint8

const (
	OpGet    = Op(bplus.Get)    // reads the value of a key
	OpSet    = Op(bplus.Set)    // sets it
	OpDelete = Op(bplus.Delete) // deletes the key
)

// SetBatch sets the values of many keys, which is many times faster than as
// many calls of Set. Of equal keys the last wins. It sets all, or none if it
// returns an error.
func (t *Tree[K, V]) SetBatch(keys []K, vals []V) error {
	if len(keys) != len(vals) {
		return fmt.Errorf("%w: %d keys, %d values", ErrLength, len(keys), len(vals))
	}
	return t.failed(t.m.Apply(order.KeysAs(t.key.Type, keys), nil, bplus.Set, index.ColumnOf(vals), nil, false))
}

// DeleteBatch deletes many keys. found[i], where found is not nil, reports
// whether keys[i] was there. It returns the number of entries deleted. found, if
// not nil, must be at least as long as keys.
func (t *Tree[K, V]) DeleteBatch(keys []K, found []bool) (deleted int) {
	t.open()
	if found != nil {
		mustHold("DeleteBatch", "found", len(found), len(keys))
		found = found[:len(keys)]
	}
	deleted, err := t.m.DeleteBatch(order.KeysAs(t.key.Type, keys), found)
	t.must(err)
	return deleted
}

// Apply does many operations, many times faster than one by one, with the results of
// doing them one after the other in their order. Operation i is ops[i] on keys[i];
// OpSet takes its new value from vals[i]. Then found[i] reports whether keys[i] was there just before
// operation i, and vals[i] becomes the value that it had then, or zero. Where
// found is nil nothing is reported, and vals are only read. It does all
// operations, or none if it returns an error. All slices must be of one length,
// but for a found of nil. What others see meanwhile is said at Tree.
func (t *Tree[K, V]) Apply(ops []Op, keys []K, vals []V, found []bool) error {
	if len(ops) != len(keys) || len(vals) != len(keys) || found != nil && len(found) != len(keys) {
		return fmt.Errorf("%w: %d operations, %d keys, %d values, room for %d reports", ErrLength, len(ops), len(keys), len(vals), len(found))
	}
	if i := unknownOp(ops); i >= 0 {
		return fmt.Errorf("%w: operation %d is Op(%d); take OpGet, OpSet or OpDelete", ErrOption, i, ops[i])
	}
	kinds := unsafe.Slice((*bplus.Kind)(unsafe.Pointer(unsafe.SliceData(ops))), len(ops))
	return t.failed(t.m.Apply(order.KeysAs(t.key.Type, keys), kinds, bplus.Get, index.ColumnOf(vals), found, found != nil))
}

// unknownOp returns the first operation that is none of the three, or -1. It looks
// at eight at a time: one by one they take as long as a GPU takes to do them.
func unknownOp(ops []Op) int {
	const each = 0x0101010101010101
	i := 0
	for ; i+8 <= len(ops); i += 8 {
		w := *(*uint64)(unsafe.Pointer(&ops[i]))
		if w&(0xfc*each)|w&(w>>1)&each != 0 { // above 3, or 3
			break
		}
	}
	for ; i < len(ops); i++ {
		if ops[i] > OpDelete {
			return i
		}
	}
	return -1
}

// Snapshot returns the tree of this moment as a Frozen, at once, whatever its
// size. It shares memory with the tree: what the tree changes from then on is
// kept as it was for as long as the snapshot is not closed or forgotten. It
// outlives Close of the tree. The first method that is called on it goes once
// through all of it, on all cores, which takes some milliseconds per million entries; of
// strings, and in Layout(Radix), Get and GetBatch do not, and others take some tens
// of milliseconds per million on one core if the tree has changed everywhere since it was
// last counted. With
// DeviceOnly it stays on the GPU, which answers all of its methods, and is lost
// with the GPU.
func (t *Tree[K, V]) Snapshot() *Frozen[K, V] {
	s, err := t.m.Freeze()
	t.must(err)
	f := emptyFrozen[K, V](t.key)
	f.later.Store(&unread{from: s})
	return f
}

// Freeze returns a compact copy of this moment, while writers go on. It takes
// all options that Freeze takes.
func (t *Tree[K, V]) Freeze(opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf(t.val, c)
	if err != nil {
		return nil, err
	}
	if c.values == nil {
		codec, _ = codecOf(t.val, t.config)
	}
	s, err := t.m.Freeze()
	if err != nil {
		return nil, t.failed(err)
	}
	defer s.Drop()
	ix, err := s.Open()
	if err != nil {
		return nil, t.failed(err)
	}
	own, err := ix.Compact(c.index(), codec)
	if err != nil {
		return nil, t.failed(err)
	}
	return frozen[K, V](own), nil
}

// Close gives the memory of the tree back to the system, but for what its
// snapshots need. A tree that is never closed is freed when the garbage collector
// finds it unused. A second Close does nothing.
func (t *Tree[K, V]) Close() error {
	if !t.closed.Swap(true) {
		t.m.Close()
	}
	return nil
}

// nearest returns the first entry from an edge on, or down from it.
func (t *Tree[K, V]) nearest(from index.Edge, down bool) (key K, val V, ok bool) {
	c := t.open().Cursor()
	c.Move(from, down)
	k, x, ok := c.Next()
	val = index.ValueAs[V](x)
	c.Done()
	t.done()
	if !ok {
		return key, val, false
	}
	return t.keyOf(k), val, true
}

// Min returns the first entry, and false if the tree is empty.
func (t *Tree[K, V]) Min() (K, V, bool) { return t.nearest(index.NoEdge, false) }

// Max returns the last entry, and false if the tree is empty.
func (t *Tree[K, V]) Max() (K, V, bool) { return t.nearest(index.NoEdge, true) }

// Floor returns the entry with the greatest key up to key. It returns false if
// all keys are above.
func (t *Tree[K, V]) Floor(key K) (K, V, bool) {
	return t.nearest(index.Edge{Key: t.probe(key)}, true)
}

// Ceil returns the entry with the least key from key on. It returns false if all
// keys are below.
func (t *Tree[K, V]) Ceil(key K) (K, V, bool) {
	return t.nearest(index.Edge{Key: t.probe(key)}, false)
}
