package table

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// check rejects options that make no sense.
func (o *Options) check(path string) error {
	if o.Format != "" && !slices.Contains(Formats(), o.Format) {
		return &Error{Path: path, What: "there is no format " + quoted(o.Format) + "; take one of " + strings.Join(Formats(), ", ")}
	}
	if o.Comma != 0 && (o.Comma >= utf8.RuneSelf || strings.ContainsRune("\"\r\n", o.Comma)) {
		return &Error{Path: path, What: "fields cannot be separated by " + quoted(string(o.Comma)) + "; take one ASCII character such as , ; | or a tab"}
	}
	return nil
}

// endings maps file name endings to formats.
var endings = map[string]string{
	".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "jsonl", ".jsonl": "jsonl", ".ndjson": "jsonl",
	".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".arrows": "arrow", ".ipc": "arrow", ".feather": "arrow",
	".sosd32": "sosd32", ".sosd64": "sosd64", ".u32": "u32", ".u64": "u64", ".i32": "i32", ".i64": "i64",
}

// formatOf determines the format from the name's ending, or else from the
// first bytes.
func formatOf(in *input) (string, error) {
	if f, ok := endings[in.ending()]; ok {
		return f, nil
	}
	name := strings.ToLower(filepath.Base(in.path))
	start, err := in.r.Peek(4096)
	if len(start) == 0 && err != nil && err != io.EOF {
		return "", in.readFailed(err)
	}
	if f := sosdOf(in, name, start); f != "" {
		return f, nil
	}
	return contentOf(start)
}

// ending returns the ending of a file's name, without that of a compression.
func (in *input) ending() string {
	name := strings.ToLower(filepath.Base(in.path))
	if in.inner != "" {
		name = strings.ToLower(in.inner)
	}
	for _, packed := range Packed {
		name = strings.TrimSuffix(name, packed)
	}
	return filepath.Ext(name)
}

// sosdOf recognizes the SOSD data sets by their names, such as
// books_200M_uint64, and by a count that agrees with the size.
func sosdOf(in *input, name string, start []byte) string {
	if len(start) < 8 || in.what != "" || in.total == 0 {
		return ""
	}
	n := binary.LittleEndian.Uint64(start)
	switch {
	case strings.HasSuffix(name, "uint64") && n == uint64(in.total-8)/8:
		return "sosd64"
	case strings.HasSuffix(name, "uint32") && n == uint64(in.total-8)/4:
		return "sosd32"
	}
	return ""
}

// contentOf determines the format from the first bytes.
func contentOf(start []byte) (string, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("PAR1")):
		return "parquet", nil
	case bytes.HasPrefix(start, []byte("ARROW1")), bytes.HasPrefix(start, []byte("\xff\xff\xff\xff")):
		return "arrow", nil
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return "csv", nil // whose error says that it is UTF-16
	case bytes.IndexByte(start, 0) >= 0:
		return "", wrong("cannot tell what it is; give --format, one of %s", strings.Join(Formats(), ", "))
	case bytes.HasPrefix(text, []byte("{")):
		return "jsonl", nil
	}
	return "csv", nil
}

// openFormat makes the source for an input.
func openFormat(in *input, o Options) (Source, error) {
	format := o.Format
	if format == "" {
		var err error
		if format, err = formatOf(in); err != nil {
			return nil, err
		}
	}
	comma := byte(o.Comma)
	switch format {
	case "tsv":
		if comma == 0 {
			comma = '\t'
		}
		return openCSV(in, o, comma, true)
	case "csv", "lines":
		return openCSV(in, o, comma, o.Format == "csv" || in.ending() == ".csv")
	case "jsonl":
		return openJSON(in, o)
	case "u32", "u64", "i32", "i64", "sosd32", "sosd64":
		return openRaw(in, o, format)
	case "arrow":
		return openArrow(in, o)
	}
	return openParquet(in, o)
}
