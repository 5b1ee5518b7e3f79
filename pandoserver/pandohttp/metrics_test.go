package pandohttp

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/pandoserver"
)

// Metrics have what clients of both protocols did.
func TestMetrics(t *testing.T) {
	src := memory(t)
	g := start(t, src, []pandoserver.Option{pandoserver.Name("people")})
	body := []byte("key,value\na,1\n")
	g.want(200, "PUT", "/v1/batch", bytes.NewReader(body), "Content-Type", "text/csv")
	sent := len(g.want(200, "GET", "/v1/range?format=csv", nil).body)
	g.want(404, "GET", "/nothing", nil)
	g.want(400, "GET", "/v1/range?nothing=1", nil)
	var text string
	for range 1000 { // a request is counted behind its answer
		r := g.want(200, "GET", "/metrics", nil)
		if text = string(r.body); strings.Contains(text, `path="/v1/range",status="4xx"`) && strings.Contains(text, `path="",status="4xx"`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, want := range []string{
		`pando_entries{index="people"} 1`, `pando_http_requests_total{method="GET",path="/v1/range",status="2xx"} 1`, `pando_http_requests_total{method="GET",path="/v1/range",status="4xx"} 1`,
		`pando_http_requests_total{method="",path="",status="4xx"} 1`, `pando_http_request_duration_seconds_count{method="PUT",path="/v1/batch"} 1`,
		`pando_http_received_bytes_total{method="PUT",path="/v1/batch"} 14`, "# TYPE pando_http_sent_bytes_total counter",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if sent == 0 || !strings.Contains(text, `pando_http_sent_bytes_total{method="GET",path="/v1/range"} `) {
		t.Errorf("%d bytes were sent, and\n%s", sent, text)
	}
}
