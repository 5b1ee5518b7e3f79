package pando

// Values that are strings or slices of bytes can be appended to a slice of the caller's: no
// memory is allocated for them where that has room. A value that is one of these lies off
// the Go heap, so that Get has to copy it, and allocates for each. These methods panic where
// values are of another type.

// GetAppend appends the value of key to dst, as append does, and reports whether there
// is one; of equal keys it is the first one's. Values must be strings or slices of bytes.
func (f *Frozen[K, V]) GetAppend(key K, dst []byte) ([]byte, bool) {
	return f.c.GetAppend(dst, f.probe(key))
}

// GetBytesAppend is GetAppend for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (f *Frozen[K, V]) GetBytesAppend(key, dst []byte) ([]byte, bool) {
	return f.c.GetAppend(dst, f.c.Key.Text("GetBytesAppend", key))
}

// GetBatchAppend looks up many keys at once, as GetBatch does, and appends their values to
// dst, one behind the other, as Arrow has them: with the slice that it returns, the value
// of keys[i] is data[offsets[i]:offsets[i+1]], which is empty where there is none; found[i],
// where found is not nil, reports which. Offsets begin at the length of dst. It returns the
// number of keys found, too. offsets must have room for one more than there are keys, found,
// if not nil, for as many. Values must be strings or slices of bytes.
func (f *Frozen[K, V]) GetBatchAppend(keys []K, dst []byte, offsets []int64, found []bool) (data []byte, hits int) {
	return f.c.GetBatchAppend(dst, f.keys(keys), offsets, found)
}

// GetBatchBytesAppend is GetBatchAppend for string keys that lie one behind the other, as
// those of GetBatchBytes do: key i is keys[ends[i]:ends[i+1]].
func (f *Frozen[K, V]) GetBatchBytesAppend(keys []byte, ends []int32, dst []byte, offsets []int64, found []bool) (data []byte, hits int) {
	return f.c.GetPackedAppend(dst, keys, ends, offsets, found)
}

// GetAppend appends the value of key to dst, as append does, and reports whether there
// is one. Values must be strings or slices of bytes.
func (t *Tree[K, V]) GetAppend(key K, dst []byte) ([]byte, bool) {
	return t.c.GetAppend(dst, t.probe(key))
}

// GetBytesAppend is GetAppend for a key that is a slice of bytes, which is not copied. Keys
// must be strings: it panics if they are not.
func (t *Tree[K, V]) GetBytesAppend(key, dst []byte) ([]byte, bool) {
	return t.c.GetAppend(dst, t.c.Key.Text("GetBytesAppend", key))
}

// GetBatchAppend looks up many keys at once, and appends their values to dst, as
// Frozen.GetBatchAppend does. Each answer was right at some time during the call.
func (t *Tree[K, V]) GetBatchAppend(keys []K, dst []byte, offsets []int64, found []bool) (data []byte, hits int) {
	return t.c.GetBatchAppend(dst, t.keys(keys), offsets, found)
}

// GetBatchBytesAppend is GetBatchAppend for string keys that lie one behind the other, as
// Frozen.GetBatchBytesAppend is.
func (t *Tree[K, V]) GetBatchBytesAppend(keys []byte, ends []int32, dst []byte, offsets []int64, found []bool) (data []byte, hits int) {
	return t.c.GetPackedAppend(dst, keys, ends, offsets, found)
}

// SetBatchPacked is SetBatchBytes for values that lie one behind the other, too: key i is
// keys[ends[i]:ends[i+1]], and its value vals[offsets[i]:offsets[i+1]]. The tree copies both
// once. Keys must be strings, and values strings or slices of bytes: it panics if they are
// not, or if offsets do not lie in their bytes in ascending order.
func (t *Tree[K, V]) SetBatchPacked(keys []byte, ends []int32, vals []byte, offsets []int64) error {
	return t.c.SetPacked(keys, ends, vals, offsets)
}
