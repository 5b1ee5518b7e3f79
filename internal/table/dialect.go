package table

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// dialect is how a text has to be read, by the caller's options and the text's
// first lines.
type dialect struct {
	comma  byte
	quotes bool // a field may be quoted
	header bool // the first record has the names
	plain  bool // a record is a line, as it stands
	most   int  // fields of a record, 0 for any number
	notes  []string
}

// noComma separates the fields of lines: none is found in one.
const noComma = '\n'

// separators are those that are looked for, the usual first.
var separators = []byte(",;\t|")

// lookedAt is the number of records by which the separator is found.
const lookedAt = 50

// dialectOf decides how a text is read. comma is 0 if it was not asked for, and
// named tells that the name of the file, or a flag, says that it is a table: a
// text of one column that nothing says that of is lines. A record has at most the given number of fields, any if it is 0.
func dialectOf(sample []byte, o Options, comma byte, named bool, most int) (d dialect) {
	d = dialect{comma: comma, quotes: !o.NoQuotes, header: !o.NoHeader, most: most}
	if comma == 0 {
		d.guessComma(sample, o, named)
	}
	first, _ := d.records(sample, d.comma, 2)
	switch {
	case o.Format == "lines", (len(first) == 0 || len(first[0]) == 1) && !named && comma == 0 && len(sample) > 0:
		d.asLines(sample, o)
	case len(first) > 0 && !o.NoHeader && !o.Header:
		d.guessHeader(first, o)
	}
	return d
}

// guessComma takes the first separator that all of the first records have as often
// as each other. A comma need not be, in a table or where a column that it ends is
// asked for: then a mistake is not for this to find.
func (d *dialect) guessComma(sample []byte, o Options, named bool) {
	if d.comma = separators[0]; !named {
		d.comma = noComma
	}
	for _, c := range separators {
		records, whole := d.records(sample, c, lookedAt)
		if len(records) == 0 || len(records[0]) < 2 {
			continue
		}
		head := records[0]
		uneven := slices.ContainsFunc(records, func(r []string) bool { return len(r) != len(head) })
		asked := slices.ContainsFunc(head, func(f string) bool { return isNamed(o, f) })
		if (uneven || !whole) && !asked && !(named && c == separators[0]) {
			continue
		}
		if d.comma = c; c != separators[0] {
			d.note("fields are separated by %q; --delimiter sets another", string(c))
		}
		return
	}
}

// records returns the first records of a text, and whether they are all that can
// be there.
func (d *dialect) records(sample []byte, comma byte, most int) (records [][]string, whole bool) {
	sp := splitter{comma: comma, data: sample, verbatim: !d.quotes, most: d.most}
	for len(records) < most {
		fields, err := sp.next()
		if err != nil {
			return records, err == io.EOF
		}
		var record []string
		for _, f := range fields {
			record = append(record, string(f))
		}
		records = append(records, record)
	}
	return records, true
}

// asLines makes each line a key, the first as well unless a column is asked for by
// what it says.
func (d *dialect) asLines(sample []byte, o Options) {
	d.plain, d.quotes, d.comma, d.header = true, false, noComma, o.Header
	first, _ := d.records(sample, noComma, 1)
	if len(first) == 0 || o.NoHeader || o.Header {
		return
	}
	if d.header = isNamed(o, first[0][0]); d.header {
		d.note("read as lines; the first, %s, is the name of the column", quoted(first[0][0]))
	} else {
		d.note("read as lines; the first, %s, is a key like all others (--header makes it a name)", quoted(first[0][0]))
	}
}

// guessHeader decides for a table whether its first record has names. Where it has
// one column of numbers, so is the first.
func (d *dialect) guessHeader(records [][]string, o Options) {
	numbers := func(r []string) bool {
		return !slices.ContainsFunc(r, func(f string) bool { _, bad := parseFloat(trim([]byte(f)), 64); return bad != fine })
	}
	head := records[0]
	if !numbers(head) || len(records) > 1 && !numbers(records[1]) || slices.ContainsFunc(head, func(f string) bool { return isNamed(o, f) }) {
		if len(head) == 1 {
			d.note("the first line, %s, is the name of the column (--no-header makes it a key)", quoted(head[0]))
		}
		return
	}
	if len(head) > 1 {
		d.note("the first line is taken for names, though it has numbers (--no-header makes it a row)")
		return
	}
	d.header = false
	d.note("the first line, %s, is a key like all others (--header makes it a name)", quoted(head[0]))
}

func (d *dialect) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// isNamed reports whether the options ask for a column of a name.
func isNamed(o Options, name string) bool {
	_, typed := o.Types[name]
	return typed || slices.Contains(o.Columns, name) || o.Probe.Name == name && name != ""
}

// sampled is the first chunks of a text: as many as it takes to have some records,
// however long they are.
type sampled struct {
	chunks [][]byte
	all    []byte // of chunks
}

// sampleBytes is where looking for more records ends, if there is one.
const sampleBytes = 4 << 20

// sample reads the first chunks. enough reports whether a text has records to look
// at, and whether it has plenty.
func (c *chunker) sample(enough func(text []byte) (some, plenty bool)) (s sampled, err error) {
	for {
		chunk, err := c.next()
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		s.chunks = append(s.chunks, chunk)
		if s.all = chunk; len(s.chunks) > 1 {
			s.all = bytes.Join(s.chunks, nil)
		}
		if some, plenty := enough(s.all); plenty || some && len(s.all) >= sampleBytes {
			return s, nil
		}
	}
}

// next returns the first chunks, then those that follow.
func (s *sampled) next(c *chunker) ([]byte, error) {
	if len(s.chunks) > 0 {
		chunk := s.chunks[0]
		s.chunks = s.chunks[1:]
		return chunk, nil
	}
	return c.next()
}

// manyLines reports whether a text has two lines, and whether it has a few.
func manyLines(text []byte) (some, plenty bool) {
	n := bytes.Count(text, []byte{'\n'})
	return n >= 2, n >= lookedAt
}
