package pandohttp

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/pando-index/pando/internal/pace"
)

// from is a connection that says where it is from, and remembers whether it was closed.
type from struct {
	net.Conn
	host   string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.host), Port: 1} }
func (f *from) Close() error         { f.closed = true; return nil }

// queue is a listener whose connections have come already.
type queue struct {
	net.Listener
	left []*from
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.left) == 0 {
		return nil, net.ErrClosed
	}
	c := q.left[0]
	q.left = q.left[1:]
	return c, nil
}

// One host cannot keep others out by its connections: it loses some, those first on which nothing is asked, until all have
// as many.
func TestConnectionsOfHosts(t *testing.T) {
	const most = 8
	q := &queue{}
	f := newFew(q, most)
	var all []*from
	come := func(hosts ...string) (in []net.Conn) {
		t.Helper()
		for _, host := range hosts {
			c := &from{host: host}
			q.left, all = append(q.left, c), append(all, c)
		}
		for {
			c, err := f.Accept()
			if err != nil {
				return in
			}
			in = append(in, c)
		}
	}
	open := func() map[string]int {
		n := map[string]int{}
		for _, c := range all {
			if !c.closed {
				n[pace.OriginOf(c.RemoteAddr().String()).Host]++
			}
		}
		return n
	}
	want := func(hosts map[string]int) {
		t.Helper()
		if got := open(); fmt.Sprint(got) != fmt.Sprint(hosts) || len(f.hosts) != len(hosts) {
			t.Errorf("%v, want %v", got, hosts)
		}
	}
	const stranger, a, b = "192.0.2.1", "192.0.2.2", "2001:db8::/64"
	mine := []string{}
	for range 3 * most {
		mine = append(mine, stranger)
	}
	taken := come(mine...)
	want(map[string]int{stranger: most})
	for _, c := range taken[1:] {
		f.see(c, http.StateActive)
	}
	come(a)
	want(map[string]int{stranger: most - 1, a: 1})
	if !taken[0].(*fewer).Conn.(*from).closed {
		t.Error("one with a request had to go")
	}
	come(a, a, a, a, a, "2001:db8::2", "2001:db8::1")
	want(map[string]int{stranger: 3, a: 3, b: 2})
	come(stranger, a)
	want(map[string]int{stranger: 3, a: 3, b: 2})
	for h := range f.hosts {
		for c := range f.hosts[h] {
			_ = c.Close()
			_ = c.Close()
		}
	}
	want(map[string]int{})
	if f.all != 0 {
		t.Errorf("%d are left", f.all)
	}
	if in := come(mine...); len(in) != most {
		t.Errorf("%d come in", len(in))
	}
}
