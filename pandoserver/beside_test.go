package pandoserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/tool"
)

// redis starts a redis-server of its own, and returns a connection to it.
func redis(t testing.TB) *client {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // short: the path of a socket may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(tool.Path(t, "redis-server", "redis-server"), "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir, "--databases", "1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 1200 {
		if conn, err := net.Dial("unix", socket); err == nil { // the socket is there before the server listens
			conn.Close()
			return dial(t, "unix", socket)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("redis-server does not listen")
	return nil
}

// edgeCases are commands that both servers answer alike, as they are typed.
const edgeCases = `
PING
PING hello
PING a b
ECHO hello
ECHO
ECHO a b
GET
GET a b
GET missing
SET a 1
SET a
GET a
SET a b NX
SET n b NX
SET n c XX
SET missing c XX
SET a d GET
SET missing2 d GET
GET missing2
SET a e NX GET
SET missing3 e NX GET
SET missing4 e XX GET
SET a f NX XX
SET a f FOO
SET a f GET GET
SET a
MSET
MSET a
MSET a 1 b
MSET a 1 b 2 a 3
MGET a b c
MGET
MSETNX a 1 z 2
MSETNX y 1 z 2
MSETNX y
MSETNX y 1 z
EXISTS a a b c nosuch
EXISTS
DEL a a nosuch
DEL
UNLINK b b
STRLEN y
STRLEN nosuch
TYPE y
TYPE nosuch
GETDEL y
GETDEL y
SETNX once 1
SETNX once 2
SETNX once
GETSET once 3
GETSET once2 4
GETSET once
GETRANGE once 0 -1
GETRANGE once2 a 1
GETRANGE once2 0
SET sentence this-is-a-string
GETRANGE sentence 0 3
GETRANGE sentence -3 -1
GETRANGE sentence 0 -1
GETRANGE sentence 10 100
GETRANGE sentence 5 3
GETRANGE sentence -1 -5
GETRANGE sentence -100 -50
GETRANGE sentence -100 2
GETRANGE sentence 0 -100
GETRANGE sentence -100 -101
GETRANGE sentence 0 9223372036854775807
GETRANGE sentence -9223372036854775808 9223372036854775807
GETRANGE sentence 9223372036854775807 9223372036854775807
GETRANGE sentence 9223372036854775808 0
GETRANGE nosuch 0 1
GETRANGE nosuch a 1
SUBSTR sentence 2 5
SUBSTR sentence
SETRANGE sentence 5 XX
GET sentence
SETRANGE sentence 30 tail
GET sentence
SETRANGE sentence -1 x
SETRANGE sentence a x
SETRANGE sentence 9223372036854775807 x
SETRANGE sentence 536870912 x
SETRANGE sentence 536870911 xx
SETRANGE padded 3 x
GET padded
SETRANGE padded
TOUCH sentence nosuch sentence
TOUCH
RANDOMKEY x
DEL padded sentence once once2
INCR counter
INCR counter
DECR counter
INCRBY counter 100
INCRBY counter x
INCRBY counter 01
DECRBY counter 3
DECRBY counter -9223372036854775808
INCRBY counter 9223372036854775807
SET counter 9223372036854775807
INCR counter
SET counter -9223372036854775808
DECR counter
SET text abc
INCR text
APPEND text def
APPEND new xyz
GET text
GET new
APPEND
STRLEN text
DBSIZE
DBSIZE x
SELECT 0
SELECT 1
SELECT -1
SELECT abc
SELECT 99999999999
SELECT 9223372036854775808
ACL CAT a b
EXEC x
MULTI
SET a 1
EXEC x
EXEC
GET a
FLUSHDB foo
FLUSHALL foo
FLUSHALL a b
FLUSHALL ASYNC
SET a 1
FLUSHALL
GET a
FLUSHDB ASYNC
FLUSHDB SYNC
DBSIZE
RANDOMKEY
SETRANGE only 0 x
RANDOMKEY
DEL only
SCAN 99999999999999999999999
SCAN 18446744073709551615
SCAN 18446744073709551616
SCAN -1
SCAN +1
SCAN 007
HELLO 4
HELLO abc
HELLO 2 FOO
HELLO 2 AUTH default
HELLO 2 SETNAME
AUTH x
AUTH a b
AUTH default anything
AUTH a b c
CLIENT
CLIENT FOO
CLIENT SETNAME
CLIENT SETNAME me
CLIENT GETNAME
CLIENT GETNAME x
CLIENT ID x
CLIENT INFO x
CLIENT NO-EVICT
CLIENT NO-EVICT on
CLIENT NO-EVICT x
CLIENT KILL 1.2.3.4:5
CLIENT KILL ID x
CLIENT KILL ID 123456
CLIENT KILL FOO bar
CLIENT KILL TYPE x
CLIENT KILL SKIPME maybe
CLIENT LIST TYPE x
CLIENT LIST FOO
CLIENT LIST ID x
CLIENT LIST TYPE master
CONFIG
CONFIG FOO
CONFIG GET
CONFIG GET save
CONFIG GET appendonly
CONFIG GET nosuch
ACL
ACL FOO
ACL WHOAMI
ACL WHOAMI x
ACL CAT nosuch
ACL USERS
COMMAND FOO
COMMAND COUNT x
COMMAND DOCS nosuch
COMMAND INFO nosuch
COMMAND GETKEYS MSET a b c d
COMMAND GETKEYS GET a
COMMAND GETKEYS PING x
COMMAND GETKEYS NOSUCH x
COMMAND GETKEYS GET
CLUSTER SLOTS
FOO
foo bar baz
WAIT a b
WAIT 0 -1
WAIT 0 x
WAIT 0 0
LASTSAVE x
SAVE x
BGSAVE foo
SCAN x
SCAN 0 COUNT 0
SCAN 0 COUNT a
SCAN 0 FOO
SCAN 0 FOO BAR
SCAN 0 MATCH
SCAN 0
KEYS
EXEC
DISCARD
MULTI
MULTI
PING
SET a 1
INCR a
GET a
EXEC
MULTI
SET a 1
DISCARD
GET a
MULTI
SET a
GET a
EXEC
GET a
MULTI
SAVE
EXEC
MULTI
FOO
EXEC
MULTI
INCR text
SET text abc
INCR text
GET text
DEL text
EXISTS text
MSETNX text 1 a 2
MSETNX text 1 b 2
MGET text a b
SETNX text 2
SETNX text2 2
GETSET text2 three
SETRANGE text2 1 XYZ
APPEND text2 a
APPEND text2 b
APPEND text2 c
SETRANGE text2 2 -
GETRANGE text2 0 3
SUBSTR text2 -2 -1
TOUCH text text2 text3
DEL text2
GETDEL b
APPEND b xyz
DBSIZE
FLUSHDB
DBSIZE
SET b z
DBSIZE
SCAN 0
KEYS *
TYPE b
STRLEN b
EXEC
MULTI
EXEC
ZRANGE index 0 -1 BYLEX
ZRANGE index - + BYLEX WITHSCORES
ZRANGE index - + LIMIT 0 1
ZRANGE index - + BYLEX LIMIT a b
ZRANGE index - + BYLEX LIMIT 0
ZRANGE index - + FOO
ZRANGE index a b
ZRANGE index
ZLEXCOUNT index 0 1
ZLEXCOUNT index -
ZPOPMIN index x
ZPOPMIN index -1
ZPOPMIN index 1 2
ZREMRANGEBYLEX index a b
ZRANGEBYLEX index a b
ZRANGEBYLEX index - + LIMIT 1
ZREVRANGEBYLEX index + - FOO
ZRANK index
ZRANK index a b
RESET x
RESET
MULTI
RESET
EXEC
PING
QUIT`

// Both servers answer the edge cases alike, in both versions of the protocol.
func TestEdgesBesideRedis(t *testing.T) {
	for version := 2; version <= 3; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			theirs := redis(t)
			_, address := start(t, memory(t))
			ours := dial(t, "tcp", address)
			for _, c := range []*client{theirs, ours} {
				c.do("HELLO", strconv.Itoa(version))
			}
			for _, line := range strings.Split(strings.TrimSpace(edgeCases), "\n") {
				args := strings.Fields(line)
				want, got := theirs.do(args...), ours.do(args...)
				if got != want {
					t.Errorf("%s: %q, redis: %q", line, got, want)
				}
			}
			for _, c := range []*client{theirs, ours} {
				if _, err := c.r.ReadByte(); err == nil {
					t.Error("QUIT does not close the connection")
				}
			}
		})
	}
}

// What cannot be understood is answered alike, and closes the connection.
func TestProtocolErrorsBesideRedis(t *testing.T) {
	_, address := start(t, memory(t))
	theirs := redis(t)
	socket := theirs.conn.RemoteAddr().String()
	for _, stream := range []string{
		"*x\r\n", "*1\r\n!\r\n", "*1\r\nabc\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$536870913\r\n", "*1\r\n\r\n",
		"PING \"abc\r\n", "'a'b\r\n", strings.Repeat("a", 70000), "*" + strings.Repeat("1", 70000), "*1\r\n$" + strings.Repeat("1", 70000),
		encode("PING") + "*x\r\n", "PING\r\n\r\n  \r\nECHO \"a\\x41\\n\"\r\nPING 'it\\'s'\n*0\r\n*-1\r\nQUIT\r\n", encode("") + encode("QUIT"),
	} {
		answers := [2]string{}
		for i, c := range []*client{dial(t, "unix", socket), dial(t, "tcp", address)} {
			_ = c.conn.SetDeadline(time.Now().Add(10 * time.Second))
			c.send(stream)
			var b strings.Builder
			_, _ = c.r.WriteTo(&b)
			answers[i] = b.String()
		}
		if answers[0] != answers[1] {
			t.Errorf("%.50q: %q, redis: %q", stream, answers[1], answers[0])
		}
	}
}

// pair is two connections, to redis and to ours, and a record of what was sent.
type pair struct {
	t            *testing.T
	theirs, ours *client
	log          []string
}

// both sends commands to both at once, and compares all replies.
func (p *pair) both(commands [][]string) {
	p.t.Helper()
	var b strings.Builder
	for _, c := range commands {
		b.WriteString(encode(c...))
		p.log = append(p.log, fmt.Sprintf("%q", c))
	}
	p.theirs.send(b.String())
	p.ours.send(b.String())
	for _, c := range commands {
		if want, got := p.theirs.reply(), p.ours.reply(); alike(c, got) != alike(c, want) {
			p.t.Fatalf("%q: %q, redis: %q; before that\n%s", c, got, want, strings.Join(p.log[max(0, len(p.log)-60):], "\n"))
		}
	}
}

var bulkString = regexp.MustCompile(`\$\d+\r\n[^\r]*\r\n`)

// alike returns a reply in a form that does not depend on the order of keys, where redis has
// none.
func alike(command []string, reply string) string {
	if !strings.EqualFold(command[0], "keys") {
		return reply
	}
	parts := bulkString.FindAllString(reply, -1)
	slices.Sort(parts)
	return strings.Join(parts, "")
}

// random returns a random command that both servers have.
func random(rng *rand.Rand) []string {
	key := func() string {
		if rng.IntN(20) == 0 {
			return []string{"", "\x00", "a\r\nb", "\xff\xff", strings.Repeat("k", 300)}[rng.IntN(5)]
		}
		return "key:" + strconv.Itoa(rng.IntN(30))
	}
	val := func() string {
		if rng.IntN(2) == 0 {
			return strconv.Itoa(rng.IntN(1000) - 500)
		}
		return strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(20))
	}
	name := func(s string) string {
		if rng.IntN(2) == 0 {
			return strings.ToUpper(s)
		}
		return s
	}
	several := func(first string, each ...func() string) []string {
		out := []string{first}
		for range 1 + rng.IntN(5) {
			for _, f := range each {
				out = append(out, f())
			}
		}
		return out
	}
	switch rng.IntN(29) {
	case 0, 1, 2, 3:
		return []string{name("get"), key()}
	case 4, 5, 6:
		return []string{name("set"), key(), val()}
	case 7:
		out := []string{"SET", key(), val()}
		for _, o := range []string{"nx", "XX", "GET"} {
			if rng.IntN(3) == 0 {
				out = append(out, o)
			}
		}
		return out
	case 8:
		return several(name("mget"), key)
	case 9:
		return several(name("mset"), key, val)
	case 10:
		return several(name("msetnx"), key, val)
	case 11:
		return several(name("del"), key)
	case 12:
		return several("UNLINK", key)
	case 13:
		return several("EXISTS", key)
	case 14:
		return []string{"STRLEN", key()}
	case 15:
		return []string{[]string{"INCR", "DECR"}[rng.IntN(2)], key()}
	case 16:
		return []string{[]string{"INCRBY", "DECRBY"}[rng.IntN(2)], key(), val()}
	case 17:
		return []string{"APPEND", key(), val()}
	case 18:
		return []string{"GETDEL", key()}
	case 19:
		return []string{"TYPE", key()}
	case 20:
		return []string{"DBSIZE"}
	case 21:
		return []string{"KEYS", []string{"*", "key:1*", "key:?", "key:[1-3]*", "*[^0-5]", "nosuch", "k\\ey*"}[rng.IntN(7)]}
	case 22:
		return []string{"PING", val()}
	case 23:
		return []string{name("setnx"), key(), val()}
	case 24:
		return []string{name("getset"), key(), val()}
	case 25:
		return []string{[]string{"GETRANGE", "substr"}[rng.IntN(2)], key(), strconv.Itoa(rng.IntN(40) - 20), strconv.Itoa(rng.IntN(40) - 20)}
	case 26:
		return []string{name("setrange"), key(), strconv.Itoa(rng.IntN(30) - 2), val()}
	case 27:
		return several(name("touch"), key)
	}
	if rng.IntN(20) == 0 {
		return []string{"FLUSHDB"}
	}
	return []string{"nosuch", key()}
}

// A random log of commands, alone, in pipelines and in transactions, is answered alike byte by
// byte, in both versions of the protocol, by a tree in memory.
func TestLogBesideRedis(t *testing.T) {
	rng := seed.Rand(t)
	for version := 2; version <= 3; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			_, address := start(t, memory(t))
			p := &pair{t: t, theirs: redis(t), ours: dial(t, "tcp", address)}
			for _, c := range []*client{p.theirs, p.ours} {
				c.do("HELLO", strconv.Itoa(version))
			}
			for range seed.Times(600, 10_000) {
				var batch [][]string
				multi := rng.IntN(4) == 0
				if multi {
					batch = append(batch, []string{"MULTI"})
				}
				for range 1 + rng.IntN(1+1<<rng.IntN(7)) {
					c := random(rng)
					if multi && (c[0] == "KEYS" || c[0] == "nosuch" && rng.IntN(10) > 0) {
						continue // keys have no order there; and hardly any transaction would be done
					}
					batch = append(batch, c)
				}
				if multi {
					batch = append(batch, []string{[]string{"EXEC", "EXEC", "EXEC", "DISCARD"}[rng.IntN(4)]})
				}
				p.both(batch)
			}
		})
	}
}

// A random log of commands of sorted sets: keys of the index here, members of a set
// with the score zero there.
func TestOrderBesideRedis(t *testing.T) {
	rng := seed.Rand(t)
	for version := 2; version <= 3; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			_, address := start(t, memory(t))
			p := &pair{t: t, theirs: redis(t), ours: dial(t, "tcp", address)}
			for _, c := range []*client{p.theirs, p.ours} {
				c.do("HELLO", strconv.Itoa(version))
			}
			member := func() string {
				out := make([]byte, rng.IntN(4))
				for i := range out {
					out[i] = "abc\x00\xff"[rng.IntN(5)]
				}
				return string(out)
			}
			edge := func() string {
				if rng.IntN(4) == 0 {
					return []string{"-", "+"}[rng.IntN(2)]
				}
				return []string{"[", "("}[rng.IntN(2)] + member()
			}
			number := func() string { return strconv.Itoa(rng.IntN(60) - 20) }
			for range seed.Times(1500, 30_000) {
				if rng.IntN(3) > 0 {
					m := member()
					p.theirs.do("ZADD", "index", "0", m)
					p.ours.do("SET", m, "value of "+m)
				}
				var c []string
				switch rng.IntN(9) {
				case 0:
					c = []string{"ZRANGE", "index", edge(), edge(), "BYLEX"}
				case 1:
					c = []string{"ZRANGE", "index", edge(), edge(), "BYLEX", "REV", "LIMIT", number(), number()}
				case 2:
					c = []string{"ZRANGEBYLEX", "index", edge(), edge(), "LIMIT", number(), number()}
				case 3:
					c = []string{"ZREVRANGEBYLEX", "index", edge(), edge()}
				case 4:
					c = []string{"ZLEXCOUNT", "index", edge(), edge()}
				case 5:
					c = []string{"ZRANK", "index", member()}
				case 6:
					c = []string{"ZCARD", "index"}
				case 7:
					c = []string{"ZRANGE", "index", number(), number()}
					if rng.IntN(2) == 0 {
						c = append(c, "REV")
					}
				case 8:
					c = []string{"ZPOPMIN", "index"}
					if rng.IntN(2) == 0 {
						c = append(c, strconv.Itoa(rng.IntN(3)))
					}
					if rng.IntN(5) == 0 {
						c = []string{"ZREMRANGEBYLEX", "index", edge(), edge()}
					}
				}
				if rng.IntN(3) == 0 {
					p.both([][]string{{"MULTI"}, c, {"ZCARD", "index"}, c, {"ZRANGE", "index", "0", "-1"}, {"ZRANGE", "index", number(), number(), "REV"}, {"ZLEXCOUNT", "index", edge(), edge()}, {"EXEC"}})
				} else {
					p.both([][]string{c})
				}
			}
		})
	}
}
