package index

import (
	"fmt"

	"github.com/pando-index/pando/internal/order"
)

// Freeze is Build as the face has it: with options, checks of the arguments, and public
// errors.
func Freeze(keys order.Keys, key KeyType, vals Column, val *ValueType, o *Options) (*Index, error) {
	if keys.Len() != vals.n && !(val.Empty() && vals.IsNil()) {
		return nil, fmt.Errorf("%w: %d keys, %d values", ErrLength, keys.Len(), vals.n)
	}
	codec, err := o.Codec(val)
	if err != nil {
		return nil, err
	}
	ix, err := Build(keys, key, vals, val, o.Config, codec)
	return ix, Public(err)
}

// FreezeParts is Freeze for entries that were gathered part by part: each has as many keys
// as values.
func FreezeParts(keys []order.Keys, key KeyType, vals []Column, val *ValueType, o *Options) (*Index, error) {
	if len(keys) == 1 {
		return Freeze(keys[0], key, vals[0], val, o)
	}
	ends, n := make([]int, len(keys)), 0
	for i, k := range keys {
		n += k.Len()
		ends[i] = n
	}
	allKeys, allVals := MakeKeys(key.Type, n), val.Zeros(n)
	o.Each(len(keys), func(i int) {
		lo, hi := ends[i]-keys[i].Len(), ends[i]
		copyKeys(allKeys.Slice(lo, hi), keys[i])
		val.CopyAll(val.Part(allVals, lo, hi), vals[i], 1)
		keys[i], vals[i] = order.Keys{}, Column{} // the part is garbage from here on
	})
	return Freeze(allKeys, key, allVals, val, o)
}

// copyKeys copies keys step by step: between steps the scheduler can stop the goroutine.
func copyKeys(dst, src order.Keys) {
	const step = 16 << 10
	for lo := 0; lo < src.Len(); lo += step {
		hi := min(lo+step, src.Len())
		dst.Slice(lo, hi).Copy(src.Slice(lo, hi))
	}
}

// OpenAs is Open as the face has it: with options, checks and public errors. It calls file
// once the options are known to be right.
func OpenAs(key KeyType, val *ValueType, o *Options, file func() (*File, error)) (*Index, error) {
	codec, err := o.Codec(val)
	if err != nil {
		return nil, err
	}
	f, err := file()
	if err != nil {
		return nil, Public(err)
	}
	defer f.Close()
	ix, err := Open(f, key, val, o.Config, codec)
	return ix, Public(err)
}
