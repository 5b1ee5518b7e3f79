package pandoserver

import (
	"strings"
	"testing"
)

// A page in a browser on this machine can post to any port. Nothing of that is done: the connection
// ends at the first line that only HTTP has, as redis' does.
func TestPages(t *testing.T) {
	_, address := start(t, memory(t))
	for _, request := range []string{
		"POST / HTTP/1.1\r\nContent-Length: 15\r\n\r\nSET stolen 1\r\n",
		"PUT / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\nSET stolen 1\r\n",
		"GET / HTTP/1.1\r\nhost: 127.0.0.1:6379\r\n\r\nSET stolen 1\r\n",
		encode("SET", "before", "1") + encode("Host:") + encode("SET", "stolen", "1"),
	} {
		c := dial(t, "tcp", address)
		c.send(request)
		var b strings.Builder
		_, _ = c.r.WriteTo(&b)
		if strings.Count(b.String(), "+OK") > strings.Count(request, "before") {
			t.Errorf("%q: %q", request, b.String())
		}
	}
	c := dial(t, "tcp", address)
	c.want("GET stolen", "$-1\r\n")
	c.want("GET before", "$1\r\n1\r\n")
}
