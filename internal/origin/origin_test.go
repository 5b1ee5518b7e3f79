package origin

import (
	"net/http/httptest"
	"testing"
)

// Requests are answered by their host, their origin and what the browser says of the page that made them.
func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		host, origin, site, mode string
		page, answered           bool
	}{
		{host: "127.0.0.1:6380", answered: true},
		{host: "[::1]:6380", answered: true},
		{host: "localhost", answered: true},
		{host: "LocalHost:1", answered: true},
		{host: "data.example:6380", answered: true},
		{host: "[2001:db8::1]:6380", answered: true},
		{host: "[2001:DB8:0::1]", answered: true},
		{host: "[2001:db8::2]:6380"},
		{host: "evil.example:6380"},
		{host: "127.0.0.1.evil.example"},
		{host: ""},
		{host: "10.0.0.1"},
		{host: "localhost", origin: "http://localhost", answered: true},
		{host: "localhost:1", origin: "http://localhost:2"},
		{host: "localhost", origin: "http://evil.example"},
		{host: "localhost", origin: "null"},
		{host: "localhost", origin: "%"},
		{host: "localhost", site: "same-origin", answered: true},
		{host: "localhost", site: "none", answered: true},
		{host: "localhost", site: "same-site"},
		{host: "localhost", site: "cross-site", mode: "navigate"},
		{host: "localhost", site: "cross-site", mode: "navigate", page: true, answered: true},
		{host: "localhost", site: "cross-site", mode: "no-cors", page: true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if why := Refuse(r, Hosts([]string{" Data.example", "[2001:db8::0:1]"}), c.page); (why == "") != c.answered {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

// What no request can have as its host is told.
func TestCheck(t *testing.T) {
	for _, name := range []string{"a", "Data.example", " data.example ", "data.example.", "my_host", "10.0.0.1", "::1", "[::1]", "xn--bcher-kva.example"} {
		if err := Check(Hosts([]string{"a", name})); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", " ", "http://x:1/", "x/", "data.example:80", "[::1]:80", "[]", "[a]", "a b", "*.example", "bücher.example", "::g"} {
		if err := Check(Hosts([]string{"a", name})); err == nil {
			t.Errorf("%q is taken as the name of a host", name)
		}
	}
}
