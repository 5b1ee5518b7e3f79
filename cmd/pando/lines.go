package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
)

// lines is a source of keys, one per line, each taken verbatim: no quotes, no
// separators. Blank lines are skipped if keys are numbers, and are empty
// strings if keys are strings.
type lines struct {
	path  string
	text  *table.Text
	r     *bufio.Reader
	field table.Field
	line  int
}

// lineRows is the number of keys in a batch: large enough for a GPU, small
// enough to stay in the cache from one stage to the next.
const lineRows = 64 << 10

// longestLine bounds the length of a key, so that a file without line ends
// cannot fill the memory.
const longestLine = 1 << 20

func openLines(path string, stdin io.Reader, key table.Field) (*lines, error) {
	text, err := table.OpenText(path, stdin)
	if err != nil {
		return nil, err
	}
	return &lines{path: path, text: text, r: bufio.NewReaderSize(text, longestLine), field: key}, nil
}

func (l *lines) Schema() []table.Field { return []table.Field{l.field} }

func (l *lines) Progress() (done, total int64) { return l.text.Progress() }

// isLive reports whether keys come as others write them, so that answers should go
// out as well.
func isLive(src table.Source) bool {
	l, ok := src.(*lines)
	return ok && l.text.Live()
}

func (l *lines) Close() error { return l.text.Close() }

// Next implements table.Source.Next. Where others write the lines meanwhile, it
// returns those that are there rather than wait for more: they can be answered.
func (l *lines) Next(b *table.Batch) error {
	b.Reset(l.Schema())
	c := &b.Columns[0]
	for c.Len() < lineRows && !(l.text.Live() && c.Len() > 0 && l.r.Buffered() == 0) {
		line, err := l.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return l.wrong("the line is longer than 1 MiB; is this a file of keys, one a line?")
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return l.wrong("cannot be read: %v", err)
		}
		if len(line) > 0 {
			l.line++
			if err := l.add(c, trimEnd(line)); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if b.Rows = c.Len(); b.Rows == 0 {
		return io.EOF
	}
	return nil
}

func (l *lines) wrong(format string, args ...any) error {
	return &table.Error{Path: l.path, Line: l.line, What: fmt.Sprintf(format, args...)}
}

// trimEnd removes a line end, of Unix or Windows.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// add parses a line. Digits are parsed here, without a string and thus without
// allocating for each key; everything else, and errors, are left to
// appendText.
func (l *lines) add(c *table.Column, line []byte) error {
	if c.Type == table.String && c.Kind.Of != cols.UUID {
		c.String = append(c.String, string(line))
		return nil
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	if n, ok := digits(line); ok && c.Kind == (table.Kind{}) && appendDigits(c, n) {
		return nil
	}
	if err := appendText(c, string(line)); err != nil {
		return l.wrong("%v, as the keys of this index are; take the line out, or read a table with --from-format csv", err)
	}
	return nil
}

// digits reads a number of at most 19 digits, which fits into 64 bits.
func digits(s []byte) (n uint64, ok bool) {
	if len(s) > 19 {
		return 0, false
	}
	for _, d := range s {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + uint64(d-'0')
	}
	return n, true
}

// appendDigits appends a number to a column of integers, if it fits.
func appendDigits(c *table.Column, n uint64) bool {
	switch {
	case c.Type == table.Int64 && n < 1<<63:
		c.Int64 = append(c.Int64, int64(n))
	case c.Type == table.Uint64:
		c.Uint64 = append(c.Uint64, n)
	case c.Type == table.Int32 && n < 1<<31:
		c.Int32 = append(c.Int32, int32(n))
	case c.Type == table.Uint32 && n < 1<<32:
		c.Uint32 = append(c.Uint32, uint32(n))
	default:
		return false
	}
	return true
}
