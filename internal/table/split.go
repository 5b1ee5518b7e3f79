package table

import (
	"bytes"
	"io"
)

// splitter takes CSV records from a chunk of whole records.
type splitter struct {
	comma  byte
	data   []byte
	at     int // where the next record starts
	start  int // where the last one started
	fields [][]byte
	clean  []byte // fields of the last record that had to be changed to unquote them

	verbatim bool // quotes are text like any other
	blanks   bool // an empty line is a record
	most     int  // fields of a record, 0 for any number
}

// next returns the fields of the next record, io.EOF after the last one. They
// are valid until the next call.
func (s *splitter) next() ([][]byte, error) {
	s.fields, s.clean = s.fields[:0], s.clean[:0]
	for !s.blanks && s.blank() {
	}
	if s.start = s.at; s.at == len(s.data) {
		return nil, io.EOF
	}
	for {
		more, err := s.field()
		if err != nil {
			return nil, err
		}
		if s.most > 0 && len(s.fields) > s.most {
			return nil, errColumns
		}
		if !more {
			return s.fields, nil
		}
	}
}

// blank skips an empty line, and reports whether there was one.
func (s *splitter) blank() bool {
	rest := s.data[s.at:]
	n := 0
	switch {
	case len(rest) == 0:
	case rest[0] == '\n':
		n = 1
	case rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n'):
		n = min(2, len(rest))
	}
	s.at += n
	return n > 0
}

// field takes one field, and reports whether the record has more.
func (s *splitter) field() (more bool, err error) {
	data, start, comma := s.data, s.at, s.comma
	if start < len(data) && data[start] == '"' && !s.verbatim {
		return s.quoted()
	}
	i := start
	for ; i < len(data); i++ {
		if c := data[i]; c == comma && c != noComma {
			s.fields = append(s.fields, data[start:i:i])
			s.at = i + 1
			return true, nil
		} else if c == '\n' {
			break
		} else if c == '"' && !s.verbatim {
			return false, wrong(`a quote inside a field that does not start with one; write "a ""b""" for a "b"`)
		}
	}
	end := i
	if end > start && data[end-1] == '\r' { // also before the very end, as in encoding/csv
		end--
	}
	s.fields = append(s.fields, data[start:end:end])
	s.at = min(i+1, len(data))
	return false, nil
}

// quoted takes a field that starts with a quote.
func (s *splitter) quoted() (more bool, err error) {
	start := s.at + 1
	i, plain := start, true
	for {
		q := bytes.IndexByte(s.data[i:], '"')
		if q < 0 {
			return false, wrong("a quote is opened in this record and never closed")
		}
		i += q + 1
		if i == len(s.data) || s.data[i] != '"' {
			break
		}
		i, plain = i+1, false
	}
	field := s.data[start : i-1 : i-1]
	if !plain {
		field = s.unquote(field)
	}
	s.fields = append(s.fields, field)
	return s.after(i)
}

// after checks what follows a closing quote: a separator or the line end.
func (s *splitter) after(i int) (more bool, err error) {
	rest := s.data[i:]
	switch {
	case len(rest) == 0:
		s.at = i
	case rest[0] == s.comma:
		s.at, more = i+1, true
	case rest[0] == '\n':
		s.at = i + 1
	case rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n'):
		s.at = i + min(2, len(rest))
	default:
		return false, wrong(`a closing quote is followed by %q; write a quote inside a field twice`, rest[0])
	}
	return more, nil
}

// unquote replaces two quotes by one, and leaves everything else as it is: a
// line end of Windows in a key is part of the key.
func (s *splitter) unquote(field []byte) []byte {
	from := len(s.clean)
	for {
		q := bytes.IndexByte(field, '"')
		if q < 0 {
			break
		}
		s.clean = append(s.clean, field[:q+1]...)
		field = field[q+2:] // behind the second one
	}
	s.clean = append(s.clean, field...)
	return s.clean[from:len(s.clean):len(s.clean)]
}

// place adds to an error the line on which the last record starts, counted
// from the start of the chunk.
func (s *splitter) place(err error) error {
	e := *asError(err)
	e.Line = 1 + bytes.Count(s.data[:s.start], []byte{'\n'})
	return &e
}
