package table

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/gzip"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
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
	const columns, rows = 16, 25_000
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

// refuses fails unless reading data is an error that says a text, in few words and with little memory.
func refuses(t *testing.T, what string, data []byte, most int64, says string) {
	t.Helper()
	before := allocated()
	_, err := readRows(data, most, Options{Header: true, Comma: ','})
	if !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), says) || len(err.Error()) > 3000 {
		t.Errorf("%s: %.300v", what, err)
	}
	if took := allocated() - before; took > 32<<20 {
		t.Errorf("%s: %d bytes of input took %d bytes of memory", what, len(data), took)
	}
}

// parquetOf puts a footer into a file that has nothing else.
func parquetOf(footer []byte) []byte {
	data := append([]byte(parquetMagic), footer...)
	return append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), parquetMagic...)
}

// Structures within structures are refused, however deep: the stack has an end, and so has an error.
func TestReadBodyDeep(t *testing.T) {
	deep := bytes.Repeat([]byte{0x1c}, 4_000_000)
	refuses(t, "a footer", parquetOf(deep), 1<<20, "within each other")
	for what, b := range map[string][]byte{"structures": deep, "lists": bytes.Repeat([]byte{0x19}, 4_000_000), "maps": bytes.Repeat([]byte{1, 0xbb}, 2_000_000)} {
		if what != "structures" {
			b = append([]byte{0x1b}, b...)
		}
		if _, err := parquetDecode(b, new(format.PageHeader), 0); err == nil || len(err.Error()) > 3000 {
			t.Errorf("%s: %.300v", what, err)
		}
	}
	le := binary.LittleEndian
	schema := []byte{16, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0} // of each table: its children are at 4
	for len(schema) < 16<<20 {
		at := len(schema)
		for _, v := range []uint32{uint32(at), 4, 1, 4} { // the table's index; children, one, the next table
			schema = le.AppendUint32(schema, v)
		}
	}
	f := flat{b: schema}
	if f.children(16, 5, 0); !f.bad || f.fields > maxNested+2 {
		t.Errorf("%d fields of a schema within each other were looked at", f.fields)
	}
}

// A description cannot ask for more memory than it was told, by lists of nothing or by the same name again and again.
func TestReadBodyDescription(t *testing.T) {
	schema := append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1_000_000)...)
	refuses(t, "a list of nothing", parquetOf(append(schema, make([]byte, 1_000_001)...)), 1<<20, "asks for")
	const size, n = 1 << 20, 10
	le := binary.LittleEndian
	b := []byte{6, 0, 8, 0, 4, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, n, 0, 0, 0}
	for i := range n {
		b = le.AppendUint32(b, uint32(68-20-4*i))
	}
	b = append(b, 8, 0, 12, 0, 4, 0, 8, 0, 8, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0) // a pair, whose name and value are the same
	b = append(le.AppendUint32(b, size), make([]byte, size)...)
	for _, stranger := range []bool{false, true} {
		f := flat{b: b, stranger: stranger}
		if f.pairs(8, 0); (f.fault() != nil) != stranger {
			t.Errorf("%v: %d bytes of names, %v", stranger, f.names, f.fault())
		}
	}
}

// A body has few columns, and none is nested.
func TestReadBodyColumns(t *testing.T) {
	refuses(t, "csv", append(bytes.Repeat([]byte{','}, 1_000_000), '\n'), 1<<20, "more than 16 columns")
	object := []byte("{")
	for i := range 100_000 {
		object = fmt.Appendf(object, `"%d":1,`, i)
	}
	refuses(t, "jsonl", append(object, "\"x\":1}\n"...), 1<<20, "more than 16 columns")
	row := append(append([]byte("a\n"), bytes.Repeat([]byte{','}, 1_000_000)...), '\n')
	refuses(t, "a row of csv", row, 1<<20, "more than 16 columns")
	for _, columns := range []int{16, 17} {
		var schema []Field
		b := &Batch{Rows: 1}
		for i := range columns {
			schema = append(schema, Field{Name: fmt.Sprint("c", i), Type: Int64})
			b.Columns = append(b.Columns, Column{Field: schema[i], Int64: []int64{1}})
		}
		for _, format := range []string{"csv", "jsonl", "parquet", "arrow"} {
			data := write(t, format, schema, b)
			if columns > mostColumns {
				refuses(t, format, data, 1<<20, "more than 16 columns")
			} else if rows, err := readRows(data, 1<<20, Options{Header: true}); err != nil || len(rows) != 1 {
				t.Errorf("%s: %q, %v", format, rows, err)
			}
		}
	}
	var out bytes.Buffer
	p := parquet.NewGenericWriter[struct {
		Key []string `parquet:"key,list"`
	}](&out)
	p.Close()
	refuses(t, "a list", out.Bytes(), 1<<20, "nested")
	list := array.NewData(arrow.FixedSizeListOf(50_000_000, arrow.Null), 1, []*memory.Buffer{nil}, []arrow.ArrayData{array.NewData(arrow.Null, 50_000_000, nil, nil, 50_000_000, 0)}, 0, 0)
	refuses(t, "a list of nulls", arrowBody(t, array.MakeFromData(list)), 1<<20, "nested")
}

// arrowBody returns a stream of batches of one column.
func arrowBody(t *testing.T, batches ...arrow.Array) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "key", Type: batches[0].DataType(), Nullable: true}}, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema), ipc.WithZstd())
	for _, a := range batches {
		if err := w.Write(array.NewRecordBatch(schema, []arrow.Array{a}, int64(a.Len()))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// ofWord returns a dictionary of a word, and codes for it.
func ofWord(word string, rows int) arrow.Array {
	words, codes := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt8Builder(memory.DefaultAllocator)
	words.Append(word)
	codes.AppendValues(make([]int8, rows), nil)
	return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: codes.Type(), ValueType: words.Type()}, codes.NewArray(), words.NewArray())
}

// A word that many rows have is made once, and where each row makes its own there is an end.
func TestReadBodyWords(t *testing.T) {
	const rows, size = 4096, 50_000 // a page of Parquet has the word in its header, too
	word := strings.Repeat("w", size)
	view := array.NewStringViewBuilder(memory.DefaultAllocator)
	view.Append(word)
	one := view.NewArray().Data().Buffers()
	views := array.MakeFromData(array.NewData(arrow.BinaryTypes.StringView, rows, []*memory.Buffer{nil, memory.NewBufferBytes(bytes.Repeat(one[1].Bytes(), rows)), one[2]}, nil, 0, 0))
	type bytesOf struct {
		Key []byte `parquet:"key,dict"`
	}
	type textOf struct {
		Key string `parquet:"key,dict,enum"`
	}
	var bytesFile, enumFile bytes.Buffer
	bytesInto, enumInto := parquet.NewGenericWriter[bytesOf](&bytesFile), parquet.NewGenericWriter[textOf](&enumFile)
	for range rows {
		_, _ = bytesInto.Write([]bytesOf{{[]byte(word)}})
		_, _ = enumInto.Write([]textOf{{word}})
	}
	bytesInto.Close()
	enumInto.Close()
	for what, data := range map[string][]byte{"+arrow": arrowBody(t, ofWord(word, rows)), "views": arrowBody(t, views), "+parquet": bytesFile.Bytes(), "parquet, copied": enumFile.Bytes()} {
		before := allocated()
		src, err := Read(bytes.NewReader(data), "the body", 4<<20, Options{Pass: true, Workers: 1})
		if err != nil {
			t.Fatal(what, err)
		}
		var b Batch
		var texts []string
		if err = src.Next(&b); err == nil {
			texts, err = AppendTexts(nil, &b.Columns[0], 4<<20)
		}
		src.Close()
		fine := err == nil && len(texts) == rows && texts[0] == word && texts[rows-1] == word
		if many := err != nil && strings.Contains(err.Error(), "at once"); fine != (what[0] == '+') || !fine && !many {
			t.Errorf("%s: %d rows, %.300v", what, len(texts), err)
		}
		if took := allocated() - before; took > 64<<20 {
			t.Errorf("%s: %d bytes took %d bytes of memory", what, len(data), took)
		}
	}
}

// Dictionaries count as long as there are batches, whichever takes the place of which.
func TestReadBodyDictionaries(t *testing.T) {
	var batches []arrow.Array
	for i := range 8 {
		batches = append(batches, ofWord(strings.Repeat(fmt.Sprint(i), 400_000), 1))
	}
	refuses(t, "dictionaries", arrowBody(t, batches...), 1<<20, "at once")
	if rows, err := readRows(arrowBody(t, batches...), 8<<20, Options{}); err != nil || len(rows) != 8 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// Few bytes of a page stand for many values, which take four bytes each where they are codes, and eight where they are differences.
func TestReadBodyPages(t *testing.T) {
	code := append([]byte{1}, append(binary.AppendUvarint(nil, 500_000<<1), 0)...)
	deltas := append([]byte{128, 1, 4}, append(binary.AppendUvarint(nil, 1<<30), 0)...)
	for _, c := range []struct {
		encoding format.Encoding
		values   int32
		body     []byte
		says     string // to a stranger
	}{
		{format.RLEDictionary, 10, code, "at once"},
		{format.DeltaBinaryPacked, 10, deltas, "differences"},
		{format.DeltaLengthByteArray, 10, deltas, "differences"},
		{format.DeltaByteArray, 10, deltas, "DELTA_BYTE_ARRAY"},
	} {
		h := &format.PageHeader{Type: format.DataPage}
		h.DataPageHeader.V.NumValues, h.DataPageHeader.V.Encoding, h.DataPageHeader.Valid = c.values, c.encoding, true
		if c.encoding == format.DeltaBinaryPacked {
			p, words := &parquetStream{limit: limit{&input{most: 1 << 20}}}, &format.PageHeader{Type: format.DictionaryPage}
			words.DictionaryPageHeader.V.Encoding, words.DictionaryPageHeader.Valid = c.encoding, true
			if err := p.checkRuns(words, c.body); err == nil {
				t.Error("a dictionary of differences is read")
			}
		}
		for _, most := range []int64{0, 1 << 20} {
			p := &parquetStream{limit: limit{&input{most: most}}}
			if err := p.checkRuns(h, c.body); (err != nil) != (most > 0) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %v", c.encoding, err)
			}
		}
	}
}

// A page cannot say that it has more values than there is room for.
func TestReadBodyValues(t *testing.T) {
	for _, c := range []struct {
		of   parquet.Type
		most int64
		fine int32 // values
	}{{parquet.Int64Type, 1 << 20, 1 << 18}, {parquet.FixedLenByteArrayType(1 << 10), 1 << 20, 1 << 10}, {parquet.FixedLenByteArrayType(1 << 10), 0, 1 << 25}} {
		for values, refused := range map[int32]bool{c.fine: false, c.fine + 1: c.most > 0} {
			for _, dictionary := range []bool{false, true} {
				h := &format.PageHeader{Type: format.DataPage}
				if h.DataPageHeader.V.NumValues, h.DataPageHeader.Valid = values, true; dictionary {
					h = &format.PageHeader{Type: format.DictionaryPage}
					h.DictionaryPageHeader.V.NumValues, h.DictionaryPageHeader.Valid = values, true
				}
				head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
				if err != nil {
					t.Fatal(err)
				}
				l := limit{&input{most: c.most}}
				p := &parquetStream{r: bufio.NewReader(bytes.NewReader(head)), limit: l, width: parquetWidth(c.of, l)}
				if _, err := p.header(); (err != nil) != refused {
					t.Errorf("%v, %d values of most %d: %v", c.of, values, c.most, err)
				}
			}
		}
	}
}
