package pando

import (
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/snapshot"
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
// order they came in. After Close every method but Close panics, and a call
// that was under way on another goroutine panics rather than give an answer
// from memory that is gone.
type Frozen[K Key, V any] struct {
	live atomic.Pointer[index[K, V]] // nil once closed
}

// index is what a Frozen holds until it is closed.
type index[K Key, V any] struct {
	engine[K, V]
	n      int
	stats  Stats
	values *valueCodec[V] // for Save; may be nil
}

// engine answers for one family of key types. Its methods have capital names
// because staticcheck cannot see that generic types use the others.
type engine[K Key, V any] interface {
	Seek(key K) (rank int, equal bool) // entries below key; whether the one there has it
	After(key K) int                   // entries up to key
	Prefix(p K) (lo, hi int)           // entries whose key starts with p, a string
	Key(i int) K
	Val(i int) V
	GetBatch(keys []K, vals []V, found []bool) (hits int)
	RankBatch(keys []K, ranks []int)
	AfterBatch(keys []K, ranks []int)
	Fetch(lo, n int)                    // n entries from lo on will be copied soon
	CopyOut(lo int, keys []K, vals []V) // entries from lo on
	// CopyRuns copies runs of entries where that is not the CPU's work: run i
	// begins with entry first[i] and goes to offsets[i] and on. onCPU copies
	// entries [lo, hi) of the result. False if all of it is the CPU's work.
	CopyRuns(first, offsets []int, keys []K, vals []V, onCPU func(lo, hi int)) bool
	Report(*Stats) // what changes while an index is in use
	Parts(codec *valueCodec[V]) (snapshot.Header, []snapshot.Part, error)
	Release() error
}

// open gives the index, or panics if it was closed.
func (f *Frozen[K, V]) open() *index[K, V] {
	ix := f.live.Load()
	if ix == nil {
		panic("pando: Frozen used after Close")
	}
	return ix
}

// done is called when an answer has been read: if the index was closed in the
// meantime, the answer may be nonsense and is not given.
func (f *Frozen[K, V]) done(ix *index[K, V]) {
	if f.live.Load() != ix {
		panic("pando: Frozen closed while it was in use")
	}
}

// Len gives the number of entries.
func (f *Frozen[K, V]) Len() int { return f.open().n }

// Get gives the value of key, and whether there is one. Of equal keys it is
// the first one's.
func (f *Frozen[K, V]) Get(key K) (V, bool) {
	ix := f.open()
	var v V
	i, found := ix.Seek(key)
	if found && i < ix.n { // always, unless the index is being closed
		v = ix.Val(i)
	}
	f.done(ix)
	return v, found
}

// GetBatch looks up many keys at once, which is many times faster than as
// many calls of Get. vals[i] becomes the value of keys[i], or the zero value
// where there is none; found[i], where found is not nil, says which. It gives
// the number of keys found. vals, and found if not nil, must be at least as
// long as keys. vals may be the very slice that keys is, but must not overlap
// it otherwise.
func (f *Frozen[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int) {
	ix := f.open()
	mustHold("GetBatch", "vals", len(vals), len(keys))
	vals = vals[:len(keys)]
	if found != nil {
		mustHold("GetBatch", "found", len(found), len(keys))
		found = found[:len(keys)]
	}
	hits = ix.GetBatch(keys, vals, found)
	f.done(ix)
	return hits
}

// mustHold panics where a result slice is shorter than keys.
func mustHold(method, slice string, have, need int) {
	if have < need {
		panic(fmt.Sprintf("pando: %s: %s holds %d results, but there are %d keys", method, slice, have, need))
	}
}

// Rank gives the number of entries with a key below key.
func (f *Frozen[K, V]) Rank(key K) int {
	ix := f.open()
	i, _ := ix.Seek(key)
	f.done(ix)
	return i
}

// RankBatch sets ranks[i] to Rank(keys[i]). ranks must be at least as long as
// keys.
func (f *Frozen[K, V]) RankBatch(keys []K, ranks []int) {
	ix := f.open()
	mustHold("RankBatch", "ranks", len(ranks), len(keys))
	ix.RankBatch(keys, ranks[:len(keys)])
	f.done(ix)
}

// At gives entry i in key order. It panics if i is not in [0, Len).
func (f *Frozen[K, V]) At(i int) (K, V) {
	ix := f.open()
	if i < 0 || i >= ix.n {
		panic(fmt.Sprintf("pando: At(%d): the index has %d entries", i, ix.n))
	}
	k, v := ix.Key(i), ix.Val(i)
	f.done(ix)
	return k, v
}

// entry gives entry i, and false if there is none.
func (f *Frozen[K, V]) entry(ix *index[K, V], i int) (k K, v V, ok bool) {
	if i >= 0 && i < ix.n {
		k, v, ok = ix.Key(i), ix.Val(i), true
	}
	f.done(ix)
	return k, v, ok
}

// Min gives the first entry, and false if the index is empty.
func (f *Frozen[K, V]) Min() (K, V, bool) {
	return f.entry(f.open(), 0)
}

// Max gives the last entry, and false if the index is empty.
func (f *Frozen[K, V]) Max() (K, V, bool) {
	ix := f.open()
	return f.entry(ix, ix.n-1)
}

// Floor gives the entry with the greatest key up to key; of equal keys the
// last. It gives false if all keys are above.
func (f *Frozen[K, V]) Floor(key K) (K, V, bool) {
	ix := f.open()
	return f.entry(ix, ix.After(key)-1)
}

// Ceil gives the entry with the least key from key on; of equal keys the
// first. It gives false if all keys are below.
func (f *Frozen[K, V]) Ceil(key K) (K, V, bool) {
	ix := f.open()
	i, _ := ix.Seek(key)
	return f.entry(ix, i)
}

// All iterates over all entries in key order.
func (f *Frozen[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		ix := f.open()
		f.walk(ix, 0, ix.n, yield)
	}
}

// Range iterates over the entries with lo <= key <= hi, in key order. There
// are none if lo is above hi.
func (f *Frozen[K, V]) Range(lo, hi K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		ix := f.open()
		first, _ := ix.Seek(lo)
		f.walk(ix, first, ix.After(hi), yield)
	}
}

// Backward iterates over all entries in reverse key order.
func (f *Frozen[K, V]) Backward() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		ix := f.open()
		for i := ix.n - 1; i >= 0; i-- {
			k, v := ix.Key(i), ix.Val(i)
			f.done(ix)
			if !yield(k, v) {
				return
			}
		}
	}
}

// window is the number of entries that an iteration copies out at a time.
const window = 64

// walk yields entries [i, end). It copies them out window by window, a few at
// first so that a short range stays cheap.
func (f *Frozen[K, V]) walk(ix *index[K, V], i, end int, yield func(K, V) bool) {
	var keys [window]K
	var vals [window]V
	for size := 8; i < end; size = min(2*size, window) {
		n := min(size, end-i)
		ix.CopyOut(i, keys[:n], vals[:n])
		for j := range n {
			f.done(ix)
			if !yield(keys[j], vals[j]) {
				return
			}
		}
		i += n
	}
}

// Count gives the number of entries with lo <= key <= hi.
func (f *Frozen[K, V]) Count(lo, hi K) int {
	ix := f.open()
	first, _ := ix.Seek(lo)
	n := max(0, ix.After(hi)-first)
	f.done(ix)
	return n
}

// Prefix iterates over the entries whose key starts with p, in key order: all
// of them where p is empty. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) Prefix(p K) iter.Seq2[K, V] {
	mustBeText[K]("Prefix")
	return func(yield func(K, V) bool) {
		ix := f.open()
		lo, hi := ix.Prefix(p)
		f.walk(ix, lo, hi, yield)
	}
}

// PrefixCount gives the number of entries whose key starts with p, without
// reading them. Keys must be strings: it panics if they are not.
func (f *Frozen[K, V]) PrefixCount(p K) int {
	mustBeText[K]("PrefixCount")
	ix := f.open()
	lo, hi := ix.Prefix(p)
	f.done(ix)
	return hi - lo
}

// mustBeText panics where keys are not strings.
func mustBeText[K Key](method string) {
	if order.Width[K]() != 0 {
		panic(fmt.Sprintf("pando: %s: only strings have prefixes, and the keys of this index are %s; ask for a Range instead", method, keyName[K]()))
	}
}

// Close gives the memory of the index back to the system. An index that is
// never closed is freed when the garbage collector finds it unused. A second
// Close does nothing.
func (f *Frozen[K, V]) Close() error {
	if ix := f.live.Swap(nil); ix != nil {
		return ix.Release()
	}
	return nil
}
