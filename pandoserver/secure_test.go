package pandoserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/authority"
)

// dialTLS connects with TLS, and returns an error where the server does not take that, if only in its first answer.
func dialTLS(t testing.TB, address string, cfg *tls.Config) (*client, error) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", address, cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	c := &client{t, conn, bufio.NewReader(conn)}
	if _, err := conn.Write([]byte("NOSUCH\r\n")); err != nil {
		return nil, err
	}
	if _, err := readReply(c.r); err != nil {
		return nil, err
	}
	return c, nil
}

func mustDialTLS(t testing.TB, address string, cfg *tls.Config) *client {
	t.Helper()
	c, err := dialTLS(t, address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serverName returns who the server says it is.
func serverName(c *client) string {
	return c.conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
}

// Over TLS everything is as it is without, pipelines that nobody reads among it; older versions and those who speak none are refused.
func TestTLS(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("first")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, memory(t), Secure(certs), WriteTimeout(time.Minute))
	c := mustDialTLS(t, address, a.Trusting(""))
	c.want("SET a 1", "+OK\r\n")
	c.do("SET", "big", strings.Repeat("x", 100_000))
	const n = 300 // more than sockets hold
	c.send(strings.Repeat(encode("GET", "big"), n))
	time.Sleep(50 * time.Millisecond) // the server writes, and nobody reads
	for i := range n {
		if got := c.reply(); len(got) != 100_011 {
			t.Fatalf("reply %d: %.50q", i, got)
		}
	}
	c.send(strings.Repeat(encode("GET", "big"), n) + encode("QUIT"))
	for range n {
		c.reply()
	}
	if got := c.reply(); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
	old := a.Trusting("")
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	if _, err := dialTLS(t, address, old); err == nil {
		t.Error("TLS 1.1 is taken")
	}
	two := a.Trusting("")
	two.MaxVersion = tls.VersionTLS12
	mustDialTLS(t, address, two).want("GET a", "$1\r\n1\r\n")
	plain := dial(t, "tcp", address)
	plain.send("GET a\r\n")
	if got, err := readReply(plain.r); err == nil {
		t.Errorf("without TLS: %q", got)
	}
}

// Files that change serve the next connection; if they are wrong, the ones before stay.
func TestCertificatesThatChange(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("first")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, memory(t), Secure(certs))
	before := mustDialTLS(t, address, a.Trusting(""))
	if got := serverName(before); got != "first" {
		t.Errorf("%s", got)
	}
	a.Put(cert, []byte("nonsense"))
	if got := serverName(mustDialTLS(t, address, a.Trusting(""))); got != "first" {
		t.Errorf("%s", got)
	}
	a.Write("second")
	if got := serverName(mustDialTLS(t, address, a.Trusting(""))); got != "second" {
		t.Errorf("%s", got)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if got := serverName(mustDialTLS(t, address, a.Trusting(""))); got != "second" {
		t.Errorf("%s", got)
	}
	before.want("PING", "+PONG\r\n")
}

// Certificates are told of where their server tells, though an address is asked about by other options meanwhile.
func TestCertificatesAreTold(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("first")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	var log lines
	_, address := start(t, memory(t), Secure(certs), Logger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := Admits(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, Secure(certs)); err != nil {
		t.Fatal(err)
	}
	l, err := Listen("127.0.0.1:0", Secure(certs))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a.Write("second")
	mustDialTLS(t, address, a.Trusting(""))
	if !strings.Contains(log.String(), "certificates were read again") {
		t.Errorf("%q", log.String())
	}
}

// Where clients need certificates, none comes in without one of the right authority; also when that changes.
func TestClientCertificates(t *testing.T) {
	a, b := authority.New(t), authority.New(t)
	cert, key := a.Write("server")
	clients := a.File()
	certs, err := OpenCertificates(cert, key, clients)
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, memory(t), Secure(certs))
	of := func(by *authority.Authority) *tls.Config { // who trusts a's server, with a certificate of by's
		cfg := a.Trusting("")
		cfg.Certificates = by.Trusting("me").Certificates
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return cfg
	}
	mine := of(a)
	mustDialTLS(t, address, mine).want("PING", "+PONG\r\n")
	for name, cfg := range map[string]*tls.Config{"without": a.Trusting(""), "another's": of(b)} {
		if _, err := dialTLS(t, address, cfg); err == nil {
			t.Errorf("%s: the client comes in", name)
		}
	}
	a.Put(clients, b.PEM())
	if _, err := dialTLS(t, address, mine); err == nil {
		t.Error("the client comes in, whose authority is no longer there")
	}
	mustDialTLS(t, address, of(b)).want("PING", "+PONG\r\n")
}

// Files that are no certificates are errors at once.
func TestCertificatesThatAreNone(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("x")
	for _, files := range [][3]string{{"nosuch", key, ""}, {cert, "nosuch", ""}, {cert, cert, ""}, {cert, key, key}, {cert, key, "nosuch"}} {
		if _, err := OpenCertificates(files[0], files[1], files[2]); err == nil {
			t.Errorf("%v: no error", files)
		}
	}
}

// other is an address that other machines can reach.
var other = &net.TCPAddr{IP: net.IPv4zero, Port: 6379}

// Other machines reach a server only with TLS and with users who all have passwords, and then none can lose it.
func TestOpenToOthers(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("x")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	good := "user alice on " + hashed("secret") + " +@all ~*"
	for _, c := range []struct {
		users []string
		tls   bool
		says  string
	}{
		{[]string{good}, false, "needs TLS"},
		{[]string{}, true, "no user with a password"},
		{[]string{"user alice on +@all"}, true, "no user with a password"},
		{[]string{good, "user bob on nopass"}, true, "bob needs no password"},
		{[]string{good, "user default on nopass +@all ~*"}, true, "default needs no password"},
		{[]string{"user alice off " + hashed("x")}, true, "no user with a password"},
		{[]string{good}, true, ""},
		{[]string{good, "user bob off nopass"}, true, ""},
	} {
		opts := []Option{Restrict(people(t, c.users...))}
		if c.tls {
			opts = append(opts, Secure(certs))
		}
		srv, err := New(memory(t), opts...)
		if err != nil {
			t.Fatal(err)
		}
		err = srv.Admits(other)
		switch {
		case c.says == "" && err != nil, c.says != "" && (!errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--tls-cert")):
			t.Errorf("%q, TLS %v: %v", c.users, c.tls, err)
		}
		if c.says != "" {
			if l, err := Listen("0.0.0.0:0", opts...); err == nil {
				l.Close()
				t.Errorf("%q, TLS %v: listens", c.users, c.tls)
			}
			continue
		}
		for _, wrong := range [][]string{{"nopass"}, {"nopass", "on"}} {
			if err := srv.Users().set("alice", wrong); err == nil {
				t.Errorf("%v is taken", wrong)
			}
		}
		if err := srv.Users().become(people(t, "user default on nopass")); err == nil {
			t.Error("a file is taken whose users have no passwords")
		}
		if err := srv.Users().set("carol", []string{"on", hashed("x"), "+get"}); err != nil {
			t.Error(err)
		}
	}
	if err := (&config{users: NewUsers()}).admits(&net.TCPAddr{IP: net.IPv6loopback}); err != nil {
		t.Error(err)
	}
}

// elsewhere is a listener that says that other machines can reach it.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return other }

// A server that other machines can reach serves, and lets nobody in without a password.
func TestServeOthers(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("x")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	opts := []Option{Secure(certs), Restrict(people(t, "user alice on "+hashed("secret")+" +@all ~*"))}
	l, err := Listen("127.0.0.1:0", opts...)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := New(memory(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, elsewhere{l}) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := mustDialTLS(t, "127.0.0.1:"+port, a.Trusting(""))
	c.want("GET a", "-"+errNoAuth+"\r\n")
	c.want("AUTH alice secret", "+OK\r\n")
	c.want("ACL SETUSER default on nopass", "-ERR other machines can reach this server: a user who is on needs a password\r\n")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
