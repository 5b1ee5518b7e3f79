package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Codecs for the values of the tests that hold pointers.
var (
	stringCodec = pando.Values(
		func(dst []byte, v string) []byte { return append(dst, v...) },
		func(b []byte) (string, error) { return string(b), nil },
	)
	sliceCodec = pando.Values( // keeps what it is given: it may
		func(dst, v []byte) []byte { return append(dst, v...) },
		func(b []byte) ([]byte, error) { return b, nil },
	)
	pointerCodec = pando.Values(
		func(dst []byte, v *int) []byte { return strconv.AppendInt(dst, int64(*v), 10) },
		func(b []byte) (*int, error) { i, err := strconv.Atoi(string(b)); return &i, err },
	)
)

// reading is a small struct whose fields have a name in files.
type reading struct {
	Station uint32
	Value   float32
	Flags   [3]uint8
}

var readingValues = facetest.Equals(0, func(i int) reading { return reading{uint32(i), float32(i) / 2, [3]uint8{1, 2, byte(i)}} })

// word is the width of an int on this machine, as a file says it.
var word = strconv.Itoa(strconv.IntSize)

// An index that was saved and opened answers every question as the one it was
// made of, for every type of key.
func TestFileEveryKeyType(t *testing.T) {
	t.Run("int", fileKeyType64(facetest.Integers[int](), "int"+word))
	t.Run("int8", fileKeyType32(facetest.Integers[int8](), "int8"))
	t.Run("int16", fileKeyType32(facetest.Integers[int16](), "int16"))
	t.Run("int32", fileKeyType32(facetest.Integers[int32](), "int32"))
	t.Run("int64", fileKeyType64(facetest.Integers[int64](), "int64"))
	t.Run("uint", fileKeyType64(facetest.Integers[uint](), "uint"+word))
	t.Run("uint8", fileKeyType32(facetest.Integers[uint8](), "uint8"))
	t.Run("uint16", fileKeyType32(facetest.Integers[uint16](), "uint16"))
	t.Run("uint32", fileKeyType32(facetest.Integers[uint32](), "uint32"))
	t.Run("uint64", fileKeyType64(facetest.Integers[uint64](), "uint64"))
	t.Run("uintptr", fileKeyType64(facetest.Integers[uintptr](), "uint"+word))
	t.Run("float32", fileKeyType32(facetest.Float32s[float32](), "float32"))
	t.Run("float64", fileKeyType64(facetest.Float64s[float64](), "float64"))
	t.Run("string", fileKeyType64(facetest.Strings[string](), "string"))
	t.Run("named float64", fileKeyType64(facetest.Float64s[facetest.Celsius](), "float64"))
	t.Run("named string", fileKeyType64(facetest.Strings[facetest.Label](), "string"))
}

// fileKeyType64 is for keys with codes of 64 bits, and strings.
func fileKeyType64[K pando.Key](d facetest.Domain[K], name string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint64", roundTrips(d, facetest.Uint64Values, name, "uint64", nil))
		t.Run("string", roundTrips(d, facetest.StringValues, name, "encoded string", stringCodec))
	}
}

// fileKeyType32 is for keys with codes of 32 bits.
func fileKeyType32[K pando.Key](d facetest.Domain[K], name string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint32", roundTrips(d, facetest.Uint32Values, name, "uint32", nil))
		t.Run("string", roundTrips(d, facetest.StringValues, name, "encoded string", stringCodec))
	}
}

// The same for every kind of value.
func TestFileEveryValueType(t *testing.T) {
	t.Run("uint64 keys", fileValueTypes(facetest.Integers[uint64](), "uint64"))
	t.Run("int32 keys", fileValueTypes(facetest.Integers[int32](), "int32"))
	t.Run("string keys", fileValueTypes(facetest.Strings[string](), "string"))
}

func fileValueTypes[K pando.Key](d facetest.Domain[K], name string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Run("uint64", roundTrips(d, facetest.Uint64Values, name, "uint64", nil))
		t.Run("uint32", roundTrips(d, facetest.Uint32Values, name, "uint32", nil))
		t.Run("struct of several sizes", roundTrips(d, readingValues, name, "struct{uint32,float32,[3]uint8}", nil))
		t.Run("empty", roundTrips(d, facetest.EmptyValues, name, "none", nil))
		t.Run("int32", roundTrips(d, facetest.Int32Values, name, "int32", nil))
		t.Run("float64", roundTrips(d, facetest.FloatValues, name, "float64", nil))
		t.Run("array of bytes", roundTrips(d, facetest.BytesValues, name, "[8]uint8", nil))
		t.Run("struct", roundTrips(d, facetest.RecordValues, name, "struct{int32,int32}", nil))
		t.Run("pointer", roundTrips(d, facetest.PointerValues, name, "encoded *int"+word, pointerCodec))
		t.Run("slice", roundTrips(d, facetest.SliceValues, name, "encoded []uint8", sliceCodec))
		t.Run("array", roundTrips(d, facetest.TriplesValues, name, "[3]uint16", nil))
		t.Run("bool", roundTrips(d, facetest.BoolValues, name, "bool", nil))
	}
}

// roundTrips saves and opens indexes of all sizes and layouts, each with one
// of the key sets.
func roundTrips[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], key, value string, codec pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		rng := seed.Rand(t)
		path := filepath.Join(t.TempDir(), "index")
		for _, layout := range facetest.Layouts[K](v) {
			sizes := facetest.Sizes[K](layout)
			if !seed.Long() { // each takes as long as a disk
				rng.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
				sizes = sizes[:min(2, len(sizes))]
			}
			for _, n := range sizes {
				if seed.Long() && layout > pando.Apart && n > 3 && rng.IntN(5) > 0 {
					continue
				}
				sets := facetest.KeySets(d, rng)
				set := sets[rng.IntN(len(sets))]
				keys, vals := make([]K, n), make([]V, n)
				for i := range keys {
					keys[i], vals[i] = set.Key(i, n), v.Of(i)
				}
				opts := append(facetest.Options(layout, facetest.Layouts[K](v)[0], rng), pando.Layout(layout))
				if codec != nil {
					opts = append(opts, codec)
				}
				m := facetest.NewModel(keys, vals, v.Same)
				if err := roundTrip(path, keys, vals, opts, m, facetest.Probes(m, d, 40, rng)); err != nil {
					t.Fatalf("%v, %d keys %s: %v", layout, n, set.Name, err)
				}
				if err := described(path, key, value, layout, n); err != nil {
					t.Fatalf("%v, %d keys %s: %v", layout, n, set.Name, err)
				}
			}
		}
	}
}

// roundTrip goes through two generations of files and compares both with the
// model, and the bytes with each other.
func roundTrip[K pando.Key, V any](path string, keys []K, vals []V, opts []pando.Option, m *facetest.Model[K, V], asked []K) error {
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		return err
	}
	defer ix.Close()
	var first []byte
	for generation := range 2 {
		opened, err := resave(ix, path, opts)
		if err != nil {
			return fmt.Errorf("generation %d: %w", generation, err)
		}
		defer opened.Close()
		if err := facetest.CheckIndex(opened, m, asked); err != nil {
			return fmt.Errorf("generation %d: %w", generation, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if generation == 1 && !bytes.Equal(data, first) {
			return errors.New("the index of a file is saved as another file")
		}
		first, ix = data, opened
	}
	return pando.Verify(path)
}

// resave writes an index in both ways and opens it.
func resave[K pando.Key, V any](ix *pando.Frozen[K, V], path string, opts []pando.Option) (*pando.Frozen[K, V], error) {
	var written bytes.Buffer
	n, err := ix.WriteTo(&written)
	if err != nil || n != int64(written.Len()) {
		return nil, fmt.Errorf("WriteTo = %d, %v; %d bytes came", n, err, written.Len())
	}
	if err := ix.Save(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(data, written.Bytes()) {
		return nil, errors.New("Save and WriteTo differ")
	}
	return pando.Open[K, V](path, append(opts, pando.Verified())...)
}

// described compares a file with what Inspect says of it.
func described(path, key, value string, layout pando.LayoutKind, n int) error {
	info, err := pando.Inspect(path)
	if err != nil {
		return err
	}
	wantLayout, version := layout.String(), 1
	if layout > pando.Apart {
		version = 2
	}
	switch {
	case layout == pando.Radix:
		if version = 3; key != "string" {
			wantLayout = "radix-numbers"
		}
	case key == "string" && layout == pando.Compressed:
		wantLayout = "words"
	case key == "string":
		wantLayout = "text"
	case layout == pando.Blocked && strings.HasSuffix(info.Layout, "-pairs"):
		wantLayout = "blocked-pairs"
	case layout == pando.Blocked:
		wantLayout = "blocked-apart"
	}
	stat, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Path != path || info.Version != version || info.Key != key || info.Value != value || info.Layout != wantLayout || info.Len != n || info.Bytes != stat.Size() {
		return fmt.Errorf("Inspect = %+v; want %s, %s, %s, %d entries, %d bytes", info, key, value, wantLayout, n, stat.Size())
	}
	at := int64(4096)
	for _, s := range info.Sections {
		if s.Offset != at {
			return fmt.Errorf("section %s at %d, want %d", s.Name, s.Offset, at)
		}
		at = (s.Offset + s.Bytes + 4095) &^ 4095
	}
	if at != info.Bytes {
		return fmt.Errorf("sections end at %d of %d", at, info.Bytes)
	}
	return nil
}

// saved makes a file of n entries, its values the keys as text, and gives its
// bytes too.
func saved(t testing.TB, n int) (path string, data []byte) {
	t.Helper()
	keys, vals := make([]uint64, n), make([]string, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i), strconv.Itoa(i)
	}
	path = filepath.Join(t.TempDir(), "index")
	ix := facetest.MustFreeze(t, keys, vals, stringCodec)
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

// Types that are the same to a file open each other's.
func TestOpenByKindNotByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	ix := facetest.MustFreeze(t, []int64{-5, 7}, []reading{{Station: 1}, {Station: 2}})
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	type number int64
	type other struct {
		A uint32
		B float32
		C [3]byte
	}
	opened, err := pando.Open[number, other](path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if v, ok := opened.Get(7); !ok || v.A != 2 {
		t.Errorf("Get(7) = %v, %v", v, ok)
	}
}

// Strings and values that were given out stay good after Close and after the
// file is gone.
func TestOpenedResultsOutliveClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	ix := facetest.MustFreeze(t, []string{"b", "a", "c"}, []string{"2", "1", "3"}, stringCodec)
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	ix.Close()
	opened, err := pando.Open[string, string](path, stringCodec)
	if err != nil {
		t.Fatal(err)
	}
	k, v := opened.At(1)
	r := opened.RangeBatch([]string{"a"}, []string{"c"}, 0)
	var all []string
	for k := range opened.All() {
		all = append(all, k)
	}
	opened.Close()
	os.Remove(path)
	if k != "b" || v != "2" || strings.Join(r.Keys, "") != "abc" || strings.Join(r.Vals, "") != "123" || !slices.Equal(all, []string{"a", "b", "c"}) {
		t.Errorf("%q, %q, %q, %q", k, v, r, all)
	}
}

// Every method of an opened index panics after Close, and so does Save.
func TestOpenedUseAfterClose(t *testing.T) {
	path, _ := saved(t, 1000)
	opened, err := pando.Open[uint64, string](path, stringCodec)
	if err != nil {
		t.Fatal(err)
	}
	calls := append(facetest.EveryMethod(opened),
		facetest.Call{Name: "Save", Do: func() { opened.Save(path) }},
		facetest.Call{Name: "WriteTo", Do: func() { opened.WriteTo(&bytes.Buffer{}) }})
	for range 2 {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, m := range calls {
		if text := facetest.PanicOf(m.Do); !facetest.ClosedText(text) {
			t.Errorf("%s after Close: %q", m.Name, text)
		}
	}
	if err := pando.Verify(path); err != nil {
		t.Error(err)
	}
}

// What Stats say of an opened index.
func TestOpenStats(t *testing.T) {
	path, data := saved(t, 5000)
	opened, err := pando.Open[uint64, string](path, stringCodec, pando.Workers(3), pando.MemoryLimit(1))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s := opened.Stats()
	if s.Len != 5000 || s.TotalBytes != int64(len(data)) || s.HeapBytes != 0 || s.Workers != 3 || s.LeafBytes != 5000*8 || s.ValueBytes < 5001*8 {
		t.Errorf("%+v", s)
	}
	if s.Device != pando.CPU || os.Getenv("PANDO_DEVICE") == "" && !strings.Contains(s.Reason, "On(GPU(0))") {
		t.Errorf("device %v: %s", s.Device, s.Reason)
	}
}
