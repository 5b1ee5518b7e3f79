package pandoserver

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A page in a browser on this machine can post to any port. Nothing of that is done: the connection
// ends at the first line that only HTTP has, as redis' does.
func TestPages(t *testing.T) {
	_, address := start(t, memory(t))
	for _, request := range []string{
		"POST / HTTP/1.1\r\nContent-Length: 15\r\n\r\nSET stolen 1\r\n",
		"PUT / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\nSET stolen 1\r\n",
		"GET / HTTP/1.1\r\nhost: 127.0.0.1:6379\r\n\r\nSET stolen 1\r\n",
		encode("SET", "before", "1") + encode("Host:") + encode("SET", "stolen", "1"),
	} {
		c := dial(t, "tcp", address)
		c.send(request)
		var b strings.Builder
		_, _ = c.r.WriteTo(&b)
		if strings.Count(b.String(), "+OK") > strings.Count(request, "before") {
			t.Errorf("%q: %q", request, b.String())
		}
	}
	c := dial(t, "tcp", address)
	c.want("GET stolen", "$-1\r\n")
	c.want("GET before", "$1\r\n1\r\n")
}

// A client may send a whole pipeline before it reads the first reply: the server goes on reading, though
// nobody takes replies.
func TestWholePipelineFirst(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	const n = 20_000 // commands and replies are more than sockets hold
	key, val := strings.Repeat("k", 1000), strings.Repeat("v", 4000)
	c.do("SET", key, val)
	c.send(strings.Repeat(encode("GET", key), n))
	want := "$4000\r\n" + val + "\r\n"
	for i := range n {
		if got := c.reply(); got != want {
			t.Fatalf("reply %d: %.50q", i, got)
		}
	}
	c.want("PING", "+PONG\r\n")
}

// One that closes its end when it has sent everything gets all replies.
func TestHalfClosed(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	const n = 200
	c.do("SET", "big", strings.Repeat("v", 100_000))
	c.send(strings.Repeat(encode("GET", "big"), n))
	if err := c.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // sockets are full by then
	for range n {
		c.reply()
	}
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}

// What limits replies is about one command, and not about all that one read has brought.
func TestReplyLimitOfPipelines(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(1<<20))
	c := dial(t, "tcp", address)
	c.do("SET", "big", strings.Repeat("x", 100_000))
	for _, more := range []string{"", encode("INCR", "n"), encode("SET", "a", "b")} {
		const n = 100
		c.send(strings.Repeat(encode("GET", "big")+more, n))
		for range n {
			if got := c.reply(); len(got) != 100_011 {
				t.Fatalf("%.50q", got)
			}
			if more != "" {
				c.reply()
			}
		}
	}
	args := []string{"MGET"}
	for range 20 {
		args = append(args, "big")
	}
	if got := c.do(args...); !strings.HasPrefix(got, "-ERR the reply is too long") {
		t.Errorf("%.50q", got)
	}
	args[0] = "EXISTS"
	if got := c.do(args...); got != ":20\r\n" {
		t.Errorf("%.50q", got)
	}
}

// weighing is a source that remembers the most bytes that one batch has returned.
type weighing struct {
	Changer
	most int
}

func (w *weighing) GetBatch(keys []string, vals [][]byte, found []bool) int {
	n := w.Changer.GetBatch(keys, vals, found)
	sum := 0
	for _, v := range vals {
		sum += len(v)
	}
	w.most = max(w.most, sum)
	return n
}

// Values that are asked for at once are not all in memory at once.
func TestValuesAtOnce(t *testing.T) {
	src := &weighing{Changer: memory(t)}
	_, address := start(t, src)
	c := dial(t, "tcp", address)
	c.do("SET", "big", strings.Repeat("x", 4<<20))
	const n = 200
	c.send(strings.Repeat(encode("STRLEN", "big"), n))
	for range n {
		if got := c.reply(); got != ":4194304\r\n" {
			t.Fatal(got)
		}
	}
	args := []string{"EXISTS"}
	for range n {
		args = append(args, "big")
	}
	c.want(strings.Join(args, " "), ":200\r\n")
	if src.most > valuesAtOnce {
		t.Errorf("%d bytes of values at once", src.most)
	}
}

// A transaction whose ranges go over its own changes again and again is refused before it keeps
// everybody else waiting for long, and nothing of it is done.
func TestTransactionsThatTakeLong(t *testing.T) {
	_, address := start(t, memory(t), steps(1<<20))
	for _, command := range [][]string{{"PANDO.AT", "-1"}, {"PANDO.FLOOR", "z"}, {"PANDO.COUNT", "a", "b"}} {
		c := dial(t, "tcp", address)
		const n = 2_000
		var b strings.Builder
		b.WriteString(encode("MULTI"))
		for i := range n {
			b.WriteString(encode("SET", strconv.Itoa(i), ""))
			b.WriteString(encode(command...))
		}
		c.send(b.String() + encode("EXEC"))
		for range 2*n + 1 {
			c.reply()
		}
		if got := c.reply(); !strings.HasPrefix(got, "-ERR transaction takes too long") {
			t.Errorf("%s: %.50q", command[0], got)
		}
		c.want("DBSIZE", ":0\r\n")
		c.conn.Close()
	}
}

// Commands that return entries take no more memory than a reply may have, whatever they are asked for.
func TestRepliesThatAreTooLong(t *testing.T) {
	src := memory(t)
	_, address := start(t, src, ReplyLimit(1<<20))
	c := dial(t, "tcp", address)
	args := []string{"MSET"}
	for i := range 20_000 {
		args = append(args, strconv.Itoa(i), "1")
	}
	c.do(args...)
	for _, command := range []string{"PANDO.SELECT - + EQUAL 1 LIMIT 1000000", "PANDO.RANGE - + LIMIT 1000000", "KEYS *", "ZRANGE index 0 -1"} {
		if got := c.do(strings.Fields(command)...); !strings.HasPrefix(got, "-ERR the reply is too long") {
			t.Errorf("%s: %.50q", command, got)
		}
	}
}

// walked is a source that counts the bytes of keys that a scan takes.
type walked struct {
	Changer
	bytes int
}

func (s *walked) Scan(b Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		s.bytes = 0
		for k, v := range s.Changer.Scan(b) {
			s.bytes += len(k)
			if !yield(k, v) {
				return
			}
		}
	}
}

// SCAN stops where keys are long, whatever COUNT says, and all keys come.
func TestScanOfLongKeys(t *testing.T) {
	src := &walked{Changer: memory(t)}
	_, address := start(t, src)
	c := dial(t, "tcp", address)
	const n = 40
	for i := range n {
		c.do("SET", fmt.Sprintf("%03d", i)+strings.Repeat("x", 1<<20), "")
	}
	keys, cursor := 0, "0"
	for {
		reply := c.do("SCAN", cursor, "COUNT", "1000000")
		if src.bytes > mostScanned+2<<20 {
			t.Errorf("%d bytes of keys", src.bytes)
		}
		keys += strings.Count(reply, "$1048579\r\n")
		if cursor = strings.Split(reply, "\r\n")[2]; cursor == "0" {
			break
		}
	}
	if keys != n {
		t.Errorf("%d keys", keys)
	}
}

// numbered is a source of numbers that can be changed.
type numbered struct{ Changer }

func (numbered) Check(string) error { return nil }
func (numbered) Code(string) uint64 { return 0 }
func (numbered) From(uint64) Bounds { return Bounds{} }

// Transactions have the order of bytes, so that numbers which can be changed would be in no order.
func TestNumbersThatChange(t *testing.T) {
	if _, err := New(numbered{memory(t)}); err == nil {
		t.Error("no error")
	}
}

// A connection that has sent many commands at once does not keep the room that they took.
func TestRoomOfConnections(t *testing.T) {
	srv, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	for range 4 {
		c.send(strings.Repeat("GET a\n", 20_000))
		for range 20_000 {
			c.reply()
		}
	}
	c.want("PING", "+PONG\r\n")
	s := srv.each()[0]
	g := &s.gathering
	if most := max(cap(s.pending), cap(g.items), cap(g.keys), cap(g.vals), cap(g.ops)); most > 2*mostKept {
		t.Errorf("room for %d commands", most)
	}
}

// Names of clients are kept, so they cannot be long.
func TestLongNames(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	long := strings.Repeat("n", 2*longestClientName)
	for _, command := range []string{"CLIENT SETNAME " + long, "CLIENT SETINFO LIB-NAME " + long, "HELLO 3 SETNAME " + long} {
		if got := c.do(strings.Fields(command)...); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%.30s: %.50q", command, got)
		}
	}
}
