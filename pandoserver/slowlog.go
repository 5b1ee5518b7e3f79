package pandoserver

import "github.com/pando-index/pando/pandoserver/internal/resp"

var slowCommands = []*command{
	{name: "get", arity: -2, flags: admin, summary: "Returns commands that took long, the newest first: 10 of them or as many as asked for, -1 for all. Of each: id, time, microseconds, arguments, address and name of the client.", run: runSlowGet},
	{name: "len", arity: 2, flags: admin, summary: "Returns how many commands that took long are remembered.", run: func(c *call) { c.w.Int(int64(len(c.srv.slow.newest(slowEntries)))) }},
	{name: "reset", arity: 2, flags: admin, summary: "Forgets commands that took long.", run: func(c *call) {
		c.srv.slow.reset()
		c.w.Status("OK")
	}},
	{name: "help", arity: 2, summary: "Prints this help.", run: func(c *call) { c.help("slowlog") }},
}

func runSlowGet(c *call) {
	n := int64(10)
	if len(c.args) > 3 {
		c.w.Error("ERR unknown subcommand or wrong number of arguments for '" + begin(c.args[1], longestWord) + "'. Try SLOWLOG HELP.")
		return
	}
	if len(c.args) == 3 {
		var ok bool
		if n, ok = resp.ParseInt(c.args[2]); !ok || n < -1 {
			c.w.Error("ERR count should be greater than or equal to -1")
			return
		}
		if n < 0 || n > slowEntries {
			n = slowEntries
		}
	}
	all := c.srv.slow.newest(int(n))
	c.w.Array(len(all))
	for _, e := range all {
		c.w.Array(6)
		c.w.Int(e.id)
		c.w.Int(e.at.Unix())
		c.w.Int(e.took.Microseconds())
		c.texts(e.args)
		c.w.Text(e.address)
		c.w.Text(e.name)
	}
}
