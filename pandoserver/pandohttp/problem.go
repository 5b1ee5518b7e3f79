package pandohttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandoserver"
)

// problem is an answer that is none: a status, a sentence, and what to do next.
type problem struct {
	status     int
	says, next string
}

func (p *problem) Error() string {
	if p.next == "" {
		return p.says
	}
	return p.says + "; " + p.next
}

// wrong returns a problem. The text behind the first "; " is what to do next.
func wrong(status int, format string, args ...any) *problem {
	says, next, _ := strings.Cut(fmt.Sprintf(format, args...), "; ")
	return &problem{status, says, next}
}

// problemOf returns an error as a problem.
func problemOf(err error) *problem {
	p := new(problem)
	bad := new(table.Error)
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{http.StatusRequestTimeout, "the body did not come in time", "send it faster, or in smaller parts"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &problem{http.StatusServiceUnavailable, "the request took too long, or its client has gone", "ask for less at once"}
	case errors.As(err, &bad):
		if bad.Err != nil && errors.Is(bad.Err, io.ErrUnexpectedEOF) {
			return &problem{http.StatusBadRequest, err.Error(), "nothing was changed: send all of it again"}
		}
		return &problem{http.StatusBadRequest, err.Error(), ""}
	case errors.Is(err, pandoserver.ErrDown):
		return &problem{http.StatusServiceUnavailable, err.Error(), "ask again when more of the machines are back"}
	case errors.Is(err, pando.ErrClosed):
		return &problem{http.StatusServiceUnavailable, "the index was closed", "ask again when the server is back"}
	case errors.Is(err, pando.ErrTooLong), errors.Is(err, pando.ErrTooLarge):
		return &problem{http.StatusUnprocessableEntity, err.Error(), "nothing was changed: leave that entry out"}
	case errors.Is(err, pando.ErrMemoryLimit), errors.Is(err, pando.ErrOutOfMemory):
		return &problem{http.StatusInsufficientStorage, err.Error(), "nothing was changed: delete something first"}
	}
	return &problem{http.StatusInternalServerError, err.Error(), ""}
}

// panicked makes a problem of a handler's panic, if it comes from an index that was closed or from a file that
// others have cut short, and else one without words.
func panicked(v any) *problem {
	if err, ok := v.(error); ok && errors.Is(err, pandoserver.ErrDown) {
		return problemOf(err)
	}
	if s, ok := v.(string); ok && strings.HasPrefix(s, "pando: ") {
		return &problem{http.StatusServiceUnavailable, strings.TrimPrefix(s, "pando: "), "ask again when the server is back"}
	}
	if e, ok := v.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		return &problem{http.StatusInternalServerError, fmt.Sprintf("the file cannot be read any more: it was cut short while it was open (%v)", e), "start the server again with a whole file"}
	}
	return &problem{http.StatusInternalServerError, "the server has failed", "its log says more"}
}

// refuse answers with a problem.
func refuse(w http.ResponseWriter, p *problem) {
	says := map[string]any{"error": p.says, "status": p.status}
	if p.next != "" {
		says["next"] = p.next
	}
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Length", "ETag", "Trailer", "Vary"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
	if p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	writeJSON(w, p.status, says)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a client that is gone needs no answer
}
