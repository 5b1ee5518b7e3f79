package pandoserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
)

// down is a source that cannot be asked.
type down struct{ Changer }

func (down) Len() int { panic(fmt.Errorf("no majority: %w", ErrDown)) }
func (down) GetBatch([]string, [][]byte, []bool) int {
	panic(fmt.Errorf("no majority: %w", ErrDown))
}
func (down) Apply([]pando.Op, []string, [][]byte, []bool) error {
	return fmt.Errorf("no majority: %w", ErrDown)
}

// lost is a source that cannot be asked, and a slow one does not say so soon.
type lost struct {
	down
	slow chan struct{}
}

func (l lost) Len() int {
	if l.slow != nil {
		<-l.slow
	}
	panic(fmt.Errorf("no majority: %w", ErrDown))
}

// INFO and metrics tell what there is to be told although a source is down, or says nothing for long, and others wait
// with one question to it.
func TestInfoWhileDown(t *testing.T) {
	mine := memory(t)
	if err := mine.Apply([]pando.Op{pando.OpSet}, []string{"a"}, [][]byte{{}}, nil); err != nil {
		t.Fatal(err)
	}
	srv, address := start(t, lost{down: down{memory(t)}}, And("mine", mine))
	c := dial(t, "tcp", address)
	for range 2 {
		if got := c.do("INFO"); !strings.Contains(got, "db1:keys=1,") || strings.Contains(got, "db0:keys") {
			t.Errorf("%q", got)
		}
	}
	var b strings.Builder
	if err := srv.WriteMetrics(&b); err != nil || !strings.Contains(b.String(), `pando_entries{index="mine"} 1`) || strings.Contains(b.String(), `pando_entries{index="index"}`) {
		t.Errorf("%v: %s", err, b.String())
	}
	slow := make(chan struct{})
	d := &served{name: "slow", src: lost{down{memory(t)}, slow}}
	before := runtime.NumGoroutine()
	for range 100 {
		if _, ok := d.length(time.Microsecond, srv.heard); ok {
			t.Error("it knows")
		}
	}
	if n := runtime.NumGoroutine() - before; n > 50 {
		t.Errorf("%d goroutines wait", n)
	}
	close(slow)
	if _, ok := d.length(time.Minute, srv.heard); ok {
		t.Error("it knows")
	}
}

// A source that is down is an error in redis' words. After a read the connection ends, behind the replies to what came before.
func TestDown(t *testing.T) {
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	srv, err := New(down{Tree(tree)})
	if err != nil {
		t.Fatal(err)
	}
	if n := srv.atOnce(); n != 1 {
		t.Errorf("%d values are taken at once of an index that may hold any", n)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	defer func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "SET a b\r\nPING\r\nGET a\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	want := "-CLUSTERDOWN no majority: too few machines can be reached\r\n+PONG\r\n-CLUSTERDOWN no majority: too few machines can be reached\r\n"
	if err != nil || !strings.HasPrefix(string(got), want) || strings.Count(string(got), "PONG") != 1 {
		t.Errorf("%q, %v", got, err)
	}
}
