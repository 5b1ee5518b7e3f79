// Package table reads rows from files and writes them to files, a batch of
// columns at a time. It supports CSV, TSV, newline-delimited JSON, Parquet,
// Arrow IPC, and raw little-endian numbers as in the SOSD data sets.
//
// A reader holds a few batches and never the whole file. Text is cut into
// chunks and parsed on several goroutines, but batches come in the order of
// the file. A value is returned exactly as in the file or not at all: a number
// that does not fit its column's type is an error with its line.
package table

import (
	"bufio"
	"io"

	"github.com/pando-index/pando/internal/table/cols"
)

// The columns and rows of tables are those of package cols.
type (
	Type   = cols.Type
	Kind   = cols.Kind
	Field  = cols.Field
	Column = cols.Column
	Batch  = cols.Batch
)

// The types that formats are mapped to, see package cols.
const (
	Int64   = cols.Int64
	Uint64  = cols.Uint64
	Int32   = cols.Int32
	Uint32  = cols.Uint32
	Float64 = cols.Float64
	Float32 = cols.Float32
	String  = cols.String
)

// The forms of strings, see package cols.
const (
	Token  = cols.Token
	Object = cols.Object
	Number = cols.Number
)

// ParseType returns the type of a name.
func ParseType(s string) (Type, error) { return cols.ParseType(s) }

// ParseKind returns the kind of a name, and the type that it is kept as.
func ParseKind(s string) (Kind, Type, error) { return cols.ParseKind(s) }

// Source returns the rows of an input in their order.
type Source interface {
	// Schema returns the columns: those wanted, in the requested order.
	Schema() []Field
	// Next fills b with the next rows, at least one, and returns io.EOF when
	// there are none left. The memory of b is reused; strings taken from it
	// stay valid. An error is permanent: every later call returns it again.
	Next(b *Batch) error
	// Progress returns the number of input bytes read so far and their total,
	// 0 if that is not known. It may be called while Next runs.
	Progress() (done, total int64)
	// Close stops reading, even before the end. It may be called twice.
	Close() error
}

// Options tell how an input is read. With the zero value everything is
// detected.
type Options struct {
	// Format is csv, tsv, lines (one value a line, as it stands), jsonl, parquet,
	// arrow, sosd32, sosd64 (an 8-byte count, then values), or u32, u64, i32, i64
	// (raw little-endian values).
	// If it is "", the format is determined by the name's ending, or else by
	// content. Input may be compressed with gzip or zstd, which is detected by
	// its first bytes.
	Format string
	// Columns are the wanted columns, in this order; nil means all. If there
	// is no header, a column's name is its number, from 1.
	Columns []string
	// Types are forced types by column name. The types of other columns are
	// inferred from the first rows for text, and are the file's own for typed
	// formats.
	Types map[string]Type
	// Kinds are forced kinds of columns that have a forced type.
	Kinds map[string]Kind
	// Exact are columns with a forced type whose text has to stay as it is, as with
	// Typed.
	Exact map[string]bool
	// NoHeader tells that the first line of a CSV file is data, Header that it is
	// not. With neither, it is data in a file of lines, or of one column of
	// numbers.
	NoHeader, Header bool
	// Comma separates the fields of a CSV file: one ASCII character. 0 means a tab
	// in a TSV file, and else the separator of the first lines: a comma, a
	// semicolon, a tab or a bar.
	Comma rune
	// NoQuotes tells that a quote in a CSV file is text like any other.
	NoQuotes bool
	// Nulls are the fields of a CSV file that stand for nothing, such as NA.
	Nulls []string
	// Workers is the number of goroutines that parse. 0 means one per core.
	Workers int
	// Pass is for rows that are passed on: columns without a forced type keep
	// what they have. Text is not parsed, JSON stays JSON (cols.Token), and types
	// that only the file's format has stay as they are (cols.Foreign).
	Pass bool
	// Typed gives columns of CSV that are passed on the types that are inferred for
	// others, where these lose nothing in the first rows. In later ones, zeros or a plus
	// in front and digits that a float64 does not hold are errors. It needs Pass.
	Typed bool
	// Whole makes a row of JSON, where all columns are wanted, one column that
	// has all of it (cols.Object). It needs Pass.
	Whole bool
	// Taken are names that no field of such rows may have.
	Taken []string
	// Probe is a column that is read once more, as this type, into the last column
	// of the schema. A value that is not of the type is null there. Its name may
	// be "".
	Probe Field
}

// nulls returns Nulls as a set, nil if there are none. Rows that are passed on as text
// keep them.
func (o *Options) nulls() map[string]bool {
	if len(o.Nulls) == 0 || o.Pass && !o.Typed {
		return nil
	}
	set := map[string]bool{}
	for _, n := range o.Nulls {
		set[n] = true
	}
	return set
}

// Sink writes rows in some format.
type Sink interface {
	// Write adds rows. The batch may be reused afterwards.
	Write(b *Batch) error
	// Close writes the rest. It does not close the underlying writer.
	Close() error
}

// Formats returns the formats that Open reads.
func Formats() []string {
	return []string{"csv", "tsv", "lines", "jsonl", "parquet", "arrow", "sosd32", "sosd64", "u32", "u64", "i32", "i64"}
}

// Open opens an input. The path "-" is stdin. Parquet and Arrow files that
// come through a pipe are first copied into a temporary file, because their
// table of contents is at the end.
func Open(path string, stdin io.Reader, o Options) (Source, error) {
	if err := o.check(path); err != nil {
		return nil, err
	}
	in, err := openInput(path, stdin)
	if err != nil {
		return nil, err
	}
	return openWith(in, o)
}

// Read opens data that a stranger sends, by its name for messages. It is taken as it is, never
// unpacked, and nothing is written to a file: Parquet and Arrow files, whose table of contents is at
// the end, are read into memory as a whole, so r must have a bound. What the data asks for at once
// may have most bytes. It may have 16 columns, none of which is nested. Close waits for a Read of r.
func Read(r io.Reader, name string, most int64, o Options) (Source, error) {
	if err := o.check(name); err != nil {
		return nil, err
	}
	in := &input{path: name, raw: r, most: most}
	in.r = bufio.NewReaderSize((*counted)(in), unpackBuffer)
	return openWith(in, o)
}

func openWith(in *input, o Options) (Source, error) {
	src, err := openFormat(in, o)
	if err != nil {
		in.Close()
		return nil, in.wrap(err)
	}
	return src, nil
}
