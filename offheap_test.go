package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/facetest"
)

type (
	document []byte
	point    struct{ x, y, z float64 }
)

// Values without pointers, and slices of bytes, are off the heap, in memory and in a file; what
// is handed out is a copy.
func TestValuesOffTheHeap(t *testing.T) {
	t.Run("bytes", offTheHeap(func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, i%50) }, slices.Equal))
	t.Run("named bytes", offTheHeap(func(i int) document { return fmt.Appendf(nil, "document %d", i) }, slices.Equal))
	t.Run("UUIDs", offTheHeap(func(i int) [16]byte { return [16]byte{byte(i), 5, byte(i >> 8)} }, isSame))
	t.Run("structs", offTheHeap(func(i int) point { return point{float64(i), 0, -1} }, isSame))
	t.Run("complex", offTheHeap(func(i int) complex128 { return complex(float64(i), 1) }, isSame))
	t.Run("one byte", offTheHeap(func(i int) bool { return i%3 == 0 }, isSame))
}

func isSame[V comparable](a, b V) bool { return a == b }

func offTheHeap[V any](of func(i int) V, equal func(a, b V) bool) func(t *testing.T) {
	return func(t *testing.T) {
		const n = 3000
		keys, vals := make([]uint64, n), make([]V, n)
		texts := make([]string, n)
		for i := range keys { // not in order
			keys[i], vals[i] = uint64(i)*7919%n, of(i*7919%n)
			texts[i] = fmt.Sprintf("%06d", keys[i])
		}
		numbers := facetest.MustFreeze(t, keys, vals)
		strings := facetest.MustFreeze(t, texts, vals)
		if b, ok := any(vals).([][]byte); ok { // they are the caller's again
			clear(b[7])
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := numbers.Save(path); err != nil {
			t.Fatal(err)
		}
		file, err := pando.Open[uint64, V](path)
		if err != nil {
			t.Fatal(err)
		}
		if s := numbers.Stats(); s.HeapBytes != 0 || s.ValueBytes == 0 {
			t.Errorf("%+v", s)
		}
		for _, ix := range []*pando.Frozen[uint64, V]{numbers, file} {
			asked := []uint64{5, n, 0, n - 1, 1234}
			got, found := make([]V, len(asked)), make([]bool, len(asked))
			if ix.GetBatch(asked, got, found) != len(asked)-1 || found[1] {
				t.Errorf("found %t", found)
			}
			for i, k := range asked {
				v, ok := ix.Get(k)
				if ok != found[i] || !equal(v, got[i]) || ok && !equal(v, of(int(k))) {
					t.Errorf("key %d: %v, %v of a batch, want %v", k, v, got[i], of(int(k)))
				}
				scribble(v)
				scribble(got[i])
			}
			i := 0
			for k, v := range ix.All() {
				if k != uint64(i) || !equal(v, of(i)) {
					t.Fatalf("entry %d: %d, %v", i, k, v)
				}
				scribble(v)
				i++
			}
			if _, v, _ := ix.Max(); !equal(v, of(n-1)) {
				t.Errorf("%v is the last value", v)
			}
		}
		if v, ok := strings.Get("000123"); !ok || !equal(v, of(123)) {
			t.Errorf("%v, want %v", v, of(123))
		}
		strings.Close()
		file.Close()
		if got, want := arena.InUse(), numbers.Stats().TotalBytes; got != want {
			t.Errorf("%d bytes are in use, Stats say %d", got, want)
		}
		numbers.Close()
		facetest.NoneInUse(t)
	}
}

// scribble changes a value that is the caller's.
func scribble(v any) {
	switch b := v.(type) {
	case []byte:
		for i := range b {
			b[i] ^= 0xff
		}
	case document:
		for i := range b {
			b[i] ^= 0xff
		}
	}
}

// A limit counts values off the heap, to the byte.
func TestMemoryLimitCountsValues(t *testing.T) {
	const n = 20_000
	keys, vals := make([]uint64, n), make([][]byte, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i), bytes.Repeat([]byte{1}, i%100)
	}
	large := make([][3]uint64, n)
	limitIsExact(t, keys, vals)
	limitIsExact(t, keys, large)
}

func limitIsExact[V any](t *testing.T, keys []uint64, vals []V) {
	t.Helper()
	ix := facetest.MustFreeze(t, keys, vals)
	need := ix.Stats().TotalBytes
	ix.Close()
	for _, limit := range []int64{1, need / 2, need - 1} {
		if err := failing(keys, vals, pando.MemoryLimit(limit), pando.Layout(pando.Apart))(); !errors.Is(err, pando.ErrMemoryLimit) {
			t.Errorf("limit of %d, %d are needed: %v", limit, need, err)
		}
	}
	if err := failing(keys, vals, pando.MemoryLimit(need), pando.Layout(pando.Apart))(); err != nil {
		t.Error(err)
	}
}
