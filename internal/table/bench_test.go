package table

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// benchFile writes rows of two integer columns in a format.
func benchFile(b *testing.B, format string, rows int) string {
	r := rand.New(rand.NewPCG(1, 2))
	schema := []Field{{Name: "key", Type: Int64}, {Name: "value", Type: Int64}}
	var batches []*Batch
	for ; rows > 0; rows -= batchRows {
		batch := new(Batch)
		batch.Reset(schema)
		batch.Rows = min(rows, batchRows)
		for range batch.Rows {
			batch.Columns[0].Int64 = append(batch.Columns[0].Int64, int64(r.Uint64()>>20))
			batch.Columns[1].Int64 = append(batch.Columns[1].Int64, r.Int64N(1_000_000))
		}
		batches = append(batches, batch)
	}
	return tempFile(b, "x."+format, string(write(b, format, schema, batches...)))
}

// BenchmarkRead reads two integer columns.
func BenchmarkRead(b *testing.B) {
	const rows = 4 << 20
	for _, format := range []string{"csv", "jsonl", "arrow", "parquet"} {
		path := benchFile(b, format, rows)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", format, workers), func(b *testing.B) {
				benchRead(b, path, Options{Workers: workers}, rows)
			})
		}
	}
	b.Run("u64", func(b *testing.B) {
		path := tempFile(b, "x.u64", strings.Repeat("12345678", rows))
		benchRead(b, path, Options{}, rows)
	})
}

func benchRead(b *testing.B, path string, o Options, rows int) {
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		src, err := Open(path, nil, o)
		if err != nil {
			b.Fatal(err)
		}
		var batch Batch
		got := 0
		for err = src.Next(&batch); err == nil; err = src.Next(&batch) {
			got += batch.Rows
		}
		if err != io.EOF || got != rows {
			b.Fatal(err, got)
		}
		src.Close()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkWrite writes two integer columns.
func BenchmarkWrite(b *testing.B) {
	schema := []Field{{Name: "key", Type: Int64}, {Name: "value", Type: Int64}}
	batch := new(Batch)
	batch.Reset(schema)
	batch.Rows = batchRows
	r := rand.New(rand.NewPCG(1, 2))
	for range batch.Rows {
		batch.Columns[0].Int64 = append(batch.Columns[0].Int64, int64(r.Uint64()>>20))
		batch.Columns[1].Int64 = append(batch.Columns[1].Int64, r.Int64N(1_000_000))
	}
	for _, format := range SinkFormats() {
		b.Run(format, func(b *testing.B) {
			s, err := NewSink(io.Discard, format, schema)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Write(batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(batch.Rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
