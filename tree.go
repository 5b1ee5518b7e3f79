package pando

import (
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// Tree is a mutable ordered map: one value a key, kept in key order. Make one
// with NewTree, TreeOf or OpenTree.
//
// Any method may be called from any goroutine at any time. Readers take no lock
// and never wait for writers; writers of numbers wait only for others that change
// the same few hundred keys, or for a short change of the tree's upper nodes, those
// of strings for others that change the same node.
//
// Rank, At, Count, PrefixCount and the batches of these first count what has changed since
// the last of them. One of them does that and the others wait for it; writers wait for a
// fraction of a millisecond of it at a time, for more only where it would never end. On
// processors other than amd64, on Windows, and with the build tag noasm, readers share a
// lock that writers take alone.
//
// A single operation is atomic: readers see it whole or not at all, at one moment
// between its begin and its end. A batch (SetBatch, DeleteBatch, Apply) is atomic key
// by key: all that it does to one key is one change, which readers see whole or not at
// all; but while it runs they may see some keys changed and others not yet, whatever
// their order in the batch. When it returns they see all of it. Take a Snapshot before
// or after for a state that no batch is in the middle of. Apply reports results as if
// its operations were done one after the other.
//
// Keys are numbers of any type, kept in a B+-tree, or strings of any bytes and any
// length, kept in a radix tree.
//
// Operations that other maps have under names of their own:
//
//   - get or set, compare and swap: Update, whose function sees the old value;
//   - clear: DeleteRange from the key of Min to that of Max, or a new tree;
//   - delete at a cursor: Delete of the cursor's key. The cursor goes on behind it.
//
// After Close every method panics, or returns ErrClosed where it returns an error. A
// program that shuts down closes its trees last: http.Server.Shutdown, for one, returns
// when no handler is running any more, so that none reads the tree.
type Tree[K Key, V any] struct{ c live.Handle }

// NewTree returns an empty tree.
//
// Of the options, MemoryLimit bounds the memory of its nodes and of values off the Go
// heap, which are all but those with pointers that are not strings or slices of bytes: a
// change that would take more returns ErrMemoryLimit, and changes nothing. A deletion is never
// refused; while a snapshot is open it may exceed the limit, since the snapshot's
// entries are kept. A value off the heap that is not beside its key counts with the room that
// is set apart for it; what is free between values comes on top, as a rule a few per cent and
// some MiB, never more than three tenths and 64 MiB once the tree has moved values together.
// Stats.TotalBytes counts that, too. Values and Workers mean what they mean for Freeze.
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

// OpenTree returns a tree with the entries of a file that a Tree, or a Frozen
// without equal keys, has saved. It reads the whole file, checks every checksum, and
// does not keep the file open. It returns ErrFile if the file is damaged anywhere,
// and ErrEqualKeys if it has equal keys, of which a tree could keep only one.
func OpenTree[K Key, V any](path string, opts ...Option) (*Tree[K, V], error) {
	return openTree[K, V](path, func() (*index.File, error) { return index.OpenFile(path) }, opts)
}

// ReadTree returns a tree with the entries that Save or WriteTo has written, from any
// reader, as OpenTree does from a file. It reads the bytes of the index, and none behind
// them.
func ReadTree[K Key, V any](r io.Reader, opts ...Option) (*Tree[K, V], error) {
	const name = "the stream"
	return openTree[K, V](name, func() (*index.File, error) { return index.ReadFile(name, r, -1) }, opts)
}

func openTree[K Key, V any](path string, file func() (*index.File, error), opts []Option) (*Tree[K, V], error) {
	t := new(Tree[K, V])
	c, err := configure(index.TreeOpening, opts)
	if err == nil {
		err = t.c.OpenFile(index.KeyTypeOf[K](), reflect.TypeFor[K](), index.ValueTypeOf[V](), c, path, file)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// newTree makes a tree of n entries that span hands out.
func newTree[K Key, V any](n int, span func(lo int, keys order.Keys, vals index.Column), opts []Option) (*Tree[K, V], error) {
	t := new(Tree[K, V])
	c, err := configure(index.Treeing, opts)
	if err == nil {
		err = t.c.Load(index.KeyTypeOf[K](), index.ValueTypeOf[V](), n, span, c)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tree[K, V]) probe(key K) order.Probe { return order.Encode(t.c.Key.Type, key) }

// keys returns keys without their type.
func (t *Tree[K, V]) keys(keys []K) order.Keys { return order.KeysAs(t.c.Key.Type, keys) }

// bare returns a value without its type.
func (t *Tree[K, V]) bare(v V) index.Value { return index.ValueOf(t.c.Form, v) }

// entry returns an entry with its types, if there is one.
func (t *Tree[K, V]) entry(k order.Probe, x index.Value, ok bool) (key K, val V, found bool) {
	if ok {
		key, val = order.Decode[K](t.c.Key.Type, k), index.ValueAs[V](x)
	}
	return key, val, ok
}

// Len returns the number of entries. It is exact if no writer runs meanwhile.
func (t *Tree[K, V]) Len() int { return t.c.Len() }

// Get returns the value of key, and reports whether there is one. Strings and slices of
// bytes are copies: a tree keeps them off the Go heap.
func (t *Tree[K, V]) Get(key K) (V, bool) {
	x, ok := t.c.Get(t.probe(key))
	return index.ValueAs[V](x), ok
}

// Set sets the value of key.
func (t *Tree[K, V]) Set(key K, val V) error {
	return t.c.Set(t.probe(key), t.bare(val))
}

// Swap sets the value of key, and returns the one it had.
func (t *Tree[K, V]) Swap(key K, val V) (old V, had bool, err error) {
	x, had, err := t.c.Swap(t.probe(key), t.bare(val))
	return index.ValueAs[V](x), had, err
}

// Update sets the value of key to what f returns, or deletes the key where f
// returns false. f gets the value that the key has, and whether it has one.
//
// The change is made only if the key still has that value: where another goroutine has
// changed it meanwhile, f runs again with the new one. Changes of other keys, and
// snapshots, do not make it run again. After a few runs other writers of the key wait
// for this update, so that it ends.
//
// Nothing is locked while f runs. It may take its time and call any method of the tree,
// but it must not change key itself, over which Update panics, nor wait for another
// goroutine that does.
func (t *Tree[K, V]) Update(key K, f func(old V, had bool) (val V, keep bool)) error {
	return t.update(t.probe(key), f)
}

func (t *Tree[K, V]) update(key order.Probe, f func(old V, had bool) (val V, keep bool)) error {
	return t.c.Update(key, func(old index.Value, had bool) (index.Value, bool) {
		val, keep := f(index.ValueAs[V](old), had)
		if !keep {
			return index.Value{}, false
		}
		return t.bare(val), true
	})
}

// Delete deletes key, and returns the value it had.
func (t *Tree[K, V]) Delete(key K) (old V, had bool) {
	x, had := t.c.Delete(t.probe(key))
	return index.ValueAs[V](x), had
}

// DeleteRange deletes the entries with lo <= key <= hi, and returns how many
// there were. It is atomic for a few hundred keys at a time; of strings, for each
// key. Others read and write meanwhile: they may find the first keys of the range
// gone and later ones still there, and entries that they put where keys are gone
// already stay.
func (t *Tree[K, V]) DeleteRange(lo, hi K) (deleted int) {
	return t.c.DeleteRange(t.probe(lo), t.probe(hi))
}

// PopMin deletes the first entry, and returns it. It returns false if the tree
// is empty.
func (t *Tree[K, V]) PopMin() (K, V, bool) { return t.entry(t.c.Pop(false)) }

// PopMax deletes the last entry, and returns it. It returns false if the tree is
// empty.
func (t *Tree[K, V]) PopMax() (K, V, bool) { return t.entry(t.c.Pop(true)) }

// Op is an operation of a batch.
type Op uint8

const (
	OpGet    Op = iota // reads the value of a key
	OpSet              // sets it
	OpDelete           // deletes the key
)

// SetBatch sets the values of many keys, which is many times faster than as
// many calls of Set. Of equal keys the last wins. It sets all, or none if it
// returns an error.
func (t *Tree[K, V]) SetBatch(keys []K, vals []V) error {
	return t.c.SetBatch(t.keys(keys), index.ColumnOf(vals))
}

// DeleteBatch deletes many keys. found[i], where found is not nil, reports
// whether keys[i] was there. It returns the number of entries deleted. found, if
// not nil, must be at least as long as keys.
func (t *Tree[K, V]) DeleteBatch(keys []K, found []bool) (deleted int) {
	return t.c.DeleteBatch(t.keys(keys), found)
}

// Apply does many operations, many times faster than one by one, with the results of
// doing them one after the other in their order. Operation i is ops[i] on keys[i];
// OpSet takes its new value from vals[i]. Then found[i] reports whether keys[i] was there just before
// operation i, and vals[i] becomes the value that it had then, or zero. Where
// found is nil nothing is reported, and vals are only read. It does all
// operations, or none if it returns an error. All slices must be of one length, but for a found
// of nil. The documentation of Tree says what other goroutines see meanwhile.
func (t *Tree[K, V]) Apply(ops []Op, keys []K, vals []V, found []bool) error {
	return t.c.Apply(codesOf(ops), t.keys(keys), index.ColumnOf(vals), found)
}

// codesOf returns operations as package op numbers them, in the same order.
func codesOf(ops []Op) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(ops))), len(ops))
}

// Snapshot returns the tree of this moment as a Frozen, at once, whatever its size. It
// shares memory with the tree: entries that the tree changes from then on are kept as
// they were until the snapshot is closed or forgotten. It outlives Close of the tree. The
// first method that is called on it goes once through all of it, on all cores, which
// takes some milliseconds per million entries; of strings, and in Layout(Radix), Get and
// GetBatch do not, and others take some tens of milliseconds per million on one core if
// the tree has changed everywhere since it was last counted. With DeviceOnly it stays on
// the GPU, which answers all of its methods, and is lost with the GPU.
func (t *Tree[K, V]) Snapshot() *Frozen[K, V] {
	f := new(Frozen[K, V])
	f.c.BeginLater(t.c.Key, t.c.Snapshot())
	return f
}

// Freeze returns a compact copy of this moment, while writers go on. It takes
// all options that Freeze takes.
func (t *Tree[K, V]) Freeze(opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(index.Freezing, opts)
	if err != nil {
		return nil, err
	}
	return frozen[K, V](t.c.Freeze(c))
}

// Close gives the memory of the tree back to the system, but for the memory that
// its snapshots need. A tree that is never closed is freed when the garbage
// collector finds it unused. A second Close does nothing.
func (t *Tree[K, V]) Close() error { return t.c.Close() }

// Min returns the first entry, and false if the tree is empty.
func (t *Tree[K, V]) Min() (K, V, bool) { return t.entry(t.c.Nearest(index.NoEdge, false)) }

// Max returns the last entry, and false if the tree is empty.
func (t *Tree[K, V]) Max() (K, V, bool) { return t.entry(t.c.Nearest(index.NoEdge, true)) }

// Floor returns the entry with the greatest key up to key. It returns false if
// all keys are above.
func (t *Tree[K, V]) Floor(key K) (K, V, bool) {
	return t.entry(t.c.Nearest(index.Edge{Key: t.probe(key)}, true))
}

// Ceil returns the entry with the least key from key on. It returns false if all
// keys are below.
func (t *Tree[K, V]) Ceil(key K) (K, V, bool) {
	return t.entry(t.c.Nearest(index.Edge{Key: t.probe(key)}, false))
}
