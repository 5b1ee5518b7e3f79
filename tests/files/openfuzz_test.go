package files_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/files"
)

// fuzzFile is a kind of file: how one is made, and how it is opened and asked.
type fuzzFile struct {
	make func(t testing.TB, n int) []byte
	open func(path string) error
	ask  func(path string, on pando.Device, rng *rand.Rand) (pando.Device, error) // in batches, on a device
}

// fuzzFiles has every layout, and few pairs of types, which other tests have, too.
var fuzzFiles = []fuzzFile{
	fileOf(facetest.Integers[uint64](), facetest.Uint64Values),
	fileOf(facetest.Integers[int32](), facetest.Uint32Values),
	fileOf(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Apart)),
	fileOf(facetest.Integers[uint16](), readingValues),
	fileOf(facetest.Integers[int16](), facetest.EmptyValues),
	fileOf(facetest.Float32s[float32](), facetest.PointerValues, pointerCodec),
	fileOf(facetest.Strings[string](), facetest.Uint64Values),
	fileOf(facetest.Strings[string](), facetest.StringValues, stringCodec),
	fileOf(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Blocked)),
	fileOf(facetest.Float32s[float32](), facetest.PointerValues, pointerCodec, pando.Layout(pando.Blocked)),
	fileOf(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Compressed)),
	fileOf(facetest.Integers[int16](), facetest.EmptyValues, pando.Layout(pando.Compressed)),
	fileOf(facetest.Strings[string](), facetest.Uint64Values, pando.Layout(pando.Compressed)),
	fileOf(facetest.Strings[string](), facetest.StringValues, stringCodec, pando.Layout(pando.Compressed)),
}

func fileOf[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], opts ...pando.Option) fuzzFile {
	return fuzzFile{
		make: func(t testing.TB, n int) []byte {
			keys, vals := facetest.ManyEntries(n, d, v, rand.New(rand.NewPCG(1, uint64(n))))
			ix := facetest.MustFreeze(t, keys, vals, opts...)
			defer ix.Close()
			var b bytes.Buffer
			if _, err := ix.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		},
		open: func(path string) error {
			ix, err := pando.Open[K, V](path, append(opts, pando.On(pando.CPU), pando.Workers(1))...)
			if err != nil {
				return err
			}
			return queried(ix, d, rand.New(rand.NewPCG(1, 1)))
		},
		ask: func(path string, on pando.Device, rng *rand.Rand) (pando.Device, error) {
			ix, err := pando.Open[K, V](path, append(opts, pando.On(on), pando.Workers(2))...)
			if err != nil {
				return on, err
			}
			return batched(ix, d, rng)
		},
	}
}

// opensOrRefuses writes bytes to a file and opens it in all ways: an index
// that answers, or an error that is one of those for files.
func opensOrRefuses(t *testing.T, data []byte, kind fuzzFile) {
	path := filepath.Join(t.TempDir(), "index")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, inspected := pando.Inspect(path)
	for _, err := range []error{kind.open(path), inspected, pando.Verify(path)} {
		if err != nil && !errors.Is(err, pando.ErrFile) && !errors.Is(err, pando.ErrVersion) && !errors.Is(err, pando.ErrType) && !errors.Is(err, pando.ErrLayout) {
			t.Fatal(err)
		}
	}
}

// FuzzOpen opens good files with a few numbers changed: four bytes of the
// fuzzer's say where, in words from the start, and eight more what is put
// there. The header's checksum is made right.
func FuzzOpen(f *testing.F) {
	f.Add(byte(0), uint16(100), []byte("\x08\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08"))
	f.Add(byte(5), uint16(2000), []byte("\x00\x06\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, which byte, n uint16, edits []byte) {
		kind := fuzzFiles[int(which)%len(fuzzFiles)]
		data := kind.make(t, int(n)%3000)
		for ; len(edits) >= 12; edits = edits[12:] {
			at := int(binary.LittleEndian.Uint32(edits)) * 4 % (len(data) - 4)
			copy(data[at:], edits[4:12])
		}
		files.Seal(data[:files.Page])
		opensOrRefuses(t, data, kind)
	})
}

// FuzzOpenBytes opens files of the fuzzer's bytes as one of the kinds of
// index. So that few bytes can be a file, they are made as long as their
// header says, with zeros, and its checksum is made right; without seal they
// stay what they are.
func FuzzOpenBytes(f *testing.F) {
	for i, kind := range fuzzFiles {
		for _, n := range []int{0, 3, 100} {
			data := kind.make(f, n)
			f.Add(bytes.TrimRight(data[:files.Page], "\x00"), byte(i), true)
			f.Add(data[:100], byte(i), false)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte, seal bool) {
		if seal {
			data = grown(data)
		}
		opensOrRefuses(t, data, fuzzFiles[int(which)%len(fuzzFiles)])
	})
}

// grown makes bytes as long as the header in them says, within reason, and its
// checksum right.
func grown(data []byte) []byte {
	data = append(data, make([]byte, max(0, files.Page-len(data)))...)
	size := binary.LittleEndian.Uint64(data[24:])
	if size > uint64(len(data)) && size < 1<<20 {
		data = append(data, make([]byte, int(size)-len(data))...)
	}
	files.Seal(data[:files.Page])
	return data
}
