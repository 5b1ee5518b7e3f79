package pandoserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/reread"
)

// Certificates are the files by which a server proves who it is, and by which it may know its clients. They are
// read again when they change; if they cannot be read then, or do not fit each other, those that were read last stay in use.
type Certificates struct {
	cert, key, clients string
	files              *reread.Files[*tls.Config]
}

// OpenCertificates reads a certificate with those that vouch for it, its key, and, if clients is not empty, the
// certificates of those who vouch for clients: then a client needs a certificate, too. All are in PEM.
func OpenCertificates(cert, key, clients string) (*Certificates, error) {
	c := &Certificates{cert: cert, key: key, clients: clients}
	var err error
	if c.files, err = reread.Open(c.load, cert, key, clients); err != nil {
		return nil, fmt.Errorf("pandoserver: TLS: %w", err)
	}
	return c, nil
}

// logTo sets where it is written that files were read again.
func (c *Certificates) logTo(log *slog.Logger) {
	c.files.Tell(func(err error) {
		if err != nil {
			log.Error("certificates cannot be read again: those before stay in use", "error", err)
		} else {
			log.Info("certificates were read again", "file", c.cert)
		}
	})
}

// Config returns a configuration that has the files as they are when a connection begins. Protocols are
// those that the server offers: none but for HTTP.
func (c *Certificates) Config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now, err := c.files.Now()
			if err != nil || len(protocols) == 0 {
				return now, err
			}
			now = now.Clone()
			now.NextProtos = protocols
			return now, nil
		},
	}
}

func (c *Certificates) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s: %w", c.cert, c.key, err)
	}
	next := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.clients == "" {
		return next, nil
	}
	pem, err := os.ReadFile(c.clients)
	if err != nil {
		return nil, err
	}
	next.ClientCAs = x509.NewCertPool()
	if !next.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate of those who vouch for clients", c.clients)
	}
	next.ClientAuth = tls.RequireAndVerifyClientCert
	next.SessionTicketsDisabled = true // a ticket would outlive a change of the file
	return next, nil
}

// beneath is what TLS writes to: an outbox in the place of the connection, since a write of TLS's own that was stopped by
// a deadline could not go on.
//
// While its client is unknown it returns one record of TLS at a time: what is read beyond a record makes TLS keep twice as
// much. And a handshake may have only so many bytes, since TLS keeps messages of up to 256 KiB, behind the handshake, too:
// there a read that has got little may go on with one record more.
type beneath struct {
	net.Conn
	out    *outbox
	narrow bool
	shakes bool
	left   int64   // bytes that may come, or may before the last record of a read
	header [5]byte // of a record, as far as it has come
	had    int     // bytes of it
	body   int     // bytes of the record that are still to come
}

// mostHandshake is how many bytes a client may send before the handshake is done: one without certificates takes some two
// KiB, and each certificate about one.
const mostHandshake = 16 << 10

// mostBetween is how many bytes may come between what a client says in two records: to change keys takes some thirty.
const mostBetween = 1 << 10

var errHandshake = errors.New("messages of TLS itself are too long")

func (b *beneath) Read(p []byte) (n int, err error) {
	if !b.narrow || mutant.On && mutant.Is("server: a record at a time") {
		return b.Conn.Read(p)
	}
	switch begins := b.had == 0 && b.body == 0; {
	case b.left > 0:
	case b.shakes && !(mutant.On && mutant.Is("server: long handshakes")),
		begins && !b.shakes && !(mutant.On && mutant.Is("server: long messages of TLS")):
		return 0, errHandshake
	}
	if b.body > 0 {
		n, err = b.Conn.Read(p[:min(len(p), b.body)])
		b.body -= n
	} else {
		n, err = b.Conn.Read(p[:min(len(p), len(b.header)-b.had)])
		copy(b.header[b.had:], p[:n])
		if b.had += n; b.had == len(b.header) {
			b.had, b.body = 0, int(b.header[3])<<8|int(b.header[4])
		}
	}
	b.left -= int64(n)
	return n, err
}

func (b *beneath) Write(p []byte) (int, error)       { return b.out.Write(p) }
func (*beneath) SetWriteDeadline(time.Time) error    { return nil }
func (b *beneath) SetDeadline(until time.Time) error { return b.SetReadDeadline(until) }
