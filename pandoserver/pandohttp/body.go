package pandohttp

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/table"
)

// zstdWindow bounds what a body that is compressed by zstd makes its reader remember.
const zstdWindow = 8 << 20

// body is the body of a request: bounded, in time and when it is unpacked, too.
type body struct {
	q      *request
	r      io.Reader
	raw    int64 // bytes that have come
	paid   int64 // of those, when there was time for more the last time
	plain  int64 // bytes when they are unpacked
	kept   bool  // they are all in memory until the end
	unpack func()
}

// came reads what has come from the client, which has StallTimeout for each 64 KiB.
type came struct{ *body }

func (c came) Read(p []byte) (int, error) {
	if c.paid == 0 || c.raw-c.paid >= pieceBytes {
		c.paid = max(c.raw, 1)
		_ = c.q.control.SetReadDeadline(c.q.until())
	}
	n, err := c.q.r.Body.Read(p[:min(len(p), pieceBytes)])
	if c.raw += int64(n); c.raw > c.q.s.cfg.body {
		return 0, c.tooLong()
	}
	if err == io.EOF {
		_ = c.q.control.SetReadDeadline(c.q.began.Add(c.q.s.cfg.longest))
	}
	return n, err
}

func (b *body) tooLong() error {
	return wrong(http.StatusRequestEntityTooLarge, "the body has more than %d bytes; send it in parts, each of which is done as a whole", b.q.s.cfg.body)
}

// Read reads the body as it is meant.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.plain += int64(n); b.plain > b.q.s.cfg.body && !(mutant.On && mutant.Is("http: body bound")) {
		return 0, b.tooLong()
	}
	if b.kept && !(mutant.On && mutant.Is("http: bodies that are kept")) {
		if err := b.q.take(int64(n)); err != nil {
			return 0, err
		}
	}
	return n, err
}

// body returns the body of a request.
func (q *request) body() (b *body, err error) {
	if q.r.ContentLength > q.s.cfg.body {
		return nil, (&body{q: q}).tooLong()
	}
	b = &body{q: q, unpack: func() {}}
	switch coding := strings.ToLower(strings.TrimSpace(q.r.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
		b.r = came{b}
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(came{b})
		if err != nil {
			return nil, unpacking(err, coding)
		}
		b.r, b.unpack = z, func() { z.Close() }
	case "zstd":
		z, err := zstd.NewReader(came{b}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, unpacking(err, coding)
		}
		b.r, b.unpack = z, z.Close
	default:
		q.w.Header().Set("Accept-Encoding", "gzip, zstd")
		return nil, wrong(http.StatusUnsupportedMediaType, "bodies compressed by %q are not read; take gzip, zstd, or none", origin.Clip(coding))
	}
	return b, nil
}

// unpacking returns the problem of a body that cannot be unpacked.
func unpacking(err error, coding string) error {
	if p := problemOf(err); p.status != http.StatusInternalServerError {
		return p
	}
	return bad("the body is not whole %s data (%v); send it again", coding, err)
}

// mostAsked bounds what the data of a body may ask for at once, when its own compression is undone.
const mostAsked = 64 << 20

// cells is a column of a body.
type cells struct {
	texts []string
	null  []bool // nil where nothing is
}

// isNull reports whether a column has no value in a row.
func (c *cells) isNull(row int) bool { return c.null != nil && c.null[row] }

// rows calls f with the rows of the body. Its columns must be those of names, of which as many as are
// needed, from the first on, must be there; f gets them in this order, nil for those that are not.
func (q *request) rows(names []string, needed int, f func(columns []*cells, rows int) error) (err error) {
	format, err := bodyFormat(q.r)
	if err != nil {
		return err
	}
	b, err := q.body()
	if err != nil {
		return err
	}
	defer b.unpack()
	b.kept = format == "parquet" // which says at its end what is in it
	src, err := table.Read(b, "the body", mostAsked, table.Options{Format: format, Pass: true, Workers: 1, Header: true, Comma: comma(format)})
	if err != nil {
		return b.cause(err)
	}
	defer func() {
		if err != nil {
			_ = q.control.SetReadDeadline(time.Now()) // who reads ahead waits no longer
		}
		src.Close()
	}()
	at := make([]int, len(names))
	for i := range at {
		at[i] = -1
	}
	for i, have := range src.Schema() {
		known := false
		for j, name := range names {
			if have.Name != name {
				continue
			}
			if at[j] >= 0 {
				return bad("the body has two columns %q; leave one out", name)
			}
			at[j], known = i, true
		}
		if !known {
			return bad("the body has a column %q; its columns are %s, and a CSV begins with their names", origin.Clip(have.Name), strings.Join(names, ", "))
		}
	}
	var batch table.Batch
	columns := make([]*cells, len(names))
	var room [3][]string
	for {
		err := src.Next(&batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return b.cause(err)
		}
		for j, i := range at {
			if columns[j] = nil; i >= 0 {
				c := &batch.Columns[i]
				room[j], err = table.AppendTexts(room[j][:0], c, max(mostAsked, q.s.cfg.body))
				if said := new(table.Error); errors.As(err, &said) && said.Advice != "" {
					return bad("the column %q cannot be read: %s; %s", names[j], said.What, said.Advice)
				}
				if err != nil || len(room[j]) != batch.Rows {
					return b.cause(bad("the column %q cannot be read", names[j]))
				}
				columns[j] = &cells{room[j], c.Null}
			} else if j < needed {
				return bad("the body has no column %q; its columns are %s, and a CSV begins with their names", names[j], strings.Join(names, ", "))
			}
		}
		if err := f(columns, batch.Rows); err != nil {
			return err
		}
	}
}

// comma returns the separator of a format that has one.
func comma(format string) rune {
	switch format {
	case "csv":
		return ','
	case "tsv":
		return '\t'
	}
	return 0
}

// cause returns why a body cannot be read.
func (b *body) cause(err error) error {
	p := problemOf(err)
	if p.status == http.StatusInternalServerError || p.next == "" && p.status == http.StatusBadRequest {
		return &problem{http.StatusBadRequest, p.says, "nothing was changed: mend the body, and send it again"}
	}
	return p
}

// keyBatches returns the keys of the body, some at a time.
func (q *request) keyBatches() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var keys []string
		goesOn := true
		err := q.rows([]string{"key"}, 1, func(c []*cells, _ int) error {
			keys = append(keys[:0], c[0].texts...)
			if slices.Contains(c[0].null, true) {
				return bad("a row has no key; leave it out")
			}
			if goesOn = yield(keys, nil); !goesOn {
				return io.EOF
			}
			return nil
		})
		if goesOn && err != nil {
			yield(nil, err)
		}
	}
}
