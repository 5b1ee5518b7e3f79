package pandoserver

import (
	"io"
	"iter"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando"
)

// queued bounds the commands of a transaction.
func queued(bytes int) Option { return func(c *config) { c.transactions = bytes } }

// exec sends a transaction, and returns the reply to EXEC.
func (c *client) exec(commands ...string) string {
	c.t.Helper()
	c.want("MULTI", "+OK\r\n")
	var all strings.Builder
	for _, command := range commands {
		all.WriteString(encode(strings.Fields(command)...))
	}
	go c.send(all.String())
	for range commands {
		if got := c.reply(); got != "+QUEUED\r\n" {
			c.t.Fatalf("%q", got)
		}
	}
	return c.do("EXEC")
}

// repeated returns a command so many times.
func repeated(command string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = command
	}
	return all
}

// The replies of a transaction are bounded, whatever they are: nothing of one is done whose replies are too long, and its
// connection goes on.
func TestRepliesOfATransaction(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(100_000), steps(1<<30)) // whatever time it takes
	c := dial(t, "tcp", address)
	for _, command := range []string{"COMMAND", "COMMAND DOCS", "INFO everything", "CLIENT LIST", "ACL CAT", "CLIENT HELP", "MGET" + strings.Repeat(" nosuch", 100)} {
		if got := c.exec(append([]string{"SET a 1"}, repeated(command, 800)...)...); !strings.HasPrefix(got, "-ERR transaction exceeds its limit of memory: its replies") {
			t.Errorf("%.20s: %d bytes, %.80q", command, len(got), got)
		}
		c.want("EXISTS a", ":0\r\n")
	}
}

// A command whose reply is too long ends its connection, whatever the reply is made of.
func TestRepliesOfACommand(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(100_000))
	for command, arg := range map[string]string{"COMMAND INFO": "client", "COMMAND DOCS": "client", "MGET": "nosuch", "PANDO.HIST - +": "1"} {
		c := dial(t, "tcp", address)
		c.send(encode(append(strings.Fields(command), strings.Fields(strings.Repeat(arg+" ", 40_000))...)...))
		n, err := io.Copy(io.Discard, io.LimitReader(c.r, 200_000))
		if err != nil || n > 100_000 {
			t.Errorf("%s: %d bytes came, %v", command, n, err)
		}
	}
	c := dial(t, "tcp", address) // many small ones are no long one
	const n = 20_000
	go c.send(strings.Repeat("PING\r\n", n))
	for range n {
		if got := c.reply(); got != "+PONG\r\n" {
			t.Fatalf("%q", got)
		}
	}
}

// onlyRead is a source that can only be read.
type onlyRead struct{ s *scans }

func (r onlyRead) Len() int                                { return r.s.Len() }
func (r onlyRead) Count(Bounds) int                        { return 0 }
func (r onlyRead) At(int) (string, []byte, bool)           { return "", nil, false }
func (r onlyRead) Scan(b Bounds) iter.Seq2[string, []byte] { return r.s.Scan(b) }
func (r onlyRead) GetBatch(keys []string, vals [][]byte, found []bool) int {
	return r.s.GetBatch(keys, vals, found)
}

// A transaction that goes over a file counts that, too.
func TestTransactionsThatScanFiles(t *testing.T) {
	src := &scans{Changer: memory(t)}
	_, address := start(t, memory(t), And("file", onlyRead{src}), steps(1<<20))
	c := dial(t, "tcp", address)
	if got := c.exec("SET a 1", "SELECT file", "PANDO.AGG - +"); !strings.HasPrefix(got, "-ERR transaction takes too long") {
		t.Errorf("%.80q", got)
	}
	if n := src.entries.Load(); n > 2<<20 {
		t.Errorf("%d entries", n)
	}
}

// Each command of a transaction counts, and what is about no entries by its time: nobody is kept waiting by many of them.
func TestTransactionsOfManyCommands(t *testing.T) {
	_, address := start(t, memory(t), steps(1<<10))
	c := dial(t, "tcp", address)
	for _, command := range []string{"PING", "INFO", "ECHO " + strings.Repeat("x", 1000)} {
		if got := c.exec(append([]string{"SET a 1"}, repeated(command, 1000)...)...); !strings.HasPrefix(got, "-ERR transaction takes too long") {
			t.Errorf("%.20s: %.80q", command, got)
		}
		c.want("EXISTS a", ":0\r\n")
	}
}

// A transaction that is about no entries waits for nobody, and keeps nobody waiting; one that reads does.
func TestTransactionsAboutNoEntries(t *testing.T) {
	srv, address := start(t, memory(t))
	c, other := dial(t, "tcp", address), dial(t, "tcp", address)
	srv.changes.Lock()
	done := make(chan string, 2)
	go func() { done <- c.exec("PING", "CLIENT ID", "COMMAND COUNT") }()
	select {
	case got := <-done:
		if !strings.HasPrefix(got, "*3\r\n") {
			t.Errorf("%q", got)
		}
	case <-time.After(20 * time.Second):
		srv.changes.Unlock()
		t.Fatal("it waits")
	}
	go func() { done <- other.exec("GET a") }()
	select {
	case got := <-done:
		t.Errorf("a transaction that reads has not waited: %q", got)
	case <-time.After(50 * time.Millisecond):
	}
	srv.changes.Unlock()
	if got := <-done; got != "*1\r\n$-1\r\n" {
		t.Errorf("%q", got)
	}
}

// What takes long on purpose, the look at a password, is not done where others wait for it.
func TestPasswordsInATransaction(t *testing.T) {
	_, address := start(t, memory(t))
	for _, command := range []string{"AUTH a b", "HELLO 3 AUTH a b", "ACL SETUSER a on >b", "ACL DELUSER a", "ACL LOAD"} {
		c := dial(t, "tcp", address)
		c.want("MULTI", "+OK\r\n")
		c.want(command, "-ERR Command not allowed inside a transaction\r\n")
		if got := c.do("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// What waits for EXEC takes no more memory than its limit says, however short its commands are.
func TestQueuedCommands(t *testing.T) {
	const limit = 2 << 20
	srv, address := start(t, memory(t), queued(limit))
	for _, command := range []string{"PING", "ECHO x", "EXISTS" + strings.Repeat(" x", 100)} {
		c := dial(t, "tcp", address)
		before := held()
		c.want("MULTI", "+OK\r\n")
		n := 0
		for got := "+QUEUED\r\n"; got == "+QUEUED\r\n"; n++ {
			got = c.do(strings.Fields(command)...)
			s := srv.each()[0]
			s.mu.Lock()
			full := s.shown.multiBytes > limit*9/10
			s.mu.Unlock()
			if full {
				break
			}
		}
		if took := held() - before; took > limit*5/4 {
			t.Errorf("%d times %.10s: %d bytes", n, command, took)
		}
		c.want("DISCARD", "+OK\r\n")
		c.conn.Close()
		for len(srv.each()) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// greedy is a listener whose connections read as much as there is room for.
type greedy struct{ net.Listener }

func (l greedy) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return greedyConn{conn}, err
}

type greedyConn struct{ net.Conn }

func (c greedyConn) Read(b []byte) (n int, err error) {
	if n, err = io.ReadFull(c.Conn, b); err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// peeking is a source that looks at what its only connection holds.
type peeking struct {
	Changer
	srv         atomic.Pointer[Server]
	calls, room atomic.Int64
}

func (p *peeking) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	s := p.srv.Load().each()[0] // which waits for this
	p.calls.Store(max(p.calls.Load(), int64(len(s.pending))))
	p.room.Store(max(p.room.Load(), int64(s.r.Room())))
	return p.Changer.Apply(ops, keys, vals, found)
}

// The buffer of a long command may bring very many short ones at once: what is kept of them to be done together is bounded.
func TestCommandsTogether(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	src := &peeking{Changer: memory(t)}
	src.srv.Store(startOn(t, greedy{l}, src))
	c := dial(t, "tcp", l.Addr().String())
	const long, n = 16<<20 + 100, 200_000
	go func() {
		c.send(encode("SET", "big", strings.Repeat("x", long)) + strings.Repeat("DEL a\n", n))
		_ = c.conn.(*net.TCPConn).CloseWrite()
	}()
	for i := range n + 1 {
		if got := c.reply(); got != "+OK\r\n" && got != ":0\r\n" {
			t.Fatalf("reply %d: %q", i, got)
		}
	}
	if calls := src.calls.Load(); calls < 1000 || calls > mostTogether {
		t.Errorf("%d commands are kept", calls)
	}
	if room := src.room.Load(); room > 64<<20 {
		t.Errorf("the reader holds %d bytes", room)
	}
}

// Replies that wait take no more memory than their bytes, so many small ones and long ones that are written in part.
func TestOutboxHolds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	o := newOutbox(ours, time.Minute, func() int64 { return 0 })
	o.allow(64 << 20)
	before := held()
	const small = 100_000
	for range small {
		if _, err := o.Write([]byte("+OK\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if took := held() - before; took > 2*5*small {
		t.Errorf("%d bytes for %d that wait", took, 5*small)
	}
	long := make([]byte, 32<<20)
	if _, err := o.Write(long); err != nil {
		t.Fatal(err)
	}
	const left = 8 << 20
	if _, err := io.CopyN(io.Discard, theirs, 5*small+int64(len(long))-left); err != nil {
		t.Fatal(err)
	}
	if took := held() - before - int64(len(long)); took > left+1<<20 {
		t.Errorf("%d bytes for %d that wait", took, left)
	}
	if _, err := io.CopyN(io.Discard, theirs, left); err != nil {
		t.Fatal(err)
	}
	if err := o.end(); err != nil || o.size.Load() != 0 {
		t.Error(err, o.size.Load())
	}
	_ = long[len(long)-1]
}

// What an error repeats is cut.
func TestLongErrors(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	long := strings.Repeat("k", 1<<20)
	c.do("SET", long, "x")
	for _, command := range []string{"PANDO.AGG - +", "ACL CAT " + long, "ACL DRYRUN " + long + " GET a", "CLIENT KILL USER " + long, "CLIENT KILL TYPE " + long, "ACL SETUSER a " + long} {
		if got := c.do(strings.Fields(command)...); got[0] != '-' || len(got) > 5000 {
			t.Errorf("%.20s: %d bytes", command, len(got))
		}
	}
	c.want("STRLEN "+strconv.Itoa(1), ":0\r\n")
}
