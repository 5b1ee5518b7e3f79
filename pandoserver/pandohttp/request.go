package pandohttp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/pando-index/pando/pandoserver"
)

// Typed is a Source whose keys and values have types: int64, uint64, int32, uint32, float64, float32, string, bool, date,
// timestamp[us] and their like, as the command pando names them. Those of other sources are bytes.
type Typed interface {
	pandoserver.Source
	// Types returns the types. That of values is "" where there are keys alone.
	Types() (key, value string)
}

// Versioned is a Source that says by a text which state of it is served: the text is another whenever its entries
// may be others. Answers have it in their ETag.
type Versioned interface {
	pandoserver.Source
	Version() string
}

// request is a request on its way.
type request struct {
	s       *Server
	w       *watched
	r       *http.Request
	control *http.ResponseController
	began   time.Time
	user    *pandoserver.User // nil only where no right is needed, while there are no users
	route   *route
	args    url.Values

	on    pandoserver.Served
	src   pandoserver.Source
	form  form
	holds int64 // bytes that it holds in memory
}

// bad returns the problem of an argument.
func bad(format string, args ...any) error { return wrong(http.StatusBadRequest, format, args...) }

// parse reads what a request asks for, but for its body.
func (q *request) parse() (err error) {
	if q.args, err = url.ParseQuery(q.r.URL.RawQuery); err != nil {
		return bad("the address cannot be read: %v; write bytes that are not letters or digits as %%XX", err)
	}
	for name, all := range q.args {
		i := slices.IndexFunc(q.route.params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			var names []string
			for _, p := range q.route.params {
				names = append(names, p.name)
			}
			return bad("%s has no parameter %q; it has %s", q.route.path, origin.Clip(name), strings.Join(names, ", "))
		case len(all) > 1 && !q.route.params[i].many:
			return bad("%s is there %d times; write it once", name, len(all))
		}
	}
	for _, p := range q.route.params {
		if p.needed && !q.args.Has(p.name) {
			return bad("%s needs %s: %s; write %s?%s=...", q.route.path, p.name, p.what, q.route.path, p.name)
		}
	}
	if q.route.page != nil {
		return nil
	}
	if q.form, err = formOf(q.r, q.args.Get("format")); err != nil {
		return err
	}
	return q.open()
}

// open finds the index.
func (q *request) open() error {
	all := q.s.indexes.Load()
	if all == nil {
		return q.s.notReady()
	}
	q.on = (*all)[0]
	if name := q.args.Get("index"); q.args.Has("index") {
		var names []string
		found := false
		for _, x := range *all {
			if q.sees(x) {
				names = append(names, x.Name())
			}
			if x.Name() == name {
				q.on, found = x, true
			}
		}
		switch {
		case found:
		case len(names) == 0:
			return wrong(http.StatusNotFound, "no index is called %q; ask whoever keeps the users which one is yours", origin.Clip(name))
		default:
			return wrong(http.StatusNotFound, "no index is called %q; this server has %s", origin.Clip(name), strings.Join(names, ", "))
		}
	}
	q.src = q.on.Source()
	if _, changes := q.src.(pandoserver.Changer); q.route.changes && !changes {
		return wrong(http.StatusMethodNotAllowed, "the index %q is only read; a store or a tree in memory can be changed", q.on.Name())
	}
	return nil
}

// sees reports whether the user may know that an index is there.
func (q *request) sees(x pandoserver.Served) bool {
	return q.user.AllowRange("pando.count", x.Source(), pandoserver.Bounds{}) == nil
}

// number returns a parameter that is a number, or the default.
func (q *request) number(name string, none int) (int, error) {
	if !q.args.Has(name) {
		return none, nil
	}
	n, err := strconv.Atoi(q.args.Get(name))
	if err != nil {
		return 0, bad("%s=%q; take a whole number", name, origin.Clip(q.args.Get(name)))
	}
	return n, nil
}

// limit returns how many entries are asked for, below zero for all.
func (q *request) limit() (int, error) {
	if q.args.Get("limit") == "all" {
		return -1, nil
	}
	n, err := q.number("limit", usualLimit)
	if err != nil || n < 0 {
		return 0, bad("limit=%q; take a whole number, or all", origin.Clip(q.args.Get("limit")))
	}
	return n, nil
}

// usualLimit is how many entries an answer has that was not told how many.
const usualLimit = 1000

// flag returns a parameter that is true or false.
func (q *request) flag(name string) (bool, error) {
	switch text := q.args.Get(name); {
	case !q.args.Has(name), text == "false", text == "0":
		return false, nil
	case text == "", text == "true", text == "1":
		return true, nil
	default:
		return false, bad("%s=%q; take true or false", name, origin.Clip(text))
	}
}

// bounds returns the range that lo, hi, after and before tell.
func (q *request) bounds() (b pandoserver.Bounds, err error) {
	if b.Lo, b.From, err = q.edge("lo", "after"); err != nil {
		return b, err
	}
	if b.Hi, b.To, err = q.edge("hi", "before"); err != nil {
		return b, err
	}
	return b, q.checks(b)
}

func (q *request) edge(with, without string) (key string, e pandoserver.Edge, err error) {
	switch a, b := q.args.Has(with), q.args.Has(without); {
	case a && b:
		return "", 0, bad("%s and %s are both there; take one of them", with, without)
	case a:
		return q.args.Get(with), pandoserver.With, nil
	case b:
		return q.args.Get(without), pandoserver.Without, nil
	}
	return "", pandoserver.Open, nil
}

// checks returns an error if bounds are no keys of the index.
func (q *request) checks(b pandoserver.Bounds) error {
	var keys []string
	if b.From != pandoserver.Open {
		keys = append(keys, b.Lo)
	}
	if b.To != pandoserver.Open {
		keys = append(keys, b.Hi)
	}
	return q.areKeys(keys)
}

// areKeys returns an error if keys cannot be ones of the index.
func (q *request) areKeys(keys []string) error {
	n, ok := q.src.(pandoserver.Numbers)
	if !ok {
		return nil
	}
	for _, k := range keys {
		if err := n.Check(k); err != nil {
			return bad("%s; the keys of %q are such", strings.ReplaceAll(err.Error(), "; ", ", "), q.on.Name())
		}
	}
	return nil
}

// prefixed returns the bounds of the keys that begin with p.
func (q *request) prefixed(p string) (b pandoserver.Bounds, err error) {
	if _, numbers := q.src.(pandoserver.Numbers); numbers {
		return b, bad("keys that are numbers have no prefixes; ask for a range")
	}
	return pandoserver.Prefix(p), nil
}

// may returns an error if the user may not do what the route does, on keys or on a range, and then that of known: who may
// not see entries does not learn either whether they are the same.
func (q *request) may(keys ...string) error { return q.mayDo(q.route.right, keys...) }

func (q *request) mayDo(command string, keys ...string) error {
	if err := denied(q.user.Allow(command, q.src, keys...)); err != nil {
		return err
	}
	return q.known()
}

func (q *request) mayRange(b pandoserver.Bounds) error {
	if err := denied(q.user.AllowRange(q.route.right, q.src, b)); err != nil {
		return err
	}
	return q.known()
}

// take counts bytes that the request holds in memory until it ends.
func (q *request) take(n int64) error {
	if err := q.s.take(n, q.holds); err != nil {
		return err
	}
	q.holds += n
	return nil
}

// fields returns the columns of entries: of keys, and of values if they are asked for.
func (q *request) fields(values bool) (schema []table.Field, err error) {
	keys, vals := "binary", "binary"
	if t, ok := q.src.(Typed); ok {
		keys, vals = t.Types()
	}
	asked := func(name, usual string) (f table.Field, err error) {
		f.Name = name
		if q.args.Has(name + "_type") {
			usual = q.args.Get(name + "_type")
		}
		if f.Type, err = table.ParseType(usual); err != nil {
			f.Kind, f.Type, err = table.ParseKind(usual)
		}
		if err != nil {
			return f, bad("%s_type: %v", name, err)
		}
		if f.Type == table.String && f.Kind.Of == cols.Boolean {
			f.Kind = table.Kind{Of: cols.Boolean}
		}
		return f, nil
	}
	f, err := asked("key", keys)
	if err != nil {
		return nil, err
	}
	schema = append(schema, f)
	if values && vals != "" {
		if f, err = asked("value", vals); err != nil {
			return nil, err
		}
		schema = append(schema, f)
	}
	return schema, nil
}

// entry adds an entry to an answer, with its value if the answer has values.
func (a *answer) entry(key string, val []byte) error {
	if err := a.text(0, "key", key); err != nil {
		return err
	}
	if len(a.schema) > 1 {
		a.q.on.Saw(len(val))
		if err := a.text(1, "value", textOf(val)); err != nil {
			return err
		}
	}
	a.row()
	return nil
}

// place is where a range goes on: at a key of which n entries are done. There may be several in a file.
//
//	┌─────────────────┬──────────────┐
//	│ n, as an uvarint│ key          │   in base64
//	└─────────────────┴──────────────┘
//
// It survives changes: all that is behind it then is still to come.
type place struct {
	key string
	n   int
}

// cursor returns the place as text, "" for none.
func (p place) cursor() string {
	if p.n == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(binary.AppendUvarint(nil, uint64(p.n)), p.key...))
}

// placeOf reads the parameter cursor.
func (q *request) placeOf() (p place, err error) {
	text := q.args.Get("cursor")
	if text == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	n, size := binary.Uvarint(raw)
	if err != nil || size <= 0 || n == 0 || n > math.MaxInt32 || !bytes.Equal(binary.AppendUvarint(nil, n), raw[:size]) {
		return p, bad("cursor=%q is none; take what the header or the trailer %s of the answer before says", origin.Clip(text), cursorHeader)
	}
	p = place{string(raw[size:]), int(n)}
	return p, q.areKeys([]string{p.key})
}

// pass goes over an entry.
func (p *place) pass(key string) {
	if p.n > 0 && p.key == key {
		p.n++
		return
	}
	*p = place{key, 1}
}

// from returns what is left of bounds, the key of the place included. A place outside is an error: it would make
// the range wider.
func (q *request) from(p place, b pandoserver.Bounds) (pandoserver.Bounds, error) {
	if p.n == 0 {
		return b, nil
	}
	below := func(x, y string) bool { return x < y }
	if n, ok := q.src.(pandoserver.Numbers); ok {
		below = func(x, y string) bool { return n.Code(x) < n.Code(y) } // between equal ones there is nothing
	}
	if b.From != pandoserver.Open && below(p.key, b.Lo) || b.To != pandoserver.Open && below(b.Hi, p.key) {
		return b, bad("the cursor is of another range; ask for the same one as before, or without cursor")
	}
	switch {
	case b.Descending && !(b.To == pandoserver.Without && p.key == b.Hi):
		b.Hi, b.To = p.key, pandoserver.With
	case !b.Descending && !(b.From == pandoserver.Without && p.key == b.Lo):
		b.Lo, b.From = p.key, pandoserver.With
	}
	return b, nil
}
