package pandohttp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
)

var boolean = table.Kind{Of: cols.Boolean}

// errKnown says that the client has the answer already.
var errKnown = errors.New("pandohttp: known already")

// known returns errKnown if the client has the answer already, and an error if it wants another one. Only indexes that
// say their version have answers that can be known.
func (q *request) known() error {
	h := q.w.Header()
	h.Set("Vary", "Accept, Accept-Encoding, Authorization")
	v, ok := q.src.(Versioned)
	if !ok || q.route.method != http.MethodGet || q.route.path == "/v1/indexes" {
		if match := q.r.Header.Get("If-Match"); match != "" && match != "*" {
			return wrong(http.StatusPreconditionFailed, "the entries of this index have no ETag; leave If-Match out")
		}
		return nil
	}
	sum := sha256.New()
	for _, part := range []string{v.Version(), q.on.Name(), q.route.path, q.args.Encode(), q.form.name, q.form.coding} {
		_, _ = io.WriteString(sum, part+"\x00")
	}
	tag := `W/"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache") // a cache asks each time whether it is still so
	if match := q.r.Header.Get("If-Match"); match != "" && !names(match, tag) {
		return wrong(http.StatusPreconditionFailed, "the entries are others; ask without If-Match")
	}
	if match := q.r.Header.Get("If-None-Match"); match != "" && names(match, tag) {
		return errKnown
	}
	return nil
}

// names reports whether a header of tags names one. These are weak: two answers with one tag have the same
// rows, and need not have the same bytes.
func names(header, tag string) bool {
	all := strings.Split(header, ",")
	return slices.ContainsFunc(all, func(one string) bool {
		one = strings.TrimSpace(one)
		return one == "*" || one == tag || "W/"+one == tag
	})
}

func (q *request) healthy() error { return q.text("ok\n") }

func (q *request) readyToServe() error {
	if err := q.s.notReady(); err != nil {
		return err
	}
	if q.s.cfg.ready == nil {
		return q.text("ok\n")
	}
	err := q.s.cfg.ready()
	switch {
	case err == nil:
		return q.text("ok\n")
	case q.mayKnow():
		return wrong(http.StatusServiceUnavailable, "%s", strings.ReplaceAll(err.Error(), "; ", ", "))
	}
	q.s.heard.Warn("the server is not ready", "error", err)
	return wrong(http.StatusServiceUnavailable, "the server should get no requests now; its log says why, and so does this page to users who may do info")
}

// mayKnow reports whether who asks a page that is open to everybody may know more than others.
func (q *request) mayKnow() bool {
	if origin.Refuse(q.r, q.s.cfg.hosts, false) != "" {
		return false
	}
	user, err := q.s.userOf(q.w, q.r)
	q.w.Header().Del("WWW-Authenticate") // nobody has to say who he is
	return err == nil && (user == nil || user.Allow("info", nil) == nil)
}

func (q *request) welcome() error {
	return q.text("Pando serves indexes here. /v1/indexes lists them, /openapi.json describes what can be asked,\n/view/ shows an index.\n")
}

func (q *request) text(s string) error {
	q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := io.WriteString(q.w, s)
	return err
}
