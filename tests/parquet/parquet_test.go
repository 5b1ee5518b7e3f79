// Package parquet_test has package table read what Arrow's Parquet library writes, and the
// other way round. It is a module of its own since that library takes longer to compile
// than all of the command; files that it has written are among those that package table's
// own tests read.
package parquet_test

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table"
)

// everyType is a schema with each type once.
var everyType = []table.Field{{Name: "a", Type: table.Int64}, {Name: "b", Type: table.Uint64}, {Name: "c", Type: table.Int32}, {Name: "d", Type: table.Uint32}, {Name: "e", Type: table.Float64}, {Name: "f", Type: table.Float32}, {Name: "g", Type: table.String}}

// randomBatch makes rows of a schema, some of them null.
func randomBatch(r *rand.Rand, fields []table.Field, rows int, nulls bool) *table.Batch {
	b := new(table.Batch)
	b.Reset(fields)
	for i := range b.Columns {
		c := &b.Columns[i]
		for range rows {
			if nulls && r.IntN(5) == 0 {
				c.AppendNull()
			} else {
				appendRandom(c, r)
			}
		}
		c.Seal()
	}
	b.Rows = rows
	return b
}

func appendRandom(c *table.Column, r *rand.Rand) {
	bits := r.Uint64() >> r.IntN(64)
	switch c.Type {
	case table.Int64:
		c.Int64 = append(c.Int64, []int64{int64(bits), math.MinInt64, math.MaxInt64}[r.IntN(3)])
	case table.Uint64:
		c.Uint64 = append(c.Uint64, []uint64{bits, math.MaxUint64, 0}[r.IntN(3)])
	case table.Int32:
		c.Int32 = append(c.Int32, []int32{int32(bits), math.MinInt32, math.MaxInt32}[r.IntN(3)])
	case table.Uint32:
		c.Uint32 = append(c.Uint32, []uint32{uint32(bits), math.MaxUint32}[r.IntN(2)])
	case table.Float64:
		c.Float64 = append(c.Float64, []float64{r.NormFloat64(), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, 1e21, 5e-324}[r.IntN(6)])
	case table.Float32:
		c.Float32 = append(c.Float32, []float32{float32(r.NormFloat64()), float32(math.Inf(1)), math.MaxFloat32, 1e-45}[r.IntN(4)])
	default:
		c.String = append(c.String, []string{"", "x", "a,b", "two\nlines", "é 木", "12", "null", strings.Repeat("x", r.IntN(200))}[r.IntN(8)])
	}
}

// rows returns each row as text after those that are there: as many words for a schema,
// quoted, or null.
func rows(to []string, b *table.Batch) []string {
	var line []byte
	for row := range b.Rows {
		line = line[:0]
		for i := range b.Columns {
			if c := &b.Columns[i]; c.IsNull(row) {
				line = append(line, " null"...)
			} else {
				line = strconv.AppendQuote(append(line, ' '), table.CellText(c, row))
			}
		}
		to = append(to, string(line))
	}
	return to
}

// read returns all rows of a file, which must have the given columns.
func read(t *testing.T, data string, fields []table.Field, workers int) (all []string) {
	t.Helper()
	src, err := table.Open("-", strings.NewReader(data), table.Options{Format: "parquet", Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got := src.Schema(); !slices.Equal(got, fields) {
		t.Fatalf("columns %v, want %v", got, fields)
	}
	for {
		var b table.Batch
		err := src.Next(&b)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = rows(all, &b)
	}
}

// same fails where two lists of rows differ.
func same(t *testing.T, got, want []string, what ...any) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%v: row %d is%s, want%s", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%v: %d rows, want %d", what, len(got), len(want))
	}
}

// TestRead tests many pages and row groups, every compression, with and without a
// dictionary, with any number of workers.
func TestRead(t *testing.T) {
	r := seed.Rand(t)
	fields := []table.Field{{Name: "a", Type: table.Int64}, {Name: "g", Type: table.String}}
	var batches []*table.Batch
	var want []string
	for range 3 {
		b := randomBatch(r, fields, 32<<10+r.IntN(1000), true) // more than a batch of a source
		batches, want = append(batches, b), rows(want, b)
	}
	for _, codec := range codecs {
		for _, v := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
			for _, dictionary := range []bool{false, true} {
				data := oracleFile(t, fields, batches, parquet.WithCompression(codec),
					parquet.WithDataPageVersion(v), parquet.WithDictionaryDefault(dictionary), parquet.WithDataPageSize(10_000))
				same(t, read(t, data, fields, 1+r.IntN(4)), want, codec, v, dictionary)
			}
		}
	}
}

// TestEncodings tests every encoding that a type can have.
func TestEncodings(t *testing.T) {
	r := seed.Rand(t)
	for _, f := range everyType {
		fields := []table.Field{f}
		for _, enc := range encodings[f.Type] {
			for _, n := range []int{1, 3, 10_000} {
				b := randomBatch(r, fields, n, r.IntN(2) == 0)
				data := oracleFile(t, fields, []*table.Batch{b}, parquet.WithDictionaryDefault(false), parquet.WithEncoding(enc), parquet.WithDataPageSize(1000))
				same(t, read(t, data, fields, 0), rows(nil, b), f.Type, enc)
			}
		}
	}
}

// TestWritten tests that Arrow's library reads what is written here, with the columns in
// their order, over several pages and row groups.
func TestWritten(t *testing.T) {
	r := seed.Rand(t)
	fields := slices.Clone(everyType)
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	fields = append(fields, table.Field{Name: "with space, and a comma", Type: table.String}, table.Field{Name: "1", Type: table.Int64}, table.Field{Name: "", Type: table.Float64})
	for _, nulls := range []bool{false, true} {
		var out bytes.Buffer
		var want []string
		sink, err := table.NewSink(&out, "parquet", fields)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			b := randomBatch(r, fields, n*r.IntN(seed.Size(8000, 20_000)), nulls)
			want = rows(want, b)
			if err := sink.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		same(t, rows(nil, oracleRead(t, out.Bytes(), fields)), want, "by Arrow")
	}
}
