package files_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
)

// openers open a file in every way there is; they query what they get.
var openers = []struct {
	name string
	open func(path string) error
}{
	{"Open", func(path string) error {
		ix, err := pando.Open[uint64, string](path, stringCodec)
		if err == nil {
			err = queried(ix, facetest.Integers[uint64](), rand.New(rand.NewPCG(1, 1)))
		}
		return err
	}},
	{"Inspect", func(path string) error { _, err := pando.Inspect(path); return err }},
	{"Verify", pando.Verify},
}

// queried asks an index whose file may be damaged every question, and closes
// it. Any answer will do, and so will the panic over a value that cannot be
// decoded; any other panic is an error, and a fault ends the test.
func queried[K pando.Key, V any](ix *pando.Frozen[K, V], d facetest.Domain[K], rng *rand.Rand) error {
	defer ix.Close()
	asked := append([]K(nil), d.Ends...)
	for len(asked) < 40 {
		asked = append(asked, d.Bits(rng.Uint64()), d.Num(rng.IntN(1000)))
	}
	calls := facetest.EveryMethod(ix)
	for _, k := range asked {
		calls = append(calls,
			facetest.Call{Name: "Get", Do: func() { ix.Get(k) }}, facetest.Call{Name: "Floor", Do: func() { ix.Floor(k) }}, facetest.Call{Name: "Ceil", Do: func() { ix.Ceil(k) }},
			facetest.Call{Name: "Range", Do: func() { facetest.Drain(ix.Range(k, asked[0])) }}, facetest.Call{Name: "Count", Do: func() { ix.Count(asked[0], k) }})
	}
	calls = append(calls,
		facetest.Call{Name: "GetBatch", Do: func() { ix.GetBatch(asked, make([]V, len(asked)), nil) }},
		facetest.Call{Name: "RankBatch", Do: func() { ix.RankBatch(asked, make([]int, len(asked))) }},
		facetest.Call{Name: "RangeBatch", Do: func() { ix.RangeBatch(asked, append(asked[1:], asked[0]), 9) }})
	return facetest.OnEachPath(func() error {
		for _, c := range calls {
			text := facetest.PanicOf(c.Do)
			if text != "" && !strings.Contains(text, "cannot be decoded") && !(c.Name == "At" && ix.Len() == 0) {
				return fmt.Errorf("%s: %s", c.Name, text)
			}
		}
		return nil
	})
}

// refused checks that every way to open a file gives an error of a kind that
// names the file.
func refused(t *testing.T, path string, kind error, what string) {
	t.Helper()
	for _, o := range openers {
		err := o.open(path)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: %s gives %v, want %v", what, o.name, err, kind)
		}
	}
}

// reopened returns a small file open for writing, and its bytes.
func reopened(t *testing.T, n int) (*os.File, []byte) {
	t.Helper()
	path, data := saved(t, n)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, data
}

// put writes bytes into a file.
func put(t *testing.T, f *os.File, b []byte, at int) {
	t.Helper()
	if _, err := f.WriteAt(b, int64(at)); err != nil {
		t.Fatal(err)
	}
}

func TestOpenTruncatedFile(t *testing.T) {
	f, data := reopened(t, 100)
	step := 1
	if !seed.Long() {
		step = 37
	}
	for n := len(data) - 1; n >= 0; n -= step {
		if err := f.Truncate(int64(n)); err != nil {
			t.Fatal(err)
		}
		refused(t, f.Name(), pando.ErrFile, fmt.Sprintf("%d bytes of %d", n, len(data)))
	}
}

func TestOpenLongerFile(t *testing.T) {
	f, data := reopened(t, 100)
	for _, more := range []int{1, 4095, 4096, 1 << 20} {
		if err := f.Truncate(int64(len(data) + more)); err != nil {
			t.Fatal(err)
		}
		refused(t, f.Name(), pando.ErrFile, fmt.Sprintf("%d bytes more", more))
	}
}

// No bit of the header can change without notice.
func TestOpenFlippedHeader(t *testing.T) {
	f, data := reopened(t, 100)
	step := 1
	if !seed.Long() {
		step = 41
	}
	for bit := 0; bit < 8*files.Page; bit += step {
		at := bit / 8
		put(t, f, []byte{data[at] ^ 1<<(bit%8)}, at)
		refused(t, f.Name(), pando.ErrFile, fmt.Sprintf("bit %d", bit))
		put(t, f, data[at:at+1], at)
	}
}

// No byte of the rest can change without Verify and Verified seeing it, and
// none makes an index that is opened without fall over.
func TestOpenFlippedSections(t *testing.T) {
	f, data := reopened(t, 100)
	rng := seed.Rand(t)
	step := 1
	if !seed.Long() {
		step = 97
	}
	for at := files.Page; at < len(data); at += step {
		put(t, f, []byte{data[at] ^ 1<<rng.IntN(8)}, at)
		if err := pando.Verify(f.Name()); !errors.Is(err, pando.ErrFile) {
			t.Fatalf("byte %d: Verify gives %v", at, err)
		}
		if _, err := pando.Open[uint64, string](f.Name(), stringCodec, pando.Verified()); !errors.Is(err, pando.ErrFile) {
			t.Fatalf("byte %d: Open with Verified gives %v", at, err)
		}
		if at%13 == 0 {
			if err := openers[0].open(f.Name()); err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
		}
		put(t, f, data[at:at+1], at)
	}
}

// forged writes a header with changes and a checksum that is right.
func forged(t *testing.T, f *os.File, data []byte, change func(page []byte)) {
	t.Helper()
	page := append([]byte(nil), data[:files.Page]...)
	change(page)
	files.Seal(page)
	put(t, f, page, 0)
}

// Headers that lie, with the right checksum.
func TestOpenForgedHeader(t *testing.T) {
	f, data := reopened(t, 1000)
	le := binary.LittleEndian
	for _, c := range []struct {
		what   string
		kind   error
		change func(page []byte)
	}{
		{"a later version", pando.ErrVersion, func(p []byte) { le.PutUint32(p[12:], 4) }},
		{"the version of notes without one", pando.ErrFile, func(p []byte) { le.PutUint32(p[12:], 3) }},
		{"a note in an older version", pando.ErrFile, func(p []byte) { le.PutUint16(p[1408:], 1); p[1410] = 'x' }},
		{"a note that is too long", pando.ErrFile, func(p []byte) { le.PutUint16(p[1408:], 1023); le.PutUint32(p[12:], 3) }},
		{"a later version than the layout's", pando.ErrFile, func(p []byte) { le.PutUint32(p[12:], 2) }},
		{"pages", pando.ErrFile, func(p []byte) { le.PutUint32(p[60:], 9) }},
		{"the latest version", pando.ErrVersion, func(p []byte) { le.PutUint32(p[12:], 1<<32-1) }},
		{"version 0", pando.ErrFile, func(p []byte) { le.PutUint32(p[12:], 0) }},
		{"big-endian", pando.ErrFile, func(p []byte) { binary.BigEndian.PutUint32(p[8:], 0x01020304) }},
		{"rows swapped", pando.ErrFile, func(p []byte) {
			row := [32]byte(p[64:96])
			copy(p[64:], p[96:128])
			copy(p[96:], row[:])
		}},
		{"kinds swapped", pando.ErrFile, func(p []byte) { p[64], p[96] = p[96], p[64] }},
		{"offsets swapped", pando.ErrFile, func(p []byte) {
			a, b := le.Uint64(p[72:]), le.Uint64(p[104:])
			le.PutUint64(p[72:], b)
			le.PutUint64(p[104:], a)
		}},
		{"sizes that overflow together", pando.ErrFile, func(p []byte) {
			le.PutUint64(p[80:], 1<<63-4096)
			le.PutUint64(p[112:], 1<<63-4096)
		}},
		{"all sizes huge", pando.ErrFile, func(p []byte) {
			le.PutUint64(p[24:], 1<<55)
			le.PutUint64(p[32:], 1<<50)
		}},
		{"another key type", pando.ErrFile, func(p []byte) { copy(p[322:], "string") }},
		{"no key type", pando.ErrFile, func(p []byte) { copy(p[322:], "uint99") }},
		{"key type too long", pando.ErrFile, func(p []byte) { le.PutUint16(p[320:], 63) }},
	} {
		forged(t, f, data, c.change)
		refused(t, f.Name(), c.kind, c.what)
	}
}

// Every number of the header takes awkward values, with the right checksum:
// nothing gets past but what changes no size.
func TestOpenAwkwardNumbers(t *testing.T) {
	f, data := reopened(t, 1000)
	le := binary.LittleEndian
	for at := 20; at < 320; at += 4 {
		old := le.Uint64(data[at:])
		for _, x := range []uint64{0, 1, 2, old - 1, old + 1, old * 2, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 4096} {
			forged(t, f, data, func(page []byte) { le.PutUint64(page[at:], x) })
			for _, o := range openers {
				// A checksum of a section may be anything until Verify.
				if err := o.open(f.Name()); err != nil && !errors.Is(err, pando.ErrFile) {
					t.Fatalf("%#x at %d: %s gives %v", x, at, o.name, err)
				}
			}
		}
	}
}

// Sections whose contents have changed places are found by Verify.
func TestVerifySwappedSections(t *testing.T) {
	f, data := reopened(t, 1000)
	info, err := pando.Inspect(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	a, b := info.Sections[1], info.Sections[2]
	put(t, f, data[b.Offset:b.Offset+4096], int(a.Offset))
	put(t, f, data[a.Offset:a.Offset+4096], int(b.Offset))
	if err := pando.Verify(f.Name()); !errors.Is(err, pando.ErrFile) || !strings.Contains(err.Error(), a.Name) {
		t.Errorf("Verify gives %v", err)
	}
	if err := openers[0].open(f.Name()); err != nil {
		t.Error(err)
	}
}

// rewritten writes a file of such bytes to path, its sections changed, with
// checksums that are right.
func rewritten(t *testing.T, path string, data []byte, change func(kinds []files.SectionKind, sections [][]byte)) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := index.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	var kinds []files.SectionKind
	var sections [][]byte
	for _, s := range file.Header.Sections {
		kinds, sections = append(kinds, s.Kind), append(sections, slices.Clone(data[s.Offset:s.Offset+s.Bytes]))
	}
	change(kinds, sections)
	var parts []files.Part
	for i, kind := range kinds {
		parts = append(parts, files.Memory(kind, sections[i]))
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := files.Write(out, *file.Header, parts); err != nil {
		t.Fatal(err)
	}
}

// Verify also looks at what checksums cannot say: a file of keys that are not
// in order, saved with the right sums.
func TestVerifyStructure(t *testing.T) {
	for _, what := range []files.SectionKind{layout.SectionInner, layout.SectionLeaves, files.ValueOffsets} {
		path, data := saved(t, 1000)
		rewritten(t, path, data, func(kinds []files.SectionKind, sections [][]byte) {
			sections[slices.Index(kinds, what)][16] ^= 0x40
		})
		if err := pando.Verify(path); !errors.Is(err, pando.ErrFile) || !strings.Contains(err.Error(), "not as they must be") {
			t.Errorf("%v damaged: Verify gives %v", what, err)
		}
	}
}

// Codes that no key of a narrow type has are found by Verify.
func TestVerifyNarrowKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	ix := facetest.MustFreeze(t, []uint32{1, 255, 256}, make([]uint64, 3))
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, good := range map[string]bool{"uint8": false, "int8": false, "uint16": true, "int32": true, "float32": false} {
		forged(t, f, data, func(page []byte) {
			clear(page[320:384])
			page[320] = byte(len(name))
			copy(page[322:], name)
		})
		if err := pando.Verify(path); (err == nil) != good || err != nil && !errors.Is(err, pando.ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// So are codes that no floating-point number has: of NaNs, there is one, and
// none is of -0. An index of such a file would have keys that it does not find.
func TestVerifyFloatKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	for _, c := range []struct {
		code uint64
		good bool
	}{
		{0, true}, {1, false}, {1<<52 - 2, false}, {1<<52 - 1, true}, {1<<52 + 5, true}, {1<<63 - 2, true}, {1<<63 - 1, false}, {1 << 63, true},
		{0xfff << 52, true}, {0xfff<<52 + 1, false}, {1<<64 - 1, false},
	} {
		ix := facetest.MustFreeze(t, []uint64{0, 1<<52 - 1, 1 << 63, c.code, 0xfff << 52}, make([]uint64, 5))
		if err := ix.Save(path); err != nil {
			t.Fatal(err)
		}
		ix.Close()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		forged(t, f, data, func(page []byte) {
			page[320] = byte(len("float64"))
			copy(page[322:], "float64")
		})
		f.Close()
		if err := pando.Verify(path); (err == nil) != c.good || err != nil && !errors.Is(err, pando.ErrFile) {
			t.Errorf("%#x: %v", c.code, err)
		}
	}
}

func TestOpenOtherTypes(t *testing.T) {
	path, _ := saved(t, 10)
	for what, err := range map[string]error{
		"key":            openError[int64, string](path, stringCodec),
		"key width":      openError[uint32, string](path, stringCodec),
		"string key":     openError[string, string](path, stringCodec),
		"value":          openError[uint64, uint64](path),
		"value by codec": openError[uint64, []byte](path, sliceCodec),
	} {
		if !errors.Is(err, pando.ErrType) || !strings.Contains(err.Error(), "uint64") || !strings.Contains(err.Error(), "encoded string") || !strings.Contains(err.Error(), path) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	if err := openError[uint64, string](path); err != nil {
		t.Errorf("strings need no codec: %v", err)
	}
	if err := openError[uint64, string](path, sliceCodec); !errors.Is(err, pando.ErrOption) {
		t.Errorf("a codec of another type: %v", err)
	}
	for layout, ok := range map[pando.LayoutKind]bool{
		pando.AutoLayout: true, pando.Apart: true, pando.Implicit: true,
		pando.Pairs: false, pando.Blocked: false, pando.Compressed: false, pando.Radix: false,
	} {
		err := openError[uint64, string](path, stringCodec, pando.Layout(layout))
		if ok && err != nil || !ok && !errors.Is(err, pando.ErrLayout) {
			t.Errorf("a file of layout apart as %v: %v", layout, err)
		}
	}
}

// A file is opened with the layout that it was asked for, under each of its
// names.
func TestOpenWithTheLayoutAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	for _, layout := range pando.Layouts() {
		numbers, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.Layout(layout))
		if err != nil {
			t.Fatal(err)
		}
		defer numbers.Close()
		if err := errors.Join(numbers.Save(path), openError[uint64, uint64](path, pando.Layout(layout))); err != nil {
			t.Errorf("numbers: %v", err)
		}
		strings, err := pando.Freeze([]string{"a", "b", "c"}, []uint64{4, 5, 6}, pando.Layout(layout))
		if errors.Is(err, pando.ErrLayout) {
			continue
		}
		defer strings.Close()
		if err := errors.Join(err, strings.Save(path), openError[string, uint64](path, pando.Layout(layout))); err != nil {
			t.Errorf("strings: %v", err)
		}
	}
}

// openError returns the error of Open.
func openError[K pando.Key, V any](path string, opts ...pando.Option) error {
	ix, err := pando.Open[K, V](path, opts...)
	if err == nil {
		ix.Close()
	}
	return err
}

// What is no file of Pando's at all.
func TestOpenNoFile(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("key,value\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, text, pando.ErrFile, "a text")
	refused(t, empty, pando.ErrFile, "an empty file")
	refused(t, dir, pando.ErrFile, "a directory")
	refused(t, filepath.Join(dir, "none"), fs.ErrNotExist, "no file")
}

// A value that cannot be decoded panics with a sentence that names the file,
// also on another goroutine of a batch.
func TestUndecodableValue(t *testing.T) {
	path, _ := saved(t, 20_000)
	picky := pando.Values(
		func(dst []byte, v string) []byte { return append(dst, v...) },
		func(b []byte) (string, error) {
			if string(b) == "777" {
				return "", errors.New("no sevens")
			}
			if string(b) == "778" {
				panic("no eights")
			}
			return string(b), nil
		})
	ix, err := pando.Open[uint64, string](path, picky, pando.Workers(4))
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	keys := make([]uint64, 20_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	for name, do := range map[string]func(){
		"Get":        func() { ix.Get(777) },
		"Get panic":  func() { ix.Get(778) },
		"At":         func() { ix.At(777) },
		"GetBatch":   func() { ix.GetBatch(keys, make([]string, len(keys)), nil) },
		"RangeBatch": func() { ix.RangeBatch(keys, keys, 0) },
		"All":        func() { facetest.Drain(ix.All()) },
	} {
		text := facetest.PanicOf(do)
		if !strings.Contains(text, path) || !strings.Contains(text, "pando verify") || !strings.Contains(text, "no ") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if v, ok := ix.Get(776); !ok || v != "776" {
		t.Errorf("Get(776) = %q, %v", v, ok)
	}
}
