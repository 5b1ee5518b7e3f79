// Package ca makes the certificates by which nodes of a cluster know each other, and reads them.
//
// A cluster has an authority of its own, and an id. Its certificate, and those that it signs, name the cluster; a node's names
// the node, too, in an address such as pando://0123456789abcdef/node/a. A node may call and be called: there is one kind.
//
// They are files of a folder: ca.crt and ca.key, and for a node its name with the same endings. Only a machine that
// issues certificates needs ca.key; a node needs ca.crt and its own two. Keys are their owner's alone. While another authority
// takes the place of one, ca.crt has both.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/reread"
)

const (
	forAuthority = 20 * 365 * 24 * time.Hour
	forNode      = 365 * 24 * time.Hour

	// Renewal is how long before its end a certificate is to be renewed.
	Renewal = 60 * 24 * time.Hour

	before = 24 * time.Hour // certificates are good from then on, since clocks differ

	authority = "ca"
	mostName  = 64
	patience  = 10 * time.Second // with another process that makes something in the folder
)

var (
	// ErrName is returned for names that a node cannot have.
	ErrName = errors.New("a node's name has 1 to 64 letters, digits, - and _, and is not ca")

	// ErrCluster is returned for a certificate of another cluster.
	ErrCluster = errors.New("the node is of another cluster")

	// ErrStranger is returned for a certificate that no node of the cluster can have.
	ErrStranger = errors.New("this is no certificate of the cluster")

	// ErrRetire is returned where an authority is yet needed.
	ErrRetire = errors.New("it is of the authority that is to go: make another one first")

	errName = errors.New("it is of another node")

	// ErrOpen is returned for a key that others than its owner can read.
	ErrOpen = errors.New("others can read this key: chmod 600")
)

// Node is whom a certificate is of.
type Node struct{ Cluster, Name string }

// CheckName returns ErrName for a name that a node cannot have.
func CheckName(name string) error {
	for _, c := range []byte(name) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("%w: %q", ErrName, name)
		}
	}
	if name == "" || len(name) > mostName || strings.EqualFold(name, authority) {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	return nil
}

// Make makes an authority for a new cluster in a folder, which is made, too, and returns the cluster's id. An authority that is
// there is left as it is: then the error is fs.ErrExist. One that was made half is made whole.
func Make(dir string) (cluster string, err error) {
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	return makeLocked(dir)
}

func makeLocked(dir string) (cluster string, err error) {
	if _, err := os.Lstat(crtOf(dir, authority)); err == nil {
		return "", fmt.Errorf("%s: %w", crtOf(dir, authority), fs.ErrExist)
	}
	if _, err := os.Lstat(keyOf(dir, authority)); err == nil {
		by, err := signerOf(dir)
		if err != nil {
			return "", err
		}
		n, err := nodeOf(by.crt)
		return n.Cluster, err
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return "", err
	}
	cluster = hex.EncodeToString(id)
	return cluster, found(dir, cluster)
}

// found makes the key of an authority, which the certificate is in, too: so the two are there together or not at all. Others
// know it by ca.crt, which signerOf writes.
func found(dir, cluster string) error {
	template, key, err := draw(forAuthority)
	if err != nil {
		return err
	}
	template.Subject = pkix.Name{CommonName: "Pando cluster " + cluster}
	template.URIs = []*url.URL{{Scheme: "pando", Host: cluster}}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	private, crt, err := sign(template, template, key, key)
	if err != nil {
		return err
	}
	if err := put(keyOf(dir, authority), 0o600, private, crt); err != nil {
		return err
	}
	_, err = signerOf(dir)
	return err
}

// signer is what certificates are signed by.
type signer struct {
	crt *x509.Certificate
	key any
}

// signerOf reads the authority's key, and writes its certificate to those of authorities that nodes trust if it is not there yet.
func signerOf(dir string) (by signer, err error) {
	name := keyOf(dir, authority)
	text, err := readKey(name)
	if err != nil {
		return by, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case privateKey:
			by.key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case certificate:
			by.crt, err = x509.ParseCertificate(block.Bytes)
		}
		if err != nil {
			return by, fmt.Errorf("%s: %w", name, err)
		}
	}
	if by.key == nil || by.crt == nil {
		return by, fmt.Errorf("%s has to have a key and its certificate", name)
	}
	all, err := readCertificates(crtOf(dir, authority))
	if errors.Is(err, fs.ErrNotExist) {
		all, err = nil, nil
	}
	if err == nil && !slices.ContainsFunc(all, by.crt.Equal) {
		err = trust(dir, append([]*x509.Certificate{by.crt}, all...))
	}
	return by, err
}

// trust writes by which authorities nodes know each other.
func trust(dir string, all []*x509.Certificate) error {
	blocks := make([]*pem.Block, len(all))
	for i, c := range all {
		blocks[i] = &pem.Block{Type: certificate, Bytes: c.Raw}
	}
	return put(crtOf(dir, authority), 0o644, blocks...)
}

// Rotate makes another authority of the same cluster, which signs from then on. ca.crt has both, so that nodes know certificates of
// either, until Retire.
func Rotate(dir string) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	by, err := signerOf(dir)
	if err != nil {
		return err
	}
	n, err := nodeOf(by.crt)
	if err != nil {
		return err
	}
	return found(dir, n.Cluster)
}

// Retire takes authorities out of ca.crt that do not sign any more. It does not while a node's certificate in the folder is of one.
func Retire(dir string) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	by, err := signerOf(dir)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(crtOf(dir, "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == crtOf(dir, authority) {
			continue
		}
		all, err := readCertificates(name)
		if err != nil {
			return err
		}
		if err := all[0].CheckSignatureFrom(by.crt); err != nil && !(mutant.On && mutant.Is("ca: retired in use")) {
			return fmt.Errorf("%s: %w", name, ErrRetire)
		}
	}
	return trust(dir, []*x509.Certificate{by.crt})
}

// Issue makes a certificate for a node by the authority in a folder, or a new one in the place of what is there.
func Issue(dir, name string) (Node, error) {
	if err := CheckName(name); err != nil {
		return Node{}, err
	}
	if _, err := os.Stat(keyOf(dir, authority)); err != nil {
		return Node{}, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return Node{}, err
	}
	defer unlock()
	return issueLocked(dir, name, forNode)
}

func issueLocked(dir, name string, lasts time.Duration) (Node, error) {
	by, err := signerOf(dir)
	if err != nil {
		return Node{}, err
	}
	n, err := nodeOf(by.crt)
	if err != nil {
		return Node{}, err
	}
	template, key, err := draw(lasts)
	if err != nil {
		return Node{}, err
	}
	if template.NotAfter.After(by.crt.NotAfter) {
		template.NotAfter = by.crt.NotAfter
	}
	n.Name = name
	template.Subject = pkix.Name{CommonName: name}
	template.URIs = []*url.URL{{Scheme: "pando", Host: n.Cluster, Path: "/node/" + name}}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	private, crt, err := sign(template, by.crt, key, by.key)
	if err == nil {
		err = put(keyOf(dir, name), 0o600, private)
	}
	if err == nil { // last: where a certificate is, a key is, too
		err = put(crtOf(dir, name), 0o644, crt)
	}
	return n, err
}

// lock keeps other processes from making anything in a folder, which is made, too.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	folder, err := disk.Dir(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		l, err := folder.Lock()
		if err != nil && mutant.On && mutant.Is("ca: one at a time") {
			return func() {}, nil
		}
		if err == nil {
			return func() { l.Close() }, nil
		}
		if other := (*disk.Locked)(nil); !errors.As(err, &other) || time.Now().After(end) {
			return nil, err
		}
	}
}

// draw draws a key and a serial number.
func draw(lasts time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-before), NotAfter: now.Add(lasts)}, key, err
}

// What a file has.
const (
	privateKey  = "PRIVATE KEY"
	certificate = "CERTIFICATE"
)

// sign returns a key and its certificate as files have them.
func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, by any) (private, crt *pem.Block, err error) {
	c, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	return &pem.Block{Type: privateKey, Bytes: k}, &pem.Block{Type: certificate, Bytes: c}, err
}

// put writes a file in the place of what is there.
func put(name string, mode fs.FileMode, blocks ...*pem.Block) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	for _, b := range blocks {
		err = errors.Join(err, pem.Encode(f, b))
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func crtOf(dir, name string) string { return filepath.Join(dir, name+".crt") }
func keyOf(dir, name string) string { return filepath.Join(dir, name+".key") }

// readCertificates reads the certificates of a file, one at least.
func readCertificates(file string) (all []*x509.Certificate, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no certificate in it", file)
	}
	return all, nil
}

// readKey reads a file that is its owner's alone.
func readKey(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if fi.Mode().Perm()&0o077 != 0 && !(mutant.On && mutant.Is("ca: open key")) {
		return nil, fmt.Errorf("%s: %w", name, ErrOpen)
	}
	return os.ReadFile(name)
}

// readPair reads the certificate of a node, and its key.
func readPair(dir, name string) (pair tls.Certificate, err error) {
	key, err := readKey(keyOf(dir, name))
	if err != nil {
		return pair, err
	}
	crt, err := os.ReadFile(crtOf(dir, name))
	if err != nil {
		return pair, err
	}
	if pair, err = tls.X509KeyPair(crt, key); err != nil {
		return pair, fmt.Errorf("%s and %s: %w", crtOf(dir, name), keyOf(dir, name), err)
	}
	return pair, nil
}

// nodeOf returns whom a certificate is of by what it says; of an authority the name is empty.
func nodeOf(c *x509.Certificate) (n Node, err error) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != "pando" || len(c.URIs[0].Host) != 16 {
		return n, fmt.Errorf("%w: it names no node", ErrStranger)
	}
	n.Cluster = c.URIs[0].Host
	name, of := strings.CutPrefix(c.URIs[0].Path, "/node/")
	switch {
	case c.IsCA && c.URIs[0].Path == "":
		return n, nil
	case c.IsCA || !of || CheckName(name) != nil:
		return n, fmt.Errorf("%w: it names no node", ErrStranger)
	}
	n.Name = name
	return n, nil
}

// Identity is what a node shows to others, and by what it knows them. Files that change are read again.
type Identity struct {
	Node
	files *reread.Files[*read]
}

// read is what files say.
type read struct {
	Node
	pair  tls.Certificate
	roots *x509.CertPool
	until time.Time
}

// Load reads the certificate of a node, with its key, and that of the authority.
func Load(dir, name string) (*Identity, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	load := func() (*read, error) { return load(dir, name) }
	files, err := reread.Open(load, crtOf(dir, authority), crtOf(dir, name), keyOf(dir, name))
	if err != nil {
		return nil, err
	}
	now, err := files.Now()
	return &Identity{Node: now.Node, files: files}, err
}

func load(dir, name string) (*read, error) {
	roots, err := readCertificates(crtOf(dir, authority))
	if err != nil {
		return nil, err
	}
	pair, err := readPair(dir, name)
	if err != nil {
		return nil, err
	}
	r := &read{pair: pair, roots: x509.NewCertPool()}
	for i, c := range roots { // two, while one takes the other's place
		n, err := nodeOf(c)
		if err == nil && i > 0 && n != r.Node {
			err = ErrCluster
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crtOf(dir, authority), err)
		}
		r.Node = n
		r.roots.AddCert(c)
	}
	r.pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	r.until = r.pair.Leaf.NotAfter
	n, err := r.check([]*x509.Certificate{r.pair.Leaf}, x509.ExtKeyUsageServerAuth)
	if err == nil && n.Name != name {
		err = fmt.Errorf("%w: %s", errName, n.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crtOf(dir, name), err)
	}
	r.Node = n
	return r, nil
}

// Tell has f called when files were read again; with an error if they could not be, and those before stay in use.
func (id *Identity) Tell(f func(error)) { id.files.Tell(f) }

// Until returns when the certificate ends.
func (id *Identity) Until() time.Time {
	now, err := id.files.Now()
	if err != nil {
		return time.Time{}
	}
	return now.until
}

// check returns whom a certificate is of, and an error if it is no node of this cluster.
func (r *read) check(chain []*x509.Certificate, use x509.ExtKeyUsage) (Node, error) {
	if len(chain) == 0 {
		return Node{}, fmt.Errorf("%w: there is none", ErrStranger)
	}
	n, err := nodeOf(chain[0])
	switch {
	case err != nil:
		return n, err
	case n.Cluster != r.Cluster && !(mutant.On && mutant.Is("ca: cluster")):
		return n, fmt.Errorf("%w: its cluster is %s, this one %s", ErrCluster, n.Cluster, r.Cluster)
	case n.Name == "":
		return n, fmt.Errorf("%w: it is the authority's", ErrStranger)
	}
	opts := x509.VerifyOptions{Roots: r.roots, KeyUsages: []x509.ExtKeyUsage{use}}
	if _, err := chain[0].Verify(opts); err != nil && !(mutant.On && mutant.Is("ca: authority")) {
		return n, fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return n, nil
}

// Check returns which node is at the other end of a connection, and an error if it is none of this cluster. A caller is one
// that has begun the connection.
func (id *Identity) Check(s tls.ConnectionState, caller bool) (Node, error) {
	now, err := id.files.Now()
	if err != nil {
		return Node{}, err
	}
	use := x509.ExtKeyUsageServerAuth
	if caller {
		use = x509.ExtKeyUsageClientAuth
	}
	return now.check(s.PeerCertificates, use)
}

// Config returns a configuration of TLS 1.3 for either end, which checks the other one. Protocols are what is spoken.
func (id *Identity) Config(protocol string) *tls.Config {
	pair := func() (*tls.Certificate, error) {
		now, err := id.files.Now()
		if err != nil {
			return nil, err
		}
		return &now.pair, nil
	}
	server := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true, // a ticket would outlive a change of the files
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() },
		ClientAuth:             tls.RequireAnyClientCert, // VerifyConnection looks at it
		InsecureSkipVerify:     true,                     // nodes are known by their names, not by those of machines: VerifyConnection
	}
	server.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != protocol {
			return fmt.Errorf("%w: it does not speak %s", ErrStranger, protocol)
		}
		_, err := id.Check(s, false) // certificates of nodes are for both uses
		return err
	}
	return server
}

// Ensure makes what a node lacks where the authority's key is at hand: its certificate, or a new one when the end of that
// is near; and the authority itself if first is set. Elsewhere it changes nothing.
func Ensure(dir, name string, first bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if whole(dir, name) {
		return nil
	}
	if _, err := os.Stat(keyOf(dir, authority)); err != nil && !first {
		return nil // certificates come from elsewhere
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if first {
		if _, err := makeLocked(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if _, err := os.Stat(keyOf(dir, authority)); err != nil || whole(dir, name) {
		return nil
	}
	_, err = issueLocked(dir, name, forNode)
	return err
}

// whole reports whether a node has what it needs, and for long enough; or what somebody has to look at, since it is not what an
// end at the wrong moment leaves behind.
func whole(dir, name string) bool {
	r, err := load(dir, name)
	if errors.Is(err, ErrOpen) || errors.Is(err, ErrCluster) || errors.Is(err, errName) {
		return true
	}
	return err == nil && time.Until(r.until) > Renewal
}

// Issued returns when a certificate was made: that is not when it begins to be good.
func Issued(c *x509.Certificate) time.Time { return c.NotBefore.Add(before) }
