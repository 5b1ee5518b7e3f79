package pandoserver

import (
	"math"
	"math/rand/v2"
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
	{name: "touch", arity: -2, flags: reads | fast | presence, keys: several, cats: []string{"keyspace"}, summary: "Counts the keys that are there, as EXISTS does.",
		gather: gatherGet, answer: answerFound},
	{name: "getrange", arity: 4, flags: reads | partly, keys: one, cats: []string{"string"}, summary: "Returns the bytes of a value from one place to another, which count from the end where they are below zero.",
		gather: gatherGetRange, answer: answerGetRange},
	{name: "substr", arity: 4, flags: reads | partly, keys: one, cats: []string{"string"}, summary: "Returns the bytes of a value, as GETRANGE does.",
		gather: gatherGetRange, answer: answerGetRange},
	{name: "strlen", arity: 2, flags: reads | fast | partly, keys: one, cats: []string{"string"}, summary: "Returns the length of a value.",
		gather: gatherGet, answer: func(w *resp.Writer, g *gathering, i item) { w.Int(int64(len(g.vals[i.from]))) }},
	{name: "type", arity: 2, flags: reads | fast | presence, keys: one, cats: []string{"keyspace"}, summary: "Returns string for a key that is there, none for others.",
		gather: gatherGet, answer: answerType},
	{name: "set", arity: -3, flags: writes, keys: one, cats: []string{"string"}, summary: "Sets the value of a key. Options: NX or XX, GET.",
		gather: gatherSet, answer: answerOK, modify: modifySet},
	{name: "mset", arity: -3, flags: writes, keys: pairs, cats: []string{"string"}, summary: "Sets the values of several keys.",
		gather: gatherMSet, answer: answerOK},
	{name: "msetnx", arity: -3, flags: writes | alone, keys: pairs, cats: []string{"string"}, summary: "Sets the values of several keys, if none of them is there.",
		run: runMSetNX},
	{name: "setnx", arity: 3, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Sets the value of a key that is not there, and returns 1 if it has.",
		modify: modifySetNX},
	{name: "getset", arity: 3, flags: writes | fast, keys: one, cats: []string{"string"}, summary: "Sets the value of a key, and returns the value that it had.",
		gather: gatherGetSet, answer: answerValue},
	{name: "setrange", arity: 4, flags: writes, keys: one, cats: []string{"string"}, summary: "Replaces the bytes of a value from a place on, behind zeros if it is shorter.",
		modify: modifySetRange},
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
	{name: "randomkey", arity: 1, flags: reads, cats: []string{"keyspace"}, summary: "Returns any of the keys.", run: runRandomKey},
	{name: "flushdb", arity: -1, flags: writes | risky, cats: []string{"keyspace"}, summary: "Deletes all keys.", run: runFlush},
	{name: "flushall", arity: -1, flags: writes | risky, cats: []string{"keyspace"}, summary: "Deletes all keys of all indexes that can be changed, one index behind the other.", run: runFlushAll},
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

func gatherGetSet(g *gathering, args [][]byte) string {
	g.add(pando.OpSet, args[1], args[2])
	g.asking = true // the value before is asked for
	return ""
}

func gatherGetRange(g *gathering, args [][]byte) string {
	for _, place := range args[2:] {
		if _, ok := resp.ParseInt(place); !ok {
			return errNotInt
		}
	}
	g.add(pando.OpGet, args[1], nil)
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

func answerGetRange(w *resp.Writer, g *gathering, i item) {
	val := g.vals[i.from]
	from, _ := resp.ParseInt(i.args[2])
	to, _ := resp.ParseInt(i.args[3])
	n := int64(len(val))
	if from < 0 && to < 0 && from > to { // even if both are before the begin
		w.Bulk(nil)
		return
	}
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to = max(0, to+n)
	}
	to = min(to, n-1)
	if from > to {
		w.Bulk(nil)
		return
	}
	w.Bulk(val[from : to+1])
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

func modifySetNX(c *call, _ []byte, had bool) ([]byte, action) {
	if had {
		c.w.Int(0)
		return nil, leave
	}
	c.w.Int(1)
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
	switch {
	case had && len(more) == 0:
		return nil, leave
	case c.trial:
		return nil, set
	}
	return append(c.longer(old, len(old)+len(more)), more...), set
}

func modifySetRange(c *call, old []byte, had bool) ([]byte, action) {
	at, ok := resp.ParseInt(c.args[2])
	part := c.args[3]
	switch {
	case !ok:
		c.w.Error(errNotInt)
		return nil, leave
	case at < 0:
		c.w.Error("ERR offset is out of range")
		return nil, leave
	case len(part) == 0:
		c.w.Int(int64(len(old)))
		return nil, leave
	case at > int64(resp.Known.Bulk-len(part)):
		c.w.Error(errTooLarge)
		return nil, leave
	}
	n := max(len(old), int(at)+len(part))
	c.w.Int(int64(n))
	if c.trial {
		return nil, set
	}
	c.copies(n)
	val := append(make([]byte, 0, n), old...)[:n]
	copy(val[at:], part)
	return val, set
}

// longer returns a value that can grow to n bytes, behind which nothing of anybody else's lies. A
// transaction appends in place to what it has appended to before: many small pieces take time linear in their bytes.
func (c *call) longer(old []byte, n int) []byte {
	switch {
	case cap(old) >= n && c.tx != nil:
		return old
	case c.tx != nil:
		n += n / 4
	}
	c.copies(n)
	return append(make([]byte, 0, n), old...)
}

// copies takes note of bytes of a value that a command of a transaction copies.
func (c *call) copies(n int) {
	if c.tx != nil {
		c.tx.steps += n / stepBytes
	}
}

func runMSetNX(c *call) {
	if len(c.args)%2 == 0 {
		c.w.Error(wrongArgs("msetnx"))
		return
	}
	g := new(gathering)
	g.reset()
	for i := 1; i < len(c.args); i += 2 {
		g.add(pando.OpSet, c.args[i], c.args[i+1])
	}
	if c.srv.present(c.here(), g.keys, make([]bool, len(g.keys))) > 0 {
		c.w.Int(0)
		return
	}
	if err := g.do(c.here(), c.srv); err != nil {
		c.w.Error(c.problem(err))
		return
	}
	c.w.Int(1)
}

func runRandomKey(c *call) {
	src := c.here()
	for n := src.Len(); n > 0; n = src.Len() { // keys may go meanwhile
		if key, _, ok := src.At(rand.IntN(n)); ok {
			c.w.Text(key)
			return
		}
	}
	c.w.Null()
}

func runFlush(c *call) { c.flush(c.db) }

func runFlushAll(c *call) { c.flush(c.srv.dbs...) }

// flush deletes all keys of those indexes that can be changed.
func (c *call) flush(dbs ...*served) {
	if len(c.args) > 2 || len(c.args) == 2 && !is(c.args[1], "sync") && !is(c.args[1], "async") {
		c.w.Error(errSyntax)
		return
	}
	for _, db := range dbs {
		if db.live.Changer == nil {
			continue
		}
		if _, err := c.on(db).(Changer).DeleteRange(Bounds{}); err != nil {
			c.w.Error(c.problem(err))
			return
		}
	}
	c.w.Status("OK")
}
