package pandoserver

import (
	"fmt"
	"io"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando"
)

// heavy is a source that was there before the server: each key has one long value.
type heavy struct {
	Changer
	val   []byte
	asked atomic.Int64 // the most bytes of values that were taken out at once
}

func newHeavy(t *testing.T) *heavy {
	h := &heavy{Changer: memory(t), val: make([]byte, 4<<20)}
	if err := h.Changer.Apply([]pando.Op{pando.OpSet}, []string{"one"}, [][]byte{{}}, nil); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *heavy) GetBatch(keys []string, vals [][]byte, found []bool) int {
	for i := range keys {
		vals[i], found[i] = h.val, true
	}
	if n := int64(len(keys) * len(h.val)); n > h.asked.Load() {
		h.asked.Store(n)
	}
	return len(keys)
}

// What one command, or one pipeline, takes out of an index at once is bounded, although the server has not seen
// how long values are: it has just been started.
func TestValuesAtOnceAfterStart(t *testing.T) {
	keys := " " + strings.Repeat("k ", 2000)
	for _, command := range []string{"EXISTS" + keys, "TOUCH" + keys, "MSETNX" + keys, "MGET" + keys} {
		h := newHeavy(t)
		_, address := start(t, h, ReplyLimit(64<<20))
		c := dial(t, "tcp", address)
		if got := c.do(strings.Fields(command)...); got != ":2000\r\n" && got != ":0\r\n" && !strings.HasPrefix(got, "-ERR the reply is too long") {
			t.Errorf("%.10s: %.50q", command, got)
		}
		if n := h.asked.Load(); n > valuesAtOnce {
			t.Errorf("%.10s: %d bytes at once", command, n)
		}
	}
	for _, each := range []string{encode("STRLEN", "k"), encode("GETRANGE", "k", "0", "3"), encode("EXISTS", "k") + encode("STRLEN", "k")} {
		h := newHeavy(t)
		_, address := start(t, h)
		c := dial(t, "tcp", address)
		c.send(strings.Repeat(each, 500))
		for range 500 * strings.Count(each, "*") {
			c.reply()
		}
		if n := h.asked.Load(); n > valuesAtOnce {
			t.Errorf("%q: %d bytes at once", each, n)
		}
	}
}

// asking is a source that counts what is asked for, and can tell what is there without values.
type asking struct {
	Changer
	gets, asks atomic.Int64
}

func (a *asking) GetBatch(keys []string, vals [][]byte, found []bool) int {
	a.gets.Add(1)
	return a.Changer.GetBatch(keys, vals, found)
}

func (a *asking) HasBatch(keys []string, found []bool) int {
	a.asks.Add(1)
	return a.Changer.(Asker).HasBatch(keys, found)
}

// Commands that ask whether keys are there take no values out of the index, alone and in transactions.
func TestPresenceTakesNoValues(t *testing.T) {
	src := &asking{Changer: memory(t)}
	_, address := start(t, src)
	c := dial(t, "tcp", address)
	c.do("SET", "a", "1")
	for _, command := range []string{"EXISTS a b a", "TOUCH a b", "TYPE a", "MSETNX a 1 b 2", "ZRANK index a", "DEL nosuch", "MSETNX c 1 d 2", "DEL c d"} {
		c.do(strings.Fields(command)...)
		c.do("MULTI")
		c.do(strings.Fields(command)...)
		c.do("EXEC")
	}
	if src.gets.Load() > 0 || src.asks.Load() == 0 {
		t.Errorf("values were asked for %d times, and presence %d times", src.gets.Load(), src.asks.Load())
	}
}

// A pipeline of long values is done, whatever the limit of what one batch should have.
func TestPipelinesOfLongValues(t *testing.T) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			_, address := start(t, source(t))
			c := dial(t, "tcp", address)
			const n = 4
			val := strings.Repeat("x", 10<<20)
			for _, also := range []string{"", encode("APPEND", "b", "y")} {
				go func() { _, _ = io.WriteString(c.conn, strings.Repeat(encode("SET", "a", val)+also, n)) }()
				for range n {
					if got := c.reply(); got != "+OK\r\n" {
						t.Fatalf("%.60q", got)
					}
					if also != "" {
						c.reply()
					}
				}
			}
			c.want("STRLEN a", ":"+strconv.Itoa(len(val))+"\r\n")
			c.want("STRLEN b", ":4\r\n")
		})
	}
}

// What is told about a value is not refused because the value is longer than a reply may be.
func TestPartsOfLongValues(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(1<<20))
	c := dial(t, "tcp", address)
	c.do("SET", "big", strings.Repeat("0123456789", 300_000))
	c.want("GETRANGE big 10 12", "$3\r\n012\r\n")
	c.want("SUBSTR big -1 -1", "$1\r\n9\r\n")
	c.want("STRLEN big", ":3000000\r\n")
	c.want("EXISTS big", ":1\r\n")
	if got := c.do("GET", "big"); !strings.HasPrefix(got, "-ERR the reply is too long") {
		t.Errorf("%.50q", got)
	}
}

// allocated returns how many bytes of the heap a function has taken, those included that are free again.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// A command that makes a long value makes it once.
func TestLongValuesAreMadeOnce(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	const n = 32 << 20
	for _, command := range []string{"SETRANGE k " + strconv.Itoa(n-1) + " x", "MSETNX l 1 m 2"} {
		if got := allocated(func() { c.do(strings.Fields(command)...) }); got > n*3/2 {
			t.Errorf("%s takes %d bytes", command, got)
		}
	}
	c.want("STRLEN k", ":"+strconv.Itoa(n)+"\r\n")
}

// Many small pieces are appended to one key, in a transaction or a pipeline, in time and memory linear in them.
func TestAppendsOfAPipeline(t *testing.T) {
	_, address := start(t, memory(t))
	for i, frame := range [][2]string{{encode("MULTI"), encode("EXEC")}, {"", ""}} {
		c := dial(t, "tcp", address)
		key := "k" + strconv.Itoa(i)
		const long = 1 << 20
		n := 3000
		if frame[0] == "" { // each read that brings some begins anew
			n = 300
		}
		c.do("SET", key, strings.Repeat("x", long))
		took := allocated(func() {
			c.send(frame[0] + strings.Repeat(encode("APPEND", key, "yz"), n) + frame[1])
			if frame[0] != "" {
				for range n + 1 {
					c.reply()
				}
				c.reply()
			} else {
				for range n {
					c.reply()
				}
			}
		})
		if took > 500*long && frame[0] != "" {
			t.Errorf("%d MiB of memory", took>>20)
		}
		if got := c.do("GET", key); got != fmt.Sprintf("$%d\r\n%s%s\r\n", long+2*n, strings.Repeat("x", long), strings.Repeat("yz", n)) {
			t.Errorf("%.60q", got)
		}
	}
}

// A value that a transaction has appended to in place is not that of anybody else.
func TestAppendsInPlace(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	c.do("MSET", "a", "first", "b", "second")
	c.send(encode("MULTI") + encode("APPEND", "a", "1") + encode("GETSET", "a", "new") + encode("APPEND", "a", "22") + encode("GET", "a") + encode("APPEND", "a", "3") +
		encode("SETRANGE", "a", "1", "-") + encode("APPEND", "b", "x") + encode("GETDEL", "a") + encode("APPEND", "a", "4") + encode("APPEND", "b", "y") + encode("EXEC"))
	for range 11 {
		c.reply()
	}
	if got, want := c.reply(), "*10\r\n:6\r\n$6\r\nfirst1\r\n:5\r\n$5\r\nnew22\r\n:6\r\n:6\r\n:7\r\n$6\r\nn-w223\r\n:1\r\n:8\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.want("MGET a b", "*2\r\n$1\r\n4\r\n$8\r\nsecondxy\r\n")
}

// steps bounds the steps of a transaction.
func steps(n int) Option { return func(c *config) { c.steps = n } }

// counted is a source that counts its batches.
type counted struct {
	Changer
	batches atomic.Int64
}

func (s *counted) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	s.batches.Add(1)
	return s.Changer.Apply(ops, keys, vals, found)
}

// A transaction that reads much is refused before it keeps everybody else waiting for long. A pipeline of the same
// commands gives way to others meanwhile.
func TestTransactionsThatReadMuch(t *testing.T) {
	src := &counted{Changer: memory(t)}
	_, address := start(t, src, steps(1<<20))
	c := dial(t, "tcp", address)
	c.do("SET", "big", strings.Repeat("x", 1<<20))
	const n = 100
	both := strings.Repeat(encode("STRLEN", "big")+encode("INCR", "n"), n)
	before := src.batches.Load()
	c.send(both)
	for range 2 * n {
		c.reply()
	}
	c.want("GET n", "$3\r\n100\r\n")
	if got := src.batches.Load() - before; got < 10 {
		t.Errorf("a pipeline is done as %d", got)
	}
	c.send(encode("MULTI") + both + encode("EXEC"))
	for range 2*n + 1 {
		c.reply()
	}
	if got := c.reply(); !strings.HasPrefix(got, "-ERR transaction takes too long") {
		t.Errorf("%.80q", got)
	}
	c.want("GET n", "$3\r\n100\r\n")
}

// scans is a source with many entries, which counts those that are gone over.
type scans struct {
	Changer
	entries atomic.Int64
}

func (s *scans) Scan(Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for range int64(1 << 25) {
			s.entries.Add(1)
			if !yield("key", []byte{'1'}) {
				return
			}
		}
	}
}

// One command of a transaction that would go over very many entries ends when the transaction is refused.
func TestTransactionsThatScan(t *testing.T) {
	src := &scans{Changer: memory(t)}
	_, address := start(t, src, steps(1<<20))
	c := dial(t, "tcp", address)
	c.do("MULTI")
	c.do("SET", "a", "1")
	c.do("PANDO.AGG", "-", "+")
	if got := c.do("EXEC"); !strings.HasPrefix(got, "-ERR transaction takes too long") {
		t.Errorf("%.80q", got)
	}
	if n := src.entries.Load(); n > 2<<20 {
		t.Errorf("%d entries", n)
	}
	c.want("EXISTS a", ":0\r\n")
}

// The values that a transaction makes are bounded, too.
func TestTransactionsThatMakeLongValues(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(1<<20))
	c := dial(t, "tcp", address)
	c.do("MULTI")
	c.do("SETRANGE", "a", "600000", "x")
	c.do("SETRANGE", "b", "600000", "x")
	if got := c.do("EXEC"); !strings.HasPrefix(got, "-ERR transaction exceeds its limit of memory") {
		t.Errorf("%.80q", got)
	}
	c.want("EXISTS a b", ":0\r\n")
	c.send(strings.Repeat(encode("SETRANGE", "a", "600000", "x")+encode("INCR", "n"), 10))
	for range 10 {
		if got := c.reply(); got != ":600001\r\n" {
			t.Errorf("%.80q", got)
		}
		c.reply()
	}
}

// A transaction over two indexes would be two changes, of which a crash could lose one: it is refused.
func TestTransactionOfTwoIndexes(t *testing.T) {
	_, address := start(t, memory(t), And("other", memory(t)))
	c := dial(t, "tcp", address)
	c.do("MULTI")
	c.do("SET", "a", "1")
	c.do("SELECT", "other")
	c.do("SET", "a", "2")
	if got := c.do("EXEC"); !strings.HasPrefix(got, "-ERR transaction changes several indexes") {
		t.Errorf("%.80q", got)
	}
	c.do("SET", "where", "here") // SELECT is not done either
	for _, name := range []string{"index", "other"} {
		c.do("SELECT", name)
		if got, want := c.do("DEL", "where"), map[string]string{"index": ":1\r\n", "other": ":0\r\n"}[name]; got != want {
			t.Errorf("%s: %q", name, got)
		}
		c.want("EXISTS a", ":0\r\n")
	}
	c.want("MULTI", "+OK\r\n")
	c.do("SET", "a", "1")
	c.do("ZRANGE", "index", "0", "-1")
	c.want("EXEC", "*2\r\n+OK\r\n*0\r\n")
	// A pipeline is no transaction.
	c.do("SELECT", "index")
	c.send(encode("SET", "b", "1") + encode("INCR", "b") + encode("ZPOPMIN", "other") + encode("INCR", "b"))
	want := []string{"+OK\r\n", ":2\r\n", "*2\r\n$1\r\na\r\n$1\r\n0\r\n", ":3\r\n"}
	for i, w := range want {
		if got := c.reply(); got != w {
			t.Errorf("reply %d: %q, want %q", i, got, w)
		}
	}
}

// Keys that SCAN cannot tell apart are refused where they are more than a reply may have, and memory for them is
// bounded; PANDO.RANGE has no such limit.
func TestScanOfKeysAlike(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(100_000))
	c := dial(t, "tcp", address)
	args := []string{"MSET", "a", "", "z", ""}
	for i := range 5000 {
		args = append(args, fmt.Sprintf("letters-that-are-alike-%d", i), "")
	}
	c.do(args...)
	got := c.do("SCAN", "0", "COUNT", "1")
	if !strings.HasPrefix(got, "*2\r\n") {
		t.Fatalf("%.80q", got)
	}
	cursor := strings.Split(got, "\r\n")[2]
	if got = c.do("SCAN", cursor, "COUNT", "1"); !strings.HasPrefix(got, "-ERR the reply is too long") {
		t.Errorf("%.80q", got)
	}
	c.want("PANDO.RANGE (letters-that-are-alike-999 + KEYS LIMIT 1", "*1\r\n$1\r\nz\r\n")
}

// Cursors and words that are very long are not repeated in errors.
func TestLongWords(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	long := strings.Repeat("1", 1<<20)
	for _, command := range []string{"SCAN", "ZCARD", "HELLO 3", "CLIENT SETINFO", "CLIENT LIST TYPE", "CLIENT", "SELECT", "PANDO.AT", "GETRANGE a 0", "SETRANGE a"} {
		args := append(strings.Fields(command), long)
		if command == "CLIENT SETINFO" || command == "SETRANGE a" {
			args = append(args, "x")
		}
		if got := c.do(args...); len(got) > 1000 || got[0] != '-' {
			t.Errorf("%s: %d bytes, %.80q", command, len(got), got)
		}
	}
}

// A connection at rest holds neither the buffer of its last command nor values of its last replies.
func TestConnectionsAtRest(t *testing.T) {
	srv, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	long := strings.Repeat("x", 3<<20)
	c.do("SET", "big", long)
	c.do("GET", "big")
	c.want("PING", "+PONG\r\n") // what comes behind a reply is done before the next
	s := srv.each()[0]
	if n := s.held.Load(); n > 64<<10 {
		t.Errorf("a buffer of %d bytes is kept", n)
	}
	g := &s.gathering
	for _, v := range g.vals[:cap(g.vals)] {
		if len(v) > 0 {
			t.Errorf("a value of %d bytes is kept", len(v))
		}
	}
	for _, k := range g.keys[:cap(g.keys)] {
		if k != "" {
			t.Errorf("the key %.20q is kept", k)
		}
	}
}

// What a transaction copies of long values counts, though no value becomes longer.
func TestStepsOfCopies(t *testing.T) {
	_, address := start(t, memory(t), steps(1<<16))
	c := dial(t, "tcp", address)
	if got := c.exec("SETRANGE k 1000000 x", "SETRANGE k 1000000 y"); got != "*2\r\n:1000001\r\n:1000001\r\n" {
		t.Errorf("%q", got)
	}
	if got := c.exec(repeated("SETRANGE k 1000000 x", 10)...); !strings.HasPrefix(got, "-ERR transaction takes too long") {
		t.Errorf("%q", got)
	}
	c.want("GETRANGE k 1000000 -1", "$1\r\ny\r\n")
}

// Comparing long keys with long patterns counts in a transaction, and is bounded for each key.
func TestStepsOfPatterns(t *testing.T) {
	_, address := start(t, memory(t), steps(1<<16))
	c := dial(t, "tcp", address)
	alike := func(n int) string { return strings.Repeat("a", n) }
	c.do("SET", alike(4000), "1")
	pattern := "*" + alike(2000) + "b"
	c.want("KEYS "+pattern, "*0\r\n")
	for _, command := range []string{"KEYS " + pattern, "SCAN 0 MATCH " + pattern} {
		if got := c.exec("SET q 1", command); !strings.HasPrefix(got, "-ERR transaction takes too long") {
			t.Errorf("%.8s: %q", command, got)
		}
	}
	c.want("EXISTS q", ":0\r\n")
	if got := c.exec("KEYS a*b", "SCAN 0 MATCH *b"); got != "*2\r\n*0\r\n*2\r\n$1\r\n0\r\n*0\r\n" {
		t.Errorf("%q", got)
	}
	c.do("SET", alike(100_000), "1")
	pattern = "*" + alike(50_000) + "b"
	c.want("KEYS "+pattern, "-"+errPattern+"\r\n")
	c.want("SCAN 0 COUNT 10 MATCH "+pattern, "-"+errPattern+"\r\n")
	c.want("DBSIZE", ":2\r\n")
}

// The replies before RESET are a user's, and the room for them was, too.
func TestRepliesBeforeReset(t *testing.T) {
	_, address := start(t, memory(t), Restrict(people(t, "user default off", "user alice on "+hashed("secret")+" +@all ~*")))
	c := dial(t, "tcp", address)
	c.want("AUTH alice secret", "+OK\r\n")
	long := strings.Repeat("x", 20_000)
	c.do("SET", "k", long)
	c.send(encode("GET", "k") + encode("SET", "done", "1") + encode("RESET"))
	for _, want := range []string{"$20000\r\n" + long + "\r\n", "+OK\r\n", "+RESET\r\n"} {
		if got := c.reply(); got != want {
			t.Errorf("%.40q, want %.40q", got, want)
		}
	}
}

// A user who is switched off has a stranger's room, and a user's again when it is switched on.
func TestSwitchedOff(t *testing.T) {
	srv, address := start(t, memory(t), Restrict(people(t, "user default off", "user alice on "+hashed("secret")+" +@all ~*", "user root on "+hashed("secret")+" +@all ~*")))
	c, root := dial(t, "tcp", address), dial(t, "tcp", address)
	c.want("AUTH alice secret", "+OK\r\n")
	root.want("AUTH root secret", "+OK\r\n")
	strangers := func() int {
		srv.mu.Lock()
		defer srv.mu.Unlock()
		return len(srv.unknown)
	}
	// The second reply comes when the room behind the first is settled.
	twice := func(want string) {
		t.Helper()
		for range 2 {
			if got := c.do("GET", "a"); !strings.HasPrefix(got, want) {
				t.Errorf("%q", got)
			}
		}
	}
	root.want("ACL SETUSER alice off", "+OK\r\n")
	if twice("-"); strangers() != 1 {
		t.Errorf("%d strangers", strangers())
	}
	root.want("ACL SETUSER alice on", "+OK\r\n")
	if twice("$-1"); strangers() != 0 {
		t.Errorf("%d strangers", strangers())
	}
	long := strings.Repeat("x", 100_000)
	if got := c.do("SET", "a", long); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
	root.want("ACL SETUSER alice off", "+OK\r\n")
	twice("-")
	if got := c.do("SET", "a", long); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("%q", got)
	}
}
