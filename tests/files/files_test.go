package files_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
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
	if layout == pando.Radix {
		version = 3
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
