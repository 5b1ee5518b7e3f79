package ca

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// made returns a folder with an authority and certificates of nodes.
func made(t *testing.T, names ...string) (dir, cluster string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "certs")
	cluster, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if got, err := Issue(dir, n); err != nil || got != (Node{cluster, n}) {
			t.Fatal(got, err)
		}
	}
	return dir, cluster
}

func loaded(t *testing.T, dir, name string) *Identity {
	t.Helper()
	id, err := Load(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// shake has two configurations speak with each other, and returns what each end says.
func shake(t *testing.T, client, server *tls.Config) (ofClient, ofServer error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, c := range []net.Conn{a, b} {
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	}
	done := make(chan error, 1)
	go func() {
		s := tls.Server(b, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		b.Close()
		done <- err
	}()
	c := tls.Client(a, client)
	err := c.Handshake()
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	a.Close()
	return err, <-done
}

// Nodes of a cluster know each other, and others are refused by both ends.
func TestWhoIsWho(t *testing.T) {
	dir, cluster := made(t, "a", "b")
	other, _ := made(t, "a")
	a, b, stranger := loaded(t, dir, "a"), loaded(t, dir, "b"), loaded(t, other, "a")
	if a.Cluster != cluster || a.Name != "a" || stranger.Cluster == cluster {
		t.Error(a.Node, stranger.Node)
	}
	config := a.Config("x/1")
	var seen Node
	config.VerifyConnection = func(s tls.ConnectionState) (err error) {
		seen, err = a.Check(s, true)
		return err
	}
	if c, s := shake(t, b.Config("x/1"), config); c != nil || s != nil || seen != (Node{cluster, "b"}) {
		t.Error(c, s, seen)
	}
	if c, _ := shake(t, a.Config("x/1"), stranger.Config("x/1")); !errors.Is(c, ErrCluster) {
		t.Errorf("a server of another cluster: %v", c)
	}
	if c, s := shake(t, stranger.Config("x/1"), a.Config("x/1")); c == nil || s == nil {
		t.Errorf("a client of another cluster: %v, %v", c, s)
	}
	// One whose certificate claims the cluster, signed by somebody else.
	forged := stranger.Config("x/1")
	forged.VerifyConnection = nil
	forged.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return forge(t, cluster, "b") }
	if _, s := shake(t, forged, a.Config("x/1")); !errors.Is(s, ErrStranger) {
		t.Errorf("a forged certificate: %v", s)
	}
	none := a.Config("x/1")
	none.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return new(tls.Certificate), nil }
	if _, s := shake(t, none, a.Config("x/1")); s == nil {
		t.Error("a client without a certificate was let in")
	}
	old := b.Config("x/1")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, s := shake(t, old, a.Config("x/1")); s == nil {
		t.Error("TLS 1.2 was spoken")
	}
	if _, s := shake(t, b.Config("y/1"), a.Config("x/1")); s == nil {
		t.Error("another protocol was spoken")
	}
	mute := b.Config("x/1")
	mute.NextProtos = nil
	if _, s := shake(t, mute, a.Config("x/1")); s == nil {
		t.Error("no protocol was spoken")
	}
}

// forge makes a certificate as the cluster's would be, signed by another authority.
func forge(t *testing.T, cluster, name string) (*tls.Certificate, error) {
	t.Helper()
	root, rootKey, err := draw(forAuthority)
	if err != nil {
		return nil, err
	}
	c, key, err := draw(forNode)
	if err != nil {
		return nil, err
	}
	real := loaded(t, mustIssue(t, name), name)
	now, err := real.files.Now()
	if err != nil {
		return nil, err
	}
	c.URIs, c.ExtKeyUsage = now.pair.Leaf.URIs, now.pair.Leaf.ExtKeyUsage
	c.URIs[0].Host = cluster
	private, crt, err := sign(c, root, key, rootKey)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(pem.EncodeToMemory(crt), pem.EncodeToMemory(private))
	return &pair, err
}

func mustIssue(t *testing.T, name string) string {
	dir, _ := made(t, name)
	return dir
}

// Keys are their owner's, and nothing is made over what is there.
func TestFiles(t *testing.T) {
	dir, _ := made(t, "a")
	for name, want := range map[string]fs.FileMode{".": 0o700, "ca.key": 0o600, "a.key": 0o600, "ca.crt": 0o644, "a.crt": 0o644} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, fi.Mode().Perm(), err)
		}
	}
	before, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second authority: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "ca.key")); err != nil || string(after) != string(before) {
		t.Error("the authority's key has changed", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	for _, name := range []string{"", "ca", "CA", "a/b", "../a", "a.b", "ä", string(make([]byte, 65))} {
		if _, err := Issue(dir, name); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "a.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "a"); !errors.Is(err, ErrOpen) {
		t.Errorf("a key that others can read: %v", err)
	}
}

// A node may not have the files of another one, or of another cluster.
func TestLoadRefuses(t *testing.T) {
	dir, _ := made(t, "a", "b")
	other, _ := made(t, "a")
	swap := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	swap(filepath.Join(dir, "b.crt"), filepath.Join(dir, "c.crt"))
	swap(filepath.Join(dir, "b.key"), filepath.Join(dir, "c.key"))
	if _, err := Load(dir, "c"); err == nil {
		t.Error("b's certificate was taken for c's")
	}
	swap(filepath.Join(dir, "b.crt"), filepath.Join(dir, "a.crt"))
	if _, err := Load(dir, "a"); err == nil {
		t.Error("a certificate was taken with another's key")
	}
	swap(filepath.Join(other, "ca.crt"), filepath.Join(dir, "ca.crt"))
	if _, err := Load(dir, "b"); !errors.Is(err, ErrCluster) {
		t.Errorf("with another cluster's authority: %v", err)
	}
	if _, err := Load(dir, "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A certificate that is issued anew is used at once, and one that cannot be read does no harm.
func TestRenewal(t *testing.T) {
	dir, _ := made(t, "a", "b")
	a, b := loaded(t, dir, "a"), loaded(t, dir, "b")
	told := make(chan error, 10)
	a.Tell(func(err error) { told <- err })
	before := a.Until()
	if before.Before(time.Now().Add(forNode - time.Hour)) {
		t.Error(before)
	}
	serial := func() string {
		now, err := a.files.Now()
		if err != nil {
			t.Fatal(err)
		}
		return now.pair.Leaf.SerialNumber.String()
	}
	was := serial()
	if _, err := Issue(dir, "a"); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(dir, "a.crt"), later, later); err != nil {
		t.Fatal(err)
	}
	if serial() == was {
		t.Error("the old certificate is in use")
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.crt"), []byte("rubbish"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, s := shake(t, a.Config("x/1"), b.Config("x/1")); c != nil || s != nil {
		t.Error(c, s)
	}
	if err := <-told; err == nil {
		t.Error("nobody was told")
	}
}

// Ensure makes what is missing, where it can.
func TestEnsure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	if err := Ensure(dir, "b", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("one that joins has made an authority")
	}
	for _, name := range []string{"a", "b"} {
		for range 2 {
			if err := Ensure(dir, name, name == "a"); err != nil {
				t.Fatal(err)
			}
		}
		loaded(t, dir, name)
	}
	text := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "a.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	was := text()
	if err := Ensure(dir, "a", true); err != nil || text() != was {
		t.Error("a good certificate was renewed", err)
	}
	if _, err := issueLocked(dir, "a", Renewal/2); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(dir, "a", true); err != nil {
		t.Fatal(err)
	}
	if until := loaded(t, dir, "a").Until(); time.Until(until) < Renewal {
		t.Errorf("it was not renewed: %v", until)
	}
}

// copied puts a file in the place of another one.
func copied(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err == nil {
		err = os.Chtimes(to, time.Now(), time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Wherever a process ends that makes certificates, the next one goes on: nothing stays half.
func TestHalf(t *testing.T) {
	dir, cluster := made(t, "a")
	remove := func(names ...string) {
		t.Helper()
		for _, n := range names {
			if err := os.Remove(filepath.Join(dir, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The authority's key alone.
	remove("ca.crt", "a.crt", "a.key")
	if err := Ensure(dir, "a", true); err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, dir, "a").Cluster; got != cluster {
		t.Errorf("another authority was made: %s, not %s", got, cluster)
	}
	remove("ca.crt")
	if got, err := Make(dir); err != nil || got != cluster {
		t.Errorf("%s, not %s: %v", got, cluster, err)
	}
	remove("ca.crt")
	if err := Ensure(dir, "b", false); err != nil {
		t.Fatal(err)
	}
	loaded(t, dir, "b")
	// A node's key without its certificate, with an older certificate, and with nothing.
	remove("b.crt")
	if err := Ensure(dir, "b", false); err != nil {
		t.Fatal(err)
	}
	loaded(t, dir, "b")
	copied(t, keyOf(dir, "a"), keyOf(dir, "b"))
	if err := Ensure(dir, "b", false); err != nil {
		t.Fatal(err)
	}
	loaded(t, dir, "b")
	remove("b.key")
	if err := Ensure(dir, "b", false); err != nil {
		t.Fatal(err)
	}
	loaded(t, dir, "b")
	// Half of a change of the authority: the key is another's already.
	old := filepath.Join(t.TempDir(), "old.crt")
	copied(t, crtOf(dir, authority), old)
	if err := Rotate(dir); err != nil {
		t.Fatal(err)
	}
	copied(t, old, crtOf(dir, authority))
	if _, err := Issue(dir, "b"); err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, dir, "b").Cluster; got != cluster {
		t.Error(got)
	}
	loaded(t, dir, "a")
	// What is no half of anything stays as it is.
	copied(t, crtOf(dir, "a"), crtOf(dir, "c"))
	copied(t, keyOf(dir, "a"), keyOf(dir, "c"))
	if err := Ensure(dir, "c", false); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "c"); err == nil {
		t.Error("another node's certificate was replaced")
	}
}

// Nodes that start together make one authority, and one certificate each.
func TestTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	var all sync.WaitGroup
	for range 8 {
		for _, name := range []string{"a", "b", "admin"} {
			all.Go(func() {
				if err := Ensure(dir, name, true); err != nil {
					t.Error(err)
					return
				}
				if _, err := Load(dir, name); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if a, b := loaded(t, dir, "a"), loaded(t, dir, "b"); a.Cluster != b.Cluster {
		t.Error(a.Node, b.Node)
	}
}

// An authority takes the place of another one while nodes go on: they know each other at each step, and the old one's certificates
// are refused at the end.
func TestRotate(t *testing.T) {
	dir, cluster := made(t, "a", "b")
	away := filepath.Join(t.TempDir(), "certs") // the machine of b
	if err := os.Mkdir(away, 0o700); err != nil {
		t.Fatal(err)
	}
	files := func(names ...string) {
		t.Helper()
		for _, n := range names {
			copied(t, filepath.Join(dir, n), filepath.Join(away, n))
		}
	}
	files("ca.crt", "b.crt", "b.key")
	a, b := loaded(t, dir, "a"), loaded(t, away, "b")
	old := b.Config("x/1")
	was, err := readPair(away, "b")
	if err != nil {
		t.Fatal(err)
	}
	old.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &was, nil }
	speak := func(step string) {
		t.Helper()
		if c, s := shake(t, a.Config("x/1"), b.Config("x/1")); c != nil || s != nil {
			t.Errorf("%s: %v, %v", step, c, s)
		}
		if c, s := shake(t, b.Config("x/1"), a.Config("x/1")); c != nil || s != nil {
			t.Errorf("%s: %v, %v", step, c, s)
		}
	}
	if err := Rotate(dir); err != nil {
		t.Fatal(err)
	}
	speak("another authority is there")
	if err := Retire(dir); !errors.Is(err, ErrRetire) {
		t.Errorf("an authority went whose certificates are in use: %v", err)
	}
	files("ca.crt")
	speak("all know it")
	for _, n := range []string{"a", "b"} {
		if _, err := Issue(dir, n); err != nil {
			t.Fatal(err)
		}
	}
	speak("one has its certificate of it")
	files("b.crt", "b.key")
	speak("both have")
	if _, s := shake(t, old, a.Config("x/1")); s != nil {
		t.Error("the old certificate is refused too early", s)
	}
	if err := Retire(dir); err != nil {
		t.Fatal(err)
	}
	speak("one has forgotten the old one")
	files("ca.crt")
	speak("both have")
	if _, s := shake(t, old, a.Config("x/1")); !errors.Is(s, ErrStranger) {
		t.Errorf("the old authority's certificate: %v", s)
	}
	if now := loaded(t, dir, "a"); now.Cluster != cluster {
		t.Error(now.Node)
	}
	// Two clusters' authorities in one file are none.
	other, _ := made(t, "a")
	text, err := os.ReadFile(crtOf(dir, authority))
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(crtOf(other, authority))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(crtOf(dir, authority), append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "a"); !errors.Is(err, ErrCluster) {
		t.Error(err)
	}
}
