package pandoserver

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// aclCommands are the commands about users.
var aclCommands = []*command{
	{name: "whoami", arity: 2, summary: "Returns the name of the user.", run: func(c *call) { c.w.Text(c.user.name) }},
	{name: "list", arity: 2, flags: admin, summary: "Returns the users and what they may do.", run: runACLList},
	{name: "users", arity: 2, flags: admin, summary: "Returns the names of users.", run: runACLUsers},
	{name: "setuser", arity: -3, flags: admin | secret | noMulti, summary: "Makes a user, or changes what one may do.", run: runSetUser},
	{name: "getuser", arity: 3, flags: admin, summary: "Returns what a user may do.", run: runGetUser},
	{name: "deluser", arity: -3, flags: admin | noMulti, summary: "Removes users, and ends their connections.", run: runDelUser},
	{name: "load", arity: 2, flags: admin | noMulti, summary: "Reads the file of users again.", run: runACLLoad},
	{name: "dryrun", arity: -4, flags: admin, summary: "Tells whether a user may do a command, and does not do it.", run: runDryRun},
	{name: "genpass", arity: -2, summary: "Returns a password that nobody guesses, of 256 bits or as many as asked for.", run: runGenPass},
	{name: "cat", arity: -2, summary: "Returns the categories of commands, or the commands of one.", run: runACLCat},
	{name: "help", arity: 2, summary: "Prints this help.", run: func(c *call) { c.help("acl") }},
}

func (c *call) texts(all []string) {
	c.w.Array(len(all))
	for _, t := range all {
		c.w.Text(t)
	}
}

func runACLList(c *call) {
	users := c.srv.cfg.users
	var all []string
	size := 0
	for _, name := range users.names() {
		if u := users.find(name); u != nil && size <= c.srv.cfg.reply { // beyond that it is refused as it is
			all = append(all, "user "+name+" "+u.rules.Load().String())
			size += len(all[len(all)-1])
		}
	}
	c.texts(all)
}

func runACLUsers(c *call) { c.texts(c.srv.cfg.users.names()) }

func runSetUser(c *call) {
	var changes []string
	for _, a := range c.args[3:] {
		changes = append(changes, string(a))
	}
	if err := c.srv.cfg.users.set(string(c.args[2]), changes); err != nil {
		c.w.Error("ERR " + err.Error())
		return
	}
	c.srv.cfg.log.Info("a user was changed", "user", string(c.args[2]), "by", c.user.name)
	c.w.Status("OK")
}

func runGetUser(c *call) {
	u := c.srv.cfg.users.find(string(c.args[2]))
	if u == nil {
		c.w.Null()
		return
	}
	r := u.rules.Load()
	flags := []string{"off"}
	if r.on {
		flags[0] = "on"
	}
	if r.nopass {
		flags = append(flags, "nopass")
	}
	c.w.Map(6)
	c.w.Text("flags")
	c.w.Set(len(flags))
	for _, f := range flags {
		c.w.Text(f)
	}
	c.w.Text("passwords")
	c.w.Array(len(r.hashes))
	for _, h := range r.hashes {
		c.w.Text(h.String())
	}
	c.w.Text("commands")
	c.w.Text(strings.Join(r.said, " "))
	c.w.Text("keys")
	var keys []string
	for _, p := range r.patterns {
		keys = append(keys, "~"+p)
	}
	c.w.Text(strings.Join(keys, " "))
	c.w.Text("channels")
	if r.channels {
		c.w.Text("&*")
	} else {
		c.w.Text("")
	}
	c.w.Text("selectors")
	c.w.Array(0)
}

func runDelUser(c *call) {
	n := int64(0)
	for _, a := range c.args[2:] {
		if string(a) == usualUser {
			c.w.Error("ERR The 'default' user cannot be removed")
			return
		}
	}
	for _, a := range c.args[2:] {
		if c.srv.cfg.users.remove(string(a)) {
			n++
			c.srv.cfg.log.Info("a user was removed", "user", string(a), "by", c.user.name)
		}
	}
	c.srv.dropGone(c.session)
	c.w.Int(n)
}

// dropGone ends connections of users who are no longer there. That of one who asks ends after the reply.
func (s *Server) dropGone(asks *session) {
	for _, c := range s.each() {
		switch name := c.userName(); {
		case name == noUser || s.cfg.users.find(name) != nil:
		case c == asks:
			c.closing = true
		default:
			c.drop()
		}
	}
}

func runACLLoad(c *call) {
	if err := c.srv.cfg.users.Reload(); err != nil {
		c.w.Error("ERR " + err.Error())
		return
	}
	c.srv.cfg.log.Info("users were read again", "by", c.user.name)
	c.w.Status("OK")
	c.srv.dropGone(c.session)
}

func runDryRun(c *call) {
	u := c.srv.cfg.users.find(string(c.args[2]))
	if u == nil {
		c.w.Error("ERR User '" + begin(c.args[2], longestWord) + "' not found")
		return
	}
	args := c.args[3:]
	cmd, problem := c.find(args)
	if problem != "" {
		c.w.Error(problem)
		return
	}
	as := session{srv: c.srv, db: c.db, user: u}
	if problem = as.forbids(cmd, args); problem == "" {
		c.w.Status("OK")
		return
	}
	_, problem, _ = strings.Cut(problem, " ")
	c.w.Text(strings.ToUpper(problem[:1]) + problem[1:])
}

func runGenPass(c *call) {
	bits := int64(256)
	if len(c.args) > 3 {
		c.w.Error("ERR unknown subcommand or wrong number of arguments for '" + begin(c.args[1], longestWord) + "'. Try ACL HELP.")
		return
	}
	if len(c.args) == 3 {
		var ok bool
		if bits, ok = resp.ParseInt(c.args[2]); !ok {
			c.w.Error(errNotInt)
			return
		}
		if bits < 1 || bits > 4096 {
			c.w.Error("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
			return
		}
	}
	digits := int(bits+3) / 4
	b := make([]byte, (digits+1)/2)
	_, _ = rand.Read(b) // which never fails
	c.w.Text(hex.EncodeToString(b)[:digits])
}

// categoriesOf returns the commands of each category.
func categoriesOf() map[string][]string {
	all := map[string][]string{}
	for cmd, name := range fullNames {
		for _, cat := range cmd.categories() {
			all[cat] = append(all[cat], name)
		}
	}
	return all
}

func runACLCat(c *call) {
	if len(c.args) > 3 {
		c.w.Error("ERR unknown subcommand or wrong number of arguments for '" + begin(c.args[1], longestWord) + "'. Try ACL HELP.")
		return
	}
	all := categoriesOf()
	var list []string
	if len(c.args) == 3 {
		var ok bool
		if list, ok = all[strings.ToLower(string(c.args[2]))]; !ok {
			c.w.Error("ERR Unknown category '" + begin(c.args[2], longestWord) + "'")
			return
		}
	} else {
		for cat := range all {
			list = append(list, cat)
		}
	}
	slices.Sort(list)
	c.w.Array(len(list))
	for _, l := range list {
		c.w.Text(l)
	}
}
