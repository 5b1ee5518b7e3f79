package table

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/par"
)

// sampleRows is the number of rows that types are inferred from.
const sampleRows = 1000

// csvSource reads CSV as encoding/csv understands it: fields may be quoted, a
// quote inside is doubled, a line may end in \r\n, empty lines are skipped, and
// every record has as many fields as the first. But a quoted field is the bytes
// between its quotes, where encoding/csv turns \r\n into \n. A number may have
// spaces around it, and an empty field is a null in a column of numbers.
type csvSource struct {
	*pipeline[[]byte]
	schema []Field
	chunks *chunker
	parser
}

// Schema implements Source.Schema.
func (s *csvSource) Schema() []Field { return s.schema }

func openCSV(in *input, o Options, comma byte, named bool) (Source, error) {
	if err := skipBOM(in); err != nil {
		return nil, err
	}
	s := &csvSource{chunks: &chunker{r: in.r, quotes: named && !o.NoQuotes}}
	first, err := s.chunks.sample(manyLines)
	if err != nil {
		return nil, in.readFailed(err)
	}
	s.dialect = dialectOf(first.all, o, comma, named, in.columns())
	if s.quotes != s.chunks.quotes { // cut anew
		s.chunks = &chunker{r: in.r, quotes: s.quotes, rest: slices.Concat(first.all, s.chunks.rest), eof: s.chunks.eof}
		if first, err = s.chunks.sample(manyLines); err != nil {
			return nil, in.readFailed(err)
		}
	}
	head, err := s.readHead(first.all, o)
	if err != nil {
		return nil, err
	}
	if len(head.names) == 0 {
		if s.header {
			return nil, wrong("is empty: not even a header")
		}
		head.names = emptyNames(o)
	}
	if s.schema, s.parser.from, err = choose(head.names, head.infer, o); err != nil {
		return nil, err
	}
	if !o.Pass { // as values are; values that are passed on keep their spaces
		for i := range s.schema {
			s.schema[i].Name = strings.TrimSpace(s.schema[i].Name)
		}
	}
	s.notes = append(s.notes, losses(s.schema, s.from, head.infer, o)...)
	s.parser.fields, s.parser.nulls = len(head.names), o.nulls()
	s.parser.probes = o.Probe.Name != ""
	s.parser.blanks = s.plain && s.schema[0].Type == String
	skip := head.size
	read := func() ([]byte, error) {
		chunk, err := first.next(s.chunks)
		if err != nil {
			return nil, in.readFailed(err)
		}
		chunk, skip = chunk[min(skip, len(chunk)):], skip-min(skip, len(chunk))
		return chunk, nil
	}
	s.pipeline = startPipeline(in, par.Workers(o.Workers), 1, read, s.parse)
	s.pipeline.lines = head.lines
	return s, nil
}

// Notes returns the decisions about the text.
func (s *csvSource) Notes() []string { return s.notes }

// emptyNames returns the columns of an empty input without a header: the
// requested ones, or one column if none are requested.
func emptyNames(o Options) []string {
	most := 1
	for _, c := range o.Columns {
		if n, err := strconv.Atoi(c); err == nil && n > most && n < 1<<16 {
			most = n
		}
	}
	return numbers(most)
}

// numbers returns the names of n columns without a header.
func numbers(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i + 1)
	}
	return names
}

// skipBOM skips the byte order mark that some programs put before UTF-8.
func skipBOM(in *input) error {
	start := in.peek("\xef\xbb\xbf", "\xff\xfe", "\xfe\xff")
	if len(start) == 0 {
		if _, err := in.r.Peek(1); err != nil && err != io.EOF {
			return in.readFailed(err)
		}
	}
	switch {
	case bytes.Equal(start, []byte("\xef\xbb\xbf")):
		in.r.Discard(3)
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return wrong("is UTF-16; turn it into UTF-8 first: iconv -f UTF-16 -t UTF-8")
	}
	return nil
}

// head is the information that the first rows give about an input.
type head struct {
	names []string
	size  int // bytes of the header
	lines int // lines of the header
	infer []guess
}

// readHead reads the names and infers types from the first rows.
func (s *csvSource) readHead(text []byte, o Options) (h head, err error) {
	sp := s.splitter(text)
	nulls := o.nulls()
	for rows := 0; rows < sampleRows; {
		fields, err := sp.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return h, sp.place(err)
		}
		if h.names == nil && s.header {
			for _, f := range fields {
				h.names = append(h.names, string(f))
			}
			h.size, h.lines = sp.at, bytes.Count(text[:sp.at], []byte{'\n'})
			h.infer = make([]guess, len(fields))
			continue
		}
		if h.names == nil {
			h.names, h.infer = numbers(len(fields)), make([]guess, len(fields))
		}
		if len(fields) != len(h.names) {
			return h, sp.place(s.ragged(len(fields), len(h.names)))
		}
		for i, f := range fields {
			if nulls == nil || !nulls[string(f)] {
				h.infer[i].see(f)
			}
		}
		rows++
	}
	for i, name := range h.names {
		if name == "" {
			h.names[i] = strconv.Itoa(i + 1)
		}
	}
	return h, nil
}

// ragged returns the error for a record of another number of fields.
func (d *dialect) ragged(have, want int) *Error {
	return wrong("has %d fields, but the first line has %d; are quotes or separators missing? Fields are separated by %q, --delimiter sets another",
		have, want, string(d.comma))
}

// splitter returns one for a text of the dialect.
func (d *dialect) splitter(text []byte) splitter {
	return splitter{comma: d.comma, data: text, verbatim: !d.quotes, most: d.most}
}

// parser turns chunks into batches.
type parser struct {
	dialect
	fields int             // fields per record
	from   []int           // for each column of the schema, the number of its field
	probes bool            // in the last column, a value that is not of the type is null
	blanks bool            // an empty line is an empty string
	nulls  map[string]bool // texts that stand for nothing, nil if there are none
}

// parse turns one chunk into one batch.
func (s *csvSource) parse(chunk []byte, out outlet) error {
	b := out.empty()
	b.Reset(s.schema)
	err := s.parser.run(chunk, b)
	if err == nil {
		out.send(b, bytes.Count(chunk, []byte{'\n'}))
	}
	s.chunks.done(chunk)
	return err
}

// run appends all records of a chunk to a batch. The line of an error counts
// from the start of the chunk.
func (p *parser) run(chunk []byte, b *Batch) error {
	sp := p.splitter(chunk)
	sp.blanks = p.blanks
	var text slab
	for {
		fields, err := sp.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return sp.place(err)
		}
		if len(fields) != p.fields {
			return sp.place(p.ragged(len(fields), p.fields))
		}
		for i, from := range p.from {
			c := &b.Columns[i]
			if p.nulls != nil && p.nulls[string(fields[from])] {
				c.AppendNull()
				continue
			}
			if bad := appendText(c, fields[from], &text); bad != fine {
				if p.probes && i == len(p.from)-1 {
					setNull(c, c.Len()-1)
					b.Misfits++
					continue
				}
				return sp.place(bad.explain(c.Field, string(fields[from])))
			}
		}
		b.Rows++
	}
	for i := range b.Columns {
		b.Columns[i].Seal()
	}
	return nil
}
