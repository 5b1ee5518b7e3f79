package pando

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Inside is what package pandoview shows of the index: its nodes, and nothing
// that changes it.
func (f *Frozen[K, V]) Inside() *index.Inside {
	return withText[K](f.open().Inside(f.open))
}

// Inside is what package pandoview shows of the tree: its nodes, and nothing that
// changes it.
func (t *Tree[K, V]) Inside() *index.Inside {
	return withText[K](t.open().Inside(func() { t.open() }))
}

// withText adds how keys are read and written.
func withText[K Key](in *index.Inside) *index.Inside {
	in.Format = func(p order.Probe) string { return fmt.Sprint(order.Decode[K](in.Type, p)) }
	in.Parse = func(text string) (order.Probe, error) {
		key, err := parseKey[K](text)
		return order.Encode(in.Type, key), err
	}
	return in
}

// parseKey makes a key of text.
func parseKey[K Key](text string) (key K, err error) {
	to := reflect.ValueOf(&key).Elem()
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
		return key, fmt.Errorf("%q is no key of type %v", text, to.Type())
	}
	return key, nil
}
