package words

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
)

// Keys that are copied out together are the keys, outside of the tree, and hold
// no more memory than they may.
func TestCopyKeys(t *testing.T) {
	eachKind(t, func(t *testing.T, rng *rand.Rand, keys []string) {
		built, err := Layout{}.Build(keys, nil, layout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer built.Release()
		tree := built.(*Tree)
		lo := rng.IntN(len(keys) + 1)
		got := make([]string, rng.IntN(len(keys)-lo+1))
		tree.CopyKeys(got, lo)
		if !slices.Equal(got, keys[lo:lo+len(got)]) {
			t.Fatalf("%d keys: those from %d on are not what was copied", len(keys), lo)
		}
		memory := uintptr(unsafe.Pointer(unsafe.SliceData(tree.bytes)))
		for i, k := range got {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(k))); k != "" && at-memory < uintptr(len(tree.bytes)) {
				t.Fatalf("key %d is not a copy", i)
			}
			if string(tree.AppendKey([]byte("<"), lo+i)) != "<"+k {
				t.Fatalf("AppendKey of %q", k)
			}
		}
	})
}

// Keys share no more memory than chunkBytes.
func TestCopiedKeysShareLittle(t *testing.T) {
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = string(make([]byte, 3*i))
	}
	built, err := Layout{}.Build(keys, nil, layout.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Release()
	tree := built.(*Tree)
	dst := make([]string, len(keys))
	for lo := 0; lo < len(keys); {
		n, size := tree.chunk(dst[lo:], lo)
		if n == 0 || n > 1 && size > chunkBytes || size > chunkBytes+len(keys[lo]) {
			t.Fatalf("from %d on: %d keys of %d bytes", lo, n, size)
		}
		lo += n
	}
}

func TestEndNear(t *testing.T) {
	eachKind(t, func(t *testing.T, rng *rand.Rand, keys []string) {
		built, err := Layout{}.Build(keys, nil, layout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer built.Release()
		for range 50 {
			r := rng.IntN(len(keys) + 1)
			key := ""
			if len(keys) > 0 {
				key = keys[min(r+rng.IntN(200), len(keys)-1)]
			}
			if rng.IntN(3) == 0 {
				key += "\x00"
			}
			want := max(r, sort.Search(len(keys), func(i int) bool { return keys[i] > key }))
			if got := built.(*Tree).EndNear(r, key); got != want {
				t.Fatalf("%d keys, from %d: the end of those up to %q is %d, want %d", len(keys), r, key, got, want)
			}
		}
	})
}
