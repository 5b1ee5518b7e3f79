package live_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// A cursor whose generation ends before it has read its value begins where it was
// asked from, and not at the key that it has found: the neighbour of that Moment is
// another. Here key 1 is odd only while 4 is there.
// Its generation ends once, right after the cursor has found an entry.
func TestCursorAfterGenerations(t *testing.T) {
	for _, layout := range []string{"strings", "digits", "bplus"} {
		for _, down := range []bool{false, true} {
			name := fmt.Sprintf("%s/down=%t", layout, down)
			t.Run(name+"/boxes", func(t *testing.T) { cursorLate(t, layout, down, boxed{"even"}, boxed{"odd"}, boxed{"there"}) })
			t.Run(name+"/stored", func(t *testing.T) { cursorLate(t, layout, down, "an even value", "odd", "it is there") })
		}
	}
}

func cursorLate[V comparable](t *testing.T, layout string, down bool, even, odd, there V) {
	m := mapOf[V](t, layout)
	near, far := keyOf(4), keyOf(1)
	from := index.Edge{Key: keyOf(5)}
	if !down {
		near, far, from = keyOf(1), keyOf(4), index.Edge{Key: keyOf(0)}
	}
	m.Swap(far, even)
	ended := false
	live.PutBetween(m.Map, live.Between{Current: func() bool {
		if ended {
			return true
		}
		ended = true
		m.Swap(near, there)
		m.Swap(far, odd)
		return false
	}})
	c := m.Cursor()
	defer c.Done()
	c.Move(from, down)
	if k, v, ok := c.Next(); !ok || !isKey(k, near) || index.ValueAs[V](v) != there {
		t.Errorf("the cursor returns %v, %v, %t, which never was the first entry", k, index.ValueAs[V](v), ok)
	}
	if k, v, ok := c.Next(); !ok || !isKey(k, far) || index.ValueAs[V](v) != odd {
		t.Errorf("then it returns %v, %v, %t", k, index.ValueAs[V](v), ok)
	}
}

// mapOf returns an empty map of strings, or of numbers in one of two layouts.
func mapOf[V any](t *testing.T, layout string) typed[V] {
	key, cfg := index.KeyTypeOf[uint64](), index.Config{}
	switch layout {
	case "strings":
		key = index.KeyTypeOf[string]()
	case "digits":
		cfg.Layout = "radix"
	}
	m, err := newMap[V](key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// keyOf returns a key for maps of strings and of numbers alike.
func keyOf(i int) order.Probe { return order.Probe{Code: uint64(i), Text: fmt.Sprintf("key %04d", i)} }

// isKey reports whether a key of a map is such a key.
func isKey(k, of order.Probe) bool { return k.Text == of.Text || k.Text == "" && k.Code == of.Code }

// There is nothing above the greatest key that there can be, nor below the least.
func TestNearestBeyondAll(t *testing.T) {
	for _, name := range []layout.Name{"", "radix"} {
		o := index.NewOptions()
		o.Layout = name
		h := new(live.Handle)
		if err := h.Load(index.KeyTypeOf[uint64](), index.ValueTypeOf[uint64](), 0, nil, o); err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		h.Set(order.Probe{Code: 5}, index.Value{Bits: 5})
		for _, edge := range []uint64{0, math.MaxUint64} {
			down := edge == 0
			if k, _, ok := h.Nearest(index.Edge{Key: order.Probe{Code: edge}, Open: true}, down); ok {
				t.Errorf("%q: %d is beyond %d", name, k.Code, edge)
			}
			if _, _, ok := h.Nearest(index.Edge{Key: order.Probe{Code: edge}, Open: true}, !down); !ok {
				t.Errorf("%q: nothing is beyond %d on the other side", name, edge)
			}
		}
	}
}
