package pandoserver

import (
	"math"
	"strconv"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// one and several are where keys are: the first argument, or all.
var (
	one     = [3]int{1, 1, 1}
	several = [3]int{1, -1, 1}
	pairs   = [3]int{1, -1, 2}
)

// keyCommands are the commands on keys and their values.
var keyCommands = []*command{
	{name: "get", arity: 2, flags: reads | fast, keys: one, cats: []string{"string"}, summary: "Returns the value of a key.",
		gather: gatherGet, answer: answerValue},
	{name: "mget", arity: -2, flags: reads | fast, keys: several, cats: []string{"string"}, summary: "Returns the values of several keys.",
		gather: gatherGet, answer: answerValues},
	{name: "exists", arity: -2, flags: reads | fast | presence, keys: several, cats: []string{"keyspace"}, summary: "Counts the keys that are there.",
		gather: gatherGet, answer: answerFound},
	{name: "strlen", arity: 2, flags: reads | fast, keys: one, cats: []string{"string"}, summary: "Returns the length of a value.",
		gather: gatherGet, answer: func(w *resp.Writer, g *gathering, i item) { w.Int(int64(len(g.vals[i.from]))) }},
	{name: "type", arity: 2, flags: reads | fast | presence, keys: one, cats: []string{"keyspace"}, summary: "Returns string for a key that is there, none for others.",
		gather: gatherGet, answer: answerType},
	{name: "set", arity: -3, flags: writes, keys: one, cats: []string{"string"}, summary: "Sets the value of a key. Options: NX or XX, GET.",
		gather: gatherSet, answer: answerOK, modify: modifySet},
	{name: "mset", arity: -3, flags: writes, keys: pairs, cats: []string{"string"}, summary: "Sets the values of several keys.",
		gather: gatherMSet, answer: answerOK},
	{name: "msetnx", arity: -3, flags: writes | alone, keys: pairs, cats: []string{"string"}, summary: "Sets the values of several keys, if none of them is there.",
		run: runMSetNX},
	{name: "getdel", arity: 2, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Deletes a key, and returns the value that it had.",
		gather: gatherGetDel, answer: answerValue},
	{name: "del", arity: -2, flags: writes, keys: several, cats: []string{"keyspace"}, summary: "Deletes keys, and returns how many were there.",
		gather: gatherDel, answer: answerFound},
	{name: "unlink", arity: -2, flags: writes | fast, keys: several, cats: []string{"keyspace"}, summary: "Deletes keys, as DEL does.",
		gather: gatherDel, answer: answerFound},
	{name: "incr", arity: 2, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Adds one to a number.",
		modify: func(c *call, old []byte, had bool) ([]byte, action) { return c.add(old, had, 1) }},
	{name: "decr", arity: 2, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Subtracts one from a number.",
		modify: func(c *call, old []byte, had bool) ([]byte, action) { return c.add(old, had, -1) }},
	{name: "incrby", arity: 3, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Adds to a number.", modify: modifyIncrBy},
	{name: "decrby", arity: 3, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Subtracts from a number.", modify: modifyDecrBy},
	{name: "append", arity: 3, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Appends to a value.", modify: modifyAppend},
	{name: "dbsize", arity: 1, flags: reads | fast, cats: []string{"keyspace"}, summary: "Returns how many keys there are.",
		run: func(c *call) { c.w.Int(int64(c.here().Len())) }},
	{name: "flushdb", arity: -1, flags: writes | risky, cats: []string{"keyspace"}, summary: "Deletes all keys.", run: runFlush},
}

func gatherGet(g *gathering, args [][]byte) string {
	for _, key := range args[1:] {
		g.add(pando.OpGet, key, nil)
	}
	return ""
}

func gatherSet(g *gathering, args [][]byte) string {
	g.add(pando.OpSet, args[1], args[2])
	return ""
}

func gatherMSet(g *gathering, args [][]byte) string {
	if len(args)%2 == 0 {
		return wrongArgs("mset")
	}
	for i := 1; i < len(args); i += 2 {
		g.add(pando.OpSet, args[i], args[i+1])
	}
	return ""
}

func gatherDel(g *gathering, args [][]byte) string {
	for _, key := range args[1:] {
		g.add(pando.OpDelete, key, nil)
	}
	return ""
}

func gatherGetDel(g *gathering, args [][]byte) string {
	g.add(pando.OpDelete, args[1], nil)
	g.deleting = false // the value is asked for
	return ""
}

func answerValue(w *resp.Writer, g *gathering, i item) { value(w, g.vals[i.from], g.found[i.from]) }

// value writes a value, or that there is none.
func value(w *resp.Writer, val []byte, found bool) {
	if found {
		w.Bulk(val)
	} else {
		w.Null()
	}
}

func answerValues(w *resp.Writer, g *gathering, i item) {
	w.Array(i.to - i.from)
	for j := i.from; j < i.to; j++ {
		value(w, g.vals[j], g.found[j])
	}
}

func answerFound(w *resp.Writer, g *gathering, i item) {
	n := int64(0)
	for _, found := range g.found[i.from:i.to] {
		if found {
			n++
		}
	}
	w.Int(n)
}

func answerType(w *resp.Writer, g *gathering, i item) {
	if g.found[i.from] {
		w.Status("string")
	} else {
		w.Status("none")
	}
}

func answerOK(w *resp.Writer, _ *gathering, _ item) { w.Status("OK") }

// modifySet is SET with options.
func modifySet(c *call, old []byte, had bool) ([]byte, action) {
	nx, xx, get := false, false, false
	for _, o := range c.args[3:] {
		switch {
		case is(o, "nx"):
			nx = true
		case is(o, "xx"):
			xx = true
		case is(o, "get"):
			get = true
		case is(o, "ex"), is(o, "px"), is(o, "exat"), is(o, "pxat"), is(o, "keepttl"):
			c.w.Error("ERR this server does not expire keys: SET takes NX, XX and GET")
			return nil, leave
		default:
			c.w.Error(errSyntax)
			return nil, leave
		}
	}
	if nx && xx {
		c.w.Error(errSyntax)
		return nil, leave
	}
	sets := !(nx && had || xx && !had)
	switch {
	case get:
		value(&c.w, old, had)
	case sets:
		c.w.Status("OK")
	default:
		c.w.Null()
	}
	if !sets {
		return nil, leave
	}
	return c.args[2], set
}

// add adds to a number, and writes the sum.
func (c *call) add(old []byte, had bool, by int64) ([]byte, action) {
	n, ok := int64(0), true
	if had {
		n, ok = resp.ParseInt(old)
	}
	switch {
	case !ok:
		c.w.Error(errNotInt)
		return nil, leave
	case by > 0 && n > math.MaxInt64-by, by < 0 && n < math.MinInt64-by:
		c.w.Error(errOverflow)
		return nil, leave
	}
	c.w.Int(n + by)
	return strconv.AppendInt(nil, n+by, 10), set
}

func modifyIncrBy(c *call, old []byte, had bool) ([]byte, action) {
	by, ok := resp.ParseInt(c.args[2])
	if !ok {
		c.w.Error(errNotInt)
		return nil, leave
	}
	return c.add(old, had, by)
}

func modifyDecrBy(c *call, old []byte, had bool) ([]byte, action) {
	by, ok := resp.ParseInt(c.args[2])
	switch {
	case !ok:
		c.w.Error(errNotInt)
		return nil, leave
	case by == math.MinInt64:
		c.w.Error("ERR decrement would overflow")
		return nil, leave
	}
	return c.add(old, had, -by)
}

func modifyAppend(c *call, old []byte, had bool) ([]byte, action) {
	more := c.args[2]
	if len(old)+len(more) > resp.Known.Bulk {
		c.w.Error(errTooLarge)
		return nil, leave
	}
	c.w.Int(int64(len(old) + len(more)))
	if had && len(more) == 0 {
		return nil, leave
	}
	return append(append(make([]byte, 0, len(old)+len(more)), old...), more...), set
}

func runMSetNX(c *call) {
	if len(c.args)%2 == 0 {
		c.w.Error(wrongArgs("msetnx"))
		return
	}
	g := new(gathering)
	g.reset()
	gets := make([]string, 0, len(c.args)/2)
	for i := 1; i < len(c.args); i += 2 {
		gets = append(gets, text(c.args[i]))
		g.add(pando.OpSet, c.args[i], c.args[i+1])
	}
	if c.here().GetBatch(gets, make([][]byte, len(gets)), make([]bool, len(gets))) > 0 {
		c.w.Int(0)
		return
	}
	if err := g.do(c.here(), c.srv); err != nil {
		c.w.Error(c.problem(err))
		return
	}
	c.w.Int(1)
}

func runFlush(c *call) {
	if len(c.args) > 2 || len(c.args) == 2 && !is(c.args[1], "sync") && !is(c.args[1], "async") {
		c.w.Error(errSyntax)
		return
	}
	if _, err := c.here().(Changer).DeleteRange(Bounds{}); err != nil {
		c.w.Error(c.problem(err))
		return
	}
	c.w.Status("OK")
}
