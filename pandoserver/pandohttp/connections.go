package pandohttp

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/pace"
)

// few is a listener that has so many connections at most. Where there are as many, one that comes takes the place of one of
// the host that has most, if that is left with no fewer: nobody can keep others out by connections alone.
type few struct {
	net.Listener
	most int

	mu    sync.Mutex
	hosts map[string]map[*fewer]bool
	all   int
}

func newFew(l net.Listener, most int) *few {
	return &few{Listener: l, most: most, hosts: map[string]map[*fewer]bool{}}
}

// fewer is a connection of those.
type fewer struct {
	net.Conn
	of   *few
	host string
	busy bool // a request is under way; guarded by of.mu
}

func (f *few) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &fewer{Conn: conn, of: f, host: pace.OriginOf(conn.RemoteAddr().String()).Host}
		in, out := f.add(c)
		if out != nil {
			out.Conn.Close()
		}
		if in {
			return c, nil
		}
		conn.Close()
	}
}

// add takes a connection in, or returns false. It returns another that has to go for it.
func (f *few) add(c *fewer) (in bool, out *fewer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all >= f.most {
		if out = f.spare(len(f.hosts[c.host]) + 1); out == nil {
			return false, nil
		}
		f.remove(out)
	}
	if f.hosts[c.host] == nil {
		f.hosts[c.host] = map[*fewer]bool{}
	}
	f.hosts[c.host][c] = true
	f.all++
	return true, out
}

// spare returns a connection of the host that has most, without a request if there is one, or nil if the host would be left with
// fewer than so many.
func (f *few) spare(left int) *fewer {
	var host map[*fewer]bool
	for _, h := range f.hosts {
		if len(h) > len(host) {
			host = h
		}
	}
	if len(host)-1 < left || mutant.On && mutant.Is("http: connections of a host") {
		return nil
	}
	var out *fewer
	for c := range host {
		if out = c; !c.busy {
			break
		}
	}
	return out
}

// remove forgets a connection, if it is still there.
func (f *few) remove(c *fewer) {
	if !f.hosts[c.host][c] {
		return
	}
	f.all--
	if delete(f.hosts[c.host], c); len(f.hosts[c.host]) == 0 {
		delete(f.hosts, c.host)
	}
}

// see takes note of what becomes of a connection: it is for http.Server.
func (f *few) see(conn net.Conn, state http.ConnState) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*fewer); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.busy = state == http.StateActive
	}
}

func (c *fewer) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
