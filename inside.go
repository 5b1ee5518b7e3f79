package pando

import (
	"reflect"

	"github.com/pando-index/pando/internal/index"
)

// Packages pandoview and pandostore look into an index by index.InsideOf.
func init() {
	index.SetFace(func(ix any) (func() *index.Inside, bool) {
		f, ok := ix.(interface{ inside() *index.Inside })
		if !ok {
			return nil, false
		}
		return f.inside, true
	})
}

//lint:ignore U1000 index.InsideOf asks for it.
func (f *Frozen[K, V]) inside() *index.Inside { return f.c.Inside(reflect.TypeFor[K]()) }

//lint:ignore U1000 index.InsideOf asks for it.
func (t *Tree[K, V]) inside() *index.Inside { return t.c.Inside(reflect.TypeFor[K]()) }
