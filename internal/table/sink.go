package table

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pando-index/pando/internal/table/cols"
)

// SinkFormats returns the formats that NewSink writes.
func SinkFormats() []string { return []string{"text", "csv", "tsv", "jsonl", "arrow", "parquet"} }

// NewSink returns a Sink that writes rows of a schema to w as text (columns
// separated by tabs, no header, control characters escaped), csv or tsv (with
// a header), jsonl, arrow (an IPC stream) or parquet. A null is an empty field
// in text and CSV, null elsewhere. A NaN or an infinity is a string in JSON,
// which has no numbers for them.
func NewSink(w io.Writer, format string, schema []Field) (Sink, error) {
	switch format {
	case "text":
		return &lineSink{w: w, line: textLine}, nil
	case "csv", "tsv":
		comma := delimited(',')
		if format == "tsv" {
			comma = '\t'
		}
		return &lineSink{w: w, line: comma.line, buf: comma.header(nil, schema)}, nil
	case "jsonl":
		return &lineSink{w: w, line: jsonLines(schema), json: true}, nil
	case "arrow":
		return newArrowSink(w, schema), nil
	case "parquet":
		return newParquetSink(w, schema)
	}
	return nil, fmt.Errorf("there is no output format %q; take one of %s", format, strings.Join(SinkFormats(), ", "))
}

// sinkBuffer is the number of bytes buffered before they are written.
const sinkBuffer = 64 << 10

// lineSink writes one line per row.
type lineSink struct {
	w    io.Writer
	buf  []byte
	line func(buf []byte, columns []Column, row int) []byte

	json     bool
	replaced int64 // strings that JSON cannot have
}

// Warnings returns warnings for readers of the output.
func (s *lineSink) Warnings() []string {
	if s.replaced == 0 {
		return nil
	}
	return []string{fmt.Sprintf("JSON has no strings that are not UTF-8: in %d of them such bytes are now U+FFFD; Parquet and CSV keep them", s.replaced)}
}

// count counts the strings of a batch that JSON cannot have.
func (s *lineSink) count(b *Batch) {
	for i := range b.Columns {
		if c := &b.Columns[i]; hasBytes(c) {
			for row := range b.Rows {
				if !c.IsNull(row) && !utf8.ValidString(textOf(c, row)) {
					s.replaced++
				}
			}
		}
	}
}

// Write implements Sink.Write.
func (s *lineSink) Write(b *Batch) (err error) {
	defer guard(&err, "the input") // values that are passed on are read only here
	if s.json {
		s.count(b)
	}
	for row := range b.Rows {
		s.buf = s.line(s.buf, b.Columns, row)
		if len(s.buf) >= sinkBuffer {
			if err := s.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush writes the buffered bytes.
func (s *lineSink) Flush() error { return s.Close() }

// Close implements Sink.Close.
func (s *lineSink) Close() error {
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// appendNumberText adds the shortest text that reads back as the same number.
func appendNumberText(c *Column, buf []byte, row int) []byte {
	if c.Kind.Of != cols.Other {
		return appendKind(buf, c.Kind, kindNumber(c, row))
	}
	switch c.Type {
	case Int64:
		return strconv.AppendInt(buf, c.Int64[row], 10)
	case Uint64:
		return strconv.AppendUint(buf, c.Uint64[row], 10)
	case Int32:
		return strconv.AppendInt(buf, int64(c.Int32[row]), 10)
	case Uint32:
		return strconv.AppendUint(buf, uint64(c.Uint32[row]), 10)
	case Float64:
		return strconv.AppendFloat(buf, c.Float64[row], 'g', -1, 64)
	default:
		return strconv.AppendFloat(buf, float64(c.Float32[row]), 'g', -1, 32)
	}
}

// textLine appends a row as text.
func textLine(buf []byte, columns []Column, row int) []byte {
	for i := range columns {
		c := &columns[i]
		if i > 0 {
			buf = append(buf, '\t')
		}
		switch {
		case c.IsNull(row):
		case c.Type == String:
			buf = appendShown(buf, textOf(c, row))
		default:
			buf = appendNumberText(c, buf, row)
		}
	}
	return append(buf, '\n')
}

// textOf returns a value of a column of strings as text, whatever its form.
func textOf(c *Column, row int) string {
	switch {
	case c.Foreign != nil:
		return string(c.Foreign.AppendText(nil, row))
	case c.Kind.Of == cols.UUID:
		return string(appendUUID(nil, c.String[row]))
	case c.Form == Token && c.String[row][0] == '"':
		return string(unquoteJSON([]byte(c.String[row])))
	}
	return c.String[row]
}

// appendShown appends a string with control characters escaped as in Go.
func appendShown(buf []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\t':
			buf = append(buf, `\t`...)
		case c == '\n':
			buf = append(buf, `\n`...)
		case c == '\r':
			buf = append(buf, `\r`...)
		case c < ' ' || c == 0x7f:
			buf = fmt.Appendf(buf, `\x%02x`, c)
		default:
			buf = append(buf, c)
		}
	}
	return buf
}

// delimited is CSV with the separator that it is.
type delimited byte

// header appends the names of the columns.
func (d delimited) header(buf []byte, schema []Field) []byte {
	for i, f := range schema {
		if i > 0 {
			buf = append(buf, byte(d))
		}
		buf = d.field(buf, f.Name, len(schema) == 1)
	}
	return append(buf, '\n')
}

// line appends a row.
func (d delimited) line(buf []byte, columns []Column, row int) []byte {
	alone := len(columns) == 1
	for i := range columns {
		c := &columns[i]
		if i > 0 {
			buf = append(buf, byte(d))
		}
		switch {
		case c.IsNull(row):
			buf = d.field(buf, "", alone)
		case c.Type == String:
			buf = d.field(buf, textOf(c, row), alone)
		default:
			buf = appendNumberText(c, buf, row)
		}
	}
	return append(buf, '\n')
}

// field appends a string, quoted if necessary. An empty field alone on its line
// must be quoted, because readers skip empty lines.
func (d delimited) field(buf []byte, s string, alone bool) []byte {
	if !strings.ContainsAny(s, "\"\r\n") && strings.IndexByte(s, byte(d)) < 0 && !(alone && s == "") {
		return append(buf, s...)
	}
	buf = append(buf, '"')
	for i := range len(s) {
		if s[i] == '"' {
			buf = append(buf, '"')
		}
		buf = append(buf, s[i])
	}
	return append(buf, '"')
}

// jsonLines returns a function that appends a row of a schema as JSON.
func jsonLines(schema []Field) func([]byte, []Column, int) []byte {
	if len(schema) > 0 && schema[0].Form == Object {
		return jsonObjects(schema)
	}
	names := make([]string, len(schema)) // {"a": ,"b":
	for i, f := range schema {
		lead := byte(',')
		if i == 0 {
			lead = '{'
		}
		names[i] = string(append(appendJSON([]byte{lead}, f.Name), ':'))
	}
	return func(buf []byte, columns []Column, row int) []byte {
		for i := range columns {
			buf = appendJSONCell(&columns[i], append(buf, names[i]...), row)
		}
		if len(columns) == 0 {
			buf = append(buf, '{')
		}
		return append(buf, '}', '\n')
	}
}

// jsonObjects is jsonLines where the first column has whole rows, to which the
// others are added.
func jsonObjects(schema []Field) func([]byte, []Column, int) []byte {
	var names []string // ,"b":
	for _, f := range schema[1:] {
		names = append(names, string(append(appendJSON([]byte{','}, f.Name), ':')))
	}
	return func(buf []byte, columns []Column, row int) []byte {
		object := columns[0].String[row]
		if len(names) == 0 {
			return append(append(buf, object...), '\n')
		}
		object = strings.TrimRight(strings.TrimSuffix(object, "}"), " \t\r")
		empty := strings.TrimLeft(object[1:], " \t\r") == ""
		buf = append(buf, object...)
		for i, name := range names {
			if empty && i == 0 {
				name = name[1:]
			}
			buf = appendJSONCell(&columns[1+i], append(buf, name...), row)
		}
		return append(buf, '}', '\n')
	}
}

// appendJSONCell adds a value.
func appendJSONCell(c *Column, buf []byte, row int) []byte {
	switch {
	case c.IsNull(row):
		return append(buf, "null"...)
	case c.Foreign != nil:
		return c.Foreign.AppendJSON(buf, row)
	case c.Form == Token, c.Form == Number && isNumber([]byte(c.String[row])):
		return append(buf, c.String[row]...)
	case c.Form == Number && c.String[row] == "":
		return append(buf, "null"...)
	case c.Kind.Of == cols.Boolean && (c.String[row] == "true" || c.String[row] == "false"):
		return append(buf, c.String[row]...)
	case c.Type == String:
		return appendJSON(buf, textOf(c, row))
	case c.Kind.Of == cols.Date, c.Kind.Of == cols.Timestamp, c.Kind.Of == cols.Time:
		return append(appendNumberText(c, append(buf, '"'), row), '"')
	case c.Type == Float64 && !finite(c.Float64[row]), c.Type == Float32 && !finite(float64(c.Float32[row])):
		return append(appendNumberText(c, append(buf, '"'), row), '"')
	}
	return appendNumberText(c, buf, row)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// appendJSON appends a quoted string. Bytes that are not UTF-8 become the
// replacement character, as JSON cannot represent them.
func appendJSON(buf []byte, s string) []byte {
	buf = append(buf, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			buf = utf8.AppendRune(buf, r)
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			buf = append(buf, '\\', c)
		case c == '\n':
			buf = append(buf, `\n`...)
		case c == '\t':
			buf = append(buf, `\t`...)
		case c < ' ':
			buf = fmt.Appendf(buf, `\u%04x`, c)
		default:
			buf = append(buf, c)
		}
		i++
	}
	return append(buf, '"')
}
