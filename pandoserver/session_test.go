package pandoserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandostore"
)

// store returns an empty store as a source, which need not survive a crash.
func store(t testing.TB) Changer {
	t.Helper()
	s, err := pandostore.Open[string, []byte](t.TempDir(), pandostore.NoSync())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return Store(s)
}

// sources are what tests serve.
var sources = map[string]func(testing.TB) Changer{"memory": memory, "store": store}

// parallel runs a function with a connection each in several goroutines.
func parallel(t *testing.T, address string, n int, f func(i int, c *client)) {
	var all sync.WaitGroup
	for i := range n {
		c := dial(t, "tcp", address)
		all.Go(func() { f(i, c) })
	}
	all.Wait()
}

// Numbers that many connections add to are right, alone, in pipelines and in transactions.
func TestCountsBesideEachOther(t *testing.T) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			_, address := start(t, source(t))
			rounds := seed.Times(60, 1000)
			parallel(t, address, 6, func(i int, c *client) {
				for r := range rounds {
					switch (i + r) % 3 {
					case 0:
						c.do("INCR", "n")
					case 1:
						c.send(strings.Repeat(encode("INCR", "n"), 3))
						for range 3 {
							c.reply()
						}
						c.do("DECRBY", "n", "2")
					case 2:
						c.send(encode("MULTI") + encode("INCR", "n") + encode("INCR", "n") + encode("DECR", "n") + encode("EXEC"))
						for range 5 {
							c.reply()
						}
					}
				}
			})
			c := dial(t, "tcp", address)
			want := strconv.Itoa(6 * rounds)
			c.want("GET n", fmt.Sprintf("$%d\r\n%s\r\n", len(want), want))
		})
	}
}

// Of several connections that set the same keys if none is there, one succeeds, with all
// of them.
func TestSetIfNoneBesideEachOther(t *testing.T) {
	_, address := start(t, memory(t))
	for r := range seed.Times(50, 1000) {
		var mu sync.Mutex
		won := 0
		keys := [3]string{fmt.Sprintf("a%d", r), fmt.Sprintf("b%d", r), fmt.Sprintf("c%d", r)}
		parallel(t, address, 4, func(i int, c *client) {
			me := strconv.Itoa(i)
			reply := ":0\r\n"
			if i%2 == 0 {
				reply = c.do("MSETNX", keys[0], me, keys[1], me)
			} else {
				reply = c.do("MSETNX", keys[1], me, keys[2], me)
			}
			if reply == ":1\r\n" {
				mu.Lock()
				won++
				mu.Unlock()
			}
			c.conn.Close()
		})
		if won != 1 {
			t.Fatalf("%d have succeeded", won)
		}
	}
}

// halting is a source that does batches key by key, with time for others between.
type halting struct{ Changer }

func (h halting) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	for i := range ops {
		if err := h.Changer.Apply(ops[i:i+1], keys[i:i+1], vals[i:i+1], nil); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
	return nil
}

// Of several connections that set the same keys at once, one is the last for all of them.
func TestSetBesideEachOther(t *testing.T) {
	_, address := start(t, halting{memory(t)})
	for range seed.Times(20, 200) {
		parallel(t, address, 4, func(i int, c *client) {
			me := strconv.Itoa(i)
			if i < 2 {
				c.do("MSET", "a", me, "b", me, "c", me)
			} else {
				c.do("MSET", "c", me, "b", me, "a", me)
			}
			c.conn.Close()
		})
		c := dial(t, "tcp", address)
		if reply := c.do("MGET", "a", "b", "c"); strings.Count(reply, reply[8:9]+"\r\n") < 3 {
			t.Fatalf("%q", reply)
		}
		c.conn.Close()
	}
}

// Entries that are taken from the front are taken once.
func TestPopBesideEachOther(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	const n = 500
	for i := range n {
		c.do("SET", fmt.Sprintf("%05d", i), "")
	}
	var mu sync.Mutex
	taken := map[string]int{}
	parallel(t, address, 4, func(_ int, c *client) {
		for {
			reply := c.do("ZPOPMIN", "index", "3")
			if reply == "*0\r\n" {
				return
			}
			mu.Lock()
			for _, line := range strings.Split(reply, "\r\n") {
				if len(line) == 5 {
					taken[line]++
				}
			}
			mu.Unlock()
		}
	})
	for k, times := range taken {
		if times != 1 {
			t.Errorf("%s was taken %d times", k, times)
		}
	}
	if len(taken) != n {
		t.Errorf("%d were taken", len(taken))
	}
}

// counting is a source that counts calls.
type counting struct {
	Changer
	mu            sync.Mutex
	gets, applies []int
}

func (c *counting) GetBatch(keys []string, vals [][]byte, found []bool) int {
	c.mu.Lock()
	c.gets = append(c.gets, len(keys))
	c.mu.Unlock()
	return c.Changer.GetBatch(keys, vals, found)
}

func (c *counting) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	c.mu.Lock()
	c.applies = append(c.applies, len(ops))
	c.mu.Unlock()
	return c.Changer.Apply(ops, keys, vals, found)
}

// What one read brings is one batch of reads, one of changes, or one of both; and a
// transaction is one.
func TestBatchesFromSingleCalls(t *testing.T) {
	src := &counting{Changer: memory(t)}
	_, address := start(t, src)
	c := dial(t, "tcp", address)
	ask := func(commands ...string) {
		t.Helper()
		src.gets, src.applies = nil, nil
		var b strings.Builder
		for _, line := range commands {
			b.WriteString(encode(strings.Fields(line)...))
		}
		c.send(b.String()) // some KiB over loopback come in one read
		for range commands {
			c.reply()
		}
	}
	check := func(what string, gets, applies string) {
		t.Helper()
		if g, a := fmt.Sprint(src.gets), fmt.Sprint(src.applies); g != gets || a != applies {
			t.Errorf("%s: reads %s and changes %s, want %s and %s", what, g, a, gets, applies)
		}
	}
	ask("GET a", "MGET b c", "EXISTS a d", "STRLEN a")
	check("reads", "[6]", "[]")
	ask("SET a 1", "MSET b 2 c 3", "SET a 4")
	check("sets", "[]", "[4]")
	ask("DEL a", "UNLINK b c")
	check("deletions", "[]", "[3]")
	ask("SET a 1", "GET a", "DEL a", "GETDEL b", "EXISTS a b")
	check("both", "[]", "[6]")
	ask("GET a", "PING", "GET b")
	check("something between", "[1 1]", "[]")
	ask("MULTI", "SET a 1", "INCR a", "SET b 2", "DEL c", "EXEC")
	if len(src.applies) != 1 || src.applies[0] != 2 {
		t.Errorf("a transaction: changes %v", src.applies)
	}
	ask("INCR a", "INCR a", "APPEND b x")
	if len(src.applies) != 1 || src.applies[0] != 2 {
		t.Errorf("changes that depend on values: %v", src.applies)
	}
}

// failing is a source whose changes fail.
type failing struct{ Changer }

func (failing) Apply([]pando.Op, []string, [][]byte, []bool) error {
	return fmt.Errorf("%w: no more", pando.ErrMemoryLimit)
}

func (failing) Update(string, func([]byte, bool) ([]byte, bool)) error {
	return fmt.Errorf("%w: no more", pandostore.ErrReadOnly)
}

// A change that fails is told to all whose it was, and replies stay in order.
func TestChangesThatFail(t *testing.T) {
	_, address := start(t, failing{memory(t)})
	c := dial(t, "tcp", address)
	const oom = "-" + errOOM + "\r\n"
	c.want("SET a 1", oom)
	c.want("PING", "+PONG\r\n")
	if got := c.do("INCR", "a"); !strings.HasPrefix(got, "-MISCONF ") {
		t.Errorf("%q", got)
	}
	c.send(encode("INCR", "a") + encode("INCR", "a") + encode("PING"))
	for _, want := range []string{oom, oom, "+PONG\r\n"} {
		if got := c.reply(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	c.want("MULTI", "+OK\r\n")
	c.want("SET a 1", "+QUEUED\r\n")
	c.want("GET a", "+QUEUED\r\n")
	c.want("EXEC", oom)
	c.want("GET a", "$-1\r\n")
}

// What is only read refuses changes, and answers all else.
func TestReadOnly(t *testing.T) {
	ix, err := pando.Freeze([]string{"a", "b", "c"}, []string{"1", "2", "3"})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	_, address := start(t, memory(t), And("file", Index(ix)))
	c := dial(t, "tcp", address)
	c.want("SET x y", "+OK\r\n")
	c.want("SELECT file", "+OK\r\n")
	c.want("GET b", "$1\r\n2\r\n")
	c.want("MGET a x c", "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n3\r\n")
	c.want("DBSIZE", ":3\r\n")
	for _, command := range []string{"SET a b", "INCR a", "DEL a", "FLUSHDB", "PANDO.DELRANGE a b", "ZPOPMIN file", "ZREMRANGEBYLEX file - +", "MSETNX z 1"} {
		c.want(command, "-"+errReadOnly+"\r\n")
	}
	c.want("ZPOPMIN index", "*2\r\n$1\r\nx\r\n$1\r\n0\r\n")
	c.want("ZRANGE file - + BYLEX", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n")
	if got := c.do("ZCARD", "nosuch"); !strings.HasPrefix(got, "-ERR no index is called 'nosuch'") {
		t.Errorf("%q", got)
	}
	c.want("SELECT 0", "+OK\r\n")
	c.want("MULTI", "+OK\r\n")
	for _, command := range []string{"SELECT 1", "SET a b", "FLUSHDB", "GET a"} {
		c.want(command, "+QUEUED\r\n")
	}
	c.want("EXEC", "*4\r\n+OK\r\n-"+errReadOnly+"\r\n-"+errReadOnly+"\r\n$1\r\n1\r\n")
}

// The commands of Pando's own.
func TestPando(t *testing.T) {
	_, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	c.do("MSET", "a", "1", "b", "2", "ba", "3", "c", "4.5", "(x", "5")
	for command, want := range map[string]string{
		"PANDO.RANGE a b":                  "*4 a 1 b 2",
		"PANDO.RANGE (a +":                 "*6 b 2 ba 3 c 4.5",
		"PANDO.RANGE - + LIMIT 2 REV KEYS": "*2 c ba",
		"PANDO.RANGE + -":                  "*0",
		"PANDO.RANGE [(x a VALUES":         "*2 5 1",
		"PANDO.PREFIX b":                   "*4 b 2 ba 3",
		"PANDO.PREFIX b KEYS REV":          "*2 ba b",
		"PANDO.COUNT a (c":                 ":3",
		"PANDO.RANK b":                     ":2",
		"PANDO.AT 0":                       "*2 (x 5",
		"PANDO.AT -1":                      "*2 c 4.5",
		"PANDO.AT 5":                       "*-1",
		"PANDO.FLOOR bb":                   "*2 ba 3",
		"PANDO.CEIL bb":                    "*2 c 4.5",
		"PANDO.CEIL d":                     "*-1",
		"PANDO.AGG a ba":                   "*10 count :3 sum :6 min 1 max 3 mean 2",
		"PANDO.AGG a c":                    "*10 count :4 sum 10.5 min 1 max 4.5 mean 2.625",
		"PANDO.AGG x y":                    "*10 count :0 sum 0 min 0 max 0 mean 0",
		"PANDO.HIST - + 2 4":               "*3 :1 :2 :2",
		"PANDO.SELECT - + ABOVE 2 KEYS":    "*3 (x ba c",
		"PANDO.SELECT - + BETWEEN 2 3":     "*4 b 2 ba 3",
		"PANDO.SELECT - + BELOW 9 LIMIT 1": "*2 (x 5",
		"PANDO.SELECT - + NEAR 2":          "-ERR syntax error",
		"PANDO.RANGE a b LIMIT -1":         "-" + errNotPos,
		"PANDO.RANGE a b FOO":              "-ERR syntax error",
		"PANDO.RANGE a b KEYS VALUES":      "-ERR syntax error",
		"PANDO.HIST - + 4 2":               "-ERR bounds must ascend",
		"PANDO.HIST - + x":                 "-ERR value is not a valid float",
		"CLIENT TRACKING ON OPTIN":         "+OK",
		"CLIENT TRACKING ON":               "-ERR this server tracks no keys: CLIENT TRACKING takes ON OPTIN, or OFF",
		"CLIENT CACHING YES":               "-ERR unknown subcommand 'CACHING'. Try CLIENT HELP.",
		"CLIENT SETINFO LIB-NAME go-redis": "+OK",
		"SET a b EX 10":                    "-ERR this server does not expire keys: SET takes NX, XX and GET",
		"SAVE":                             "-ERR there is no place to save to: the index is in memory",
		"CONFIG GET maxclients":            "*2 maxclients 10000",
	} {
		got := c.do(strings.Fields(command)...)
		var words []string
		for _, line := range strings.Split(strings.TrimSuffix(got, "\r\n"), "\r\n") {
			if !strings.HasPrefix(line, "$") {
				words = append(words, line)
			}
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	c.want("SET t text", "+OK\r\n")
	c.want("PANDO.AGG - +", "-ERR the value of 't' is not a number\r\n")
	c.want("PANDO.DELRANGE a (c", ":3\r\n")
	c.want("DBSIZE", ":3\r\n")
	c.do("HELLO", "3")
	c.want("PANDO.RANGE - + LIMIT 1", "*1\r\n*2\r\n$2\r\n(x\r\n$1\r\n5\r\n")
	c.want("PANDO.AT 99", "_\r\n")
}

// A client that takes no replies is dropped, and others are served meanwhile.
func TestSlowReader(t *testing.T) {
	srv, address := start(t, memory(t), WriteTimeout(200*time.Millisecond))
	c := dial(t, "tcp", address)
	c.do("SET", "big", strings.Repeat("x", 1<<20))
	slow := dial(t, "tcp", address)
	slow.send(strings.Repeat(encode("GET", "big"), 200))
	for range 300 {
		if srv.stats.dropped.Load() == 1 {
			break
		}
		c.want("PING", "+PONG\r\n")
		time.Sleep(50 * time.Millisecond)
	}
	if n := srv.stats.dropped.Load(); n != 1 {
		t.Errorf("%d connections were dropped", n)
	}
}

// Replies beyond the limit end the connection; what can be told before is an error, as it is for a transaction.
func TestReplyLimit(t *testing.T) {
	_, address := start(t, memory(t), ReplyLimit(1<<20))
	c := dial(t, "tcp", address)
	for i := range 20 {
		c.do("SET", strconv.Itoa(i), strings.Repeat("x", 100_000))
	}
	if got := c.do("PANDO.RANGE", "-", "+"); !strings.HasPrefix(got, "-ERR the reply is too long") {
		t.Errorf("%.50q", got)
	}
	c.want("PING", "+PONG\r\n")
	c.send(strings.Repeat(encode("GET", "7"), 50)) // each is within the limit
	for range 50 {
		if got := c.reply(); len(got) != 100_000+len("$100000\r\n\r\n") {
			t.Fatalf("%.50q", got)
		}
	}
	c.do("MULTI")
	for i := range 20 {
		c.do("GET", strconv.Itoa(i))
	}
	if got := c.do("EXEC"); !strings.HasPrefix(got, "-ERR transaction exceeds its limit of memory") {
		t.Errorf("%.50q", got)
	}
	c.send(encode(append([]string{"COMMAND", "INFO"}, slices.Repeat([]string{"client"}, 10_000)...)...))
	if text, err := readReply(c.r); err == nil {
		t.Errorf("%.50q", text)
	}
}

// A command that does not go on, and a client that sends nothing, are waited for only so long.
func TestTimeLimits(t *testing.T) {
	_, address := start(t, memory(t), IdleTimeout(100*time.Millisecond))
	for _, begin := range []string{"", "*1\r\n$4\r\nPI"} {
		c := dial(t, "tcp", address)
		c.send(begin)
		if b, err := c.r.ReadByte(); err == nil {
			t.Errorf("%q", b)
		}
	}
}

func TestMaxClients(t *testing.T) {
	srv, address := start(t, memory(t), MaxClients(2))
	a, b := dial(t, "tcp", address), dial(t, "tcp", address)
	a.want("PING", "+PONG\r\n")
	b.want("PING", "+PONG\r\n")
	if got := dial(t, "tcp", address).reply(); got != "-"+errMaxClients+"\r\n" {
		t.Errorf("%q", got)
	}
	a.conn.Close()
	for len(srv.each()) > 1 {
		time.Sleep(time.Millisecond)
	}
	dial(t, "tcp", address).want("PING", "+PONG\r\n")
}

// CLIENT LIST shows connections, and CLIENT KILL ends them.
func TestClients(t *testing.T) {
	_, address := start(t, memory(t))
	a, b := dial(t, "tcp", address), dial(t, "tcp", address)
	a.want("CLIENT SETNAME first", "+OK\r\n")
	b.want("CLIENT SETNAME second", "+OK\r\n")
	list := a.do("CLIENT", "LIST")
	if !strings.Contains(list, "name=first") || !strings.Contains(list, "name=second") || !strings.Contains(list, "cmd=client|list") {
		t.Errorf("%s", list)
	}
	a.want("CLIENT KILL ADDR "+b.conn.LocalAddr().String(), ":1\r\n")
	if _, err := b.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	a.want("CLIENT KILL "+a.conn.LocalAddr().String(), "+OK\r\n")
	if _, err := a.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}

// Serve ends when it is told to: commands that have come are answered, and connections
// that stay are closed.
func TestEnd(t *testing.T) {
	srv, err := New(memory(t), Grace(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	idle, busy := dial(t, "tcp", l.Addr().String()), dial(t, "tcp", l.Addr().String())
	idle.want("PING", "+PONG\r\n")
	busy.want("SET a b", "+OK\r\n")
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
	}
	if _, err := idle.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	if _, err := net.DialTimeout("tcp", l.Addr().String(), time.Second); err == nil {
		t.Error("the server still listens")
	}
}

// savingForEver is a source whose checkpoints end when it is closed.
type savingForEver struct {
	Changer
	begun, closed chan struct{}
}

func (s *savingForEver) Checkpoint() error {
	s.begun <- struct{}{}
	<-s.closed
	return errors.New("closed")
}

// A checkpoint that is under way does not keep the server from its end, in good order.
func TestEndBesideSave(t *testing.T) {
	for _, command := range []string{"SAVE", "BGSAVE"} {
		src := &savingForEver{memory(t), make(chan struct{}, 1), make(chan struct{})}
		srv, err := New(src, Grace(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx, l) }()
		c := dial(t, "tcp", l.Addr().String())
		c.send(command + "\r\n")
		<-src.begun
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", command, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the server does not end", command)
		}
		close(src.closed)
		for srv.saving.Load() || len(srv.each()) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// Nobody else can reach a server without TLS and users.
func TestExposed(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	srv, err := New(memory(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Serve(context.Background(), l); !errors.Is(err, ErrExposed) {
		t.Errorf("%v", err)
	}
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		if _, err := Listen(address); !errors.Is(err, ErrExposed) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestOptions(t *testing.T) {
	src := memory(t)
	for _, opts := range [][]Option{{MaxClients(0)}, {WriteTimeout(0)}, {ReplyLimit(1)}, {Logger(nil)}, {And("index", src)}, {And("", src)}, {And("x", nil)}, {Name("3")}} {
		if _, err := New(src, opts...); err == nil {
			t.Error("no error")
		}
	}
}

// What was acknowledged is there when the store is opened again, and SAVE makes a
// checkpoint of it.
func TestStoreServed(t *testing.T) {
	dir := t.TempDir()
	s, err := pandostore.Open[string, []byte](dir)
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, Store(s))
	c := dial(t, "tcp", address)
	c.want("SET a 1", "+OK\r\n")
	c.want("SAVE", "+OK\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("INCR a", "+QUEUED\r\n")
	c.want("SET b 2", "+QUEUED\r\n")
	c.want("EXEC", "*2\r\n:2\r\n+OK\r\n")
	c.want("CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n")
	c.conn.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = pandostore.Open[string, []byte](dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v, _ := s.Get("a"); string(v) != "2" || s.Len() != 2 {
		t.Errorf("%q, %d entries", v, s.Len())
	}
}
