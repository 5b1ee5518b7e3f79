package index_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// columnsOf returns the Columns of two types.
func columnsOf[K order.Key, V any](t testing.TB) *index.Columns {
	t.Helper()
	val := index.ValueTypeOf[V]()
	c, err := index.NewColumns(index.KeyTypeOf[K](), val, index.DefaultCodec(val))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// roundTrip writes operations in pieces of any size, and reads them back.
func roundTrip[K order.Key, V any](t *testing.T, key func(i int) K, val func(i int) V) {
	rng := seed.Rand(t)
	c := columnsOf[K, V](t)
	for range 200 {
		n := rng.IntN(40)
		keys, vals, kinds := make([]K, n), make([]V, n), make([]op.Kind, n)
		for i := range n {
			keys[i], vals[i], kinds[i] = key(rng.IntN(1000)), val(rng.IntN(1000)), op.Kind(rng.IntN(3))
		}
		b := index.Batch{Kind: op.Kind(1 + rng.IntN(2)), Keys: order.KeysOf(keys), Vals: index.ColumnOf(vals)}
		if rng.IntN(2) == 0 {
			b.Kinds = kinds
		} else if b.Kind == op.Delete {
			b.Vals = index.Column{}
		}
		if err := c.Encode(&b); err != nil {
			t.Fatal(err)
		}
		for from := 0; from < n; {
			data, m := c.Append(nil, &b, from, 1+rng.IntN(300))
			if m < 1 || len(data)%8 != 0 {
				t.Fatalf("%d operations in %d bytes", m, len(data))
			}
			got, err := c.Read(data, m, b.Kind, b.Kinds != nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m {
				set := b.Kinds == nil && b.Kind == op.Set || b.Kinds != nil && kinds[from+i] == op.Set
				if b.Kinds != nil && got.Kinds[i] != kinds[from+i] || got.Keys.Probe(i) != b.Keys.Probe(from+i) ||
					set && !reflect.DeepEqual(index.SliceOf[V](got.Vals)[i], vals[from+i]) {
					t.Fatalf("operation %d of %d differs", from+i, n)
				}
			}
			damaged(t, c, rng, data, m, &b)
			from += m
		}
	}
}

// damaged reads columns that are cut short and changed: that must not fault.
func damaged(t *testing.T, c *index.Columns, rng *rand.Rand, data []byte, n int, b *index.Batch) {
	t.Helper()
	if len(data) == 0 {
		return
	}
	cut := data[: rng.IntN(len(data))&^7 : len(data)]
	if _, err := c.Read(cut, n, b.Kind, b.Kinds != nil); err == nil && len(cut) > 0 {
		t.Fatalf("%d of %d bytes are enough", len(cut), len(data))
	}
	other := append([]byte(nil), data...)
	other[rng.IntN(len(other))] ^= byte(1 + rng.IntN(255))
	c.Read(other, n, b.Kind, b.Kinds != nil)
	c.Read(other, rng.IntN(2*n+2), b.Kind, b.Kinds == nil)
}

// marshaled is a value with a codec of its own.
type marshaled struct{ text string }

func (m marshaled) MarshalBinary() ([]byte, error)  { return []byte(m.text), nil }
func (m *marshaled) UnmarshalBinary(b []byte) error { m.text = string(b); return nil }

// A codec is called once for each value, and only for those that are set.
func TestEncodeOnce(t *testing.T) {
	calls := 0
	val := index.ValueTypeOf[marshaled]()
	codec := *index.DefaultCodec(val)
	plain := codec.Encode
	codec.Encode = func(dst []byte, v unsafe.Pointer) ([]byte, error) {
		calls++
		return plain(dst, v)
	}
	c, err := index.NewColumns(index.KeyTypeOf[int](), val, &codec)
	if err != nil {
		t.Fatal(err)
	}
	b := index.Batch{Kinds: []op.Kind{op.Set, op.Delete, op.Set}, Keys: order.KeysOf([]int{1, 2, 3}), Vals: index.ColumnOf([]marshaled{{"a"}, {"b"}, {"c"}})}
	if err := c.Encode(&b); err != nil {
		t.Fatal(err)
	}
	c.Append(nil, &b, 0, 1)
	c.Append(nil, &b, 0, 1<<20)
	if calls != 2 {
		t.Errorf("%d calls for 2 values", calls)
	}
}

// FuzzColumns reads bytes of anybody's: whatever they are, Read returns an error or the
// operations, and faults over nothing.
func FuzzColumns(f *testing.F) {
	all := []*index.Columns{columnsOf[uint64, uint64](f), columnsOf[int8, pair](f), columnsOf[string, []byte](f), columnsOf[string, marshaled](f), columnsOf[uint32, struct{}](f)}
	f.Add(uint8(0), []byte{1, 1, 1, 1, 1}, 5, uint8(1), true)
	f.Add(uint8(0), []byte{1, 1, 1, 1, 1}, 1, uint8(2), false)
	f.Add(uint8(2), make([]byte, 64), 8, uint8(1), false)
	f.Fuzz(func(t *testing.T, which uint8, data []byte, n int, kind uint8, mixed bool) {
		c := all[int(which)%len(all)]
		data = append(make([]byte, 0, len(data)+8), data...) // at an aligned address
		b, err := c.Read(data, n, op.Kind(1+kind%2), mixed)
		if err != nil {
			return
		}
		if b.Len() != n || mixed && len(b.Kinds) != n {
			t.Fatalf("%d operations, want %d", b.Len(), n)
		}
		for i := range n {
			b.Keys.Probe(i)
			if b.Vals.Len() > 0 {
				c.ValOf(b.Vals, i)
			}
		}
	})
}

type pair struct {
	A uint16
	B float64
}

func TestColumns(t *testing.T) {
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i), i%7) }
	t.Run("numbers", func(t *testing.T) {
		roundTrip(t, func(i int) uint64 { return uint64(i) }, func(i int) int64 { return int64(-i) })
	})
	t.Run("bytes", func(t *testing.T) {
		roundTrip(t, func(i int) int8 { return int8(i) }, func(i int) uint8 { return uint8(i) })
	})
	t.Run("rows", func(t *testing.T) {
		roundTrip(t, func(i int) float32 { return float32(i) }, func(i int) pair { return pair{uint16(i), 1} })
	})
	t.Run("strings", func(t *testing.T) { roundTrip(t, text, text) })
	t.Run("slices", func(t *testing.T) {
		roundTrip(t, text, func(i int) []byte { return append([]byte{}, text(i)...) })
	})
	t.Run("marshaled", func(t *testing.T) {
		roundTrip(t, text, func(i int) marshaled { return marshaled{text(i)} })
	})
	t.Run("none", func(t *testing.T) { roundTrip(t, text, func(int) struct{} { return struct{}{} }) })
}

// What is gathered is what was added.
func TestGathering(t *testing.T) {
	c := columnsOf[string, string](t)
	g := c.Gather()
	for range 3 {
		for i := range 200 {
			g.Add(op.Set, order.Probe{Text: fmt.Sprint(i)}, index.ValueOf(index.ValueTypeOf[string]().Form(), fmt.Sprint(-i)), nil)
		}
		if b := g.Batch(); b.Kinds != nil || b.Kind != op.Set {
			t.Error("all of one kind are not")
		}
		all := g.Each()
		more := index.Batch{Kinds: append([]op.Kind{op.Delete}, all.Kinds[1:]...), Keys: all.Keys, Vals: all.Vals}
		g.AddAll(&more)
		b := g.Batch()
		if b.Len() != 400 || b.Kinds[200] != op.Delete || b.Keys.Probe(399).Text != "199" || index.ValueAs[string](g.Val(399)) != "-199" {
			t.Error(b.Len(), b.Keys.Probe(399).Text, index.ValueAs[string](g.Val(399)))
		}
		g.Reset()
	}
}
