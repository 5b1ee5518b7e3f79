package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandocluster/internal/ca"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const long = 30 * time.Second

// certs makes a cluster's certificates.
func certs(t *testing.T, names ...string) func(name string) *ca.Identity {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if _, err := ca.Make(dir); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := ca.Issue(dir, n); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) *ca.Identity {
		t.Helper()
		id, err := ca.Load(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
}

// serve has a link serve, and returns its address.
func serve(t *testing.T, l *Link, h Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Serve(listener, h) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func open(t *testing.T, id *ca.Identity, o Options) *Link {
	t.Helper()
	l := New(id, o)
	t.Cleanup(func() { l.Close() })
	return l
}

// echo answers with who asks, the request, and the body.
func echo(_ context.Context, from string, request []byte, body io.Reader) ([]byte, error) {
	answer := append([]byte(from+":"), request...)
	if body == nil {
		return answer, nil
	}
	rest, err := io.ReadAll(body)
	return append(answer, rest...), err
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), long)
	t.Cleanup(stop)
	return ctx
}

// Requests of all lengths, many at once, with bodies and without, have their own answers.
func TestCalls(t *testing.T) {
	id := certs(t, "a", "b")
	rnd := seed.Rand(t)
	addr := serve(t, New(id("b"), Options{}), echo)
	a := open(t, id("a"), Options{})
	lengths := []int{0, 1, frame - 1, frame, frame + 1, 3 * frame, 1 << 20}
	var tasks sync.WaitGroup
	for i := range seed.Times(60, 600) {
		request := make([]byte, lengths[rnd.IntN(len(lengths))]+rnd.IntN(3))
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(request)
		var body []byte
		if rnd.IntN(4) == 0 {
			body = bytes.Repeat([]byte{byte(i)}, rnd.IntN(5*frame))
		}
		name := []string{"", "b", "b.0123456789abcdef"}[rnd.IntN(3)]
		tasks.Go(func() {
			var r io.Reader
			if body != nil {
				r = bytes.NewReader(body)
			}
			got, err := a.Call(within(t), name, addr, request, r)
			if want := append(append([]byte("a:"), request...), body...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("request %d: %d bytes, not %d, %v", i, len(got), len(want), err)
			}
		})
	}
	tasks.Wait()
	for _, body := range []io.Reader{nil, strings.NewReader("")} {
		if _, err := a.Call(within(t), "b", addr, make([]byte, Most+1), body); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	}
}

// What a Handler refuses arrives as such, and as much of its text as fits.
func TestRefused(t *testing.T) {
	id := certs(t, "a", "b")
	why := strings.Repeat("no ", 5000)
	addr := serve(t, New(id("b"), Options{}), func(_ context.Context, _ string, request []byte, _ io.Reader) ([]byte, error) {
		if len(request) > 0 {
			return make([]byte, Most+1), nil
		}
		return nil, errors.New(why)
	})
	a := open(t, id("a"), Options{})
	var refused *Refused
	for range 3 {
		for _, body := range []io.Reader{nil, strings.NewReader(strings.Repeat("x", 3*frame))} {
			if _, err := a.Call(within(t), "b", addr, nil, body); !errors.As(err, &refused) || refused.Text != why[:mostText] {
				t.Error(err)
			}
			if _, err := a.Call(within(t), "b", addr, []byte("x"), body); !errors.As(err, &refused) || refused.Text != ErrTooLarge.Error() {
				t.Error(err)
			}
		}
	}
}

// Another node at an address, or one of another cluster, gets no request.
func TestWrongNode(t *testing.T) {
	id, other := certs(t, "a", "b", "c"), certs(t, "a", "b")
	asked := atomic.Int32{}
	h := func(context.Context, string, []byte, io.Reader) ([]byte, error) { asked.Add(1); return nil, nil }
	addr, strange := serve(t, New(id("b"), Options{}), h), serve(t, New(other("b"), Options{}), h)
	a := open(t, id("a"), Options{})
	for _, body := range []io.Reader{nil, strings.NewReader("body")} {
		for _, name := range []string{"a", "c", "c.0123456789abcdef", "bb"} {
			if _, err := a.Call(within(t), name, addr, []byte("x"), body); !errors.Is(err, ErrWrongNode) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := a.Call(within(t), "", strange, []byte("x"), body); !errors.Is(err, ca.ErrCluster) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("another cluster: %v", err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests have arrived", n)
	}
	if _, err := a.Call(within(t), "b", addr, nil, nil); err != nil {
		t.Error(err)
	}
}

// A heartbeat does not wait until a large batch, or a snapshot, has been sent: both ends take them in turns.
func TestSmallBesideLarge(t *testing.T) {
	id := certs(t, "a", "b")
	var small atomic.Int32
	go1, done := make(chan struct{}), make(chan struct{})
	addr := serve(t, New(id("b"), Options{}), func(_ context.Context, _ string, request []byte, body io.Reader) ([]byte, error) {
		if body != nil {
			close(go1)
			<-done // the body is not read
			n, err := io.Copy(io.Discard, body)
			return fmt.Append(nil, n), err
		}
		small.Add(1)
		return request, nil
	})
	a := open(t, id("a"), Options{})
	var tasks sync.WaitGroup
	tasks.Go(func() {
		got, err := a.Call(within(t), "b", addr, nil, io.LimitReader(zeros{}, 64<<20))
		if err != nil || string(got) != fmt.Sprint(64<<20) {
			t.Errorf("%s, %v", got, err)
		}
	})
	<-go1
	for range 20 {
		if _, err := a.Call(within(t), "b", addr, []byte("beat"), nil); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	tasks.Wait()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// In the queue of a connection, what is long lets what is short go before it.
func TestTurns(t *testing.T) {
	o := newOutgoing(nil, nil, 0)
	o.send(last, 1, make([]byte, 10*frame))
	o.send(last, 2, make([]byte, 5))
	o.send(last, 3, make([]byte, 3*frame))
	o.callOff(3)
	var got []string
	for {
		k, n, data, ok := o.next()
		if !ok {
			break
		}
		got = append(got, fmt.Sprint(n, ":", k, ":", len(data)))
	}
	if want := fmt.Sprint("1:", part, ":", frame, " 2:", last, ":5 3:", cancel, ":0 1:"); !strings.HasPrefix(strings.Join(got, " "), want) || len(got) != 12 {
		t.Error(got)
	}
	if o.queued != 0 {
		t.Errorf("%d bytes are left", o.queued)
	}
}

// A caller that no longer waits has its request ended at the other end.
func TestCancel(t *testing.T) {
	id := certs(t, "a", "b")
	began, ended := make(chan struct{}, 2), make(chan error, 2)
	addr := serve(t, New(id("b"), Options{}), func(ctx context.Context, _ string, request []byte, body io.Reader) ([]byte, error) {
		if len(request) > 0 {
			return request, nil
		}
		began <- struct{}{}
		if body != nil {
			_, err := io.Copy(io.Discard, body)
			ended <- err
			return nil, err
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	a := open(t, id("a"), Options{})
	for _, body := range []io.Reader{nil, zeros{}} {
		ctx, stop := context.WithCancel(context.Background())
		go func() { <-began; stop() }()
		if _, err := a.Call(ctx, "b", addr, nil, body); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the body was taken as whole")
			}
		case <-time.After(long):
			t.Fatal("the other end goes on")
		}
		if got, err := a.Call(within(t), "b", addr, []byte("x"), nil); err != nil || string(got) != "x" {
			t.Errorf("afterwards: %s, %v", got, err)
		}
	}
}

// A body that cannot be read is not taken for one that has ended, at neither end.
func TestBrokenBody(t *testing.T) {
	id := certs(t, "a", "b")
	seen := make(chan error, 1)
	addr := serve(t, New(id("b"), Options{}), func(_ context.Context, _ string, _ []byte, body io.Reader) ([]byte, error) {
		_, err := io.Copy(io.Discard, body)
		seen <- err
		return nil, nil
	})
	a := open(t, id("a"), Options{})
	broken := errors.New("the disk is broken")
	body := io.MultiReader(io.LimitReader(zeros{}, 5*frame+7), failing{broken})
	_, err := a.Call(within(t), "b", addr, nil, body)
	if s := <-seen; !errors.Is(s, io.ErrUnexpectedEOF) {
		t.Errorf("the other end sees %v", s)
	}
	_ = err // the other end may have answered all the same; what counts is what it has seen
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// A node that was away is reached again, also at the same address, and what was under way has ended with an error.
func TestReconnect(t *testing.T) {
	id := certs(t, "a", "b")
	a := open(t, id("a"), Options{})
	hold := func(ctx context.Context, _ string, request []byte, _ io.Reader) ([]byte, error) {
		if len(request) == 0 {
			<-ctx.Done()
		}
		return request, ctx.Err()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	for round := range 3 {
		b := New(id("b"), Options{})
		done := make(chan error, 1)
		go func() { done <- b.Serve(listener, hold) }()
		for deadline := time.Now().Add(long); ; time.Sleep(10 * time.Millisecond) {
			if _, err := a.Call(within(t), "b", addr, []byte("x"), nil); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(round, err)
			}
		}
		lost := make(chan error, 1)
		go func() {
			_, err := a.Call(within(t), "b", addr, nil, nil)
			lost <- err
		}()
		b.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := <-lost; !errors.Is(err, ErrUnreachable) && !strings.Contains(err.Error(), "canceled") {
			t.Error(err)
		}
		if _, err := a.Call(within(t), "b", addr, []byte("x"), nil); err == nil {
			t.Error("a node that has ended answers")
		}
		if listener, err = net.Listen("tcp", addr); err != nil {
			t.Fatal(err)
		}
	}
	listener.Close()
}

// After Close nothing waits and nothing is answered.
func TestClose(t *testing.T) {
	id := certs(t, "a", "b")
	began := make(chan struct{})
	b := New(id("b"), Options{})
	addr := serve(t, b, func(ctx context.Context, _ string, _ []byte, _ io.Reader) ([]byte, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a := open(t, id("a"), Options{})
	done := make(chan error, 1)
	go func() {
		_, err := a.Call(within(t), "b", addr, nil, nil)
		done <- err
	}()
	<-began
	a.Close()
	if err := <-done; !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	for _, body := range []io.Reader{nil, zeros{}} {
		if _, err := a.Call(within(t), "b", addr, nil, body); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrUnreachable) {
			t.Error(err)
		}
	}
}

// raw makes a connection by hand.
func raw(t *testing.T, id *ca.Identity, addr string, change func(*tls.Config)) (*tls.Conn, error) {
	t.Helper()
	config := id.Config(protocol)
	if change != nil {
		change(config)
	}
	d := tls.Dialer{Config: config}
	c, err := d.DialContext(within(t), "tcp", addr)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(long))
	return c.(*tls.Conn), nil
}

// ends demands that the other end ends a connection, by itself.
func ends(t *testing.T, what string, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(long))
	if _, err := io.Copy(io.Discard, c); err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("%s: the connection goes on", what)
		}
	}
}

// Whoever is no node of the cluster is not let in, and is not listened to for long.
func TestStrangers(t *testing.T) {
	id, other := certs(t, "a", "b"), certs(t, "a")
	var asked atomic.Int32
	b := New(id("b"), Options{Hands: 100 * time.Millisecond, Strangers: 4})
	addr := serve(t, b, func(context.Context, string, []byte, io.Reader) ([]byte, error) { asked.Add(1); return nil, nil })

	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for range 3 {
		ends(t, "silence", dial())
	}
	c := dial()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	ends(t, "garbage", c)
	c = dial()
	go func() { // a byte of a handshake at a time
		for _, x := range []byte{22, 3, 1, 255, 255} {
			if _, err := c.Write([]byte{x}); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	ends(t, "a slow handshake", c)

	request := func(c *tls.Conn, err error) {
		t.Helper()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte{forRequests, byte(last), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
		ends(t, "a stranger", c)
	}
	request(raw(t, id("a"), addr, func(c *tls.Config) { c.GetClientCertificate = nil }))
	request(raw(t, other("a"), addr, func(c *tls.Config) { c.VerifyConnection = nil }))
	request(raw(t, id("a"), addr, func(c *tls.Config) { c.NextProtos = nil; c.VerifyConnection = nil }))
	request(raw(t, id("a"), addr, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }))
	if n := asked.Load(); n > 0 {
		t.Fatalf("%d requests of strangers were answered", n)
	}

	// A node that says nothing once it was let in, or something that is not known, is not listened to either.
	for _, first := range []string{"", "x"} {
		c, err := raw(t, id("a"), addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, first)
		ends(t, "a node that wants "+first, c)
	}
}

// However many strangers say nothing, a node is let in at once: one of them has to go.
func TestSilentStrangers(t *testing.T) {
	id := certs(t, "a", "b")
	b := New(id("b"), Options{Hands: time.Hour, Strangers: 4})
	addr := serve(t, b, echo)
	for range 20 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	a := open(t, id("a"), Options{Hands: long})
	if _, err := a.Call(within(t), "b", addr, nil, nil); err != nil {
		t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.strangers); n > 4 {
		t.Errorf("there are %d strangers", n)
	}
}

// A node that was removed is refused from then on, on the connections that it has, too, and hears why; and nobody calls it. A certificate
// that was made for it later is let in.
func TestRemoved(t *testing.T) {
	id := certs(t, "a", "b")
	const quiet = 200 * time.Millisecond
	a, b := New(id("a"), Options{Quiet: quiet}), New(id("b"), Options{Quiet: quiet})
	ofA, ofB := serve(t, a, echo), serve(t, b, echo)
	both := func() (ab, ba error) {
		_, ab = a.Call(within(t), "b", ofB, nil, nil)
		_, ba = b.Call(within(t), "a", ofA, nil, nil)
		return ab, ba
	}
	if ab, ba := both(); ab != nil || ba != nil {
		t.Fatal(ab, ba)
	}
	var removed atomic.Int64
	a.Admit(func(name string, issued time.Time) error {
		if name == "b" && issued.Before(time.Unix(removed.Load(), 0)) {
			return errors.New("b was removed")
		}
		return nil
	})
	if ab, ba := both(); ab != nil || ba != nil {
		t.Error(ab, ba)
	}
	removed.Store(time.Now().Add(time.Hour).Unix())
	told := func(err error) bool { return err != nil && strings.Contains(err.Error(), "b was removed") }
	deadline := time.Now().Add(long)
	for ab, ba := both(); !told(ab) || !told(ba); ab, ba = both() {
		if time.Now().After(deadline) {
			t.Fatalf("%v, and %v", ab, ba)
		}
		time.Sleep(quiet / 10)
	}
	if _, err := b.Call(within(t), "a", ofA, nil, strings.NewReader("x")); !told(err) {
		t.Error(err)
	}
	removed.Store(0)
	for ab, ba := both(); ab != nil || ba != nil; ab, ba = both() {
		if time.Now().After(deadline) {
			t.Fatalf("%v, and %v", ab, ba)
		}
		time.Sleep(quiet / 10)
	}
}

// A node that sends what it may not is cut off; others go on.
func TestBrokenNodes(t *testing.T) {
	id := certs(t, "a", "b", "c")
	addr := serve(t, New(id("b"), Options{Quiet: 400 * time.Millisecond}), func(ctx context.Context, from string, request []byte, body io.Reader) ([]byte, error) {
		if body != nil {
			n, err := io.Copy(io.Discard, body)
			return fmt.Append(nil, n), err
		}
		return request, nil
	})
	frameOf := func(k kind, number byte, length int, data ...byte) []byte {
		return append([]byte{byte(k), byte(length), byte(length >> 8), byte(length >> 16), number, 0, 0, 0, 0, 0, 0, 0}, data...)
	}
	for what, b := range map[string][]byte{
		"an unknown kind":            append([]byte{forRequests}, frameOf(77, 1, 0)...),
		"kind zero":                  append([]byte{forRequests}, frameOf(0, 1, 0)...),
		"an answer":                  append([]byte{forRequests}, frameOf(failed, 1, 1, 'x')...),
		"a frame too long":           append([]byte{forRequests}, frameOf(last, 1, frame+1)...),
		"the longest frame":          append([]byte{forRequests}, frameOf(last, 1, 1<<24-1)...),
		"a ping with bytes":          append([]byte{forRequests}, frameOf(ping, 0, 5, 1, 2, 3, 4, 5)...),
		"a number that was used":     append(append([]byte{forRequests}, frameOf(last, 2, 0)...), frameOf(last, 1, 0)...),
		"half a frame, then silence": append([]byte{forRequests}, frameOf(last, 1, 100, 1, 2, 3)...),
		"silence":                    {forRequests},
		"a body of another kind":     append([]byte{forBodies}, frameOf(ping, 0, 0)...),
		"a body's silence":           append([]byte{forBodies}, frameOf(last, 0, 0)...),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, err := raw(t, id("a"), addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write(b)
			ends(t, what, c)
		})
	}
	t.Run("more than is held", func(t *testing.T) {
		t.Parallel()
		c, err := raw(t, id("a"), addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { // requests that never end
			_, _ = c.Write([]byte{forRequests})
			data := make([]byte, frame)
			for i := 0; ; i++ {
				if _, err := c.Write(frameOf(part, byte(1+i/512), frame, data...)); err != nil {
					return
				}
			}
		}()
		ends(t, "requests without an end", c)
	})
	t.Run("too many", func(t *testing.T) {
		t.Parallel()
		c, err := raw(t, id("a"), addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = c.Write([]byte{forRequests})
			var b []byte
			for i := range 2 * mostOpen {
				f := frameOf(part, 0, 1, 'x')
				f[4], f[5] = byte(i+1), byte((i+1)>>8)
				b = append(b, f...)
			}
			_, _ = c.Write(b)
			for { // it does not fall silent
				if _, err := c.Write(frameOf(ping, 0, 0)); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
		ends(t, "too many requests", c)
	})
	c := open(t, id("c"), Options{})
	if got, err := c.Call(within(t), "b", addr, []byte("x"), nil); err != nil || string(got) != "x" {
		t.Error(err)
	}
}

// A connection that takes everything and says nothing, as when the network is cut, is given up, and a new one is made.
func TestHalfOpen(t *testing.T) {
	id := certs(t, "a", "b")
	addr := serve(t, New(id("b"), Options{}), echo)
	var mu sync.Mutex
	var made []*cut
	a := open(t, id("a"), Options{Quiet: 300 * time.Millisecond, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		made = append(made, newCut(c))
		return made[len(made)-1], nil
	}})
	if _, err := a.Call(within(t), "b", addr, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	made[0].cut.Store(true)
	mu.Unlock()
	if _, err := a.Call(within(t), "b", addr, []byte("x"), nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("over a connection that is cut: %v", err)
	}
	if got, err := a.Call(within(t), "b", addr, []byte("x"), nil); err != nil || string(got) != "a:x" {
		t.Errorf("over a new one: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(made) != 2 {
		t.Errorf("%d connections were made", len(made))
	}
}

// cut is a connection whose bytes get lost from some moment on, in both directions.
type cut struct {
	net.Conn
	cut   atomic.Bool
	never net.Conn // nothing comes from it
}

func newCut(c net.Conn) *cut {
	never, _ := net.Pipe()
	return &cut{Conn: c, never: never}
}

func (c *cut) Write(p []byte) (int, error) {
	if c.cut.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *cut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.cut.Load() {
		return c.never.Read(p)
	}
	return n, err
}

func (c *cut) SetReadDeadline(t time.Time) error {
	return errors.Join(c.never.SetReadDeadline(t), c.Conn.SetReadDeadline(t))
}

func (c *cut) SetDeadline(t time.Time) error {
	return errors.Join(c.never.SetReadDeadline(t), c.Conn.SetDeadline(t))
}

func (c *cut) Close() error { return errors.Join(c.never.Close(), c.Conn.Close()) }

// A node that does not take its answers is cut off, and one that does has all of a long one.
func TestSlowReaders(t *testing.T) {
	id := certs(t, "a", "b")
	big := make([]byte, 8<<20)
	h := func(context.Context, string, []byte, io.Reader) ([]byte, error) { return big, nil }
	addr := serve(t, New(id("b"), Options{Quiet: 500 * time.Millisecond}), h)
	c, err := raw(t, id("a"), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{forRequests}
	for i := range 30 {
		b = append(b, byte(last), 0, 0, 0, byte(i+1), 0, 0, 0, 0, 0, 0, 0)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(long)
	for { // nothing is read: the writes of the other end fail, and so do these
		if _, err := c.Write([]byte{byte(ping), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a node that takes no answers is not cut off")
		}
		time.Sleep(20 * time.Millisecond)
	}
	a := open(t, id("a"), Options{})
	got, err := a.Call(within(t), "b", serve(t, New(id("b"), Options{}), h), nil, nil)
	if err != nil || len(got) != len(big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// While a node cannot be reached, a storm of requests is a few attempts.
func TestPause(t *testing.T) {
	id := certs(t, "a")
	var attempts atomic.Int32
	a := open(t, id("a"), Options{Dial: func(context.Context, string) (net.Conn, error) {
		attempts.Add(1)
		return nil, errors.New("nobody is there")
	}})
	begin := time.Now()
	for range 2000 {
		if _, err := a.Call(within(t), "b", "x", nil, nil); !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
	}
	if most := 3 + int32(time.Since(begin)/leastPause); attempts.Load() > most {
		t.Errorf("%d attempts, more than %d", attempts.Load(), most)
	}
}
