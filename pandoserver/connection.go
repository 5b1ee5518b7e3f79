package pandoserver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// spoken is the version of redis whose commands and words these are. Clients look at it.
const spoken = "7.0.15"

// connectionCommands are the commands about a connection, and transactions.
var connectionCommands = []*command{
	{name: "hello", arity: -1, flags: fast | early | connects | secret | noMulti, summary: "Chooses the version of the protocol. Options: AUTH, SETNAME.", run: runHello},
	{name: "auth", arity: -2, flags: fast | early | connects | secret | noMulti, summary: "Says who the client is.", run: runAuth},
	{name: "ping", arity: -1, flags: fast | connects, summary: "Returns PONG, or its argument.", run: runPing},
	{name: "echo", arity: 2, flags: fast | connects, summary: "Returns its argument.", run: func(c *call) { c.w.Bulk(c.args[1]) }},
	{name: "quit", arity: -1, flags: fast | early | atOnce | connects, summary: "Ends the connection.", run: runQuit},
	{name: "reset", arity: 1, flags: fast | early | atOnce | connects, summary: "Makes the connection as it was when it began.", run: runReset},
	{name: "select", arity: 2, flags: fast | connects, summary: "Selects an index, by its number or its name.", run: runSelectDB},
	{name: "multi", arity: 1, flags: fast | atOnce, cats: []string{"transaction"}, summary: "Begins a transaction.", run: runMulti},
	{name: "exec", arity: 1, flags: atOnce, cats: []string{"transaction"}, summary: "Does the commands of a transaction, all as one change.", run: runExec},
	{name: "discard", arity: 1, flags: fast | atOnce, cats: []string{"transaction"}, summary: "Forgets the commands of a transaction.", run: runDiscard},
	{name: "client", arity: -2, summary: "Commands about connections.", subs: newTable(clientCommands)},
}

func runHello(c *call) {
	version := c.w.Version
	rest := c.args[1:]
	if len(rest) > 0 {
		n, ok := resp.ParseInt(rest[0])
		switch {
		case !ok:
			c.w.Error("ERR Protocol version is not an integer or out of range")
			return
		case n != 2 && n != 3:
			c.w.Error("NOPROTO unsupported protocol version")
			return
		}
		version, rest = int(n), rest[1:]
	}
	name, named, user := "", false, c.user
	for len(rest) > 0 {
		switch {
		case is(rest[0], "auth") && len(rest) > 2:
			var problem string
			if user, problem = c.login(string(rest[1]), rest[2]); problem != "" {
				c.w.Error(problem)
				return
			}
			rest = rest[3:]
		case is(rest[0], "setname") && len(rest) > 1:
			if name, named = string(rest[1]), true; !goodName(name) {
				c.w.Error(errName)
				return
			}
			rest = rest[2:]
		default:
			c.w.Error("ERR Syntax error in HELLO option '" + begin(rest[0], longestWord) + "'")
			return
		}
	}
	if user == nil || !user.On() {
		c.w.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.become(user)
	c.w.Version = version
	c.show(func(t *shown) {
		t.proto = version
		if named {
			t.name = name
		}
	})
	c.w.Map(7)
	c.w.Text("server")
	c.w.Text("redis")
	c.w.Text("version")
	c.w.Text(spoken)
	c.w.Text("proto")
	c.w.Int(int64(version))
	c.w.Text("id")
	c.w.Int(c.id)
	c.w.Text("mode")
	c.w.Text("standalone")
	c.w.Text("role")
	c.w.Text("master")
	c.w.Text("modules")
	c.w.Array(0)
}

// login returns the user of a name and a password, or what is wrong with them.
func (c *call) login(name string, secret []byte) (user *User, problem string) {
	user, err := c.srv.cfg.users.Login(c.conn.RemoteAddr().String(), name, secret)
	if err == nil {
		return user, ""
	}
	c.srv.stats.denied.Add(1)
	c.srv.heard.Warn("a client was not let in", "client", c.id, "address", c.conn.RemoteAddr(), "user", begin([]byte(name), 64), "error", err)
	if errors.Is(err, ErrPace) {
		return nil, "ERR too many wrong passwords from this address: wait a second for each"
	}
	if errors.Is(err, ErrBusy) {
		return nil, "ERR too many passwords are being looked at: try again in a second"
	}
	return nil, errWrongPass
}

func runAuth(c *call) {
	name, secret := usualUser, c.args[len(c.args)-1]
	switch len(c.args) {
	case 2:
		if c.srv.cfg.users.open() {
			c.w.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
			return
		}
	case 3:
		name = string(c.args[1])
	default:
		c.w.Error(errSyntax)
		return
	}
	user, problem := c.login(name, secret)
	if problem != "" {
		c.w.Error(problem)
		return
	}
	c.become(user)
	c.w.Status("OK")
}

func runPing(c *call) {
	switch len(c.args) {
	case 1:
		c.w.Status("PONG")
	case 2:
		c.w.Bulk(c.args[1])
	default:
		c.w.Error(wrongArgs("ping"))
	}
}

func runQuit(c *call) {
	c.w.Status("OK")
	c.closing = true
}

func runReset(c *call) {
	c.session.flush() // there may be no room any more for the replies so far
	c.multi, c.db = nil, c.srv.dbs[0]
	c.w.Version = 2
	c.show(func(t *shown) { *t = shown{multi: -1, proto: 2} })
	c.become(c.srv.cfg.users.First())
	c.w.Status("RESET")
}

func runSelectDB(c *call) {
	db, ok := c.srv.named(text(c.args[1]))
	if !ok {
		n, isNumber := resp.ParseInt(c.args[1])
		switch {
		case !isNumber:
			c.w.Error(errNotInt)
			return
		case n != int64(int32(n)):
			c.w.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
			return
		case n < 0 || n >= int64(len(c.srv.dbs)):
			c.w.Error(errNoDB)
			return
		}
		db = c.srv.dbs[n]
	}
	c.use(db)
	c.w.Status("OK")
}

// use makes an index the one that commands are about.
func (s *session) use(db *served) {
	s.db = db
	s.show(func(t *shown) { t.db = db.number })
}

func runMulti(c *call) {
	if c.multi != nil {
		c.w.Error("ERR MULTI calls can not be nested")
		return
	}
	c.multi = new(queue)
	c.show(func(t *shown) { t.multi, t.multiBytes = 0, 0 })
	c.w.Status("OK")
}

func runDiscard(c *call) {
	if c.multi == nil {
		c.w.Error("ERR DISCARD without MULTI")
		return
	}
	c.discard()
	c.w.Status("OK")
}

// discard forgets the transaction, if there is one.
func (s *session) discard() {
	s.multi = nil
	s.show(func(t *shown) { t.multi, t.multiBytes = -1, 0 })
}

func runExec(c *call) {
	q := c.multi
	if q == nil {
		c.w.Error("ERR EXEC without MULTI")
		return
	}
	c.discard()
	if q.broken {
		c.w.Error(errAborted)
		return
	}
	c.asOne(q.calls, true)
}

// clientCommands are the commands about connections.
var clientCommands = []*command{
	{name: "id", arity: 2, flags: connects, summary: "Returns the number of the connection.", run: func(c *call) { c.w.Int(c.id) }},
	{name: "setname", arity: 3, flags: connects, summary: "Names the connection.", run: runSetName},
	{name: "getname", arity: 2, flags: connects, summary: "Returns the name of the connection.", run: runGetName},
	{name: "setinfo", arity: 4, flags: connects, summary: "Says which library the client is: LIB-NAME or LIB-VER.", run: runSetInfo},
	{name: "list", arity: -2, flags: admin | connects, summary: "Describes connections. Options: TYPE, ID.", run: runClientList},
	{name: "info", arity: 2, flags: connects, summary: "Describes the connection.", run: func(c *call) { c.w.Verbatim(c.describe(time.Now())) }},
	{name: "kill", arity: -3, flags: admin | connects, summary: "Ends connections: an address, or ID, ADDR, LADDR, USER, TYPE, SKIPME.", run: runKill},
	{name: "no-evict", arity: 3, flags: admin | connects, summary: "Does nothing: this server does not evict clients.", run: runNoEvict},
	{name: "tracking", arity: -3, flags: connects, summary: "ON OPTIN or OFF: nothing is tracked until a client opts in, which it cannot.", run: runTracking},
	{name: "help", arity: 2, flags: connects, summary: "Prints this help.", run: func(c *call) { c.help("client") }},
}

const errName = "ERR Client names cannot contain spaces, newlines or special characters."

// longestClientName is how long a client's name may be, and that of its library: each is kept, and CLIENT LIST has those
// of all clients.
const longestClientName = 1 << 10

// goodName reports whether a client may be called so.
func goodName(name string) bool {
	if len(name) > longestClientName {
		return false
	}
	for i := range len(name) {
		if name[i] < '!' || name[i] > '~' {
			return false
		}
	}
	return true
}

func runSetName(c *call) {
	name := string(c.args[2])
	if !goodName(name) {
		c.w.Error(errName)
		return
	}
	c.show(func(t *shown) { t.name = name })
	c.w.Status("OK")
}

func runGetName(c *call) {
	if c.shown.name == "" { // none but the session itself writes it
		c.w.Null()
		return
	}
	c.w.Text(c.shown.name)
}

func runSetInfo(c *call) {
	val := string(c.args[3])
	switch {
	case !is(c.args[2], "lib-name") && !is(c.args[2], "lib-ver"):
		c.w.Error("ERR Unrecognized option '" + begin(c.args[2], longestWord) + "'")
	case !goodName(val):
		c.w.Error("ERR " + strings.ToLower(string(c.args[2])) + " cannot contain spaces, newlines or special characters.")
	default:
		c.show(func(t *shown) {
			if is(c.args[2], "lib-name") {
				t.lib = val
			} else {
				t.version = val
			}
		})
		c.w.Status("OK")
	}
}

func runNoEvict(c *call) {
	if !is(c.args[2], "on") && !is(c.args[2], "off") {
		c.w.Error(errSyntax)
		return
	}
	c.w.Status("OK")
}

// runTracking takes what clients ask for by default that could opt in, with CLIENT CACHING, and
// then need not: there is no such command here, so that nothing is ever tracked.
func runTracking(c *call) {
	on, optIn := is(c.args[2], "on"), false
	for _, o := range c.args[3:] {
		switch {
		case is(o, "optin"):
			optIn = true
		case is(o, "noloop"):
		default:
			c.w.Error(errSyntax)
			return
		}
	}
	switch {
	case !on && !is(c.args[2], "off"):
		c.w.Error(errSyntax)
	case on && !optIn:
		c.w.Error("ERR this server tracks no keys: CLIENT TRACKING takes ON OPTIN, or OFF")
	default:
		c.w.Status("OK")
	}
}

// describe returns the line of a session in CLIENT LIST.
func (s *session) describe(now time.Time) string {
	s.mu.Lock()
	t := s.shown
	s.mu.Unlock()
	name, flags, events := "NULL", "N", "r"
	if cmd := s.last.Load(); cmd != nil {
		name = fullNames[cmd]
	}
	if t.multi >= 0 {
		flags = "x"
	}
	room, buffered, waiting := s.held.Load(), s.buffered.Load(), s.out.size.Load()
	if waiting > 0 {
		events = "rw"
	}
	return fmt.Sprintf("id=%d addr=%v laddr=%v name=%s age=%d idle=%d flags=%s db=%d sub=0 psub=0 ssub=0 multi=%d qbuf=%d qbuf-free=%d multi-mem=%d omem=%d tot-mem=%d events=%s cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s tot-net-in=%d tot-net-out=%d tot-cmds=%d\n",
		s.id, s.conn.RemoteAddr(), s.conn.LocalAddr(), t.name, int(now.Sub(s.began).Seconds()), int(now.Sub(time.Unix(0, s.lastRead.Load())).Seconds()),
		flags, t.db, t.multi, buffered, max(0, room-buffered), t.multiBytes, waiting, room+waiting+int64(t.multiBytes), events, name, t.user, t.proto, t.lib, t.version,
		s.got.Load(), s.sent.Load(), s.commands.Load())
}

// fullNames has the name of each command, with that of its family.
var fullNames map[*command]string

func init() { // not at once: commands refer to each other
	commands = newTable(connectionCommands, keyCommands, scanCommands, orderCommands, pandoCommands, adminCommands)
	fullNames = map[*command]string{}
	name := func(c *command, full string) {
		c.id = len(fullNames)
		fullNames[c] = full
	}
	for _, c := range commands.all {
		name(c, c.name)
		if c.subs != nil {
			for _, sub := range c.subs.all {
				name(sub, sub.full(c))
			}
		}
	}
}

// sorted returns the sessions that there are in the order in which they began.
func (s *Server) sorted() []*session {
	all := s.each()
	slices.SortFunc(all, func(a, b *session) int { return int(a.id - b.id) })
	return all
}

func runClientList(c *call) {
	ids := map[int64]bool{}
	switch {
	case len(c.args) == 2:
	case is(c.args[2], "type") && len(c.args) == 4:
		switch {
		case is(c.args[3], "normal"):
		case is(c.args[3], "master"), is(c.args[3], "replica"), is(c.args[3], "slave"), is(c.args[3], "pubsub"):
			ids[0] = true // there are none
		default:
			c.w.Error("ERR Unknown client type '" + begin(c.args[3], longestWord) + "'")
			return
		}
	case is(c.args[2], "id") && len(c.args) > 3:
		for _, a := range c.args[3:] {
			id, ok := resp.ParseInt(a)
			if !ok {
				c.w.Error("ERR Invalid client ID")
				return
			}
			ids[id] = true
		}
	default:
		c.w.Error(errSyntax)
		return
	}
	var b strings.Builder
	now := time.Now()
	for _, s := range c.srv.sorted() {
		if len(ids) == 0 || ids[s.id] {
			b.WriteString(s.describe(now))
		}
		if b.Len() > c.srv.cfg.reply {
			break // it is refused as it is
		}
	}
	c.w.Verbatim(b.String())
}

func runKill(c *call) {
	old := len(c.args) == 3
	skipMe := !old
	good := func(s *session) bool { return s.conn.RemoteAddr().String() == string(c.args[2]) }
	if !old {
		var problem string
		if good, skipMe, problem = c.srv.cfg.users.killed(c.args[2:]); problem != "" {
			c.w.Error(problem)
			return
		}
	}
	n := int64(0)
	for _, s := range c.srv.sorted() {
		if !good(s) || s == c.session && skipMe {
			continue
		}
		n++
		if s == c.session {
			c.closing = true // after the reply
		} else {
			s.drop()
		}
	}
	switch {
	case !old:
		c.w.Int(n)
	case n == 0:
		c.w.Error("ERR No such client")
	default:
		c.w.Status("OK")
	}
}

// killed reads which connections are to end.
func (u *Users) killed(args [][]byte) (good func(*session) bool, skipMe bool, problem string) {
	var all []func(*session) bool
	skipMe = true
	if len(args)%2 != 0 {
		return nil, false, errSyntax
	}
	for ; len(args) > 0; args = args[2:] {
		v := string(args[1])
		switch {
		case is(args[0], "id"):
			id, ok := resp.ParseInt(args[1])
			if !ok || id < 1 {
				return nil, false, "ERR client-id should be greater than 0"
			}
			all = append(all, func(s *session) bool { return s.id == id })
		case is(args[0], "addr"):
			all = append(all, func(s *session) bool { return addressIs(s.conn.RemoteAddr(), v) })
		case is(args[0], "laddr"):
			all = append(all, func(s *session) bool { return addressIs(s.conn.LocalAddr(), v) })
		case is(args[0], "user"):
			if u.find(v) == nil {
				return nil, false, "ERR No such user '" + begin(args[1], longestWord) + "'"
			}
			all = append(all, func(s *session) bool { return s.userName() == v })
		case is(args[0], "type") && is(args[1], "normal"):
		case is(args[0], "type") && (is(args[1], "master") || is(args[1], "replica") || is(args[1], "slave") || is(args[1], "pubsub")):
			all = append(all, func(*session) bool { return false })
		case is(args[0], "type"):
			return nil, false, "ERR Unknown client type '" + begin(args[1], longestWord) + "'"
		case is(args[0], "skipme") && is(args[1], "yes"):
			skipMe = true
		case is(args[0], "skipme") && is(args[1], "no"):
			skipMe = false
		default:
			return nil, false, errSyntax
		}
	}
	return func(s *session) bool {
		for _, f := range all {
			if !f(s) {
				return false
			}
		}
		return true
	}, skipMe, ""
}

func addressIs(a net.Addr, text string) bool { return a.String() == text }
