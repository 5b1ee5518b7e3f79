package resp

import (
	"io"
	"math"
	"strconv"
)

// Writer gathers replies, up to a limit. It writes nothing by itself: WriteTo does.
type Writer struct {
	Version int // of the protocol: 2 or 3
	Limit   int // bytes that it gathers at most

	buf    []byte
	over   bool
	errors int
}

// Over reports whether there were more replies than Limit allows. They are incomplete then.
func (w *Writer) Over() bool { return w.over }

// framing is more than what a reply has beside its text: its kind, a number and the ends of lines.
const framing = 32

// fits reports whether a reply whose text has n bytes may be gathered, too.
func (w *Writer) fits(n int) bool {
	w.over = w.over || len(w.buf)+n+framing > w.Limit
	return !w.over
}

// Len returns how many bytes wait to be written.
func (w *Writer) Len() int { return len(w.buf) }

// Errors returns how many errors it was given, but for those that were taken back.
func (w *Writer) Errors() int { return w.errors }

// Mark is a place between two replies.
type Mark struct {
	bytes, errors int
	over          bool
}

// Mark returns the place behind the replies so far. It is one until they are written.
func (w *Writer) Mark() Mark { return Mark{len(w.buf), w.errors, w.over} }

// Cut takes back all replies behind a place.
func (w *Writer) Cut(m Mark) { w.buf, w.errors, w.over = w.buf[:m.bytes], m.errors, m.over }

// WriteTo writes what has been gathered.
func (w *Writer) WriteTo(dst io.Writer) (int64, error) {
	if len(w.buf) == 0 {
		return 0, nil
	}
	n, err := dst.Write(w.buf)
	if cap(w.buf) > usualBuffer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return int64(n), err
}

func (w *Writer) line(kind byte, text string) {
	if !w.fits(len(text)) {
		return
	}
	w.buf = append(w.buf, kind)
	for i := range len(text) {
		c := text[i]
		if c == '\r' || c == '\n' {
			c = ' '
		}
		w.buf = append(w.buf, c)
	}
	w.buf = append(w.buf, '\r', '\n')
}

func (w *Writer) number(kind byte, n int64) {
	if !w.fits(0) {
		return
	}
	w.buf = append(w.buf, kind)
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.buf = append(w.buf, '\r', '\n')
}

// Status writes a short text such as OK.
func (w *Writer) Status(text string) { w.line('+', text) }

// longestError bounds an error, as one may repeat what a client has sent.
const longestError = 4 << 10

// Error writes an error, whose first word is its kind.
func (w *Writer) Error(text string) {
	w.errors++
	w.line('-', text[:min(len(text), longestError)])
}

// Int writes a number.
func (w *Writer) Int(n int64) { w.number(':', n) }

// Bulk writes bytes.
func (w *Writer) Bulk(b []byte) {
	if !w.fits(len(b)) {
		return
	}
	w.number('$', int64(len(b)))
	w.buf = append(w.buf, b...)
	w.buf = append(w.buf, '\r', '\n')
}

// Text writes a string as bytes.
func (w *Writer) Text(s string) {
	if !w.fits(len(s)) {
		return
	}
	w.number('$', int64(len(s)))
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '\r', '\n')
}

// Null writes that there is no value.
func (w *Writer) Null() { w.nothing("$-1\r\n") }

// NullArray writes that there is no array.
func (w *Writer) NullArray() { w.nothing("*-1\r\n") }

// nothing writes that there is none of what version 2 writes as text.
func (w *Writer) nothing(text string) {
	switch {
	case !w.fits(0):
	case w.Version > 2:
		w.buf = append(w.buf, "_\r\n"...)
	default:
		w.buf = append(w.buf, text...)
	}
}

// Array begins an array of n replies.
func (w *Writer) Array(n int) { w.number('*', int64(n)) }

// Map begins a map of n pairs: an array in version 2.
func (w *Writer) Map(n int) {
	if w.Version > 2 {
		w.number('%', int64(n))
	} else {
		w.number('*', 2*int64(n))
	}
}

// Set begins a set of n replies: an array in version 2.
func (w *Writer) Set(n int) {
	if w.Version > 2 {
		w.number('~', int64(n))
	} else {
		w.number('*', int64(n))
	}
}

// Float writes a number: a text in version 2.
func (w *Writer) Float(f float64) {
	text := make([]byte, 0, 32)
	switch {
	case math.IsInf(f, 1):
		text = append(text, "inf"...)
	case math.IsInf(f, -1):
		text = append(text, "-inf"...)
	case math.IsNaN(f):
		text = append(text, "nan"...)
	case f == math.Trunc(f) && math.Abs(f) < 1e17:
		text = strconv.AppendFloat(text, f, 'f', 0, 64)
	default:
		text = strconv.AppendFloat(text, f, 'g', -1, 64)
	}
	switch {
	case w.Version < 3:
		w.Bulk(text)
	case w.fits(len(text)):
		w.buf = append(w.buf, ',')
		w.buf = append(w.buf, text...)
		w.buf = append(w.buf, '\r', '\n')
	}
}

// Verbatim writes a text for people: bytes in version 2.
func (w *Writer) Verbatim(text string) {
	if w.Version < 3 {
		w.Text(text)
		return
	}
	if !w.fits(len(text)) {
		return
	}
	w.number('=', int64(len(text))+4)
	w.buf = append(w.buf, "txt:"...)
	w.buf = append(w.buf, text...)
	w.buf = append(w.buf, '\r', '\n')
}
