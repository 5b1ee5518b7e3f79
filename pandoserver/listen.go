package pandoserver

import (
	"fmt"
	"net"

	"github.com/pando-index/pando/internal/mutant"
)

// Listen listens on a TCP address, with port 0 on any port that is free. Without TLS and users
// (Secure, Restrict) it has to be one that this machine alone can reach, such as 127.0.0.1:6379: else Listen returns
// ErrExposed, before anybody can connect. Options are those that New gets.
func Listen(address string, opts ...Option) (net.Listener, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("pandoserver: %w", err)
	}
	if err := cfg.admits(a); err != nil {
		return nil, err
	}
	return net.ListenTCP("tcp", a)
}

// Admits returns nil if the server may listen on an address, and ErrExposed otherwise. Once it has returned
// nil for one that other machines can reach, no user can be let in without a password any more.
func (s *Server) Admits(a net.Addr) error { return s.cfg.admits(a) }

// admits returns ErrExposed for an address that other machines can reach, unless there are TLS and users.
func (c *config) admits(a net.Addr) error {
	if local(a) || mutant.On && mutant.Is("server: loopback") {
		return nil
	}
	what := ""
	switch err := c.users.close(); {
	case c.certs == nil && err != nil:
		what = "that needs TLS and a user with a password, and there is neither"
	case c.certs == nil:
		what = "that needs TLS"
	case err != nil:
		what = "that needs users with passwords, and " + err.Error()
	default:
		return nil
	}
	return fmt.Errorf("%w: %v; %s: give pando serve --tls-cert, --tls-key and --users (a program: Secure and Restrict), or take an address of this machine alone, such as 127.0.0.1:6379", ErrExposed, a, what)
}

// local reports whether only this machine can reach an address.
func local(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
