package pandoview

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/origin"
)

// Index is an index that can be shown: a *pando.Frozen or a *pando.Tree, of any
// types.
type Index interface {
	Stats() pando.Stats
}

// Option changes a handler.
type Option func(*handler)

// Name sets the page's name for the index: a file's name, or its purpose in a
// program.
func Name(name string) Option { return func(h *handler) { h.name = name } }

// Hosts allows requests that name other hosts than those of the loopback address.
// Everyone who can reach one of them sees the keys and values of the index.
func Hosts(names ...string) Option {
	return func(h *handler) { h.hosts = append(h.hosts, origin.Hosts(names)...) }
}

// handler serves one index.
type handler struct {
	see   func() *index.Inside // panics if the index was closed
	name  string
	hosts []string
	mux   http.ServeMux
	busy  chan struct{} // recordings under way
	watch sync.Mutex    // held by the request that has a recorder on the tree
}

// mostRecordings is how many recordings may be under way at once: each takes some
// megabytes and a core for some tenths of a second.
const mostRecordings = 2

// Handler returns a handler that shows an index. It serves its page at its root,
// by addresses relative to that, so that it works below any path with
// http.StripPrefix. It answers GET and HEAD alone and never changes the index.
func Handler(ix Index, opts ...Option) http.Handler {
	see, ok := index.InsideOf(ix)
	if !ok {
		panic(fmt.Sprintf("pandoview: Handler: a %T is neither a *pando.Frozen nor a *pando.Tree", ix))
	}
	h := &handler{see: see, busy: make(chan struct{}, mostRecordings)}
	for _, o := range opts {
		o(h)
	}
	h.mux.HandleFunc("/", h.page)
	h.mux.Handle("/api/index", answer(h.describe))
	h.mux.Handle("/api/view", answer(h.view))
	h.mux.Handle("/api/node", answer(h.node))
	h.mux.Handle("/api/search", answer(h.search))
	h.mux.Handle("/api/steps", answer(h.steps))
	h.mux.Handle("/api/live", answer(h.live))
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a mapped file may be cut short
	defer func() {
		if v := recover(); v != nil {
			refuse(w, problemOf(v))
		}
	}()
	if err := h.guard(r); err != nil {
		refuse(w, err)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.mux.ServeHTTP(w, r)
}

// problem is an answer that is none: a status and a sentence.
type problem struct {
	status int
	says   string
}

func (p *problem) Error() string { return p.says }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// problemOf makes a problem of a handler's panic; one that is not known to come
// from a closed index or a damaged file is raised again.
func problemOf(v any) error {
	if s, ok := v.(string); ok && strings.HasPrefix(s, "pando: ") {
		return problemf(http.StatusGone, "%s", strings.TrimPrefix(s, "pando: "))
	}
	if e, ok := v.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		return problemf(http.StatusInternalServerError, "the file cannot be read any more; it was cut short while it was open: %v", e)
	}
	if e, ok := v.(error); ok && !errors.Is(e, http.ErrAbortHandler) {
		return problemf(http.StatusInternalServerError, "the index cannot be read: %v", e)
	}
	panic(v)
}

// refuse answers with a problem.
func refuse(w http.ResponseWriter, err error) {
	p := &problem{http.StatusInternalServerError, err.Error()}
	errors.As(err, &p)
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, p.status, map[string]string{"error": p.says})
}
