package pandohttp

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/authority"
	"github.com/pando-index/pando/pandoserver"
)

// Over TLS a server proves who it is by files that are read again when they change, and, where it knows who vouches
// for clients, answers none without a certificate of theirs.
func TestTLS(t *testing.T) {
	a, b := authority.New(t), authority.New(t)
	cert, key := a.Write("first")
	clients := a.File()
	certs, err := pandoserver.OpenCertificates(cert, key, clients)
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, memory(t), nil, Secure(certs))
	ask := func(cfg *tls.Config) (name string, err error) {
		c := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
		r, err := c.Get(strings.Replace(g.base, "http:", "https:", 1) + "/v1/count")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		if r.StatusCode != 200 {
			t.Errorf("%s", r.Status)
		}
		return r.TLS.PeerCertificates[0].Subject.CommonName, nil
	}
	is := func(want string, cfg *tls.Config) {
		t.Helper()
		if name, err := ask(cfg); err != nil || name != want {
			t.Errorf("%q, %v; want %q", name, err, want)
		}
	}
	is("first", a.Trusting("me"))
	if r, err := http.Get(g.base + "/v1/count"); err == nil {
		if r.StatusCode == 200 {
			t.Error("it answers without TLS")
		}
		r.Body.Close()
	}
	other := a.Trusting("")
	other.Certificates = b.Trusting("me").Certificates
	old := a.Trusting("me")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, cfg := range map[string]*tls.Config{"no certificate": a.Trusting(""), "another's certificate": other, "TLS 1.1": old} {
		if _, err := ask(cfg); err == nil {
			t.Errorf("%s: the client is answered", name)
		}
	}
	a.Put(cert, []byte("nonsense"))
	is("first", a.Trusting("me"))
	a.Write("second")
	is("second", a.Trusting("me"))
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	is("second", a.Trusting("me"))
	a.Write("third")
	a.Put(clients, b.PEM())
	is("third", other)
	if _, err := ask(a.Trusting("me")); err == nil {
		t.Error("a client is answered for whom nobody vouches any more")
	}
}

// people returns users who are read from lines, each with the password pw.
func people(t *testing.T, lines ...string) *pandoserver.Users {
	t.Helper()
	users, err := pandoserver.ReadUsers(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// as returns the header by which a user of people says who it is.
func as(name string) []string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, "pw")
	return []string{"Authorization", r.Header.Get("Authorization")}
}

// aPage is what a test shows of an index.
var aPage = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })

// Before it is known who may see an index nobody does, and neither does a request that came before.
func TestBeforeUse(t *testing.T) {
	s, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.View("salaries", aPage); err != nil {
		t.Fatal(err)
	}
	g := run(t, s, nil)
	g.want(503, "GET", "/view/salaries/", nil)
	g.want(503, "GET", "/view/", nil)
	srv, err := pandoserver.New(memory(t), pandoserver.Name("salaries"), pandoserver.Restrict(people(t, "user alice on >pw +@all ~*")))
	if err != nil {
		t.Fatal(err)
	}
	s.Use(srv)
	g.want(401, "GET", "/view/salaries/", nil)
	g.want(200, "GET", "/view/salaries/", nil, as("alice")...)
	for _, path := range []string{"/v1/indexes", "/v1/range", "/v1/get?key=a", "/metrics", "/view/salaries/"} {
		w, r := &watched{ResponseWriter: httptest.NewRecorder()}, httptest.NewRequest("GET", path, nil)
		if rt, _ := find(r.URL.Path, "GET"); rt != nil {
			err = s.answerRoute(w, r, rt, nil)
		} else {
			err = s.view(w, r, nil)
		}
		if err == nil || problemOf(err).status != 503 || w.begun {
			t.Errorf("%s is answered to nobody: %v", path, err)
		}
	}
}

// Who may not see entries does not learn by tags whether they are the same.
func TestRightsBeforeTags(t *testing.T) {
	users := people(t, "user alice on >pw +@all ~*", "user part on >pw +@all ~public:*", "user none on >pw ~*")
	src := versioned{memory(t)}
	g := start(t, src, nil, Restrict(users))
	for _, path := range []string{"/v1/range", "/v1/prefix?prefix=p", "/v1/get?key=private", "/v1/count", "/v1/rank?key=p", "/v1/at?rank=0", "/v1/floor?key=p", "/v1/ceil?key=p", "/v1/aggregate", "/v1/histogram?bound=1"} {
		for _, name := range []string{"none", "part"} {
			for _, header := range [][]string{{"If-None-Match", "*"}, {"If-Match", `"x"`}} {
				if r := g.want(403, "GET", path, nil, append(header, as(name)...)...); r.Header.Get("ETag") != "" {
					t.Errorf("%s: %s is told a tag", path, name)
				}
			}
		}
		g.want(304, "GET", path, nil, append(as("alice"), "If-None-Match", "*")...)
		g.want(412, "GET", path, nil, append(as("alice"), "If-Match", `"x"`)...)
	}
	g.want(304, "GET", "/v1/get?key=public:a", nil, append(as("part"), "If-None-Match", "*")...)
}

// versioned is an index that only is read, and says its version.
type versioned struct{ pandoserver.Source }

func (versioned) Version() string { return "1" }

// The names of indexes are told to those who may know them.
func TestNamesOfIndexes(t *testing.T) {
	users := people(t, "user alice on >pw +@all ~*", "user part on >pw +@all ~public:*")
	g := start(t, memory(t), []pandoserver.Option{pandoserver.Name("salaries")}, Restrict(users))
	if err := g.s.View("salaries", aPage); err != nil {
		t.Fatal(err)
	}
	g.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for name, told := range map[string]bool{"alice": true, "part": false} {
		if r := g.want(404, "GET", "/v1/range?index=nosuch", nil, as(name)...); strings.Contains(string(r.body), "salaries") != told {
			t.Errorf("%s: %s", name, r.body)
		}
		if r := g.ask("GET", "/view/", nil, as(name)...); (r.Header.Get("Location") != "") != told || strings.Contains(string(r.body), "salaries") != told {
			t.Errorf("%s: %s %v", name, r.Status, r.Header)
		}
	}
}

// Names of hosts are taken as people write them, and what can be none is refused.
func TestHosts(t *testing.T) {
	g := start(t, memory(t), nil, Hosts(" a.example ", "[2001:DB8::0:1]"))
	g.want(200, "GET", "/v1/count", nil, "Host", "a.example:80")
	g.want(200, "GET", "/v1/count", nil, "Host", "[2001:db8::1]:80")
	g.want(403, "GET", "/v1/count", nil, "Host", "b.example:80")
	for _, name := range []string{"", "http://x:1/", "a.example:80", "[::1]:80"} {
		if _, err := New(nil, Hosts(name)); err == nil || !strings.Contains(err.Error(), "write it as data.example") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
