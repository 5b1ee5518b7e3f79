package files_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/seed"
)

// Whatever the sections hold, queries stay inside of the file: all layouts, all
// paths, any bytes.
func TestOpenGarbageSections(t *testing.T) {
	t.Run("pairs 64", garbage(facetest.Integers[uint64](), facetest.Uint64Values, pando.Pairs, nil))
	t.Run("pairs 32", garbage(facetest.Integers[int32](), facetest.Uint32Values, pando.Pairs, nil))
	t.Run("column", garbage(facetest.Integers[uint64](), facetest.Uint64Values, pando.Apart, nil))
	t.Run("rows", garbage(facetest.Integers[uint16](), readingValues, pando.Apart, nil))
	t.Run("encoded", garbage(facetest.Float32s[float32](), facetest.PointerValues, pando.Apart, pointerCodec))
	t.Run("blocked pairs", garbage(facetest.Integers[uint64](), facetest.Uint64Values, pando.Blocked, nil))
	t.Run("blocked 32", garbage(facetest.Float32s[float32](), facetest.PointerValues, pando.Blocked, pointerCodec))
	t.Run("compressed 64", garbage(facetest.Integers[uint64](), facetest.Uint64Values, pando.Compressed, nil))
	t.Run("compressed 32", garbage(facetest.Float32s[float32](), facetest.PointerValues, pando.Compressed, pointerCodec))
	t.Run("radix 64", garbage(facetest.Integers[uint64](), facetest.Uint64Values, pando.Radix, nil))
	t.Run("radix 32", garbage(facetest.Float32s[float32](), facetest.PointerValues, pando.Radix, pointerCodec))
	t.Run("radix strings", garbage(facetest.Strings[string](), facetest.Uint64Values, pando.Radix, nil))
	t.Run("words", garbage(facetest.Strings[string](), facetest.Uint64Values, pando.Compressed, nil))
	t.Run("words encoded", garbage(facetest.Strings[string](), facetest.StringValues, pando.Compressed, stringCodec))
	t.Run("strings", garbage(facetest.Strings[string](), facetest.Uint64Values, pando.Apart, nil))
	t.Run("strings encoded", garbage(facetest.Strings[string](), facetest.StringValues, pando.Apart, stringCodec))
}

func garbage[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], layout pando.LayoutKind, codec pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		opts := []pando.Option{pando.Layout(layout), pando.On(pando.CPU)}
		if codec != nil {
			opts = append(opts, codec)
		}
		path := filepath.Join(t.TempDir(), "index")
		for _, n := range []int{1, 5, 17, 100, 1000, 9000} {
			if !seed.Long() && rng.IntN(3) > 0 {
				continue
			}
			keys, vals := facetest.ManyEntries(n, d, v, rng)
			ix := facetest.MustFreeze(t, keys, vals, opts...)
			if err := ix.Save(path); err != nil {
				t.Fatal(err)
			}
			ix.Close()
			for _, fill := range fillings(rng) {
				spoil(t, path, fill)
				opened, err := pando.Open[K, V](path, opts...)
				if errors.Is(err, pando.ErrFile) && (layout == pando.Radix || layout == pando.Compressed && facetest.CodeBytes[K]() == 0) {
					continue // Open looks at the first line of a directory, or of nodes
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := queried(opened, d, rng); err != nil {
					t.Fatalf("%d entries: %v", n, err)
				}
			}
		}
	}
}

// fillings are ways to fill sections with nonsense.
func fillings(rng *rand.Rand) []func() byte {
	few := []byte{0, 1, 0xff, 0x80}
	return []func() byte{
		func() byte { return 0 },
		func() byte { return 0xff },
		func() byte { return byte(rng.Uint32()) },
		func() byte { return few[rng.IntN(len(few))] },
	}
}

// spoil overwrites all that is behind the header.
func spoil(t *testing.T, path string, fill func() byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := files.Page; i < len(data); i++ {
		data[i] = fill()
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
