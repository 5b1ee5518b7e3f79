package pandoserver

import (
	"math"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// orderCommands are the commands of redis' sorted sets by lexical range. The index is a
// sorted set under its name, its keys are the members, and all scores are zero.
var orderCommands = []*command{
	{name: "zrange", arity: -4, flags: reads | ordered, keys: one, cats: []string{"sortedset"}, summary: "Returns keys of an index: with BYLEX those of a range, else by their places.", within: withinZRange, run: runZRange},
	{name: "zrangebylex", arity: -4, flags: reads | ordered, keys: one, cats: []string{"sortedset"}, summary: "Returns the keys of a range.", within: withinLex(2, 3),
		run: func(c *call) { c.zrangeByLex(false) }},
	{name: "zrevrangebylex", arity: -4, flags: reads | ordered, keys: one, cats: []string{"sortedset"}, summary: "Returns the keys of a range, the last first.", within: withinLex(3, 2),
		run: func(c *call) { c.zrangeByLex(true) }},
	{name: "zlexcount", arity: 4, flags: reads | fast | ordered, keys: one, cats: []string{"sortedset"}, summary: "Counts the keys of a range.", within: withinLex(2, 3), run: runZLexCount},
	{name: "zrank", arity: 3, flags: reads | fast | ordered, keys: one, cats: []string{"sortedset"}, summary: "Returns the place of a key.", within: withinBelow(2), run: runZRank},
	{name: "zcard", arity: 2, flags: reads | fast | ordered, keys: one, cats: []string{"sortedset"}, summary: "Returns how many keys there are.", run: runZCard},
	{name: "zpopmin", arity: -2, flags: writes | fast | ordered | alone, keys: one, cats: []string{"sortedset"}, summary: "Deletes the first keys, and returns them.", run: runZPopMin},
	{name: "zremrangebylex", arity: 4, flags: writes | ordered, keys: one, cats: []string{"sortedset"}, summary: "Deletes the keys of a range.", within: withinLex(2, 3), run: runZRemRange},
}

// index returns the index that the first key names. It writes an error if there is none, or if it
// cannot be changed and is to be.
func (c *call) index() (Source, bool) {
	db, ok := c.srv.named(text(c.args[1]))
	switch {
	case !ok:
		names := make([]string, len(c.srv.dbs))
		for i, d := range c.srv.dbs {
			names[i] = "'" + d.name + "'"
		}
		c.w.Error("ERR no index is called '" + begin(c.args[1], longestWord) + "': this server has " + strings.Join(names, ", "))
		return nil, false
	case c.cmd.flags&writes != 0 && db.live.Changer == nil:
		c.w.Error(errReadOnly)
		return nil, false
	}
	return c.on(db), true
}

// lex adds an end of a lexical range to bounds: [key, (key, - or +. It returns false if that
// is none. never reports whether nothing can be within bounds.
func (b *Bounds) lex(arg []byte, upper bool) (never, ok bool) {
	key, edge := "", Open
	switch {
	case len(arg) == 0:
		return false, false
	case len(arg) == 1 && arg[0] == '-':
		return upper, true
	case len(arg) == 1 && arg[0] == '+':
		return !upper, true
	case arg[0] == '[':
		key, edge = text(arg[1:]), With
	case arg[0] == '(':
		key, edge = text(arg[1:]), Without
	default:
		return false, false
	}
	if upper {
		b.Hi, b.To = key, edge
	} else {
		b.Lo, b.From = key, edge
	}
	return false, true
}

// lexBounds returns the bounds of a lexical range, and whether nothing can be within. It
// writes an error if they are none.
func (c *call) lexBounds(lo, hi []byte) (b Bounds, never, ok bool) {
	never1, ok1 := b.lex(lo, false)
	never2, ok2 := b.lex(hi, true)
	if !ok1 || !ok2 {
		c.w.Error(errRange)
		return b, false, false
	}
	return b, never1 || never2, true
}

// limit is which entries of a range are asked for.
type limit struct {
	offset, count int64 // count below zero: all
}

// limitOf reads LIMIT's two numbers.
func (c *call) limitOf(args [][]byte) (l limit, ok bool) {
	var ok1, ok2 bool
	l.offset, ok1 = resp.ParseInt(args[0])
	l.count, ok2 = resp.ParseInt(args[1])
	if !ok1 || !ok2 {
		c.w.Error(errNotInt)
	}
	return l, ok1 && ok2
}

// entry is a key and its value.
type entry struct {
	key string
	val []byte
}

// overhead is what an entry takes in memory and in a reply, beside its bytes.
const overhead = 64

// entries collects entries of a range. An offset is counted, and not walked. It writes an
// error if bounds are none, or if there is more than a reply may have.
func (c *call) entries(src Source, b Bounds, l limit) (all []entry, ok bool) {
	if !c.checks(src, b) {
		return nil, false
	}
	if l.offset < 0 || l.count == 0 {
		return nil, true
	}
	if l.offset > 0 {
		if b, ok = skip(src, b, l.offset); !ok {
			return nil, true
		}
	}
	size := 0
	for k, v := range src.Scan(b) {
		if size += len(k) + len(v) + overhead; size > c.srv.cfg.reply {
			c.w.Error(errTooMuch)
			return nil, false
		}
		all = append(all, entry{k, v})
		if int64(len(all)) == l.count {
			break
		}
	}
	return all, true
}

// checks reports whether bounds are keys of an index. It writes an error if not.
func (c *call) checks(src Source, b Bounds) bool {
	n, ok := src.(Numbers)
	if !ok {
		return true
	}
	var err error
	if b.From != Open {
		err = n.Check(b.Lo)
	}
	if b.To != Open && err == nil {
		err = n.Check(b.Hi)
	}
	if err != nil {
		c.w.Error("ERR " + err.Error())
	}
	return err == nil
}

// skip returns bounds without their first n entries, and false if nothing is left.
func skip(src Source, b Bounds, n int64) (Bounds, bool) {
	if n > math.MaxInt32 && n >= int64(src.Len()) {
		return b, false
	}
	at := int(n)
	if b.Descending {
		at = src.Len() - 1 - at
		if b.To != Open {
			at = src.Count(Bounds{Hi: b.Hi, To: b.To}) - 1 - int(n)
		}
	} else if b.From != Open {
		edge := Without
		if b.From == Without {
			edge = With
		}
		at += src.Count(Bounds{Hi: b.Lo, To: edge})
	}
	key, _, ok := src.At(at)
	if !ok {
		return b, false
	}
	if b.Descending {
		b.Hi, b.To = key, With
	} else {
		b.Lo, b.From = key, With
	}
	return b, true
}

// list writes the keys of a range.
func (c *call) list(src Source, b Bounds, l limit) {
	all, ok := c.entries(src, b, l)
	if !ok {
		return
	}
	c.w.Array(len(all))
	for _, e := range all {
		c.w.Text(e.key)
	}
}

func runZRange(c *call) {
	byLex, rev, scores, limited, l := false, false, false, false, limit{0, -1}
	for i := 4; i < len(c.args); i++ {
		a, more := c.args[i], len(c.args)-i-1
		switch {
		case is(a, "bylex"):
			byLex = true
		case is(a, "rev"):
			rev = true
		case is(a, "withscores"):
			scores = true
		case is(a, "limit") && more >= 2:
			var ok bool
			if l, ok = c.limitOf(c.args[i+1:]); !ok {
				return
			}
			limited = true
			i += 2
		default:
			c.w.Error(errSyntax)
			return
		}
	}
	switch {
	case limited && !byLex && l.count != -1:
		c.w.Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case scores && byLex:
		c.w.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	case scores:
		c.w.Error("ERR the keys of an index have no scores")
	case byLex:
		c.lexRange(rev, l)
	default:
		c.placeRange(rev)
	}
}

func (c *call) zrangeByLex(rev bool) {
	l := limit{0, -1}
	for i := 4; i < len(c.args); i++ {
		if !is(c.args[i], "limit") || len(c.args)-i-1 < 2 {
			c.w.Error(errSyntax)
			return
		}
		var ok bool
		if l, ok = c.limitOf(c.args[i+1:]); !ok {
			return
		}
		i += 2
	}
	c.lexRange(rev, l)
}

// lexRange answers with keys of a lexical range. In descending order the upper end comes
// first.
func (c *call) lexRange(rev bool, l limit) {
	lo, hi := c.args[2], c.args[3]
	if rev {
		lo, hi = hi, lo
	}
	b, never, ok := c.lexBounds(lo, hi)
	if !ok {
		return
	}
	b.Descending = rev
	src, ok := c.index()
	switch {
	case !ok:
	case never:
		c.w.Array(0)
	default:
		c.list(src, b, l)
	}
}

// placeRange answers with the keys from one place to another, which count from the end
// where they are below zero.
func (c *call) placeRange(rev bool) {
	from, ok1 := resp.ParseInt(c.args[2])
	to, ok2 := resp.ParseInt(c.args[3])
	if !ok1 || !ok2 {
		c.w.Error(errNotInt)
		return
	}
	src, ok := c.index()
	if !ok {
		return
	}
	n := int64(src.Len())
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to += n
	}
	to = min(to, n-1)
	if from > to {
		c.w.Array(0)
		return
	}
	c.list(src, Bounds{Descending: rev}, limit{from, to - from + 1})
}

func runZLexCount(c *call) {
	b, never, ok := c.lexBounds(c.args[2], c.args[3])
	if !ok {
		return
	}
	src, ok := c.index()
	switch {
	case !ok:
	case never:
		c.w.Int(0)
	case c.checks(src, b):
		c.w.Int(int64(src.Count(b)))
	}
}

func runZRank(c *call) {
	src, ok := c.index()
	if !ok {
		return
	}
	key := text(c.args[2])
	if c.srv.present(src, []string{key}, make([]bool, 1)) == 0 {
		c.w.Null()
		return
	}
	c.w.Int(int64(src.Count(Bounds{Hi: key, To: Without})))
}

func runZCard(c *call) {
	if src, ok := c.index(); ok {
		c.w.Int(int64(src.Len()))
	}
}

// score writes the score of every key.
func (c *call) score() { c.w.Float(0) }

func runZPopMin(c *call) {
	n, counted := int64(1), len(c.args) > 2
	if len(c.args) > 3 {
		c.w.Error(errSyntax)
		return
	}
	if counted {
		var ok bool
		if n, ok = resp.ParseInt(c.args[2]); !ok || n < 0 {
			c.w.Error(errNotPos)
			return
		}
	}
	src, ok := c.index()
	if !ok {
		return
	}
	all, ok := c.entries(src, Bounds{}, limit{0, n})
	if !ok {
		return
	}
	g := new(gathering)
	g.reset()
	for _, e := range all {
		g.add(pando.OpDelete, []byte(e.key), nil)
	}
	if err := g.do(src, c.srv); err != nil {
		c.w.Error(c.problem(err))
		return
	}
	nested := counted && c.w.Version > 2
	if nested {
		c.w.Array(len(all))
	} else {
		c.w.Array(2 * len(all))
	}
	for _, e := range all {
		if nested {
			c.w.Array(2)
		}
		c.w.Text(e.key)
		c.score()
	}
}

func runZRemRange(c *call) {
	b, never, ok := c.lexBounds(c.args[2], c.args[3])
	if !ok {
		return
	}
	src, ok := c.index()
	if !ok {
		return
	}
	n := 0
	if !never {
		var err error
		if n, err = src.(Changer).DeleteRange(b); err != nil {
			c.w.Error(c.problem(err))
			return
		}
	}
	c.w.Int(int64(n))
}
