package pando

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Key is every type with an order that cmp.Compare knows.
type Key interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~string
}

// Frozen is an immutable ordered index. Make one with Freeze or FreezeSeq,
// or with Open from a file.
//
// It is safe for any number of concurrent readers. Equal keys are kept, in the
// order they came in. After Close every method but Close and String panics, and a call
// that was under way on another goroutine panics rather than return an answer
// from memory that is gone.
type Frozen[K Key, V any] struct {
	live  atomic.Pointer[index.Index] // nil once closed
	later atomic.Pointer[unread]      // a snapshot of a Tree that nobody has read yet
	key   index.KeyType

	windows par.Pool[window[K, V]]
}

// unread is a snapshot of a Tree that becomes an index when it is first read.
type unread struct {
	once sync.Once
	from *index.Freezing
}

// frozen makes a Frozen of an index.
func frozen[K Key, V any](ix *index.Index) *Frozen[K, V] {
	f := emptyFrozen[K, V](index.KeyTypeOf[K]())
	f.live.Store(ix)
	return f
}

func emptyFrozen[K Key, V any](key index.KeyType) *Frozen[K, V] {
	return &Frozen[K, V]{key: key, windows: par.NewPool[window[K, V]]()}
}

// probe returns a key without its type.
func (f *Frozen[K, V]) probe(key K) order.Probe { return order.Encode(f.key.Type, key) }

// keyAt returns the key of entry i.
func (f *Frozen[K, V]) keyAt(ix *index.Index, i int) K {
	return order.Decode[K](f.key.Type, ix.Key(i))
}

// valAt returns the value of entry i.
func valAt[V any](ix *index.Index, i int) V { return index.ValueAs[V](ix.Val(i)) }

// open returns the index, or panics if it was closed.
func (f *Frozen[K, V]) open() *index.Index {
	ix := f.live.Load()
	if ix == nil {
		return f.openLater()
	}
	return ix
}

// openLater makes an index of a snapshot that nobody has read yet.
func (f *Frozen[K, V]) openLater() *index.Index {
	s := f.later.Load()
	if s == nil {
		panic("pando: Frozen used after Close")
	}
	s.once.Do(func() {
		ix, err := s.from.Open()
		if err != nil {
			panic("pando: cannot read the snapshot: " + err.Error())
		}
		f.live.Store(ix)
		if f.later.Load() == nil { // closed meanwhile
			f.live.Store(nil)
		}
	})
	ix := f.live.Load()
	if ix == nil {
		panic("pando: Frozen closed while it was in use")
	}
	return ix
}

// done is called when an answer has been read: if the index was closed in the
// meantime, the answer may be nonsense and is not returned.
func (f *Frozen[K, V]) done(ix *index.Index) {
	if f.live.Load() != ix {
		panic("pando: Frozen closed while it was in use")
	}
}

// Len returns the number of entries.
func (f *Frozen[K, V]) Len() int { return f.open().Len() }

// Get returns the value of key, and reports whether there is one. Of equal keys
// it is the first one's.
func (f *Frozen[K, V]) Get(key K) (V, bool) {
	ix := f.open()
	x, found := ix.Get(f.probe(key))
	v := index.ValueAs[V](x)
	f.done(ix)
	return v, found
}

// GetBatch looks up many keys at once, which is many times faster than as
// many calls of Get. vals[i] becomes the value of keys[i], or the zero value
// where there is none; found[i], where found is not nil, reports which. It
// returns the number of keys found. vals, and found if not nil, must be at least as
// long as keys. vals may be the very slice that keys is, but must not overlap
// it otherwise.
func (f *Frozen[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	ix := f.open()
	vals, found = results("GetBatch", vals, found, len(keys))
	hits = ix.GetBatch(order.KeysAs(f.key.Type, keys), index.ColumnOf(vals), found)
	f.done(ix)
	return hits
}

// GetBatchBytes is GetBatch for string keys that lie one behind the other, as
// Arrow has them: key i is data[offsets[i]:offsets[i+1]], so there is one offset
// more than there are keys. It saves making Go strings of them, and for a GPU,
// which gets them in this form anyway, gathering them. Keys of the index must be
// strings: it panics if they are not, or if offsets do not lie in data in
// ascending order.
func (f *Frozen[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int) {
	if f.key.Bits() != 0 {
		panic(fmt.Sprintf("pando: GetBatchBytes: the keys of this index are %s, not strings; use GetBatch", f.key.Name))
	}
	ix := f.open()
	vals, found = results("GetBatchBytes", vals, found, mustSpan(data, offsets, ix.Workers()))
	hits = ix.GetPacked(data, offsets, index.ColumnOf(vals), found)
	f.done(ix)
	return hits
}

// mustSpan returns the number of strings, and panics where they do not lie in
// data one behind the other.
func mustSpan(data []byte, offsets []int32, workers int) int {
	if len(offsets) == 0 {
		panic("pando: GetBatchBytes: no offsets; there is one more than there are keys")
	}
	if i := index.BadOffset(len(data), offsets, workers); i >= 0 {
		panic(fmt.Sprintf("pando: GetBatchBytes: offset %d is %d; offsets ascend from 0 to the length of data, %d", i, offsets[i], len(data)))
	}
	return len(offsets) - 1
}

// results returns the slices for the results of n keys, cut to that length, and
// panics where one is shorter. found may be nil.
func results[V any](method string, vals []V, found []bool, n int) ([]V, []bool) {
	mustHold(method, "vals", len(vals), n)
	if found == nil {
		return vals[:n], nil
	}
	mustHold(method, "found", len(found), n)
	return vals[:n], found[:n]
}

// mustHold panics where a result slice is shorter than keys.
func mustHold(method, slice string, have, need int) {
	if have < need {
		panic(fmt.Sprintf("pando: %s: %s holds %d results, but there are %d keys", method, slice, have, need))
	}
}

// Has reports whether there is an entry with the key.
func (f *Frozen[K, V]) Has(key K) bool {
	ix := f.open()
	_, found := ix.Seek(f.probe(key))
	f.done(ix)
	return found
}

// Rank returns the number of entries with a key below key.
func (f *Frozen[K, V]) Rank(key K) int {
	ix := f.open()
	i, _ := ix.Seek(f.probe(key))
	f.done(ix)
	return i
}

// RankBatch sets ranks[i] to Rank(keys[i]). ranks must be at least as long as
// keys.
func (f *Frozen[K, V]) RankBatch(keys []K, ranks []int) {
	ix := f.open()
	mustHold("RankBatch", "ranks", len(ranks), len(keys))
	ix.Rank(order.KeysAs(f.key.Type, keys), ranks[:len(keys)])
	f.done(ix)
}

// At returns entry i in key order. It panics if i is not in [0, Len).
func (f *Frozen[K, V]) At(i int) (K, V) {
	ix := f.open()
	if i < 0 || i >= ix.Len() {
		panic(fmt.Sprintf("pando: At(%d): the index has %d entries", i, ix.Len()))
	}
	k, v := f.keyAt(ix, i), valAt[V](ix, i)
	f.done(ix)
	return k, v
}

// entry returns entry i, and false if there is none.
func (f *Frozen[K, V]) entry(ix *index.Index, i int) (k K, v V, ok bool) {
	if i >= 0 && i < ix.Len() {
		k, v, ok = f.keyAt(ix, i), valAt[V](ix, i), true
	}
	f.done(ix)
	return k, v, ok
}

// Min returns the first entry, and false if the index is empty.
func (f *Frozen[K, V]) Min() (K, V, bool) {
	return f.entry(f.open(), 0)
}

// Max returns the last entry, and false if the index is empty.
func (f *Frozen[K, V]) Max() (K, V, bool) {
	ix := f.open()
	return f.entry(ix, ix.Len()-1)
}

// Floor returns the entry with the greatest key up to key; of equal keys the
// last. It returns false if all keys are above.
func (f *Frozen[K, V]) Floor(key K) (K, V, bool) {
	ix := f.open()
	return f.entry(ix, ix.After(f.probe(key))-1)
}

// Ceil returns the entry with the least key from key on; of equal keys the
// first. It returns false if all keys are below.
func (f *Frozen[K, V]) Ceil(key K) (K, V, bool) {
	ix := f.open()
	i, _ := ix.Seek(f.probe(key))
	return f.entry(ix, i)
}

// Count returns the number of entries with lo <= key <= hi.
func (f *Frozen[K, V]) Count(lo, hi K) int {
	ix := f.open()
	first, _ := ix.Seek(f.probe(lo))
	n := max(0, ix.After(f.probe(hi))-first)
	f.done(ix)
	return n
}

// PrefixCount returns the number of entries whose key starts with p, without
// reading them. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) PrefixCount(p K) int {
	f.mustHaveStrings("PrefixCount")
	ix := f.open()
	lo, hi := ix.Prefix(f.probe(p).Text)
	f.done(ix)
	return hi - lo
}

// mustHaveStrings panics where keys are not strings.
func (f *Frozen[K, V]) mustHaveStrings(method string) {
	if f.key.Bits() != 0 {
		panic(fmt.Sprintf("pando: %s: only strings have prefixes, and the keys of this index are %s; ask for a Range instead", method, f.key.Name))
	}
}

// Close gives the memory of the index back to the system. An index that is
// never closed is freed when the garbage collector finds it unused, and makes
// it run as often as the same memory on the Go heap would. A second Close does
// nothing.
func (f *Frozen[K, V]) Close() error {
	if s := f.later.Swap(nil); s != nil {
		f.live.Store(nil)
		s.from.Drop()
		return nil
	}
	if ix := f.live.Swap(nil); ix != nil {
		return ix.Release()
	}
	return nil
}
