package pando

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Inside returns the view of the index that package pandoview shows: its nodes,
// and nothing that changes it.
func (f *Frozen[K, V]) Inside() *index.Inside {
	return withText(reflect.TypeFor[K](), f.c.open().Inside(f.c.open))
}

// Inside returns the view of the tree that package pandoview shows: its nodes,
// and nothing that changes it.
func (t *Tree[K, V]) Inside() *index.Inside {
	return withText(reflect.TypeFor[K](), t.c.open().Inside(t.c.Alive))
}

func init() { index.Loose = Option(func(c *config) { c.loose = true }) }

// withText adds how keys of a type are read and written.
func withText(key reflect.Type, in *index.Inside) *index.Inside {
	// made returns a key, and where it lies.
	made := func() (reflect.Value, order.Keys) {
		k := reflect.New(key)
		return k.Elem(), order.KeysAt(in.Type, k.UnsafePointer(), 1)
	}
	in.Format = func(p order.Probe) string {
		k, at := made()
		at.SetProbe(0, p)
		return fmt.Sprint(k.Interface())
	}
	in.Parse = func(text string) (order.Probe, error) {
		k, at := made()
		err := parseKey(k, text)
		return at.Probe(0), err
	}
	return in
}

// parseKey sets a key to the one that text names.
func parseKey(to reflect.Value, text string) (err error) {
	switch bits := to.Type().Bits; to.Kind() {
	case reflect.String:
		to.SetString(text)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(text, bits())
		to.SetFloat(f)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		i, err = strconv.ParseInt(text, 0, bits())
		to.SetInt(i)
	default:
		var u uint64
		u, err = strconv.ParseUint(text, 0, bits())
		to.SetUint(u)
	}
	if err != nil {
		return fmt.Errorf("%q is no key of type %v", text, to.Type())
	}
	return nil
}
