package table

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// manyTypes makes a record batch of types beyond the seven, each with the
// values 1, null, 2 (or the nearest equivalent), sliced out of a longer one.
func manyTypes(t testing.TB) arrow.RecordBatch {
	t.Helper()
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Uint16,
		arrow.FixedWidthTypes.Float16, arrow.FixedWidthTypes.Boolean, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us,
		arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.StringView, dict,
		&arrow.FixedSizeBinaryType{ByteWidth: 1}, arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Time32s,
	}
	var fields []arrow.Field
	var columns []arrow.Array
	for _, dt := range types {
		b := array.NewBuilder(memory.DefaultAllocator, dt)
		for _, v := range []string{"0", "1", "", "2"} {
			if v == "" {
				b.AppendNull()
			} else if err := b.AppendValueFromString(arrowText(dt, v)); err != nil {
				t.Fatal(dt, err)
			}
		}
		fields = append(fields, arrow.Field{Name: dt.Name(), Type: dt, Nullable: true})
		columns = append(columns, b.NewArray())
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 4).NewSlice(1, 4)
}

// arrowText returns a value in the form that AppendValueFromString takes.
func arrowText(dt arrow.DataType, v string) string {
	switch dt.ID() {
	case arrow.BOOL:
		return map[string]string{"0": "false", "1": "true", "2": "true"}[v]
	case arrow.DATE32:
		return "1970-01-0" + string(v[0]+1)
	case arrow.TIMESTAMP:
		return "1970-01-01T00:00:0" + v + "Z"
	case arrow.TIME32:
		return "00:00:0" + v
	case arrow.DURATION:
		return v + "ms"
	case arrow.BINARY, arrow.FIXED_SIZE_BINARY:
		return map[string]string{"0": "MA==", "1": "MQ==", "2": "Mg=="}[v]
	}
	return v
}

// arrowFile writes record batches as a file or a stream.
func arrowFile(t testing.TB, asFile bool, records []arrow.RecordBatch, opts ...ipc.Option) string {
	t.Helper()
	var out bytes.Buffer
	opts = append(opts, ipc.WithSchema(records[0].Schema()))
	var w interface {
		Write(arrow.RecordBatch) error
		io.Closer
	} = ipc.NewWriter(&out, opts...)
	if asFile {
		out.Reset()
		f, err := ipc.NewFileWriter(&out, opts...)
		if err != nil {
			t.Fatal(err)
		}
		w = f
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestArrowTypes tests every mapped type, sliced arrays, nulls, all
// compressions, files and streams.
func TestArrowTypes(t *testing.T) {
	record := manyTypes(t)
	for _, asFile := range []bool{false, true} {
		for _, opts := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
			path := tempFile(t, "x", arrowFile(t, asFile, []arrow.RecordBatch{record, record}, opts...))
			b := readAll(t, path, Options{})
			if b.Rows != 6 {
				t.Fatalf("%d rows", b.Rows)
			}
			for i := range b.Columns {
				c := &b.Columns[i]
				c.Kind = Kind{} // the numbers
				one, two := string(appendPlain(c, nil, 0)), string(appendPlain(c, nil, 5))
				if c.IsNull(0) || !c.IsNull(1) || !c.IsNull(4) || string(appendPlain(c, nil, 1)) != string(zeroOf(c.Type)) {
					t.Errorf("%s: nulls %v", c.Name, c.Null)
				}
				if one == "1000000" && two == "2000000" || one == "true" && two == "true" {
					continue // a timestamp in microseconds; a boolean
				}
				if one != "1" || two != "2" {
					t.Errorf("%s: %s, %s", c.Name, one, two)
				}
			}
		}
	}
}

func zeroOf(t Type) string {
	if t == String {
		return ""
	}
	return "0"
}

// TestArrowLarge tests that a record batch larger than ours comes in pieces.
func TestArrowLarge(t *testing.T) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	want := make([]int64, 3*batchRows+1)
	for i := range want {
		want[i] = int64(i)
	}
	b.AppendValues(want, nil)
	record := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil), []arrow.Array{b.NewArray()}, int64(len(want)))
	got := readAll(t, tempFile(t, "x.arrow", arrowFile(t, true, []arrow.RecordBatch{record})), Options{})
	if !slices.Equal(got.Columns[0].Int64, want) {
		t.Error("not what was written")
	}
}

// TestArrowErrors tests that errors name the types that cannot be read.
func TestArrowErrors(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int64)
	decimal := &arrow.Decimal128Type{Precision: 38, Scale: 20}
	for _, dt := range []arrow.DataType{list, decimal} {
		a := array.NewBuilder(memory.DefaultAllocator, dt).NewArray()
		x := array.NewInt64Builder(memory.DefaultAllocator).NewArray()
		record := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: dt}, {Name: "x", Type: x.DataType()}}, nil), []arrow.Array{a, x}, 0)
		path := tempFile(t, "x.arrow", arrowFile(t, true, []arrow.RecordBatch{record}))
		if _, err := readErr(path, Options{}); err == nil || !strings.Contains(err.Error(), `column "a": values of type`) {
			t.Errorf("%v", err)
		}
		if _, err := readErr(path, Options{Columns: []string{"x"}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := readErr(tempFile(t, "x.arrow", "ARROW1\x00\x00nonsense that is long enough"), Options{}); err == nil {
		t.Error("nonsense was read")
	}
}

// TestArrowJavaScript tests a file of the official JavaScript library: its schema is
// only in the footer, and its first message a dictionary.
func TestArrowJavaScript(t *testing.T) {
	b := readAll(t, "testdata/javascript.arrow", Options{})
	c := b.Columns
	if !slices.Equal(c[0].Int32, []int32{3, 1, 2}) || !slices.Equal(c[1].String, []string{"b", "a", "b"}) ||
		!slices.Equal(c[2].String, []string{"x", "", "z"}) || !c[2].IsNull(1) || !slices.Equal(c[3].String, []string{"q", "r", "q"}) {
		t.Errorf("%+v", c)
	}
}
