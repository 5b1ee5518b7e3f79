package pandoserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
)

// client is a connection of a test.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// dial connects to a server.
func dial(t testing.TB, network, address string) *client {
	t.Helper()
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return &client{t, conn, bufio.NewReader(conn)}
}

// encode returns a command as clients send it.
func encode(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// reply returns the bytes of one reply.
func (c *client) reply() string {
	c.t.Helper()
	text, err := readReply(c.r)
	if err != nil {
		c.t.Fatalf("after %q: %v", text, err)
	}
	return text
}

// do sends a command, and returns the bytes of its reply.
func (c *client) do(args ...string) string {
	c.t.Helper()
	c.send(encode(args...))
	return c.reply()
}

// want sends a command of words, and fails if the reply is another.
func (c *client) want(command, want string) {
	c.t.Helper()
	if got := c.do(strings.Fields(command)...); got != want {
		c.t.Errorf("%s: %q, want %q", command, got, want)
	}
}

// readReply reads one reply of either version of the protocol.
func readReply(r *bufio.Reader) (text string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	n := 0
	if strings.ContainsRune("$*%~=>", rune(line[0])) {
		if n, err = strconv.Atoi(strings.TrimSpace(line[1:])); err != nil {
			return line, err
		}
	}
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(r, body)
		return line + string(body), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		all := line
		for range n {
			part, err := readReply(r)
			all += part
			if err != nil {
				return all, err
			}
		}
		return all, nil
	case '+', '-', ':', '_', ',', '#', '(':
		return line, nil
	}
	return line, fmt.Errorf("no reply begins with %q", line[0])
}

// lines is where a server writes what happens.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start serves a source on a port of its own until the test ends, and returns the address.
func start(t testing.TB, src Source, opts ...Option) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, l, src, opts...), l.Addr().String()
}

// startOn serves a source on a listener until the test ends.
func startOn(t testing.TB, l net.Listener, src Source, opts ...Option) *Server {
	t.Helper()
	srv, err := New(src, opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the server does not end")
		}
	})
	return srv
}

// memory returns an empty tree as a source.
func memory(t testing.TB) Changer {
	t.Helper()
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return Tree(tree)
}
