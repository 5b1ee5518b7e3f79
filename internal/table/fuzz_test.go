package table

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"runtime/metrics"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"
)

// fuzz reads data in a format: whatever it is, the reader must return rows or
// an error, and must not take more memory than a small input can need.
func fuzz(t *testing.T, format string, data []byte, o Options) (*Batch, error) {
	const bound = 4 << 30 // bytes allocated, freed or not
	before := allocated()
	o.Format = format
	src, err := Open("-", bytes.NewReader(data), o)
	if err == nil {
		var b *Batch
		b, err = drainSome(src)
		src.Close()
		if err == nil {
			return b, nil
		}
	}
	if _, ok := err.(*Error); !ok {
		t.Fatalf("%T: %v", err, err)
	}
	if took := allocated() - before; took > bound {
		t.Fatalf("%d bytes of input took %d bytes of memory", len(data), took)
	}
	return nil, err
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// drainSome is drain, but stops early on inputs that unpack to very many rows.
func drainSome(src Source) (*Batch, error) {
	var all, b Batch
	all.Reset(src.Schema())
	for range 50 {
		err := src.Next(&b)
		if err == io.EOF {
			return &all, nil
		}
		if err != nil {
			return nil, err
		}
		if err := gather(&all, &b); err != nil {
			return nil, err
		}
	}
	return &all, nil
}

// seeds adds small files of a format to the corpus.
func seeds(f *testing.F, format string) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rows := range []int{0, 1, 20} {
		f.Add(write(f, format, everyType, randomBatch(r, everyType, rows, true)))
	}
}

func FuzzCSV(f *testing.F) {
	seeds(f, "csv")
	for _, s := range []string{"a,b\n1,2\n", "a\n\"x\"\"y\r\n\"\r\n", "\xef\xbb\xbfa\r", "a,b\n1\n", "\"", "a\n,\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := fuzz(t, "csv", data, Options{NoHeader: true, Comma: ',', Workers: 1})
		want, wantErr := reference(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
		if err != nil || wantErr != nil || packed(data) || got.Rows == 0 {
			if err == nil && wantErr != nil && !packed(data) {
				t.Fatalf("read what encoding/csv refuses: %v", wantErr)
			}
			return
		}
		if got.Rows != len(want) || len(got.Columns) != len(want[0]) {
			t.Fatalf("%d rows, encoding/csv has %d", got.Rows, len(want))
		}
	})
}

// packed reports whether data is compressed.
func packed(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) || bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

func FuzzJSONL(f *testing.F) {
	seeds(f, "jsonl")
	for _, s := range []string{`{"a":{"b":[1,"}"]},"c":"\u00e9"}`, "{}\n{}", `{"a":1}{"a":2}`, "[1]", `{"a":tru`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, "jsonl", data, Options{Workers: 1}) })
}

func FuzzParquet(f *testing.F) {
	seeds(f, "parquet")
	var nested bytes.Buffer
	if err := parquet.Write(&nested, passedRows(7)); err != nil {
		f.Fatal(err)
	}
	f.Add(nested.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzz(t, "parquet", data, Options{Workers: 1})
		fuzzPass(t, "parquet", data)
	})
}

// fuzzPass passes data on into all formats: whatever it is, there must be rows or an
// error.
func fuzzPass(t *testing.T, format string, data []byte) {
	for _, to := range SinkFormats() {
		src, err := Open("-", bytes.NewReader(data), Options{Format: format, Workers: 1, Pass: true})
		if err != nil {
			continue
		}
		if sink, err := NewSink(io.Discard, to, src.Schema()); err == nil {
			var b Batch
			for range 5 {
				if src.Next(&b) != nil || sink.Write(&b) != nil {
					break
				}
			}
			sink.Close()
		}
		src.Close()
	}
}

func FuzzArrow(f *testing.F) {
	seeds(f, "arrow")
	for _, asFile := range []bool{false, true} {
		f.Add([]byte(arrowFile(f, asFile, []arrow.RecordBatch{manyTypes(f)}, ipc.WithZstd())))
	}
	js, err := os.ReadFile("testdata/javascript.arrow")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(js)
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzz(t, "arrow", data, Options{})
		fuzzPass(t, "arrow", data)
	})
}

func FuzzRaw(f *testing.F) {
	f.Add([]byte(little[uint64](1, 7)), "sosd64")
	f.Add([]byte(little[uint32](1, 0, 7)), "sosd32")
	f.Add([]byte("12345678"), "u32")
	f.Fuzz(func(t *testing.T, data []byte, format string) {
		if _, ok := rawTypes[format]; ok {
			fuzz(t, format, data, Options{})
		}
	})
}
