package pandoserver

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// commands is the table of all commands.
var commands *table

// adminCommands are the commands about the server.
var adminCommands = []*command{
	{name: "command", arity: -1, flags: connects, summary: "Describes commands.", run: func(c *call) { c.describeCommands(commands.all) }, subs: newTable(commandCommands)},
	{name: "info", arity: -1, flags: risky, summary: "Describes the server, by sections.", run: runInfo},
	{name: "config", arity: -2, summary: "Commands about the configuration.", subs: newTable(configCommands)},
	{name: "acl", arity: -2, summary: "Commands about users.", subs: newTable(aclCommands)},
	{name: "slowlog", arity: -2, summary: "Commands about commands that took long.", subs: newTable(slowCommands)},
	{name: "cluster", arity: -2, summary: "Is an error: this server is one process.",
		run: func(c *call) { c.w.Error("ERR This instance has cluster support disabled") }},
	{name: "save", arity: 1, flags: admin | noMulti, summary: "Writes a checkpoint.", run: runSave},
	{name: "bgsave", arity: -1, flags: admin, summary: "Begins to write a checkpoint.", run: runBgSave},
	{name: "lastsave", arity: 1, flags: fast | admin, summary: "Returns when the last checkpoint was written, in seconds since 1970.",
		run: func(c *call) { c.w.Int(c.srv.lastSave.Load()) }},
	{name: "wait", arity: 3, flags: connects, summary: "Returns how many replicas have the changes so far: none, at once.", run: runWait},
}

var commandCommands = []*command{
	{name: "count", arity: 2, flags: connects, summary: "Returns how many commands there are.", run: func(c *call) { c.w.Int(int64(len(commands.all))) }},
	{name: "list", arity: 2, flags: connects, summary: "Returns the names of commands.", run: runCommandList},
	{name: "info", arity: -2, flags: connects, summary: "Describes commands for programs.", run: runCommandInfo},
	{name: "docs", arity: -2, flags: connects, summary: "Describes commands for people.", run: runCommandDocs},
	{name: "getkeys", arity: -4, flags: connects, summary: "Returns which arguments of a command are keys.", run: runGetKeys},
	{name: "help", arity: 2, flags: connects, summary: "Prints this help.", run: func(c *call) { c.help("command") }},
}

var configCommands = []*command{
	{name: "get", arity: -3, flags: admin, summary: "Returns parameters whose name matches a pattern.", run: runConfigGet},
	{name: "help", arity: 2, summary: "Prints this help.", run: func(c *call) { c.help("config") }},
}

// help answers with the commands of a family.
func (c *call) help(family string) {
	lines := []string{strings.ToUpper(family) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, sub := range commands.byName[family].subs.all {
		lines = append(lines, strings.ToUpper(sub.name), "    "+sub.summary)
	}
	c.w.Array(len(lines))
	for _, l := range lines {
		c.w.Status(l)
	}
}

// describeCommands writes what COMMAND INFO tells of commands. A nil command is one that
// is not there.
func (c *call) describeCommands(all []*command) {
	c.w.Array(len(all))
	for _, cmd := range all {
		switch {
		case c.w.Over():
			return
		case cmd == nil:
			c.w.Null()
		default:
			c.describeCommand(cmd)
		}
	}
}

func (c *call) describeCommand(cmd *command) {
	c.w.Array(10)
	c.w.Text(fullNames[cmd])
	c.w.Int(int64(cmd.arity))
	words := cmd.words()
	c.w.Set(len(words))
	for _, w := range words {
		c.w.Status(w)
	}
	for _, n := range cmd.keys {
		c.w.Int(int64(n))
	}
	cats := cmd.categories()
	c.w.Set(len(cats))
	for _, w := range cats {
		c.w.Status("@" + w)
	}
	c.w.Set(0) // tips
	c.w.Set(0) // where keys are, once more
	if cmd.subs == nil {
		c.w.Set(0)
		return
	}
	c.w.Array(len(cmd.subs.all))
	for _, sub := range cmd.subs.all {
		c.describeCommand(sub)
	}
}

// named returns the commands that arguments name, a family and its member by name|member; all commands if there
// are none. Those that are not there are nil.
func namedCommands(args [][]byte) []*command {
	if len(args) == 0 {
		return commands.all
	}
	var all []*command
	for _, a := range args {
		family, member, isMember := strings.Cut(text(a), "|")
		cmd := commands.find([]byte(family))
		if isMember && cmd != nil {
			if cmd.subs == nil {
				cmd = nil
			} else {
				cmd = cmd.subs.find([]byte(member))
			}
		}
		all = append(all, cmd)
	}
	return all
}

func runCommandInfo(c *call) { c.describeCommands(namedCommands(c.args[2:])) }

func runCommandList(c *call) {
	c.w.Array(len(commands.all))
	for _, cmd := range commands.all {
		c.w.Text(cmd.name)
	}
}

func runCommandDocs(c *call) {
	all := slices.DeleteFunc(slices.Clone(namedCommands(c.args[2:])), func(cmd *command) bool { return cmd == nil })
	c.docs(all)
}

func (c *call) docs(all []*command) {
	c.w.Map(len(all))
	for _, cmd := range all {
		if c.w.Over() {
			return
		}
		c.w.Text(fullNames[cmd])
		n := 3
		if cmd.subs != nil {
			n++
		}
		c.w.Map(n)
		c.w.Text("summary")
		c.w.Text(cmd.summary)
		c.w.Text("since")
		c.w.Text("1.0.0")
		c.w.Text("group")
		c.w.Text(cmd.group())
		if cmd.subs != nil {
			c.w.Text("subcommands")
			c.docs(cmd.subs.all)
		}
	}
}

// group returns where documents have a command.
func (c *command) group() string {
	switch {
	case slices.Contains(c.cats, "sortedset"):
		return "sorted-set"
	case slices.Contains(c.cats, "keyspace"):
		return "generic"
	case slices.Contains(c.cats, "transaction"):
		return "transactions"
	case len(c.cats) > 0:
		return c.cats[0]
	case c.flags&connects != 0:
		return "connection"
	}
	return "server"
}

func runGetKeys(c *call) {
	args := c.args[2:]
	cmd := commands.find(args[0])
	switch {
	case cmd == nil:
		c.w.Error("ERR Invalid command specified")
		return
	case !cmd.takes(len(args)):
		c.w.Error("ERR Invalid number of arguments specified for command")
		return
	}
	var keys [][]byte
	cmd.positions(args, func(key []byte) { keys = append(keys, key) })
	if len(keys) == 0 {
		c.w.Error("ERR The command has no key arguments")
		return
	}
	c.w.Array(len(keys))
	for _, k := range keys {
		c.w.Bulk(k)
	}
}

// parameters are what CONFIG GET tells, by redis' names.
func (s *Server) parameters() [][2]string {
	appendOnly := "no"
	if _, saves := s.dbs[0].src.(Saver); saves {
		appendOnly = "yes"
	}
	return [][2]string{
		{"appendonly", appendOnly}, {"databases", strconv.Itoa(len(s.dbs))}, {"maxclients", strconv.Itoa(s.cfg.clients)},
		{"maxmemory", "0"}, {"maxmemory-policy", "noeviction"}, {"proto-max-bulk-len", strconv.Itoa(resp.Known.Bulk)},
		{"save", ""}, {"slowlog-log-slower-than", strconv.FormatInt(max(-1, s.slow.threshold.Microseconds()), 10)}, {"slowlog-max-len", strconv.Itoa(slowEntries)},
		{"timeout", strconv.Itoa(int(s.cfg.idle.Seconds()))},
	}
}

func runConfigGet(c *call) {
	var found [][2]string
	for _, p := range c.srv.parameters() {
		if slices.ContainsFunc(c.args[2:], func(pattern []byte) bool { return matches(strings.ToLower(string(pattern)), p[0]) }) {
			found = append(found, p)
		}
	}
	c.w.Map(len(found))
	for _, p := range found {
		c.w.Text(p[0])
		c.w.Text(p[1])
	}
}

const errNoPlace = "ERR there is no place to save to: the index is in memory"

// saves reports whether an index has a place to save to.
func (s *Server) saves() bool {
	return slices.ContainsFunc(s.dbs, func(d *served) bool { _, ok := d.src.(Saver); return ok })
}

// save writes a checkpoint of each index that has a place for it.
func (s *Server) save() (err error) {
	began := time.Now()
	for _, d := range s.dbs {
		if saver, ok := d.src.(Saver); ok && err == nil {
			err = saver.Checkpoint()
		}
	}
	if err != nil {
		s.saveFailed.Store(&err)
		s.cfg.log.Error("a checkpoint has failed", "error", err)
		return err
	}
	s.saveFailed.Store(nil)
	s.lastSave.Store(time.Now().Unix())
	s.cfg.log.Info("a checkpoint was written", "took", time.Since(began))
	return nil
}

func runSave(c *call) {
	if !c.srv.saves() {
		c.w.Error(errNoPlace)
		return
	}
	if !c.srv.saving.CompareAndSwap(false, true) {
		c.w.Error("ERR Background save already in progress")
		return
	}
	defer c.srv.saving.Store(false)
	c.saving.Store(true)
	defer c.saving.Store(false)
	if err := c.srv.save(); err != nil {
		c.w.Error("ERR " + err.Error())
		return
	}
	c.w.Status("OK")
}

func runBgSave(c *call) {
	srv := c.srv
	switch {
	case len(c.args) > 2 || len(c.args) == 2 && !is(c.args[1], "schedule"):
		c.w.Error(errSyntax)
		return
	case !srv.saves():
		c.w.Error(errNoPlace)
		return
	case !srv.saving.CompareAndSwap(false, true):
		c.w.Error("ERR Background save already in progress")
		return
	}
	go func() {
		defer srv.saving.Store(false)
		_ = srv.save() // the log has it
	}()
	c.w.Status("Background saving started")
}

func runWait(c *call) {
	_, ok1 := resp.ParseInt(c.args[1])
	timeout, ok2 := resp.ParseInt(c.args[2])
	switch {
	case !ok1:
		c.w.Error(errNotInt)
	case !ok2:
		c.w.Error("ERR timeout is not an integer or out of range")
	case timeout < 0:
		c.w.Error("ERR timeout is negative")
	default:
		c.w.Int(0)
	}
}
