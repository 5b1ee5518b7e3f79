package pandoserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/password"
	"github.com/pando-index/pando/internal/seed"
)

// hashed returns the rule of a password, of which a look costs little.
func hashed(secret string) string { return "#" + password.Make([]byte(secret), 4).String() }

// people returns users that lines describe. A look at a password of one who is not there costs little, too.
func people(t testing.TB, lines ...string) *Users {
	t.Helper()
	u, err := ReadUsers(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	u.nobody.rules.Store(&rules{hashes: []password.Hash{password.Make([]byte("x"), 4)}})
	return u
}

// accessCases are commands about users that both servers answer alike.
const accessCases = `
ACL WHOAMI
ACL LIST
ACL USERS
AUTH x
AUTH default x
AUTH a b c
ACL SETUSER alice
ACL LIST
AUTH alice x
ACL SETUSER alice on nopass
ACL SETUSER alice foo
ACL SETUSER alice +nosuch
ACL SETUSER alice +@nosuch
ACL SETUSER alice +get +set +mget +exists +@transaction ~a*
ACL SETUSER alice +client|setname
ACL SETUSER bob on nopass +@all -@dangerous -client|kill allkeys
ACL GETUSER nobody
ACL DELUSER default
ACL DELUSER nobody
ACL DRYRUN nobody GET a
ACL DRYRUN alice GET
ACL DRYRUN alice GET a1
ACL DRYRUN alice GETDEL a
ACL DRYRUN bob FLUSHDB
ACL GENPASS 0
ACL GENPASS 5000
ACL GENPASS x
ACL LOAD x
SET a1 1
SET b1 1
AUTH alice anything
ACL WHOAMI
GET a1
GET b1
MGET a1 b1
GET a
GET
NOSUCH
SET b 1
DEL a1
PING
CLIENT ID
CLIENT SETNAME me
MULTI
GET a1
GET b1
EXEC
MULTI
GET a1
EXEC
AUTH bob
AUTH bob anything
CLIENT GETNAME
CLIENT KILL ID 99
GET b1
FLUSHDB
KEYS *
MULTI
FLUSHDB
EXEC
AUTH default anything
ACL SETUSER default off
RESET
PING
NOSUCH
GET a b
AUTH default anything
AUTH alice
HELLO
HELLO 3
HELLO 2 AUTH alice wrong SETNAME x
HELLO 4
RESET
AUTH bob x
ACL SETUSER default on
RESET
PING
QUIT`

// Both servers let the same clients do the same, and say alike why not.
func TestAccessBesideRedis(t *testing.T) {
	theirs := redis(t)
	_, address := start(t, memory(t), Restrict(people(t, "user default on nopass +@all ~* &*")))
	ours := dial(t, "tcp", address)
	for _, line := range strings.Split(strings.TrimSpace(accessCases), "\n") {
		args := strings.Fields(line)
		want, got := theirs.do(args...), ours.do(args...)
		if strings.HasPrefix(line, "HELLO") {
			want, _, _ = strings.Cut(want, "$2\r\nid") // of the connection
			got, _, _ = strings.Cut(got, "$2\r\nid")
		}
		if got != want {
			t.Errorf("%s: %q, redis: %q", line, got, want)
		}
	}
}

// A password gets its user in, and nothing else does.
func TestPasswords(t *testing.T) {
	_, address := start(t, memory(t), Restrict(people(t, "user alice on "+hashed("secret")+" "+hashed("another")+" +@all ~*", "user bob off "+hashed("secret")+" +@all ~*")))
	c := dial(t, "tcp", address)
	c.want("GET a", "-"+errNoAuth+"\r\n")
	for _, wrong := range [][2]string{{"alice", "wrong"}, {"alice", ""}, {"bob", "secret"}, {"nobody", "secret"}, {"default", ""}, {"", ""}} {
		if got := c.do("AUTH", wrong[0], wrong[1]); got != "-"+errWrongPass+"\r\n" {
			t.Errorf("%q: %q", wrong, got)
		}
		c.want("GET a", "-"+errNoAuth+"\r\n")
	}
	if got := c.do("AUTH", "secret"); got != "-"+errWrongPass+"\r\n" {
		t.Errorf("%q", got)
	}
	for _, right := range []string{"secret", "another", "secret"} {
		c := dial(t, "tcp", address)
		c.want("AUTH alice "+right, "+OK\r\n")
		c.want("GET a", "$-1\r\n")
		c.want("RESET", "+RESET\r\n")
		c.want("GET a", "-"+errNoAuth+"\r\n")
	}
	c = dial(t, "tcp", address)
	if got := c.do("HELLO", "3", "AUTH", "alice", "secret", "SETNAME", "me"); !strings.Contains(got, "proto\r\n:3") {
		t.Errorf("%q", got)
	}
	c.want("ACL WHOAMI", "$5\r\nalice\r\n")
}

// Of wrong passwords from one address there may be so many at once. Then the right one is not looked at either.
func TestPasswordsThrottled(t *testing.T) {
	u := people(t, "user alice on "+hashed("secret")+" +@all ~*")
	for range guessesAtOnce {
		if _, err := u.Login("192.0.2.1:5", "alice", []byte("secret")); err != nil { // which are not counted
			t.Fatal(err)
		}
	}
	refused := 0
	for i := range 10 * guessesAtOnce {
		_, err := u.Login("192.0.2.1:"+strconv.Itoa(i), "alice", []byte("wrong"))
		if errors.Is(err, ErrPace) {
			refused++
		} else if !errors.Is(err, ErrPassword) {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no password was refused")
	}
	if _, err := u.Login("192.0.2.2:5", "alice", []byte("secret")); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
}

// A user's keys are those that begin as one of the prefixes does, and a range is the user's if all keys are that
// there could be in it.
func TestKeysOfUsers(t *testing.T) {
	rng := seed.Rand(t)
	word := func() string {
		b := make([]byte, rng.IntN(4))
		for i := range b {
			b[i] = "ab\x00\xff"[rng.IntN(4)]
		}
		return string(b)
	}
	var universe []string
	for range 300 {
		universe = append(universe, word(), word()+word())
	}
	held := 0
	for range seed.Count(800) {
		r := newRules()
		var prefixes, keys []string
		for range rng.IntN(4) {
			w := word()
			if rng.IntN(3) > 0 {
				prefixes = append(prefixes, w)
				w += "*"
			} else {
				keys = append(keys, w)
			}
			if err := r.add("~" + w); err != nil {
				t.Fatal(err)
			}
		}
		has := func(key string) bool {
			for _, p := range prefixes {
				if strings.HasPrefix(key, p) {
					return true
				}
			}
			for _, k := range keys {
				if k == key {
					return true
				}
			}
			return false
		}
		for _, k := range universe {
			if r.has(k) != has(k) {
				t.Fatalf("%q of %q and %q: %v", k, prefixes, keys, r.has(k))
			}
		}
		for range 50 {
			b := Bounds{Lo: word(), Hi: word(), From: Edge(rng.IntN(3)), To: Edge(rng.IntN(3))}
			if len(prefixes) > 0 && rng.IntN(2) == 0 {
				b = Bounds{Lo: prefixes[0] + b.Lo, Hi: prefixes[0] + b.Hi, From: b.From, To: b.To}
			}
			if !r.holds(b) {
				continue
			}
			held++
			for _, k := range universe {
				if b.contains(k) && !has(k) {
					t.Fatalf("%q is in %+v, and not of %q and %q", k, b, prefixes, keys)
				}
			}
		}
	}
	if held == 0 {
		t.Error("no range was held")
	}
	r := newRules()
	for _, p := range []string{"~a*", "~b*", "~x*", `~st\*r*`} {
		if err := r.add(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		lo, hi   string
		from, to Edge
		want     bool
	}{
		{"a", "c", With, Without, true}, {"a", "c", With, With, false}, {"a", "bzz", With, With, true}, {"a", "x", With, With, false},
		{"", "b", Open, With, false}, {"a", "", With, Open, false}, {"x1", "x2", Without, With, true}, {"x", "y", With, Without, true},
		{"c", "d", With, With, false}, {"st*r", "st*s", With, Without, true}, {"st", "su", With, Without, false},
	} {
		if got := r.holds(Bounds{Lo: c.lo, Hi: c.hi, From: c.from, To: c.to}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, bad := range []string{"~a?", "~a*b", "~[ab]*", "~?", "%R~a*", "(+get)"} {
		if err := r.add(bad); err == nil {
			t.Errorf("%s is no error", bad)
		}
	}
}

// Commands on ranges are done within a user's keys, and no other.
func TestRangesOfUsers(t *testing.T) {
	_, address := start(t, memory(t), Restrict(people(t, "user default on nopass +@all ~a* ~b*", "user root on nopass +@all ~*")))
	root, c := dial(t, "tcp", address), dial(t, "tcp", address)
	root.want("AUTH root x", "+OK\r\n")
	root.want("MSET a 1 b 2 c 3 0 4", "+OK\r\n")
	for _, command := range strings.Split(strings.TrimSpace(`
GET a
MGET a b
PANDO.RANGE a b
PANDO.RANGE a (c
PANDO.RANGE (a b REV
PANDO.PREFIX a
PANDO.COUNT a b
PANDO.CEIL a
PANDO.AGG a b
PANDO.HIST a b 1
PANDO.SELECT a b ABOVE 0
ZRANGE index [a (c BYLEX
ZRANGE index (c [a BYLEX REV
ZRANGEBYLEX index [a [b
ZREVRANGEBYLEX index [b [a
ZLEXCOUNT index [a [b
SCAN 0 MATCH a*
KEYS b*
PANDO.DELRANGE ab ac
ZREMRANGEBYLEX index [ab [ac
PING`), "\n") {
		if got := c.do(strings.Fields(command)...); strings.HasPrefix(got, "-") && command != "PANDO.CEIL a" {
			t.Errorf("%s: %q", command, got)
		}
	}
	for _, command := range strings.Split(strings.TrimSpace(`
GET c
MGET a c
MSET a 1 c 1
MSETNX x 1
PANDO.RANGE a c
PANDO.RANGE - b
PANDO.RANGE a +
PANDO.RANGE - +
PANDO.PREFIX c
PANDO.COUNT a c
PANDO.RANK b
PANDO.AT 0
PANDO.FLOOR b
PANDO.CEIL a
PANDO.AGG a c
PANDO.HIST a c 1
PANDO.SELECT a c ABOVE 0
PANDO.DELRANGE a c
ZRANGE index 0 -1
ZRANGE index [a [c BYLEX
ZRANGE index [c [a BYLEX REV
ZRANGEBYLEX index - +
ZREVRANGEBYLEX index [c [a
ZREVRANGEBYLEX index + [a
ZLEXCOUNT index - [b
ZRANK index a
ZCARD index
ZPOPMIN index
ZREMRANGEBYLEX index [a [c
SCAN 0
SCAN 0 MATCH *
SCAN 0 MATCH c*
SCAN 0 MATCH a* MATCH c*
SCAN 0 MATCH *a
KEYS *
KEYS c*
DBSIZE
FLUSHDB`), "\n") {
		if got := c.do(strings.Fields(command)...); got != "-"+errNoKeys+"\r\n" {
			t.Errorf("%s: %q", command, got)
		}
		c.want("MULTI", "+OK\r\n")
		if got := c.do(strings.Fields(command)...); got != "-"+errNoKeys+"\r\n" {
			t.Errorf("%s in a transaction: %q", command, got)
		}
		c.want("EXEC", "-"+errAborted+"\r\n")
	}
	root.want("DBSIZE", ":4\r\n")
}

// Every command that reads or changes entries is refused to a user who has no keys: none was forgotten.
func TestUserWithoutKeys(t *testing.T) {
	srv, err := New(memory(t), Restrict(people(t, "user default on nopass +@all")))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for cmd, name := range fullNames {
		if cmd.flags&(reads|writes) == 0 {
			continue
		}
		n++
		args := [][]byte{[]byte(cmd.name)}
		for len(args) < max(cmd.arity, -cmd.arity) || len(args) < 5 && cmd.arity < 0 {
			args = append(args, []byte("index"))
		}
		s := session{srv: srv, db: srv.dbs[0], user: srv.cfg.users.First()}
		if got := s.forbids(cmd, args); got != errNoKeys {
			t.Errorf("%s: %q", name, got)
		}
	}
	if n < 30 {
		t.Errorf("%d commands", n)
	}
}

// An index of numbers is for users who have all keys: one number can be written in several ways.
func TestNumbersOfUsers(t *testing.T) {
	_, address := start(t, memory(t), And("numbers", numbersOnly{memory(t)}), Restrict(people(t, "user default on nopass +@all ~1*")))
	c := dial(t, "tcp", address)
	c.want("GET 1", "$-1\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("SELECT numbers", "+QUEUED\r\n")
	c.want("GET 1", "+QUEUED\r\n") // the index is selected later
	c.want("EXEC", "*2\r\n+OK\r\n-"+errNoKeys+"\r\n")
	c.want("GET 1", "-"+errNoKeys+"\r\n")
	c.want("PANDO.RANGE 1 10", "-"+errNoKeys+"\r\n")
	c.want("ZRANGE numbers [1 [10 BYLEX", "-"+errNoKeys+"\r\n")
}

// numbersOnly is a source of numbers that is only read.
type numbersOnly struct{ Source }

func (numbersOnly) Check(string) error { return nil }
func (numbersOnly) Code(string) uint64 { return 0 }
func (numbersOnly) From(uint64) Bounds { return Bounds{} }

// What a user may do changes while he is there, and when he is removed his connections end.
func TestUsersThatChange(t *testing.T) {
	_, address := start(t, memory(t), Restrict(people(t, "user default on nopass +@all ~*", "user alice on nopass +get ~*")))
	root, alice := dial(t, "tcp", address), dial(t, "tcp", address)
	alice.want("AUTH alice x", "+OK\r\n")
	alice.want("GET a", "$-1\r\n")
	root.want("ACL SETUSER alice -get +set +multi +exec", "+OK\r\n")
	alice.want("GET a", "-NOPERM this user has no permissions to run the 'get' command\r\n")
	alice.want("MULTI", "+OK\r\n")
	alice.want("SET a 1", "+QUEUED\r\n")
	root.want("ACL SETUSER alice -set", "+OK\r\n")
	if got := alice.do("EXEC"); !strings.HasPrefix(got, "*1\r\n-NOPERM") {
		t.Errorf("%q", got)
	}
	root.want("GET a", "$-1\r\n")
	root.want("ACL SETUSER alice off", "+OK\r\n")
	alice.want("GET a", "-"+errNoAuth+"\r\n")
	root.want("CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n")
	root.want("ACL DELUSER alice", ":1\r\n")
	if _, err := alice.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	bob := dial(t, "tcp", address)
	root.want("ACL SETUSER bob on nopass +@all", "+OK\r\n")
	bob.want("AUTH bob x", "+OK\r\n")
	bob.want("ACL DELUSER bob", ":1\r\n")
	if _, err := bob.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}

// The file of users is read again when somebody asks for it, and one that is wrong changes nothing.
func TestUsersFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# who may in\n\nuser default on nopass +@all ~*\nuser alice on nopass +get ~a*\nuser carol on nopass +@all\n")
	u, err := OpenUsers(path)
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, memory(t), Restrict(u))
	c, alice, carol := dial(t, "tcp", address), dial(t, "tcp", address), dial(t, "tcp", address)
	alice.want("AUTH alice x", "+OK\r\n")
	carol.want("AUTH carol x", "+OK\r\n")
	for _, bad := range []string{"user", "alice on", "user alice +nosuch", "user alice on\nuser alice on", "user alice on ~a?"} {
		write(bad)
		if got := c.do("ACL", "LOAD"); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "line ") {
			t.Errorf("%q: %q", bad, got)
		}
	}
	alice.want("GET a", "$-1\r\n")
	write("user default on nopass +@all ~*\nuser alice on nopass +get ~b*")
	c.want("ACL LOAD", "+OK\r\n")
	alice.want("GET a", "-"+errNoKeys+"\r\n")
	alice.want("GET b", "$-1\r\n")
	if _, err := carol.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	if list := c.do("ACL", "USERS"); list != "*2\r\n$5\r\nalice\r\n$7\r\ndefault\r\n" {
		t.Errorf("%q", list)
	}
}

// What ACL LIST tells of users is what makes the same ones.
func TestUsersWritten(t *testing.T) {
	u := people(t, "user a on "+hashed("x")+" +@all -@dangerous +client|list ~a* ~b\\* &*", "user b off nopass", "user default on nopass -@all +get +get -get +set ~*")
	var lines []string
	for _, n := range u.names() {
		lines = append(lines, "user "+n+" "+u.find(n).rules.Load().String())
	}
	again := people(t, lines...)
	for _, n := range u.names() {
		a, b := u.find(n).rules.Load(), again.find(n).rules.Load()
		if a.String() != b.String() || fmt.Sprint(a.spans, len(a.commands)) != fmt.Sprint(b.spans, len(b.commands)) {
			t.Errorf("%s: %v and %v", n, a, b)
		}
		for cmd := range fullNames {
			if a.commands[cmd] != b.commands[cmd] {
				t.Errorf("%s: %s", n, fullNames[cmd])
			}
		}
	}
	if got, want := u.find("default").rules.Load().String(), "on nopass ~* resetchannels -@all -get +set"; got != want {
		t.Errorf("%s", got)
	}
}

// Whoever serves an index in another way asks the same users.
func TestAllow(t *testing.T) {
	u := people(t, "user alice on nopass +mget +pando.range ~a*")
	alice, err := u.Login("", "alice", nil)
	if err != nil {
		t.Fatal(err)
	}
	src := memory(t)
	for _, c := range []struct {
		err  error
		want bool
	}{
		{alice.Allow("mget", src, "a", "ab"), true}, {alice.Allow("MGET", src, "a", "b"), false}, {alice.Allow("mset", src, "a"), false},
		{alice.Allow("nosuch", src), false}, {alice.Allow("mget", numbersOnly{src}, "a"), false},
		{alice.AllowRange("pando.range", src, Bounds{Lo: "a", From: With, Hi: "b", To: Without}), true},
		{alice.AllowRange("pando.range", src, Bounds{Lo: "a", From: With, Hi: "b", To: With}), false},
		{alice.AllowRange("pando.range", src, Bounds{}), false},
	} {
		if (c.err == nil) != c.want || c.err != nil && !errors.Is(c.err, ErrDenied) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
	u.remove("alice")
	if alice.On() || alice.Allow("mget", src, "a") == nil {
		t.Error("a user who was removed may do something")
	}
}

// Clients that have not said who they are have little time for it, however they send.
func TestStrangersInTime(t *testing.T) {
	users := people(t, "user alice on "+hashed("secret")+" +@all ~*")
	_, address := start(t, memory(t), Restrict(users), StrangerTimeout(300*time.Millisecond))
	silent := dial(t, "tcp", address)
	if _, err := silent.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	chatty := dial(t, "tcp", address)
	for {
		if _, err := io.WriteString(chatty.conn, "GET a\r\n"); err != nil {
			break
		}
		if _, err := readReply(chatty.r); err != nil {
			break
		}
	}
	for range 100 { // on a busy machine a client may come too late
		c := dial(t, "tcp", address)
		_, _ = io.WriteString(c.conn, encode("AUTH", "alice", "secret"))
		if got, _ := readReply(c.r); got != "+OK\r\n" {
			continue
		}
		time.Sleep(400 * time.Millisecond)
		c.want("PING", "+PONG\r\n")
		return
	}
	t.Error("nobody came in")
}

// Of clients that have not said who they are there may be only so many: those who say it come in.
func TestMostStrangers(t *testing.T) {
	users := people(t, "user alice on "+hashed("secret")+" +@all ~*")
	srv, address := start(t, memory(t), Restrict(users), MaxStrangers(3))
	var all []*client
	for range 20 {
		all = append(all, dial(t, "tcp", address))
	}
	c := dial(t, "tcp", address)
	c.want("AUTH alice secret", "+OK\r\n")
	open := func() int { return strings.Count(c.do("CLIENT", "LIST"), "user="+noUser) }
	for range 600 {
		if open() <= 3 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n := open(); n > 3 {
		t.Errorf("%d strangers", n)
	}
	srv.mu.Lock()
	if n := len(srv.unknown); n > 3 {
		t.Errorf("%d are counted", n)
	}
	srv.mu.Unlock()
	for _, a := range all {
		a.conn.Close()
	}
	c.want("PING", "+PONG\r\n")
}

// A connection whose client is not known holds little, whatever it sends, and however much it leaves unread.
func TestRoomOfStrangers(t *testing.T) {
	users := people(t, "user alice on "+hashed("secret")+" +@all ~*")
	for _, what := range []string{
		strings.Repeat("x\n", 1<<19), strings.Repeat(encode("GET", "a"), 1<<16), strings.Repeat("a b c d e f g h\n", 1<<16), strings.Repeat("a", 1<<20),
		encode("AUTH", strings.Repeat("a", 16<<10), "b"), strings.Repeat("*10\r\n"+strings.Repeat("$16384\r\n"+strings.Repeat("x", 16386), 10), 10),
		encode(strings.Repeat("a", 20<<10)),
	} {
		srv, address := start(t, memory(t), Restrict(users), WriteTimeout(100*time.Millisecond))
		c := dial(t, "tcp", address)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.WriteString(c.conn, what)
			_ = c.conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		most := int64(0)
		for range 2000 {
			all := srv.each()
			if len(all) == 0 && srv.stats.connections.Load() > 0 {
				break
			}
			for _, s := range all {
				most = max(most, s.held.Load()+s.out.size.Load())
			}
			time.Sleep(time.Millisecond)
		}
		c.conn.Close()
		<-sent
		if most > 64<<10 {
			t.Errorf("%.20q: %d bytes", what, most)
		}
	}
}

// trickle sends or takes a byte now and then, until the connection ends.
func trickle(t *testing.T, step func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if step() != nil {
			return
		}
	}
	t.Error("the connection goes on")
}

// A client that sends a command byte by byte for ever is dropped, though something comes all the time.
func TestTricklingWriter(t *testing.T) {
	_, address := start(t, memory(t), func(c *config) { c.partial = 500 * time.Millisecond })
	c := dial(t, "tcp", address)
	c.send("*2\r\n$3\r\nGET\r\n$100000\r\n")
	trickle(t, func() error {
		_, err := io.WriteString(c.conn, "x")
		return err
	})
}

// One that takes its replies byte by byte is dropped, too.
func TestTricklingReader(t *testing.T) {
	srv, address := start(t, memory(t), WriteTimeout(500*time.Millisecond))
	c := dial(t, "tcp", address)
	c.do("SET", "big", strings.Repeat("x", 1<<20))
	slow := dial(t, "tcp", address)
	slow.send(strings.Repeat(encode("GET", "big"), 100))
	b := make([]byte, 1)
	trickle(t, func() error {
		if srv.stats.dropped.Load() > 0 {
			return io.EOF
		}
		if _, err := slow.conn.Read(b); err != nil {
			return err
		}
		return nil
	})
}

// A password that a user has is not another one when it is added again, in whichever form; and a user has a few.
func TestPasswordsOnce(t *testing.T) {
	srv, address := start(t, memory(t))
	c := dial(t, "tcp", address)
	hashes := func() int { return len(srv.cfg.users.find("app").rules.Load().hashes) }
	digits := "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of secret
	for _, rule := range []string{">secret", ">secret", "#" + digits, hashed("other")} {
		c.want("ACL SETUSER app on "+rule, "+OK\r\n")
	}
	if n := hashes(); n != 2 {
		t.Errorf("%d passwords, want 2", n)
	}
	for i := range mostPasswords - 2 {
		c.want("ACL SETUSER app "+hashed(fmt.Sprint(i)), "+OK\r\n")
	}
	if got := c.do("ACL", "SETUSER", "app", hashed("one more")); !strings.HasPrefix(got, "-ERR Error in ACL SETUSER modifier") {
		t.Errorf("%q", got)
	}
	if n := hashes(); n != mostPasswords {
		t.Errorf("%d passwords", n)
	}
	c.want("AUTH app secret", "+OK\r\n")
}
