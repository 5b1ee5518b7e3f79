package pandohttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
)

const (
	pageBytes  = 256 << 10 // of an answer that is sent as a whole, with its length
	pieceBytes = 64 << 10  // that have StallTimeout to be taken
	batchRows  = 8 << 10
	batchBytes = 1 << 20  // of rows that are written together
	groupBytes = 16 << 20 // of rows that Parquet writes together, which are in memory until then
	longValue  = 1 << 20  // a value that counts against BufferLimit
)

// cursorHeader is the header, or trailer, with the cursor of what comes behind an answer.
const cursorHeader = "Pando-Cursor"

// errHead says that only the headers of an answer are asked for.
var errHead = errors.New("pandohttp: headers alone")

// answer is rows on their way to a client.
type answer struct {
	q      *request
	page   *page
	packer io.WriteCloser
	array  *lines
	sink   table.Sink

	schema []table.Field
	batch  table.Batch
	size   int   // bytes of batch
	group  int   // bytes since the last group of Parquet
	held   int64 // bytes of long values in batch
}

// answer begins an answer of rows.
func (q *request) answer(schema []table.Field) (*answer, error) {
	a := &answer{q: q, page: &page{q: q}, schema: schema}
	var err error
	if a.packer, err = q.form.compressed(a.page); err != nil {
		return nil, err
	}
	var w io.Writer = a.packer
	if q.form.name == "json" {
		a.array = &lines{w: w}
		w = a.array
	}
	if a.sink, err = table.NewSink(w, q.form.sink, schema); err != nil {
		return nil, err
	}
	a.batch.Reset(schema)
	h := q.w.Header()
	media := q.form.media[0]
	if q.form.sink == "csv" || q.form.sink == "tsv" {
		media += "; charset=utf-8; header=present"
	}
	h.Set("Content-Type", media)
	if q.form.coding != "" {
		h.Set("Content-Encoding", q.form.coding)
	}
	if q.r.Method == http.MethodHead {
		return nil, errHead
	}
	return a, nil
}

// text adds a value to a column, as the text that it is everywhere.
func (a *answer) text(column int, what string, text string) error {
	c := &a.batch.Columns[column]
	a.size += len(text) + 16
	if len(text) >= longValue {
		if err := a.q.s.take(int64(len(text)), a.held+a.q.holds); err != nil {
			return err
		}
		a.held += int64(len(text))
	}
	if c.Type != table.String || c.Kind != (table.Kind{}) && c.Kind.Of != cols.Binary {
		if !table.AppendText(c, text) {
			return wrong(http.StatusUnprocessableEntity, "the %s %q is no %s; ask for it as another type: %s_type=binary", what, origin.Clip(text), c.TypeName(), what)
		}
		return nil
	}
	if (c.Kind.Of != cols.Binary || a.q.form.text) && !utf8.ValidString(text) {
		return wrong(http.StatusUnprocessableEntity, "the %s %q is not UTF-8; ask for it as binary in a format that has bytes: format=csv, arrow or parquet", what, origin.Clip(text))
	}
	c.String = append(c.String, text)
	return nil
}

// null adds a null to a column.
func (a *answer) null(column int) { a.batch.Columns[column].AppendNull() }

// int and float add numbers.
func (a *answer) int(column int, n int) {
	c := &a.batch.Columns[column]
	c.Int64 = append(c.Int64, int64(n))
}

func (a *answer) float(column int, x float64) {
	c := &a.batch.Columns[column]
	c.Float64 = append(c.Float64, x)
}

// textOf returns bytes that nobody changes any more as a string.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// row ends a row.
func (a *answer) row() { a.batch.Rows++ }

// full reports whether it is time to flush.
func (a *answer) full() bool { return a.batch.Rows >= batchRows || a.size >= batchBytes }

// flush writes the rows that there are. Where the client does not take them it waits, within bounds.
func (a *answer) flush() error {
	if err := a.q.r.Context().Err(); err != nil {
		return err
	}
	if a.batch.Rows == 0 {
		return nil
	}
	for i := range a.batch.Columns {
		a.batch.Columns[i].Seal()
	}
	if err := a.sink.Write(&a.batch); err != nil {
		return err
	}
	a.group += a.size
	if g, ok := a.sink.(interface{ EndGroup() error }); ok && a.group >= groupBytes {
		a.group = 0
		if err := g.EndGroup(); err != nil {
			return err
		}
	}
	a.batch.Reset(a.schema)
	a.size = 0
	a.drop()
	return nil
}

// drop gives back what counts as held.
func (a *answer) drop() {
	a.q.s.give(a.held)
	a.held = 0
}

// end ends an answer. cursor is where the next one begins, "" if there is none.
func (a *answer) end(cursor string) error {
	if err := a.flush(); err != nil {
		return err
	}
	if err := a.sink.Close(); err != nil {
		return err
	}
	if a.array != nil {
		if err := a.array.end(); err != nil {
			return err
		}
	}
	if err := a.packer.Close(); err != nil {
		return err
	}
	return a.page.end(cursor)
}

// page is the begin of an answer, which is kept until it is whole or too long: a short one has its length and
// all headers, and may still become an error.
type page struct {
	q    *request
	kept bytes.Buffer
	sent bool
}

func (p *page) Write(b []byte) (int, error) {
	if !p.sent && p.kept.Len()+len(b) <= pageBytes {
		return p.kept.Write(b)
	}
	if !p.sent {
		p.sent = true
		p.q.w.Header().Set("Trailer", cursorHeader)
		if err := p.q.send(p.kept.Bytes()); err != nil {
			return 0, err
		}
		p.kept = bytes.Buffer{}
	}
	if err := p.q.send(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *page) end(cursor string) error {
	h := p.q.w.Header()
	if cursor != "" {
		h.Set(cursorHeader, cursor)
	}
	if p.sent {
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(p.kept.Len()))
	return p.q.send(p.kept.Bytes())
}

// send sends bytes. A client that does not take them is dropped.
func (q *request) send(b []byte) error {
	if !q.w.begun {
		q.w.WriteHeader(http.StatusOK)
	}
	for len(b) > 0 {
		n := min(len(b), pieceBytes)
		_ = q.control.SetWriteDeadline(q.until()) // a writer of a test has no such thing
		if _, err := q.w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	_ = q.control.SetWriteDeadline(q.until())
	return nil
}

// until returns until when the client may stand still.
func (q *request) until() time.Time {
	stall, end := time.Now().Add(q.s.cfg.stall), q.began.Add(q.s.cfg.longest)
	if end.Before(stall) {
		return end
	}
	return stall
}
