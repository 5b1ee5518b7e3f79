package pando

import (
	"unsafe"

	"github.com/pando-index/pando/internal/index"
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
	p := f.c.Key.Text("GetBytes", key)
	ix := f.c.Open()
	x, found := ix.Get(p)
	v := index.ValueAs[V](x)
	f.c.Done(ix)
	return v, found
}

// HasBytes is Has for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (f *Frozen[K, V]) HasBytes(key []byte) bool {
	_, found := f.c.Seek(f.c.Key.Text("HasBytes", key))
	return found
}

// RankBytes is Rank for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not. With At it leads to neighbours.
func (f *Frozen[K, V]) RankBytes(key []byte) int {
	i, _ := f.c.Seek(f.c.Key.Text("RankBytes", key))
	return i
}
