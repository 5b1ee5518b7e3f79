// Package authority makes certificates for tests of servers that speak TLS.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority makes certificates for a test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

// New returns an authority whose files are in a folder of the test.
func New(t testing.TB) *Authority {
	a := &Authority{t: t, dir: t.TempDir()}
	a.cert, a.key, _ = a.make("authority", nil)
	return a
}

// make makes a certificate, and returns it in PEM, too.
func (a *Authority) make(name string, by *Authority) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	plan := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true}
	parent, signer := plan, key
	if by != nil {
		parent, signer = by.cert, by.key
	} else {
		plan.IsCA, plan.KeyUsage = true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Write writes a certificate of a name and its key into files.
func (a *Authority) Write(name string) (cert, key string) {
	a.t.Helper()
	_, private, text := a.make(name, a)
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, "cert.pem"), filepath.Join(a.dir, "key.pem")
	a.Put(cert, text)
	a.Put(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	return cert, key
}

// Put writes a file, with another time than it had.
func (a *Authority) Put(path string, text []byte) {
	a.t.Helper()
	when := time.Now()
	if fi, err := os.Stat(path); err == nil {
		when = fi.ModTime().Add(time.Second)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Chtimes(path, when, when); err != nil {
		a.t.Fatal(err)
	}
}

// File writes the authority's own certificate into a file.
func (a *Authority) File() string {
	path := filepath.Join(a.dir, "authority.pem")
	a.Put(path, a.PEM())
	return path
}

// Trusting returns the configuration of a client that trusts the authority, with a certificate of its own if name is not empty.
func (a *Authority) Trusting(name string) *tls.Config {
	cfg := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	cfg.RootCAs.AddCert(a.cert)
	if name != "" {
		cert, key, _ := a.make(name, a)
		cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
	}
	return cfg
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}
