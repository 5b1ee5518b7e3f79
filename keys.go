package pando

import (
	"fmt"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// keyType is the type of the keys of a Frozen or a Tree, with the check that
// methods for strings make of it.
type keyType struct{ index.KeyType }

// mustBeText panics where keys are not strings, which a method takes as bytes.
func (k keyType) mustBeText(method string) {
	if k.Bits() != 0 {
		panic("pando: " + method + ": only strings can be looked up by bytes, and the keys here are " + k.Name)
	}
}

// mustHavePrefixes panics where keys are not strings.
func (k keyType) mustHavePrefixes(method string) {
	if k.Bits() != 0 {
		panic(fmt.Sprintf("pando: %s: only strings have prefixes, and the keys here are %s; ask for a Range instead", method, k.Name))
	}
}

// text returns the key of a method that takes bytes, in the memory of the caller.
func (k keyType) text(method string, key []byte) order.Probe {
	k.mustBeText(method)
	return order.Probe{Text: view(key)}
}

// texts returns the keys of a method that takes many as bytes. They lie in data.
func (k keyType) texts(method string, data []byte, offsets []int32, workers int) order.Keys {
	k.mustBeText(method)
	keys := make([]string, mustSpan(data, offsets, workers))
	for i := range keys {
		keys[i] = view(data[offsets[i]:offsets[i+1]])
	}
	return order.KeysAs(k.Type, keys)
}
