package pando

import (
	"fmt"
	"reflect"
)

// String says in a line what the index is, for fmt.Println and logs. It may be called
// after Close, too.
func (f *Frozen[K, V]) String() string {
	name := fmt.Sprintf("pando.Frozen[%v, %v]", reflect.TypeFor[K](), reflect.TypeFor[V]())
	ix := f.live.Load()
	if ix == nil {
		return name + ": closed"
	}
	s, things := ix.Stats(), "entries"
	if s.Len == 1 {
		things = "entry"
	}
	return fmt.Sprintf("%s: %d %s, %v, on %v", name, s.Len, things, layoutNamed(s.Layout), Device{s.Device})
}
