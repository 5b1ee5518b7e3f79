package index

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/order"
)

// Checks of the arguments of the face's methods. They panic with a sentence that names
// the method.

// MustBeText panics where keys are not strings, which a method takes as bytes.
func (t KeyType) MustBeText(method string) {
	if t.Bits() != 0 {
		panic("pando: " + method + ": only strings can be looked up by bytes, and the keys here are " + t.Name)
	}
}

// MustHavePrefixes panics where keys are not strings.
func (t KeyType) MustHavePrefixes(method string) {
	if t.Bits() != 0 {
		panic(fmt.Sprintf("pando: %s: only strings have prefixes, and the keys here are %s; ask for a Range instead", method, t.Name))
	}
}

// Text returns the key of a method that takes bytes, in the memory of the caller.
func (t KeyType) Text(method string, key []byte) order.Probe {
	t.MustBeText(method)
	return order.Probe{Text: unsafe.String(unsafe.SliceData(key), len(key))}
}

// Texts returns the keys of a method that takes many as bytes. They lie in data.
func (t KeyType) Texts(method string, data []byte, offsets []int32, workers int) order.Keys {
	t.MustBeText(method)
	MustSpan(data, offsets, workers)
	return order.KeysAs(t.Type, Unpacked(data, offsets))
}

// MustSpan returns the number of strings, and panics where they do not lie in data one
// behind the other.
func MustSpan(data []byte, offsets []int32, workers int) int {
	if len(offsets) == 0 {
		panic("pando: GetBatchBytes: no offsets; there is one more than there are keys")
	}
	if i := BadOffset(len(data), offsets, workers); i >= 0 {
		panic(fmt.Sprintf("pando: GetBatchBytes: offset %d is %d; offsets ascend from 0 to the length of data, %d", i, offsets[i], len(data)))
	}
	return len(offsets) - 1
}

// Results returns the slices for the results of n keys, cut to that length, and panics
// where one is shorter. found may be nil.
func Results(method string, vals Column, found []bool, n int) (Column, []bool) {
	MustHold(method, "vals", vals.n, n)
	if found == nil {
		return vals.First(n), nil
	}
	MustHold(method, "found", len(found), n)
	return vals.First(n), found[:n]
}

// MustHold panics where a result slice is shorter than keys.
func MustHold(method, slice string, have, need int) {
	if have < need {
		panic(fmt.Sprintf("pando: %s: %s holds %d results, but there are %d keys", method, slice, have, need))
	}
}

// MustPair panics where ranges have more bounds on one side.
func MustPair(method string, lo, hi int) {
	if lo != hi {
		panic(fmt.Sprintf("pando: %s: %d lower and %d upper bounds", method, lo, hi))
	}
}

// MustBeOn panics where a cursor is at no entry.
func MustBeOn(on bool, method string) {
	if !on {
		panic("pando: Cursor." + method + ": the cursor is at no entry")
	}
}
