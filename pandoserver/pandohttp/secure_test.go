package pandohttp

import (
	"crypto/tls"
	"net/http"
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
