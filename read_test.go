package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// readers are the ways to read an index back that are not a path.
func readers[K pando.Key, V any]() map[string]func(b []byte, opts ...pando.Option) (*pando.Frozen[K, V], error) {
	return map[string]func(b []byte, opts ...pando.Option) (*pando.Frozen[K, V], error){
		"Read": func(b []byte, opts ...pando.Option) (*pando.Frozen[K, V], error) {
			return pando.Read[K, V](iotest.HalfReader(bytes.NewReader(b)), opts...)
		},
		"ReadAt": func(b []byte, opts ...pando.Option) (*pando.Frozen[K, V], error) {
			return pando.ReadAt[K, V](bytes.NewReader(b), int64(len(b)), opts...)
		},
		"ReadBytes": func(b []byte, opts ...pando.Option) (*pando.Frozen[K, V], error) {
			return pando.ReadBytes[K, V](b, opts...)
		},
		"ReadFS": func(b []byte, opts ...pando.Option) (*pando.Frozen[K, V], error) {
			return pando.ReadFS[K, V](fstest.MapFS{"a/index": {Data: b}}, "a/index", opts...)
		},
	}
}

// What is read back is what was written, in every layout.
func TestReadBack(t *testing.T) {
	t.Run("numbers", readBack(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("narrow", readBack(facetest.Integers[int8](), facetest.Uint32Values))
	t.Run("rows", readBack(facetest.Float64s[float64](), facetest.StringValues))
	t.Run("strings", readBack(facetest.Strings[string](), facetest.Uint64Values))
}

func readBack[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V]) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		for _, layout := range facetest.Layouts[K](v) {
			for _, n := range []int{0, 1, 700} {
				keys, vals := facetest.ManyEntries(n, d, v, rng)
				ix := facetest.MustFreeze(t, keys, vals, pando.Layout(layout))
				var file bytes.Buffer
				if _, err := ix.WriteTo(&file); err != nil {
					t.Fatal(err)
				}
				ix.Close()
				model := facetest.NewModel(keys, vals, v.Same)
				for name, read := range readers[K, V]() {
					before := arena.InUse()
					back, err := read(file.Bytes(), pando.Verified(), pando.On(pando.CPU))
					if err != nil {
						t.Fatalf("%s of %d, %v: %v", name, n, layout, err)
					}
					if err := facetest.CheckIndex(back, model, facetest.Probes(model, d, 60, rng)); err != nil {
						t.Fatalf("%s of %d, %v: %v", name, n, layout, err)
					}
					back.Close()
					if now := arena.InUse(); now > before { // less, where another test has forgotten an index
						t.Errorf("%s: %d bytes are left", name, now-before)
					}
					if n <= 1 && !seed.Long() {
						break // any of them will do
					}
				}
			}
		}
	}
}

// Damage is what it is to Open, and leaves no memory behind.
func TestReadDamaged(t *testing.T) {
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	ix := facetest.MustFreeze(t, keys, keys)
	defer ix.Close()
	var file bytes.Buffer
	if _, err := ix.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	good, flipped, newer := file.Bytes(), bytes.Clone(file.Bytes()), bytes.Clone(file.Bytes())
	flipped[len(flipped)/2] ^= 1
	newer[12] ^= 1
	before := arena.InUse()
	for name, read := range readers[uint64, uint64]() {
		for what, b := range map[string][]byte{
			"nothing": nil, "another file": []byte(strings.Repeat("x", 9000)), "half a header": good[:100], "header alone": good[:4096],
			"cut short": good[:len(good)-1], "a bit": flipped, "the header": newer,
		} {
			back, err := read(b, pando.Verified())
			if !errors.Is(err, pando.ErrFile) || back != nil {
				t.Errorf("%s of %s: %v", name, what, err)
			}
		}
		if _, err := read(good, pando.MemoryLimit(1000)); !errors.Is(err, pando.ErrMemoryLimit) {
			t.Errorf("%s over the limit: %v", name, err)
		}
		if name == "Read" { // it stops at the end
			continue
		}
		if _, err := read(append(bytes.Clone(good), 0)); !errors.Is(err, pando.ErrFile) {
			t.Errorf("%s with a byte behind the end: %v", name, err)
		}
	}
	if _, err := pando.ReadBytes[string, uint64](good); !errors.Is(err, pando.ErrType) {
		t.Errorf("other types: %v", err)
	}
	if _, err := pando.ReadFS[uint64, uint64](fstest.MapFS{}, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := pando.ReadFS[uint64, uint64](fstest.MapFS{"d/f": {}}, "d"); !errors.Is(err, pando.ErrFile) {
		t.Errorf("a directory: %v", err)
	}
	broken := errors.New("broken")
	for _, at := range []int{0, 5000} {
		r := io.MultiReader(bytes.NewReader(good[:at]), iotest.ErrReader(broken))
		if _, err := pando.Read[uint64, uint64](r); !errors.Is(err, broken) {
			t.Errorf("a reader that fails at %d: %v", at, err)
		}
	}
	if now := arena.InUse(); now > before { // less, where another test has forgotten an index
		t.Errorf("%d bytes are left", now-before)
	}
}

// Read takes one index from a stream of several.
func TestReadOneOfSeveral(t *testing.T) {
	var stream bytes.Buffer
	for i := range 3 {
		ix := facetest.MustFreeze(t, []int{i}, []string{fmt.Sprint("value ", i)})
		if _, err := ix.WriteTo(&stream); err != nil {
			t.Fatal(err)
		}
		ix.Close()
	}
	stream.WriteString("end")
	for i := range 3 {
		ix, err := pando.Read[int, string](&stream)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := ix.Get(i); !ok || v != fmt.Sprint("value ", i) {
			t.Errorf("index %d has %q", i, v)
		}
		ix.Close()
	}
	if stream.String() != "end" {
		t.Errorf("%q is left of the stream", stream.String())
	}
}
