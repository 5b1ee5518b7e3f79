package pandoserver

import (
	"fmt"
	"net"
)

// Listen listens on a TCP address that this machine alone can reach, such as
// 127.0.0.1:6379, with port 0 on any port that is free. It returns ErrExposed for another
// address, before anybody can connect.
func Listen(address string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("pandoserver: %w", err)
	}
	if !local(a) {
		return nil, exposed(a)
	}
	return net.ListenTCP("tcp", a)
}

// exposed returns the error for an address that other machines can reach.
func exposed(a net.Addr) error {
	return fmt.Errorf("%w: %v; that needs TLS and a user, which this server does not have yet: take an address of this machine alone, such as 127.0.0.1:6379", ErrExposed, a)
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
