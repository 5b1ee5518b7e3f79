package pandoview

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pando-index/pando/internal/origin"
)

//go:generate bash web/build.sh

//go:embed dist
var dist embed.FS

// files are those of the page, by their addresses.
var files = map[string]string{"/": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/icon.svg": "icon.svg"}

var types = map[string]string{
	"index.html": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8",
	"app.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
}

// page serves the files of the page, and nothing else.
func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	name, ok := files[r.URL.Path]
	if !ok {
		refuse(w, problemf(http.StatusNotFound, "there is no %q here", origin.Clip(r.URL.Path)))
		return
	}
	data, err := fs.ReadFile(dist, "dist/"+name)
	if err != nil {
		refuse(w, problemf(http.StatusInternalServerError, "the page was not built: run make web"))
		return
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(data) // a client that is gone needs no answer
}

// answer is a handler that answers with JSON.
type answer func(q query) (any, error)

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, problemf(http.StatusBadRequest, "the address cannot be read: %v", err))
		return
	}
	v, err := a(query{values, r})
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, v)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

// query is the parameters of a request.
type query struct {
	url.Values
	r *http.Request
}

// number returns a parameter from lo to hi, or the default if there is none.
func (q query) number(name string, lo, hi, none int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return none, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		return 0, problemf(http.StatusBadRequest, "%s is %q; it must be a number from %d to %d", name, origin.Clip(text), lo, hi)
	}
	return n, nil
}
