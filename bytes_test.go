package pando_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Bytes are looked up as strings are, without an allocation, and not kept.
func TestBytesAsKeys(t *testing.T) {
	rng := seed.Rand(t)
	d, v := facetest.Strings[string](), facetest.Uint64Values
	keys, vals := facetest.ManyEntries(2000, d, v, rng)
	model := facetest.NewModel(keys, vals, v.Same)
	asked := facetest.Probes(model, d, 500, rng)
	for _, layout := range []pando.LayoutKind{pando.Compressed, pando.Apart} {
		raw := make([][]byte, len(keys))
		for i, k := range keys {
			raw[i] = []byte(k)
		}
		ix, err := pando.FreezeBytes(raw, vals, pando.Layout(layout))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range raw {
			clear(b) // nothing of them is kept
		}
		if err := facetest.CheckIndex(ix, model, asked[:50]); err != nil {
			t.Fatal(err)
		}
		for _, k := range asked {
			b := []byte(k)
			want, has := model.Get(k)
			if got, ok := ix.GetBytes(b); got != want || ok != has || ix.HasBytes(b) != has || ix.RankBytes(b) != model.Rank(k) {
				t.Fatalf("%q: %d, %v, rank %d", k, got, ok, ix.RankBytes(b))
			}
		}
		b := []byte(asked[3])
		if n := testing.AllocsPerRun(50, func() { ix.GetBytes(b); ix.HasBytes(b); ix.RankBytes(b) }); n > 0 && !seed.RaceDetector {
			t.Errorf("%v: %v allocations", layout, n)
		}
		ix.Close()
	}
	numbers := facetest.MustFreeze(t, []int64{1}, []uint32{1})
	defer numbers.Close()
	if text := facetest.PanicOf(func() { numbers.GetBytes(nil) }); !strings.Contains(text, "int64") {
		t.Error(text)
	}
}

// A tree changed by bytes is the tree changed by strings, and keeps nothing of the bytes.
func TestBytesChangeATree(t *testing.T) {
	rng := seed.Rand(t)
	d := facetest.Strings[string]()
	by, want := mustTree(t), map[string]uint64{}
	var data []byte
	var offsets []int32
	pack := func(n int) (keys []string) {
		data, offsets = data[:0], append(offsets[:0], 0)
		for range n {
			k := d.Num(rng.IntN(50))
			keys, data = append(keys, k), append(data, k...)
			offsets = append(offsets, int32(len(data)))
		}
		return keys
	}
	for i := range uint64(3000) {
		key := d.Num(rng.IntN(50))
		b := []byte(key)
		old, had := want[key]
		switch rng.IntN(6) {
		case 0:
			if err := by.SetBytes(b, i); err != nil {
				t.Fatal(err)
			}
			want[key] = i
		case 1:
			if v, ok, err := by.SwapBytes(b, i); v != old || ok != had || err != nil {
				t.Fatalf("SwapBytes(%q) = %d, %v, %v; want %d, %v", key, v, ok, err, old, had)
			}
			want[key] = i
		case 2:
			keep := rng.IntN(2) == 0
			err := by.UpdateBytes(b, func(v uint64, ok bool) (uint64, bool) {
				if v != old || ok != had {
					t.Fatalf("UpdateBytes(%q) has %d, %v; want %d, %v", key, v, ok, old, had)
				}
				return i, keep
			})
			if err != nil {
				t.Fatal(err)
			}
			if want[key] = i; !keep {
				delete(want, key)
			}
		case 3:
			if v, ok := by.DeleteBytes(b); v != old || ok != had {
				t.Fatalf("DeleteBytes(%q) = %d, %v; want %d, %v", key, v, ok, old, had)
			}
			delete(want, key)
		case 4:
			keys := pack(rng.IntN(20))
			vals := make([]uint64, len(keys))
			for j, k := range keys {
				vals[j] = i + uint64(j)<<32
				want[k] = vals[j]
			}
			if err := by.SetBatchBytes(data, offsets, vals); err != nil {
				t.Fatal(err)
			}
		case 5:
			keys := pack(rng.IntN(20))
			found, n := make([]bool, len(keys)), len(want)
			gone := by.DeleteBatchBytes(data, offsets, found)
			for j, k := range keys {
				if _, ok := want[k]; ok != found[j] {
					t.Fatalf("DeleteBatchBytes: %q found %v", k, found[j])
				}
				delete(want, k)
			}
			if gone != n-len(want) {
				t.Fatalf("DeleteBatchBytes = %d, want %d", gone, n-len(want))
			}
		}
		clear(b)
		clear(data)
	}
	got := map[string]uint64{}
	for k, v := range by.All() {
		got[k] = v
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	numbers, err := pando.NewTree[int64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	for name, call := range map[string]func(){
		"SwapBytes":        func() { numbers.SwapBytes(nil, 1) },
		"UpdateBytes":      func() { numbers.UpdateBytes(nil, nil) },
		"DeleteBytes":      func() { numbers.DeleteBytes(nil) },
		"SetBatchBytes":    func() { numbers.SetBatchBytes(nil, nil, nil) },
		"DeleteBatchBytes": func() { numbers.DeleteBatchBytes(nil, nil, nil) },
	} {
		if text := facetest.PanicOf(call); !strings.Contains(text, name) || !strings.Contains(text, "int64") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// mustTree returns an empty tree of strings, which the test closes.
func mustTree(t *testing.T) *pando.Tree[string, uint64] {
	tree, err := pando.NewTree[string, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}
