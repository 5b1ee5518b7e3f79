package pando

import (
	"reflect"

	"github.com/pando-index/pando/internal/index"
)

// Packages pandoview and pandostore look into an index by index.InsideOf.
func init() {
	index.SetFace(func(ix any) (handle any, key reflect.Type) {
		if f, ok := ix.(interface{ handle() (any, reflect.Type) }); ok {
			return f.handle()
		}
		return nil, nil
	})
}

//lint:ignore U1000 index.InsideOf asks for it.
func (f *Frozen[K, V]) handle() (any, reflect.Type) { return &f.c, reflect.TypeFor[K]() }

//lint:ignore U1000 index.InsideOf asks for it.
func (t *Tree[K, V]) handle() (any, reflect.Type) { return &t.c, reflect.TypeFor[K]() }
