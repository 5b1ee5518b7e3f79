package pando_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// appender is what both kinds of index have for values of bytes.
type appender[K pando.Key, V any] interface {
	pando.Index[K, V]
	GetAppend(key K, dst []byte) ([]byte, bool)
	GetBatchAppend(keys []K, dst []byte, offsets []int64, found []bool) ([]byte, int)
}

// bytesAppender is what they have for keys that are bytes, too.
type bytesAppender interface {
	GetBytesAppend(key, dst []byte) ([]byte, bool)
	GetBatchBytesAppend(keys []byte, ends []int32, dst []byte, offsets []int64, found []bool) ([]byte, int)
}

// Values that are appended are those that Get returns, one behind the other, of every kind of
// index, for a batch of one goroutine and of several.
func TestAppend(t *testing.T) {
	t.Run("string []byte", func(t *testing.T) { testAppend(t, func(i int) string { return fmt.Sprint(i) }, bytes.Clone) })
	t.Run("string string", func(t *testing.T) {
		testAppend(t, func(i int) string { return fmt.Sprint(i) }, func(b []byte) string { return string(b) })
	})
	t.Run("uint64 []byte", func(t *testing.T) { testAppend(t, func(i int) uint64 { return uint64(i) }, bytes.Clone) })
	t.Run("int32 string", func(t *testing.T) {
		testAppend(t, func(i int) int32 { return int32(i) }, func(b []byte) string { return string(b) })
	})
}

func testAppend[K pando.Key, V any](t *testing.T, key func(i int) K, val func(b []byte) V) {
	rng := seed.Rand(t)
	want := map[K][]byte{}
	var keys []K
	var vals []V
	for i := range 3000 {
		b := make([]byte, []int{0, 3, 8, 40, 1000}[rng.IntN(5)]+rng.IntN(8))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		if i == 100 {
			b = make([]byte, 100_000)
		}
		keys, vals, want[key(i)] = append(keys, key(i)), append(vals, val(b)), b
	}
	tree, err := pando.TreeOf(keys, vals, pando.Workers(3))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	ix := facetest.MustFreeze(t, keys, vals, pando.Workers(3))
	defer ix.Close()
	path := filepath.Join(t.TempDir(), "index")
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	mapped, err := pando.Open[K, V](path)
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	snap := tree.Snapshot()
	defer snap.Close()
	for name, ix := range map[string]appender[K, V]{"tree": tree, "frozen": ix, "mapped": mapped, "snapshot": snap} {
		t.Run(name, func(t *testing.T) { checkAppend(t, ix, key, want, rng) })
	}
}

func checkAppend[K pando.Key, V any](t *testing.T, ix appender[K, V], key func(i int) K, want map[K][]byte, rng *rand.Rand) {
	begin := []byte("begin")
	for i := range 3100 {
		got, ok := ix.GetAppend(key(i), begin)
		b, had := want[key(i)]
		if ok != had || !bytes.Equal(got, append(begin[:5:5], b...)) {
			t.Fatalf("GetAppend(%v): %d bytes, %v; want %d, %v", key(i), len(got), ok, len(b), had)
		}
	}
	for _, n := range []int{0, 1, 300, 20_000} {
		asked := make([]K, n)
		for i := range asked {
			asked[i] = key(rng.IntN(3200))
		}
		offsets, found := make([]int64, n+1), make([]bool, n)
		data, hits := ix.GetBatchAppend(asked, begin, offsets, found)
		checkPacked(t, "GetBatchAppend", asked, data, hits, offsets, found, want)
		if again, h := ix.GetBatchAppend(asked, begin, offsets, nil); h != hits || !bytes.Equal(again, data) {
			t.Fatal("found of nil changes the values")
		}
		if texts, ok := any(asked).([]string); ok {
			packed, ends := []byte(strings.Join(texts, "")), []int32{0}
			for _, s := range texts {
				ends = append(ends, ends[len(ends)-1]+int32(len(s)))
			}
			clear(found)
			data, hits = ix.(bytesAppender).GetBatchBytesAppend(packed, ends, begin, offsets, found)
			checkPacked(t, "GetBatchBytesAppend", asked, data, hits, offsets, found, want)
		}
	}
	if by, ok := any(ix).(bytesAppender); ok && any(key(0)) == any("0") {
		if got, ok := by.GetBytesAppend([]byte("17"), nil); !ok || !bytes.Equal(got, want[key(17)]) {
			t.Error("GetBytesAppend")
		}
	}
	n, c := 0, ix.Cursor()
	for ok := c.First(); ok; ok = c.Next() {
		if b := want[c.Key()]; !bytes.Equal(c.AppendValue(begin), append(begin[:5:5], b...)) || fmt.Sprintf("%s", any(c.Value())) != string(b) {
			t.Fatalf("AppendValue at %v", c.Key())
		}
		n++
	}
	if n != len(want) {
		t.Errorf("a cursor has %d entries, want %d", n, len(want))
	}
}

func checkPacked[K pando.Key](t *testing.T, method string, asked []K, data []byte, hits int, offsets []int64, found []bool, want map[K][]byte) {
	t.Helper()
	if offsets[0] != 5 || offsets[len(asked)] != int64(len(data)) || string(data[:5]) != "begin" {
		t.Fatalf("%s: offsets go from %d to %d, there are %d bytes", method, offsets[0], offsets[len(asked)], len(data))
	}
	for i, k := range asked {
		b, had := want[k]
		if found[i] != had || !bytes.Equal(data[offsets[i]:offsets[i+1]], b) {
			t.Fatalf("%s: key %v has %d bytes, %v; want %d, %v", method, k, offsets[i+1]-offsets[i], found[i], len(b), had)
		}
		if had {
			hits--
		}
	}
	if hits != 0 {
		t.Errorf("%s: %d too many hits", method, hits)
	}
}

// A tree that is set by packed keys and values is the tree that is set by slices, and keeps
// nothing of the bytes.
func TestSetBatchPacked(t *testing.T) {
	rng := seed.Rand(t)
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	want := map[string][]byte{}
	for range 200 {
		var keys, vals []byte
		ends, offsets := []int32{0}, []int64{0}
		for range rng.IntN(30) {
			k, v := fmt.Sprint(rng.IntN(100)), bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(100))
			keys, vals, want[k] = append(keys, k...), append(vals, v...), v
			ends, offsets = append(ends, int32(len(keys))), append(offsets, int64(len(vals)))
		}
		if err := tree.SetBatchPacked(keys, ends, vals, offsets); err != nil {
			t.Fatal(err)
		}
		clear(keys)
		clear(vals)
	}
	for k, v := range tree.All() {
		if !bytes.Equal(v, want[k]) {
			t.Errorf("%q has %d bytes, want %d", k, len(v), len(want[k]))
		}
	}
	if tree.Len() != len(want) {
		t.Errorf("%d entries, want %d", tree.Len(), len(want))
	}
	numbers, err := pando.NewTree[string, int]()
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	for text, call := range map[string]func(){
		"GetAppend: only strings and slices of bytes can be appended, and the values here are int": func() { numbers.GetAppend("", nil) },
		"GetBatchAppend: only strings":                                          func() { numbers.GetBatchAppend(nil, nil, nil, nil) },
		"SetBatchPacked: only strings":                                          func() { numbers.SetBatchPacked(nil, []int32{0}, nil, []int64{0}) },
		"GetBatchAppend: offsets holds 1, but 1 keys have 2":                    func() { tree.GetBatchAppend([]string{""}, nil, make([]int64, 1), nil) },
		"SetBatchPacked: there are 1 offsets of values, but 1 keys need 2":      func() { tree.SetBatchPacked(nil, []int32{0, 0}, nil, []int64{0}) },
		"SetBatchPacked: offset 1 of values is 3; offsets ascend from 0 to the": func() { tree.SetBatchPacked(nil, []int32{0, 0}, []byte("ab"), []int64{0, 3}) },
		"Cursor.AppendValue: the cursor is at no entry":                         func() { numbers.Cursor().AppendValue(nil) },
	} {
		if got := facetest.PanicOf(call); !strings.Contains(got, text) {
			t.Errorf("%q; want %q", got, text)
		}
	}
}

// Nothing is allocated for a value that is appended, nor for one that is set.
func TestAppendAllocations(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	var keys []string
	var vals [][]byte
	for i := range 5000 {
		keys, vals = append(keys, fmt.Sprint(i)), append(vals, bytes.Repeat([]byte("v"), i%300))
	}
	tree, err := pando.TreeOf(keys, vals, pando.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	ix := facetest.MustFreeze(t, keys, vals, pando.Workers(1))
	defer ix.Close()
	dst, offsets, found := make([]byte, 0, 2<<20), make([]int64, len(keys)+1), make([]bool, len(keys))
	key := []byte("17")
	for _, c := range []struct {
		name string
		most float64
		do   func()
	}{
		{"tree GetAppend", 0, func() { tree.GetAppend("17", dst) }},
		{"tree GetBytesAppend", 0, func() { tree.GetBytesAppend(key, dst) }},
		{"tree GetBatchAppend", 200, func() { tree.GetBatchAppend(keys, dst, offsets, found) }},
		{"tree Set", 0.5, func() { tree.Set("17", vals[100]) }},
		{"frozen GetAppend", 0, func() { ix.GetAppend("17", dst) }},
		{"frozen GetBytesAppend", 0, func() { ix.GetBytesAppend(key, dst) }},
		{"frozen GetBatchAppend", 2, func() { ix.GetBatchAppend(keys, dst, offsets, found) }},
	} {
		if n := testing.AllocsPerRun(100, c.do); n > c.most {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
