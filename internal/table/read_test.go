package table

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/gzip"
	"github.com/pando-index/pando/internal/table/cols"
)

// readRows reads data as a server reads the body of a request, and returns its rows as text.
func readRows(data []byte, most int64, o Options) (rows []string, err error) {
	o.Pass, o.Workers = true, 1
	src, err := Read(bytes.NewReader(data), "the body", most, o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var b Batch
	for {
		if err := src.Next(&b); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		for row := range b.Rows {
			var cells []string
			for i := range b.Columns {
				if b.Columns[i].IsNull(row) {
					cells = append(cells, "NULL")
				} else {
					cells = append(cells, CellText(&b.Columns[i], row))
				}
			}
			rows = append(rows, strings.Join(cells, "|"))
		}
	}
}

// Every format that is written is read again as a body, with its format said and without, and so are
// bytes that are not text where the format has them.
func TestReadBody(t *testing.T) {
	schema := []Field{{Name: "key", Type: String, Kind: Kind{Of: cols.Binary}}, {Name: "value", Type: String, Kind: Kind{Of: cols.Binary}}}
	b := &Batch{Rows: 4, Columns: []Column{
		{Field: schema[0], String: []string{"a", "", "\"q\",\r\n", "007"}},
		{Field: schema[1], String: []string{"\xff\x01", "1.50", "", "x\ty"}},
	}}
	want := "a|\xff\x01, |1.50, \"q\",\r\n|, 007|x\ty"
	for _, format := range []string{"csv", "tsv", "arrow", "parquet", "jsonl"} {
		if format == "jsonl" {
			b.Columns[1].String[0] = "y"
			want = strings.Replace(want, "\xff\x01", "y", 1)
		}
		data := write(t, format, schema, b)
		for _, said := range []string{format, ""} {
			if said == "" && format == "tsv" {
				continue
			}
			rows, err := readRows(data, 1<<20, Options{Format: said, Header: true})
			if got := strings.Join(rows, ", "); err != nil || got != want {
				t.Errorf("%s as %q: %q, %v; want %q", format, said, got, err, want)
			}
		}
		if format != "csv" && format != "tsv" && format != "jsonl" {
			if _, err := readRows(data[:len(data)-9], 1<<20, Options{Format: format}); err == nil && format == "parquet" {
				t.Errorf("%s that is cut is read", format)
			}
		}
	}
}

// A body is not unpacked: its bytes are what was counted.
func TestReadBodyAsItIs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("key\nb\n"))
	z.Close()
	if rows, err := readRows(packed.Bytes(), 1<<20, Options{Header: true, Format: "csv"}); err == nil && strings.Join(rows, "") == "b" {
		t.Errorf("a body was unpacked: %q", rows)
	}
}

// A body cannot ask for more than it was told, in all columns of a batch together.
func TestReadBodyAsksForMuch(t *testing.T) {
	const columns, rows = 40, 10_000
	var fields []arrow.Field
	var arrays []arrow.Array
	for i := range columns {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(make([]int64, rows), nil)
		fields, arrays = append(fields, arrow.Field{Name: string(rune('A' + i)), Type: arrow.PrimitiveTypes.Int64}), append(arrays, b.NewArray())
	}
	schema := arrow.NewSchema(fields, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema), ipc.WithZstd())
	for range 3 {
		if err := w.Write(array.NewRecordBatch(schema, arrays, rows)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if _, err := readRows(out.Bytes(), 2<<20, Options{}); !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), "at once") {
		t.Errorf("%v", err)
	}
	if got, err := readRows(out.Bytes(), 8<<20, Options{}); err != nil || len(got) != 3*rows { // each batch is within the bound
		t.Errorf("%d rows, %v", len(got), err)
	}
}
