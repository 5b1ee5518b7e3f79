package pando

import (
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
type Frozen[K Key, V any] struct{ c index.Handle }

// frozen makes a Frozen of an index, or of the error why there is none.
func frozen[K Key, V any](ix *index.Index, err error) (*Frozen[K, V], error) {
	if err != nil {
		return nil, err
	}
	f := new(Frozen[K, V])
	f.c.Begin(index.KeyTypeOf[K](), ix)
	return f, nil
}

// probe returns a key without its type.
func (f *Frozen[K, V]) probe(key K) order.Probe { return order.Encode(f.c.Key.Type, key) }

// keys returns keys without their type.
func (f *Frozen[K, V]) keys(keys []K) order.Keys { return order.KeysAs(f.c.Key.Type, keys) }

// keyAt returns the key of entry i.
func (f *Frozen[K, V]) keyAt(ix *index.Index, i int) K {
	return order.Decode[K](f.c.Key.Type, ix.Engine.Key(i))
}

// valAt returns the value of entry i.
func valAt[V any](ix *index.Index, i int) V { return index.ValueAs[V](ix.Val(i)) }

// Len returns the number of entries.
func (f *Frozen[K, V]) Len() int { return f.c.Open().Len() }

// Get returns the value of key, and reports whether there is one. Of equal keys
// it is the first one's.
func (f *Frozen[K, V]) Get(key K) (V, bool) {
	ix := f.c.Open()
	x, found := ix.Get(f.probe(key))
	v := index.ValueAs[V](x)
	f.c.Done(ix)
	return v, found
}

// GetBatch looks up many keys at once, which is many times faster than as
// many calls of Get. vals[i] becomes the value of keys[i], or the zero value
// where there is none; found[i], where found is not nil, reports which. It
// returns the number of keys found. vals, and found if not nil, must be at least as
// long as keys. vals may be the very slice that keys is, but must not overlap
// it otherwise.
func (f *Frozen[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	return f.c.GetBatch(f.keys(keys), index.ColumnOf(vals), found)
}

// GetBatchBytes is GetBatch for string keys that lie one behind the other, as
// Arrow has them: key i is data[offsets[i]:offsets[i+1]], so there is one offset
// more than there are keys. It saves making Go strings of them, and for a GPU,
// which gets them in this form anyway, gathering them. Keys of the index must be
// strings: it panics if they are not, or if offsets do not lie in data in
// ascending order.
func (f *Frozen[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) (hits int) {
	return f.c.GetPacked(data, offsets, index.ColumnOf(vals), found)
}

// Has reports whether there is an entry with the key.
func (f *Frozen[K, V]) Has(key K) bool {
	_, found := f.c.Seek(f.probe(key))
	return found
}

// Rank returns the number of entries with a key below key.
func (f *Frozen[K, V]) Rank(key K) int {
	i, _ := f.c.Seek(f.probe(key))
	return i
}

// RankBatch sets ranks[i] to Rank(keys[i]). ranks must be at least as long as
// keys.
func (f *Frozen[K, V]) RankBatch(keys []K, ranks []int) { f.c.RankBatch(f.keys(keys), ranks) }

// At returns entry i in key order. It panics if i is not in [0, Len).
func (f *Frozen[K, V]) At(i int) (K, V) {
	k, v, _ := f.entry(f.c.MustAt(i), i)
	return k, v
}

// entry returns entry i, and false if there is none.
func (f *Frozen[K, V]) entry(ix *index.Index, i int) (k K, v V, ok bool) {
	if i >= 0 && i < ix.Len() {
		k, v, ok = f.keyAt(ix, i), valAt[V](ix, i), true
	}
	f.c.Done(ix)
	return k, v, ok
}

// Min returns the first entry, and false if the index is empty.
func (f *Frozen[K, V]) Min() (K, V, bool) {
	return f.entry(f.c.Open(), 0)
}

// Max returns the last entry, and false if the index is empty.
func (f *Frozen[K, V]) Max() (K, V, bool) {
	ix := f.c.Open()
	return f.entry(ix, ix.Len()-1)
}

// Floor returns the entry with the greatest key up to key; of equal keys the
// last. It returns false if all keys are above.
func (f *Frozen[K, V]) Floor(key K) (K, V, bool) { return f.entry(f.c.Floor(f.probe(key))) }

// Ceil returns the entry with the least key from key on; of equal keys the
// first. It returns false if all keys are below.
func (f *Frozen[K, V]) Ceil(key K) (K, V, bool) { return f.entry(f.c.Ceil(f.probe(key))) }

// Count returns the number of entries with lo <= key <= hi.
func (f *Frozen[K, V]) Count(lo, hi K) int { return f.c.Count(f.probe(lo), f.probe(hi)) }

// PrefixCount returns the number of entries whose key starts with p, without
// reading them. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) PrefixCount(p K) int { return f.c.PrefixCount(f.probe(p)) }

// Close gives the memory of the index back to the system. An index that is
// never closed is freed when the garbage collector finds it unused, and makes
// it run as often as the same memory on the Go heap would. A second Close does
// nothing.
func (f *Frozen[K, V]) Close() error { return f.c.Close() }
