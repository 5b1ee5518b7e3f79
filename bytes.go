package pando

import (
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Keys that are []byte need not be made strings to be looked up. The index holds
// copies of its keys and reads those that are asked for only during the call.

// FreezeBytes is Freeze for keys that are slices of bytes: the index's are
// strings. The bytes are copied into the index alone, and must not change until
// it is built.
func FreezeBytes[V any](keys [][]byte, vals []V, opts ...Option) (*Frozen[string, V], error) {
	views := make([]string, len(keys))
	for i, k := range keys {
		views[i] = view(k)
	}
	return Freeze(views, vals, opts...)
}

// view returns bytes as a string that must not outlive them.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// GetBytes is Get for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (f *Frozen[K, V]) GetBytes(key []byte) (V, bool) {
	f.mustTakeBytes("GetBytes")
	ix := f.open()
	x, found := ix.Get(order.Probe{Text: view(key)})
	v := index.ValueAs[V](x)
	f.done(ix)
	return v, found
}

// HasBytes is Has for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (f *Frozen[K, V]) HasBytes(key []byte) bool {
	f.mustTakeBytes("HasBytes")
	ix := f.open()
	_, found := ix.Seek(order.Probe{Text: view(key)})
	f.done(ix)
	return found
}

// RankBytes is Rank for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not. With At it leads to neighbours.
func (f *Frozen[K, V]) RankBytes(key []byte) int {
	f.mustTakeBytes("RankBytes")
	ix := f.open()
	i, _ := ix.Seek(order.Probe{Text: view(key)})
	f.done(ix)
	return i
}

func (f *Frozen[K, V]) mustTakeBytes(method string) {
	if f.key.Bits() != 0 {
		panic("pando: " + method + ": only strings can be looked up by bytes, and the keys of this index are " + f.key.Name)
	}
}
