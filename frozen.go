package pando

import (
	"fmt"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
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
type Frozen[K Key, V any] struct{ c frozenCore }

// frozen makes a Frozen of an index.
func frozen[K Key, V any](ix *index.Index) *Frozen[K, V] {
	f := emptyFrozen[K, V](index.KeyTypeOf[K]())
	f.c.ix.Store(ix)
	return f
}

func emptyFrozen[K Key, V any](key index.KeyType) *Frozen[K, V] {
	f := new(Frozen[K, V])
	f.c.key, f.c.types = keyType{key}, typesOf[K, V]()
	return f
}

// probe returns a key without its type.
func (f *Frozen[K, V]) probe(key K) order.Probe { return order.Encode(f.c.key.Type, key) }

// keys returns keys without their type.
func (f *Frozen[K, V]) keys(keys []K) order.Keys { return order.KeysAs(f.c.key.Type, keys) }

// keyAt returns the key of entry i.
func (f *Frozen[K, V]) keyAt(ix *index.Index, i int) K {
	return order.Decode[K](f.c.key.Type, ix.Key(i))
}

// valAt returns the value of entry i.
func valAt[V any](ix *index.Index, i int) V { return index.ValueAs[V](ix.Val(i)) }

// Len returns the number of entries.
func (f *Frozen[K, V]) Len() int { return f.c.open().Len() }

// Get returns the value of key, and reports whether there is one. Of equal keys
// it is the first one's.
func (f *Frozen[K, V]) Get(key K) (V, bool) {
	ix := f.c.open()
	x, found := ix.Get(f.probe(key))
	v := index.ValueAs[V](x)
	f.c.done(ix)
	return v, found
}

// GetBatch looks up many keys at once, which is many times faster than as
// many calls of Get. vals[i] becomes the value of keys[i], or the zero value
// where there is none; found[i], where found is not nil, reports which. It
// returns the number of keys found. vals, and found if not nil, must be at least as
// long as keys. vals may be the very slice that keys is, but must not overlap
// it otherwise.
func (f *Frozen[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	return f.c.getBatch(f.keys(keys), index.ColumnOf(vals), found)
}

// GetBatchBytes is GetBatch for string keys that lie one behind the other, as
// Arrow has them: key i is data[offsets[i]:offsets[i+1]], so there is one offset
// more than there are keys. It saves making Go strings of them, and for a GPU,
// which gets them in this form anyway, gathering them. Keys of the index must be
// strings: it panics if they are not, or if offsets do not lie in data in
// ascending order.
func (f *Frozen[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int) {
	return f.c.getPacked(data, offsets, index.ColumnOf(vals), found)
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
func results(method string, vals index.Column, found []bool, n int) (index.Column, []bool) {
	mustHold(method, "vals", vals.Len(), n)
	if found == nil {
		return vals.First(n), nil
	}
	mustHold(method, "found", len(found), n)
	return vals.First(n), found[:n]
}

// mustHold panics where a result slice is shorter than keys.
func mustHold(method, slice string, have, need int) {
	if have < need {
		panic(fmt.Sprintf("pando: %s: %s holds %d results, but there are %d keys", method, slice, have, need))
	}
}

// Has reports whether there is an entry with the key.
func (f *Frozen[K, V]) Has(key K) bool {
	_, found := f.c.seek(f.probe(key))
	return found
}

// Rank returns the number of entries with a key below key.
func (f *Frozen[K, V]) Rank(key K) int {
	i, _ := f.c.seek(f.probe(key))
	return i
}

// RankBatch sets ranks[i] to Rank(keys[i]). ranks must be at least as long as
// keys.
func (f *Frozen[K, V]) RankBatch(keys []K, ranks []int) { f.c.rankBatch(f.keys(keys), ranks) }

// At returns entry i in key order. It panics if i is not in [0, Len).
func (f *Frozen[K, V]) At(i int) (K, V) {
	k, v, _ := f.entry(f.c.mustAt(i), i)
	return k, v
}

// entry returns entry i, and false if there is none.
func (f *Frozen[K, V]) entry(ix *index.Index, i int) (k K, v V, ok bool) {
	if i >= 0 && i < ix.Len() {
		k, v, ok = f.keyAt(ix, i), valAt[V](ix, i), true
	}
	f.c.done(ix)
	return k, v, ok
}

// Min returns the first entry, and false if the index is empty.
func (f *Frozen[K, V]) Min() (K, V, bool) {
	return f.entry(f.c.open(), 0)
}

// Max returns the last entry, and false if the index is empty.
func (f *Frozen[K, V]) Max() (K, V, bool) {
	ix := f.c.open()
	return f.entry(ix, ix.Len()-1)
}

// Floor returns the entry with the greatest key up to key; of equal keys the
// last. It returns false if all keys are above.
func (f *Frozen[K, V]) Floor(key K) (K, V, bool) { return f.entry(f.c.floor(f.probe(key))) }

// Ceil returns the entry with the least key from key on; of equal keys the
// first. It returns false if all keys are below.
func (f *Frozen[K, V]) Ceil(key K) (K, V, bool) { return f.entry(f.c.ceil(f.probe(key))) }

// Count returns the number of entries with lo <= key <= hi.
func (f *Frozen[K, V]) Count(lo, hi K) int { return f.c.count(f.probe(lo), f.probe(hi)) }

// PrefixCount returns the number of entries whose key starts with p, without
// reading them. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) PrefixCount(p K) int { return f.c.prefixCount(f.probe(p)) }

// Close gives the memory of the index back to the system. An index that is
// never closed is freed when the garbage collector finds it unused, and makes
// it run as often as the same memory on the Go heap would. A second Close does
// nothing.
func (f *Frozen[K, V]) Close() error { return f.c.close() }
