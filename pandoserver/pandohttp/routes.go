package pandohttp

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pando-index/pando/pandoserver"
)

// route is what a path and a method do. The description of the server is made of these, too.
type route struct {
	path, method string
	what         string
	params       []param
	body         string // what the rows of its body are, "" if it has none
	returns      string // what the rows of its answer are
	right        string // the command whose right a user needs, "" if none
	changes      bool   // the index
	id           int    // its place among all routes
	open         bool   // anybody may ask, by any name of the server
	rows         func(q *request) error
	page         func(q *request) error // for an answer that is no rows
	media        string                 // of a page
}

// param is a parameter of an address.
type param struct {
	name, what   string
	kind         string // string, integer, number or boolean, or the names that it may be
	needed, many bool
}

var (
	ofIndex  = param{name: "index", what: "name of the index; the first one by default", kind: "string"}
	ofFormat = param{name: "format", what: "format of the answer, instead of Accept", kind: "format"}
	keyType  = param{name: "key_type", what: "type of the column of keys, such as int64, float64, string, date or binary", kind: "string"}
	valType  = param{name: "value_type", what: "type of the column of values: what is not of it is an error", kind: "string"}

	rangeParams = []param{
		{name: "lo", what: "first key of the range", kind: "string"},
		{name: "after", what: "key that the range begins behind", kind: "string"},
		{name: "hi", what: "last key of the range", kind: "string"},
		{name: "before", what: "key that the range ends before", kind: "string"},
	}
	listParams = []param{
		{name: "limit", what: fmt.Sprintf("how many entries at most, or all; %d by default", usualLimit), kind: "string"},
		{name: "reverse", what: "begin with the last key", kind: "boolean"},
		{name: "keys", what: "keys alone, without values", kind: "boolean"},
		{name: "cursor", what: "go on behind an answer: what its " + cursorHeader + " says, a header of short answers and a trailer of others", kind: "string"},
	}
	prefixParam = param{name: "prefix", what: "what keys begin with", kind: "string", needed: true}
	keyParam    = param{name: "key", what: "a key", kind: "string", needed: true}
	keysParam   = param{name: "key", what: "a key; may be repeated", kind: "string", needed: true, many: true}
	missing     = param{name: "missing", what: "what a key that is not there becomes: no row, one without a value, or the status 404", kind: "skip,null,fail"}
	shown       = []param{ofIndex, ofFormat, keyType, valType}
	counted     = []param{ofIndex, ofFormat}
)

func params(groups ...[]param) []param { return slices.Concat(groups...) }

// routes are all that the server answers, but for the pages below /view/.
func routes() []*route {
	return []*route{
		{path: "/v1/indexes", method: "GET", what: "Lists the indexes.", params: []param{ofFormat}, returns: "name, entries, key, value and writable of each index", rows: (*request).listIndexes, right: "pando.count"},
		{path: "/v1/range", method: "GET", what: "Returns the entries of a range, in the order of keys.", params: params(shown, rangeParams, listParams), returns: "key and value", rows: (*request).rangeOf, right: "pando.range"},
		{path: "/v1/range", method: "DELETE", what: "Deletes the entries of a range, which needs an end at least.", params: params(counted, rangeParams), returns: "deleted: how many there were", rows: (*request).deleteRange, right: "pando.delrange", changes: true},
		{path: "/v1/prefix", method: "GET", what: "Returns the entries whose key begins with a prefix.", params: params(shown, []param{prefixParam}, listParams), returns: "key and value", rows: (*request).prefixOf, right: "pando.prefix"},
		{path: "/v1/prefix", method: "DELETE", what: "Deletes the entries whose key begins with a prefix.", params: params(counted, []param{prefixParam}), returns: "deleted: how many there were", rows: (*request).deletePrefix, right: "pando.delrange", changes: true},
		{path: "/v1/get", method: "GET", what: "Looks keys up.", params: params(shown, []param{keysParam, missing}), returns: "key and value", rows: (*request).getKeys, right: "mget"},
		{path: "/v1/get", method: "POST", what: "Looks up the keys of a body.", params: params(shown, []param{missing}), body: "key", returns: "key and value", rows: (*request).getBody, right: "mget"},
		{path: "/v1/count", method: "GET", what: "Counts the keys of a range.", params: params(counted, rangeParams), returns: "count", rows: (*request).countOf, right: "pando.count"},
		{path: "/v1/rank", method: "GET", what: "Counts the keys below a key.", params: params(counted, []param{keyParam}), returns: "rank", rows: (*request).rankOf, right: "pando.rank"},
		{path: "/v1/at", method: "GET", what: "Returns the entry at a place.", params: params(shown, []param{{name: "rank", what: "place, counted from 0, or from the end below zero", kind: "integer", needed: true}}), returns: "key and value", rows: (*request).atRank, right: "pando.at"},
		{path: "/v1/floor", method: "GET", what: "Returns the last entry up to a key.", params: params(shown, []param{keyParam}), returns: "key and value", rows: (*request).floorOf, right: "pando.floor"},
		{path: "/v1/ceil", method: "GET", what: "Returns the first entry from a key on.", params: params(shown, []param{keyParam}), returns: "key and value", rows: (*request).ceilOf, right: "pando.ceil"},
		{path: "/v1/aggregate", method: "GET", what: "Sums up the values of a range, which are decimals.", params: params(counted, rangeParams), returns: "count, sum (an int64 where all values are whole and the sum fits), min, max and mean", rows: (*request).aggregate, right: "pando.agg"},
		{path: "/v1/histogram", method: "GET", what: "Counts the values of a range between bounds.", params: params(counted, rangeParams, []param{{name: "bound", what: "where a bin ends and the next begins; repeated, ascending", kind: "number", needed: true, many: true}}), returns: "from, to and count of each bin; the ends of the first and the last are null", rows: (*request).histogram, right: "pando.hist"},
		{path: "/v1/batch", method: "PUT", what: "Sets and deletes keys: all of the body, or nothing.", params: counted, body: "key, value, and op if some are to be deleted: set or delete, in the order of the rows", returns: "set and deleted: how many rows said so", rows: (*request).batch, right: "mset", changes: true},
		{path: "/v1/batch", method: "POST", what: "Does the same as PUT.", params: counted, body: "key, value, and op if some are to be deleted: set or delete, in the order of the rows", returns: "set and deleted: how many rows said so", rows: (*request).batch, right: "mset", changes: true},
		{path: "/v1/batch", method: "DELETE", what: "Deletes keys, those of the address or of a body: all of them, or nothing.", params: params(counted, []param{{name: "key", what: "a key; may be repeated", kind: "string", many: true}}), body: "key", returns: "deleted: how many were there", rows: (*request).deleteKeys, right: "del", changes: true},
		{path: "/openapi.json", method: "GET", what: "Describes all this.", page: (*request).openapi, media: "application/json"},
		{path: "/metrics", method: "GET", what: "What the server has done and what it takes, for Prometheus.", page: (*request).metrics, media: "text/plain", right: "info"},
		{path: "/healthz", method: "GET", what: "Says that the server is there.", page: (*request).healthy, media: "text/plain", open: true},
		{path: "/readyz", method: "GET", what: "Says whether the server should get requests: not while a store recovers.", page: (*request).readyToServe, media: "text/plain", open: true},
		{path: "/", method: "GET", what: "Says where to begin.", page: (*request).welcome, media: "text/plain"},
	}
}

// allRoutes is set late, since the description of the server is one of them.
var allRoutes []*route

func init() {
	allRoutes = routes()
	for i, r := range allRoutes {
		r.id = i
	}
}

// find returns what answers a request, or the methods that its path has.
func find(path, method string) (found *route, methods []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, r := range allRoutes {
		if r.path == path {
			if methods = append(methods, r.method); r.method == method {
				found = r
			}
		}
	}
	return found, methods
}

// answerRoute answers a request by a route.
func (s *Server) answerRoute(w *watched, r *http.Request, rt *route, user *pandoserver.User) (err error) {
	q := &request{s: s, w: w, r: r, control: http.NewResponseController(w), began: time.Now(), user: user, route: rt}
	defer func() { s.give(q.holds) }()
	if rt.right != "" && user == nil { // nobody has been asked for, so there were no indexes: there may be by now
		return errNotReady
	}
	if err := q.parse(); err != nil {
		return err
	}
	if rt.page != nil {
		return rt.page(q)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return wrong(http.StatusServiceUnavailable, "%d requests are under way, as many as there may be; try again in a second", cap(s.slots))
	}
	switch {
	case r.ContentLength == 0:
		_ = q.control.SetReadDeadline(q.began.Add(s.cfg.longest)) // what reads there sees whether the client goes
	case rt.body == "":
		return bad("%s has no body here; put what it says into the address, or leave it out", rt.path)
	}
	switch err = rt.rows(q); err {
	case errHead:
		w.WriteHeader(http.StatusOK)
	case errKnown:
		w.WriteHeader(http.StatusNotModified)
	default:
		return err
	}
	return nil
}
