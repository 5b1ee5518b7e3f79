package pandohttp

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/pandoserver/internal/metrics"
)

// tally counts what became of the requests of a route.
type tally struct {
	times    metrics.Histogram // microseconds; their sum in nanoseconds
	statuses [6]atomic.Int64   // by their first digit; 0 for answers that were cut
	received atomic.Int64
	sent     atomic.Int64
}

// did takes note of a request that has ended.
func (s *Server) did(rt *route, w *watched, r *http.Request, began time.Time) {
	t := &s.others
	if rt != nil {
		t = &s.tallies[rt.id]
	}
	took := time.Since(began)
	t.times.Add(uint64(took.Microseconds())+1, int64(took), 1)
	status := w.status / 100
	if w.cut || status >= len(t.statuses) {
		status = 0
	}
	t.statuses[status].Add(1)
	t.sent.Add(w.sent)
	if r.ContentLength > 0 {
		t.received.Add(r.ContentLength)
	}
}

// metrics answers with what this server and that of redis' protocol have done.
func (q *request) metrics() error {
	if q.user != nil {
		if err := q.user.Allow(q.route.right, nil); err != nil {
			return denied(err)
		}
	}
	q.w.Header().Set("Content-Type", metrics.Content)
	srv := q.s.srv.Load()
	if srv == nil {
		return q.s.notReady()
	}
	if err := srv.WriteMetrics(q.w); err != nil {
		return err
	}
	return q.s.writeMetrics(&metrics.Writer{W: q.w})
}

func (s *Server) writeMetrics(w *metrics.Writer) error {
	each := func(f func(t *tally, labels ...string)) {
		for _, rt := range allRoutes {
			f(&s.tallies[rt.id], "method", rt.method, "path", rt.path)
		}
		f(&s.others, "method", "", "path", "")
	}
	w.Counter("pando_http_requests_total", "Requests by the first digit of their status; cut are those whose answer was not whole.")
	each(func(t *tally, labels ...string) {
		for i := range t.statuses {
			status := strconv.Itoa(i) + "xx"
			if i == 0 {
				status = "cut"
			}
			if n := t.statuses[i].Load(); n > 0 {
				w.Sample(float64(n), append(labels[:len(labels):len(labels)], "status", status)...)
			}
		}
	})
	w.Histogram("pando_http_request_duration_seconds", "Time that requests took, their bodies and answers included.")
	each(func(t *tally, labels ...string) {
		if t.times.Count() > 0 {
			w.Of(&t.times, 1e-6, 1e-9, labels...)
		}
	})
	for _, c := range []struct {
		name, help string
		value      func(t *tally) int64
	}{
		{"pando_http_received_bytes_total", "Bytes of bodies whose length was said before.", func(t *tally) int64 { return t.received.Load() }},
		{"pando_http_sent_bytes_total", "Bytes of answers.", func(t *tally) int64 { return t.sent.Load() }},
	} {
		w.Counter(c.name, c.help)
		each(func(t *tally, labels ...string) {
			if n := c.value(t); n > 0 {
				w.Sample(float64(n), labels...)
			}
		})
	}
	w.Gauge("pando_http_requests", "Requests for rows under way.")
	w.Sample(float64(len(s.slots)))
	w.Gauge("pando_http_buffer_bytes", "Bytes of bodies and long values in memory.")
	w.Sample(float64(s.held.Load()))
	return w.Err
}
