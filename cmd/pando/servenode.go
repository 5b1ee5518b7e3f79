package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"

	"github.com/pando-index/pando/pandocluster"
)

// above is how far the port for other nodes is above that for clients, as redis has it, too.
const above = 10_000

// nodeFlags are the settings of a node of a cluster.
type nodeFlags struct {
	name, address, certs string
	join                 []string
}

// check returns an error if settings do not fit each other.
func (n *nodeFlags) check(args []string, memory string) error {
	switch {
	case n.name != "" && memory != "":
		return usagef("--memory is not for a node of a cluster: its replicas take what they have agreed on, and one that does not would end. Leave it out, and add nodes before memory runs short; pando cluster status shows what ranges hold")
	case n.name == "" && (n.address != "" || len(n.join) > 0):
		return usagef("--nodes and --join are for a node of a cluster: give it a name by --node")
	case n.name != "" && len(args) != 1:
		return usagef("a node of a cluster serves one folder: pando serve DIR --node %s", n.name)
	}
	return nil
}

// listen listens for other nodes.
func (n *nodeFlags) listen(clients net.Listener) (net.Listener, error) {
	if n.name == "" {
		return nil, nil
	}
	address := n.address
	if address == "" {
		if clients == nil {
			return nil, usagef("--nodes ADDRESS is needed where --listen is off: other nodes connect there")
		}
		a := clients.Addr().(*net.TCPAddr)
		if a.Port+above > 65535 {
			address = net.JoinHostPort(a.IP.String(), "0")
		} else {
			address = net.JoinHostPort(a.IP.String(), strconv.Itoa(a.Port+above))
		}
	}
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, usagef("--nodes %s: %w", address, err)
	}
	if a.IP.IsUnspecified() || a.IP == nil {
		return nil, usagef("--nodes %s: take an address by which other nodes reach this one", address)
	}
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for other nodes: %w; --nodes takes another address", err)
	}
	return l, nil
}

// openNode opens a node of a cluster, and serves other nodes until it is closed. A node that can no longer keep what it promises calls
// failed.
func (s *serving) openNode(path string, l net.Listener, log *slog.Logger, failed func(error)) error {
	f := s.flags.node
	if err := pandocluster.EnsureCertificate(f.certs, f.name, len(f.join) == 0); err != nil {
		return err
	}
	transport, err := pandocluster.OpenTLS(f.certs, f.name, log)
	if err != nil {
		return fmt.Errorf("%w; pando cluster add makes the certificate of a node: it needs ca.crt, %s.crt and %s.key in --certs %s", err, f.name, f.name, f.certs)
	}
	n, err := pandocluster.Open(path, pandocluster.Options{
		Name: f.name, Addr: l.Addr().String(), Transport: transport, Join: f.join, Plan: pandocluster.Planned(3, 0),
		Log: func(text string, err error) { log.Warn(text, "error", err) },
	})
	if err != nil {
		transport.Close()
		return err
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- transport.Serve(l, n) }()
	go func() {
		select {
		case <-n.Failed():
			failed(fmt.Errorf("the node %s has failed: %w", f.name, n.Err()))
		case err := <-ended:
			failed(err)
		case <-ctx.Done():
		}
	}()
	s.add(filepath.Base(path), n, nil, fmt.Sprintf("%s: node %s of a cluster, for other nodes at %v", path, f.name, l.Addr()), func() error {
		stop()
		transport.Close()
		return errors.Join(n.Close(), n.Err())
	})
	return nil
}
