package pandocluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/pando-index/pando/pandocluster/internal/ca"
	"github.com/pando-index/pando/pandocluster/internal/link"
)

// MakeAuthority makes the authority of a new cluster in a folder, by which its nodes know each other, and
// returns the cluster's id. What is there already stays as it is: then the error is fs.ErrExist.
func MakeAuthority(dir string) (cluster string, err error) { return ca.Make(dir) }

// IssueCertificate makes a certificate for a node by the authority in a folder, or a new one in the place of what is there. The node needs
// ca.crt, and the two files that are called as it.
func IssueCertificate(dir, node string) error {
	_, err := ca.Issue(dir, node)
	return err
}

// EnsureCertificate makes what a node lacks where the key of the authority is at hand: its certificate, or a new one when the
// end of that is near; and the authority itself if first is set. Elsewhere it does nothing.
func EnsureCertificate(dir, node string, first bool) error { return ca.Ensure(dir, node, first) }

// RotateAuthority makes another authority of the same cluster in a folder, which signs from then on. ca.crt has both, so
// that nodes know each other by certificates of either.
func RotateAuthority(dir string) error { return ca.Rotate(dir) }

// RetireAuthority takes authorities out of ca.crt that do not sign any more, unless a certificate in the folder is of one.
func RetireAuthority(dir string) error { return ca.Retire(dir) }

// TLS is a Transport over TLS 1.3. Nodes know each other by certificates of a cluster's authority, and nobody else
// gets further than the handshake.
type TLS struct {
	id *ca.Identity
	l  *link.Link
}

// OpenTLS opens a transport of a node with its certificate in a folder.
func OpenTLS(dir, node string, log *slog.Logger) (*TLS, error) {
	id, err := ca.Load(dir, node)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	id.Tell(func(err error) {
		if err != nil {
			log.Error("certificates cannot be read again: those before stay in use", "error", err)
		}
	})
	if left := time.Until(id.Until()); left < ca.Renewal/2 {
		log.Warn("the certificate of this node ends soon: pando cluster add makes a new one", "days", int(left.Hours()/24))
	}
	return &TLS{id, link.New(id, link.Options{Log: log})}, nil
}

// Cluster returns the id of the cluster that the certificate is of.
func (t *TLS) Cluster() string { return t.id.Cluster }

// Call implements Transport.
func (t *TLS) Call(ctx context.Context, to Peer, request []byte, body io.Reader) (answer []byte, err error) {
	return t.l.Call(ctx, to.ID, to.Addr, request, body)
}

// Serve answers what other nodes ask a node, and those who steer the cluster, until the transport is closed. Nodes that were removed
// are refused.
func (t *TLS) Serve(l net.Listener, n *Node) error {
	t.l.Admit(n.admits)
	return t.l.Serve(l, func(ctx context.Context, from string, request []byte, body io.Reader) ([]byte, error) {
		if order, ok := bytes.CutPrefix(request, []byte{steering}); ok {
			return n.steered(ctx, order)
		}
		return n.Serve(ctx, from, request, body)
	})
}

// Close ends all connections.
func (t *TLS) Close() error { return t.l.Close() }

// steering is what a request begins with that comes from somebody who steers, and not from a node.
const steering = 0xff

// Steering is a cluster as whoever steers it sees it, by any of its nodes.
type Steering struct {
	t    *TLS
	addr string
}

// Steer returns the cluster that the node at an address belongs to.
func (t *TLS) Steer(addr string) *Steering { return &Steering{t, addr} }

// order sends an order to the node.
func (s *Steering) order(ctx context.Context, order []byte) ([]byte, error) {
	return s.t.l.Call(ctx, "", s.addr, append([]byte{steering}, order...), nil)
}

func (s *Steering) call(ctx context.Context, step Step) ([]byte, error) {
	order, err := json.Marshal(step)
	if err != nil {
		return nil, err
	}
	return s.order(ctx, order)
}

// Backup copies the cluster, as Node.Backup does.
func (s *Steering) Backup(ctx context.Context, to Files) (Backup, error) {
	return backup(ctx, s.order, to)
}

// Restore gives a cluster without keys those of a backup, as Node.Restore does.
func (s *Steering) Restore(ctx context.Context, from Files) (Backup, error) {
	return restore(ctx, s.order, from)
}

// Picture returns what the leader of the map knows of the cluster.
func (s *Steering) Picture(ctx context.Context) (p Picture, err error) {
	b, err := s.call(ctx, Step{})
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	return p, err
}

// Do does a step, and returns when it is done, or why it is not.
func (s *Steering) Do(ctx context.Context, step Step) error {
	if step.Kind == 0 {
		return fmt.Errorf("pandocluster: a step without a kind")
	}
	_, err := s.call(ctx, step)
	return err
}
