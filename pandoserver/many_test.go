package pandoserver

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// Thousands of connections are served beside each other, and hold little while they rest.
func TestManyConnections(t *testing.T) {
	srv, address := start(t, memory(t))
	const lanes = 20
	n := min(seed.Size(200, 10_000), (mostFiles(t)-500)/2)
	all := make([]net.Conn, n)
	defer func() {
		for _, c := range all {
			if c != nil {
				c.Close()
			}
		}
	}()
	each := func(f func(i int) error) {
		var wg sync.WaitGroup
		for lane := range lanes {
			wg.Go(func() {
				for i := lane; i < n; i += lanes {
					if err := f(i); err != nil {
						t.Errorf("connection %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	ask := func(i int, command, want string) error {
		_ = all[i].SetDeadline(time.Now().Add(2 * time.Minute))
		if _, err := all[i].Write([]byte(command)); err != nil {
			return err
		}
		got := make([]byte, len(want))
		for at := 0; at < len(got); {
			n, err := all[i].Read(got[at:])
			if err != nil {
				return err
			}
			at += n
		}
		if string(got) != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	}
	each(func(i int) (err error) {
		if all[i], err = net.DialTimeout("tcp", address, time.Minute); err != nil {
			return err
		}
		return ask(i, encode("SET", "key:"+strconv.Itoa(i), strconv.Itoa(i)), "+OK\r\n")
	})
	if t.Failed() {
		return
	}
	held := int64(0)
	for _, s := range srv.each() {
		held += s.held.Load()
	}
	if held > int64(n)*8<<10 {
		t.Errorf("%d connections hold buffers of %d bytes", n, held)
	}
	each(func(i int) error {
		text := strconv.Itoa(i)
		return ask(i, encode("GET", "key:"+text), fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
	})
}

// Connections that vanish in the middle of anything are forgotten, and nothing of what was not whole is done.
func TestConnectionsThatVanish(t *testing.T) {
	srv, address := start(t, memory(t))
	long := strings.Repeat("x", 1<<20)
	for _, text := range []string{
		"", "*", "*2\r\n$3\r\nGET", encode("MULTI") + encode("SET", "stolen", "1"), "*3\r\n$3\r\nSET\r\n$6\r\nstolen\r\n$1\r\n",
		strings.Repeat(encode("ECHO", long), 20) + "*1\r\n", "*3\r\n$3\r\nSET\r\n$6\r\nstolen\r\n$2000000\r\n" + long,
	} {
		for _, reset := range []bool{false, true} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				_, _ = conn.Write([]byte(text)) // its replies are not read
			}()
			if reset {
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
			time.Sleep(time.Millisecond)
			conn.Close()
		}
	}
	for range 6000 {
		if len(srv.each()) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := len(srv.each()); n > 0 {
		t.Errorf("%d connections are not forgotten", n)
	}
	dial(t, "tcp", address).want("EXISTS stolen", ":0\r\n")
}

// A stream of commands has the same replies wherever it is cut.
func TestEveryCutOfAConnection(t *testing.T) {
	_, address := start(t, memory(t))
	stream := encode("SET", "a", "b\r\nc") + "GET a\r\n" + encode("MULTI") + encode("INCR", "n") + "*0\r\n" + encode("EXEC") + encode("DEL", "n", "a") + encode("nosuch") + "ECHO \"x\\n\"\r\n" + encode("QUIT")
	reply := func(cut int) string {
		c := dial(t, "tcp", address)
		defer c.conn.Close()
		c.send(stream[:cut])
		if cut%3 > 0 { // else both come together, perhaps
			time.Sleep(time.Millisecond)
		}
		c.send(stream[cut:])
		var b strings.Builder
		if _, err := c.r.WriteTo(&b); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	want := reply(0)
	for cut := 1; cut < len(stream); cut++ {
		if got := reply(cut); got != want {
			t.Fatalf("cut at %d: %q, want %q", cut, got, want)
		}
	}
}
