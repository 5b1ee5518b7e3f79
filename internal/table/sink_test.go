package table

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/pando-index/pando/internal/seed"
)

// everyType is a schema with each type once.
var everyType = []Field{{Name: "a", Type: Int64}, {Name: "b", Type: Uint64}, {Name: "c", Type: Int32}, {Name: "d", Type: Uint32}, {Name: "e", Type: Float64}, {Name: "f", Type: Float32}, {Name: "g", Type: String}}

// randomBatch makes rows of a schema, some of them null.
func randomBatch(r *rand.Rand, schema []Field, rows int, nulls bool) *Batch {
	b := new(Batch)
	b.Reset(schema)
	for i := range b.Columns {
		c := &b.Columns[i]
		for range rows {
			if nulls && r.IntN(5) == 0 {
				c.AppendNull()
				continue
			}
			appendRandom(c, r)
		}
		c.Seal()
	}
	b.Rows = rows
	return b
}

func appendRandom(c *Column, r *rand.Rand) {
	bits := r.Uint64() >> r.IntN(64)
	switch c.Type {
	case Int64:
		c.Int64 = append(c.Int64, []int64{int64(bits), math.MinInt64, math.MaxInt64}[r.IntN(3)])
	case Uint64:
		c.Uint64 = append(c.Uint64, []uint64{bits, math.MaxUint64, 0}[r.IntN(3)])
	case Int32:
		c.Int32 = append(c.Int32, []int32{int32(bits), math.MinInt32, math.MaxInt32}[r.IntN(3)])
	case Uint32:
		c.Uint32 = append(c.Uint32, []uint32{uint32(bits), math.MaxUint32}[r.IntN(2)])
	case Float64:
		c.Float64 = append(c.Float64, []float64{r.NormFloat64(), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, 1e21, 5e-324}[r.IntN(6)])
	case Float32:
		c.Float32 = append(c.Float32, []float32{float32(r.NormFloat64()), float32(math.Inf(1)), math.MaxFloat32, 1e-45}[r.IntN(4)])
	default:
		c.String = append(c.String, []string{"", "x", "a,b", "say \"hi\"", "two\nlines", "tab\t", "é 木", "\\n", "12", "null"}[r.IntN(10)])
	}
}

// equal describes where two batches differ, "" if they do not.
func equal(a, b *Batch) string {
	if a.Rows != b.Rows || len(a.Columns) != len(b.Columns) {
		return fmt.Sprintf("%d rows of %d columns, want %d of %d", a.Rows, len(a.Columns), b.Rows, len(b.Columns))
	}
	for i := range a.Columns {
		x, y := &a.Columns[i], &b.Columns[i]
		if x.Field != y.Field {
			return fmt.Sprintf("column %v, want %v", x.Field, y.Field)
		}
		for row := range a.Rows {
			if x.IsNull(row) != y.IsNull(row) || string(appendPlain(x, nil, row)) != string(appendPlain(y, nil, row)) {
				return fmt.Sprintf("column %s row %d: %s %v, want %s %v", x.Name, row,
					appendPlain(x, nil, row), x.IsNull(row), appendPlain(y, nil, row), y.IsNull(row))
			}
		}
	}
	return ""
}

// write returns batches as a file of a format.
func write(t testing.TB, format string, schema []Field, batches ...*Batch) []byte {
	t.Helper()
	var out bytes.Buffer
	s, err := NewSink(&out, format, schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := s.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRoundTrip tests that a source reads what a sink writes, for all types
// and nulls, compressed or not, from a file or from a pipe.
func TestRoundTrip(t *testing.T) {
	r := seed.Rand(t)
	types := map[string]Type{}
	for _, f := range everyType {
		types[f.Name] = f.Type
	}
	for _, format := range []string{"csv", "jsonl", "arrow", "parquet"} {
		for _, nulls := range []bool{false, true} {
			for _, rows := range []int{0, 1, 500, 3000} {
				if !seed.Long() && rows == 3000 && !nulls {
					continue
				}
				one, two := randomBatch(r, everyType, rows, nulls), randomBatch(r, everyType, rows/2, nulls)
				var want Batch
				want.Reset(everyType)
				gatherAll(t, &want, one, two)
				if format == "csv" { // which has no null strings
					want.Columns[6].Null = nil
				}
				data := write(t, format, everyType, one, two)
				checkAllWays(t, format, data, Options{Types: types}, &want)
			}
		}
	}
}

func gatherAll(t *testing.T, all *Batch, batches ...*Batch) {
	for _, b := range batches {
		if err := gather(all, b); err != nil {
			t.Fatal(err)
		}
	}
}

// checkAllWays reads data from a file and a pipe, compressed in each way.
func checkAllWays(t *testing.T, format string, data []byte, o Options, want *Batch) {
	t.Helper()
	for ending, packed := range pack(t, data) {
		path := filepath.Join(t.TempDir(), "x."+format+ending)
		if err := os.WriteFile(path, packed, 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := equal(readAll(t, path, o), want); diff != "" {
			t.Fatalf("%s%s: %s", format, ending, diff)
		}
		o := o
		o.Format = format
		src, err := Open("-", bytes.NewReader(packed), o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := drain(src)
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := equal(got, want); diff != "" {
			t.Fatalf("%s%s from a pipe: %s", format, ending, diff)
		}
	}
}

// pack returns data as it is, with gzip and with zstd, by file name ending.
func pack(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	g.Write(data)
	z.Write(data)
	g.Close()
	z.Close()
	return map[string][]byte{"": data, ".gz": gz.Bytes(), ".zst": zs.Bytes()}
}

// TestCutShort tests that a truncated file, compressed or of any format, is an
// error or has fewer whole rows, but never other values.
func TestCutShort(t *testing.T) {
	r := seed.Rand(t)
	schema := everyType[:1]
	b := randomBatch(r, schema, 3000, false)
	for _, format := range []string{"csv", "arrow", "parquet"} {
		data := write(t, format, schema, b)
		for ending, packed := range pack(t, data) {
			for range 20 {
				n := r.IntN(len(packed))
				path := tempFile(t, "x."+format+ending, string(packed[:n]))
				got, err := readErr(path, Options{Types: map[string]Type{"a": Int64}})
				if err == nil && (ending != "" || format == "parquet") && n > 0 {
					t.Fatalf("%s%s: %d of %d bytes read as whole", format, ending, n, len(packed))
				}
				if err == nil && format != "csv" && !slices.Equal(got.Columns[0].Int64, b.Columns[0].Int64[:got.Rows]) {
					t.Fatalf("%s%s: other values after %d of %d bytes", format, ending, n, len(packed))
				}
			}
		}
	}
}

// TestText tests the format for people and the details of the others.
func TestText(t *testing.T) {
	schema := []Field{{Name: "k", Type: Int64}, {Name: "s", Type: String}, {Name: "f", Type: Float64}}
	b := new(Batch)
	b.Reset(schema)
	b.Rows = 2
	b.Columns[0].Int64 = []int64{-5, 7}
	b.Columns[1].String = []string{"a\tb\n\x01\"", ""}
	b.Columns[1].Null = []bool{false, true}
	b.Columns[2].Float64 = []float64{math.NaN(), 0.5}
	for format, want := range map[string]string{
		"text":  "-5\ta\\tb\\n\\x01\"\tNaN\n7\t\t0.5\n",
		"csv":   "k,s,f\n-5,\"a\tb\n\x01\"\"\",NaN\n7,,0.5\n",
		"jsonl": `{"k":-5,"s":"a\tb\n\u0001\"","f":"NaN"}` + "\n" + `{"k":7,"s":null,"f":0.5}` + "\n",
	} {
		if got := string(write(t, format, schema, b)); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
	single := []Field{{Name: "s", Type: String}}
	b.Reset(single)
	b.Rows, b.Columns[0].String = 2, []string{"", "x"}
	if got := string(write(t, "csv", single, b)); got != "s\n\"\"\nx\n" {
		t.Errorf("one column: %q", got)
	}
	if _, err := NewSink(nil, "xls", nil); err == nil || !strings.Contains(err.Error(), "text, csv") {
		t.Errorf("%v", err)
	}
}

// failing is a writer that fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestSinkFails tests that an error of the writer comes out of Write or Close.
func TestSinkFails(t *testing.T) {
	b := randomBatch(seed.Rand(t), everyType, 10, true)
	for _, format := range SinkFormats() {
		s, err := NewSink(failing{}, format, everyType)
		if err == nil {
			err = s.Write(b)
		}
		if err == nil {
			err = s.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", format)
		}
	}
}
