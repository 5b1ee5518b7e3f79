package table

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/par"
)

// jsonSource reads newline-delimited JSON: one object per line, its fields in
// any order. A missing field is a null. A field of an object inside is named with a
// point, as in place.lat. Booleans, arrays and objects become
// their JSON text, and a string in a column of numbers becomes the number it
// holds.
type jsonSource struct {
	*pipeline[[]byte]
	schema []Field
	chunks *chunker
	column map[string][]int // places in the schema
	strict bool             // all columns are wanted: an unknown one is an error
	paths  jsonPaths        // columns inside objects
	names  []string         // of the first rows
	probe  string           // field of the last column, "" if there is none
	whole  bool             // the first column has whole rows
	taken  []string         // names that no field of whole rows may have
	notes  []string
}

// Names returns the fields of the first rows.
func (s *jsonSource) Names() []string { return s.names }

// Notes returns the decisions about the fields.
func (s *jsonSource) Notes() []string { return s.notes }

// Schema implements Source.Schema.
func (s *jsonSource) Schema() []Field { return s.schema }

func openJSON(in *input, o Options) (Source, error) {
	if err := skipBOM(in); err != nil {
		return nil, err
	}
	s := &jsonSource{chunks: &chunker{r: in.r}, column: map[string][]int{}, paths: pathsOf(o), strict: o.Columns == nil}
	first, err := s.chunks.sample(manyLines)
	if err != nil {
		return nil, in.readFailed(err)
	}
	names, guesses, err := inferJSON(first.all, s.paths, in.columns())
	if err != nil {
		return nil, err
	}
	if names == nil {
		names = slices.Clone(o.Columns)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Types)) { // the field may come later
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if err := s.choose(names, guesses, o); err != nil {
		return nil, err
	}
	read := func() ([]byte, error) {
		chunk, err := first.next(s.chunks)
		if err != nil {
			return nil, in.readFailed(err)
		}
		return chunk, nil
	}
	s.pipeline = startPipeline(in, par.Workers(o.Workers), 1, read, s.parse)
	return s, nil
}

// choose finds the wanted columns.
func (s *jsonSource) choose(names []string, guesses []guess, o Options) (err error) {
	s.names, s.probe, s.taken = names, o.Probe.Name, o.Taken
	if s.probe != "" && !slices.Contains(names, s.probe) { // so that a typo does not find nothing
		return noColumn(s.probe, names)
	}
	if _, typed := o.Types[s.probe]; o.Columns == nil && s.paths.has(s.probe) && !typed { // it is in one of the columns that are written
		o.Columns = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == s.probe })
	}
	if s.whole = o.Whole && o.Pass && s.strict && len(o.Types) == 0; s.whole {
		s.schema = []Field{{Name: "row", Type: String, Form: Object}}
		if s.probe != "" {
			s.schema = append(s.schema, o.Probe)
		}
		return nil
	}
	o.Typed = false // a field may be anything in the next row
	var from []int
	if s.schema, from, err = choose(names, guesses, o); err != nil {
		return err
	}
	s.notes = losses(s.schema, from, guesses, o)
	columns := s.schema
	if s.probe != "" {
		columns = columns[:len(columns)-1]
	}
	for i, f := range columns {
		if _, typed := o.Types[f.Name]; o.Pass && !typed {
			columns[i].Form = Token
		}
		s.column[f.Name] = append(s.column[f.Name], i)
	}
	return nil
}

// inferJSON finds the fields of the first rows and their possible types, and the values
// at the paths. A path that is the name of a field itself is dropped. More fields than most are an error, where it is not 0.
func inferJSON(chunk []byte, paths jsonPaths, most int) (names []string, guesses []guess, err error) {
	place := map[string]int{}
	rows := 0
	err = eachLine(chunk, func(line []byte) error {
		if rows++; rows > sampleRows {
			return io.EOF
		}
		return paths.walk(line, func(key, value []byte, inside bool) error {
			if !inside && bytes.IndexByte(key, '.') >= 0 {
				paths.drop(string(key))
			}
			i, ok := place[string(key)]
			if !ok {
				if i = len(names); most > 0 && i == most {
					return errColumns
				}
				place[string(key)] = i
				names, guesses = append(names, string(key)), append(guesses, guess{})
			}
			switch value[0] {
			case 'n': // null
			case '"', 't', 'f', '{', '[':
				guesses[i].text()
			default:
				guesses[i].see(value)
			}
			return nil
		})
	})
	if err == io.EOF {
		err = nil
	}
	return names, guesses, err
}

// eachLine calls f for each line that is not empty. An error gets the number
// of its line.
func eachLine(chunk []byte, f func(line []byte) error) error {
	for number := 1; len(chunk) > 0; number++ {
		line, rest, _ := bytes.Cut(chunk, []byte{'\n'})
		chunk = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := f(line); err == io.EOF {
			return err
		} else if err != nil {
			e := *asError(err)
			e.Line = number
			return &e
		}
	}
	return nil
}

// parse turns one chunk into one batch.
func (s *jsonSource) parse(chunk []byte, out outlet) error {
	b := out.empty()
	b.Reset(s.schema)
	var text slab
	err := eachLine(chunk, func(line []byte) error { return s.row(b, line, &text) })
	if err != nil {
		return err
	}
	for i := range b.Columns {
		b.Columns[i].Seal()
	}
	out.send(b, bytes.Count(chunk, []byte{'\n'}))
	s.chunks.done(chunk)
	return nil
}

// row appends one object.
func (s *jsonSource) row(b *Batch, line []byte, text *slab) error {
	if s.whole {
		b.Columns[0].String = append(b.Columns[0].String, text.copy(line))
	}
	err := s.paths.walk(line, func(key, value []byte, inside bool) error {
		if s.probe != "" && string(key) == s.probe {
			probeJSON(b, value, text)
		}
		if s.whole {
			if !inside && slices.Contains(s.taken, string(key)) {
				return &Error{Column: string(key), What: "this name is taken; name the column of values with --as"}
			}
			return nil
		}
		places, ok := s.column[string(key)]
		if !ok && !inside {
			return s.unknown(key)
		}
		for _, i := range places {
			c := &b.Columns[i]
			if c.Len() > b.Rows {
				return &Error{Column: c.Name, What: "this field is there twice"}
			}
			if err := appendJSONValue(c, value, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.Rows++
	for i := range b.Columns {
		if c := &b.Columns[i]; c.Len() < b.Rows {
			c.AppendNull()
		}
	}
	return nil
}

// probeJSON adds the value of a row to the column that is looked up: null where it
// is not of the type. Of several fields with the name, the first counts.
func probeJSON(b *Batch, value []byte, text *slab) {
	c := &b.Columns[len(b.Columns)-1]
	if c.Len() > b.Rows {
		return
	}
	if appendJSONValue(c, value, text) != nil {
		setNull(c, b.Rows)
		b.Misfits++
	}
}

// unknown returns an error for a field that the first rows do not have, if all
// fields are wanted.
func (s *jsonSource) unknown(key []byte) error {
	if !s.strict {
		return nil
	}
	return &Error{Column: string(key), What: "the first rows do not have this field", Advice: "name the columns you want, or give its type: --type " + string(key) + "=…"}
}

// appendJSONValue adds a value given as JSON.
func appendJSONValue(c *Column, value []byte, text *slab) error {
	if value[0] == 'n' {
		c.AppendNull()
		return nil
	}
	if value[0] == '"' && c.Form != Token {
		value = unquoteJSON(value)
	}
	if bad := appendText(c, value, text); bad != fine {
		return bad.explain(c.Field, string(value))
	}
	return nil
}

// unquoteJSON returns the contents of a valid JSON string.
func unquoteJSON(token []byte) []byte {
	if bytes.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	var s string
	if json.Unmarshal(token, &s) != nil {
		return nil // impossible: the line is valid
	}
	return []byte(s)
}

// walk calls f for each field of an object, with the key unquoted and the
// value as written. It validates the line first, so the rest may rely on that.
func walk(line []byte, f func(key, value []byte) error) error {
	if !json.Valid(line) {
		var v any
		return caused(json.Unmarshal(line, &v), "is not JSON, one object on a line")
	}
	if line[0] != '{' {
		return wrong("is %s, not a JSON object such as {\"key\": 1}", quoted(string(line)))
	}
	return eachField(line, f)
}

// eachField is walk for an object that is valid.
func eachField(line []byte, f func(key, value []byte) error) error {
	for i := 1; ; {
		i = skipSpace(line, i)
		if line[i] == '}' {
			return nil
		}
		if line[i] == ',' {
			i = skipSpace(line, i+1)
		}
		end := skipValue(line, i)
		key := unquoteJSON(line[i:end])
		i = skipSpace(line, skipSpace(line, end)+1) // the colon
		end = skipValue(line, i)
		if err := f(key, line[i:end]); err != nil {
			return err
		}
		i = end
	}
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' {
		i++
	}
	return i
}

// skipValue returns the end of the value that starts at i, in valid JSON.
func skipValue(b []byte, i int) int {
	for depth := 0; ; i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r':
			continue
		default:
			for i+1 < len(b) && strings.IndexByte(",]} \t\r", b[i+1]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// skipString returns the position of the closing quote.
func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}
