package pandoserver

import (
	"math"
	"slices"
	"strconv"

	"github.com/pando-index/pando/pandoserver/internal/resp"
	"github.com/pando-index/pando/pandoserver/internal/sum"
)

// usualLimit is how many entries a command returns that does not say how many it wants.
const usualLimit = 100

var pandoCats = []string{"pando"}

// pandoCommands are commands of Pando's own, on the index that is selected. An end of a range is a
// key that belongs to it, or [key; (key, which does not; or - and +, where there is none.
var pandoCommands = []*command{
	{name: "pando.range", arity: -3, flags: reads, cats: pandoCats, summary: "Returns the entries of a range. Options: LIMIT n (100 by default), REV, KEYS or VALUES. The next ones begin behind (last.", within: withinEnds, run: runRange},
	{name: "pando.prefix", arity: -2, flags: reads, cats: pandoCats, summary: "Returns the entries whose key begins with a prefix. Options as PANDO.RANGE has them.", within: func(args [][]byte) Bounds { return Prefix(text(args[1])) }, run: runPrefix},
	{name: "pando.count", arity: 3, flags: reads | fast, cats: pandoCats, summary: "Counts the keys of a range.", within: withinEnds, run: runCount},
	{name: "pando.rank", arity: 2, flags: reads | fast, cats: pandoCats, summary: "Counts the keys below a key.", within: withinBelow(1), run: runRank},
	{name: "pando.at", arity: 2, flags: reads | fast, cats: pandoCats, summary: "Returns the entry at a place, counted from 0, or from the end below zero.", run: runAt},
	{name: "pando.floor", arity: 2, flags: reads | fast, cats: pandoCats, summary: "Returns the last entry up to a key.", within: withinBelow(1),
		run: func(c *call) { c.first(Bounds{Hi: text(c.args[1]), To: With, Descending: true}) }},
	{name: "pando.ceil", arity: 2, flags: reads | fast, cats: pandoCats, summary: "Returns the first entry from a key on.", within: func(args [][]byte) Bounds { return Bounds{Lo: text(args[1]), From: With} },
		run: func(c *call) { c.first(Bounds{Lo: text(c.args[1]), From: With}) }},
	{name: "pando.delrange", arity: 3, flags: writes, cats: pandoCats, summary: "Deletes the entries of a range, and returns how many there were.", within: withinEnds, run: runDelRange},
	{name: "pando.agg", arity: 3, flags: reads, cats: pandoCats, summary: "Sums up the values of a range, which are numbers.", within: withinEnds, run: runAgg},
	{name: "pando.hist", arity: -4, flags: reads, cats: pandoCats, summary: "Counts the values of a range between bounds, which ascend.", within: withinEnds, run: runHist},
	{name: "pando.select", arity: -5, flags: reads, cats: pandoCats, summary: "Returns the entries of a range whose value is BELOW x, ABOVE x, EQUAL x, or BETWEEN x and y. Options as PANDO.RANGE has them, but for REV.", within: withinEnds, run: runSelect},
}

// rangeOf returns the bounds that two arguments are.
func rangeOf(lo, hi []byte) (b Bounds, never bool) {
	end := func(arg []byte, upper bool) {
		no, ok := b.lex(arg, upper)
		never = never || no
		switch {
		case ok:
		case upper:
			b.Hi, b.To = text(arg), With
		default:
			b.Lo, b.From = text(arg), With
		}
	}
	end(lo, false)
	end(hi, true)
	return b, never
}

// listing is what a command returns of entries.
type listing struct {
	limit
	rev, noKeys, noVals bool
}

// listingOf reads the options of a listing. It writes an error if there are others.
func (c *call) listingOf(args [][]byte) (l listing, ok bool) {
	l.count = usualLimit
	for i := 0; i < len(args); i++ {
		switch {
		case is(args[i], "rev"):
			l.rev = true
		case is(args[i], "keys") && !l.noKeys:
			l.noVals = true
		case is(args[i], "values") && !l.noVals:
			l.noKeys = true
		case is(args[i], "limit") && i+1 < len(args):
			i++
			if l.count, ok = resp.ParseInt(args[i]); !ok || l.count < 0 {
				c.w.Error(errNotPos)
				return l, false
			}
		default:
			c.w.Error(errSyntax)
			return l, false
		}
	}
	return l, true
}

// write writes entries: pairs are flat in version 2 of the protocol, and arrays of two in 3,
// as redis has them.
func (c *call) write(all []entry, l listing) {
	nested := c.w.Version > 2 && !l.noKeys && !l.noVals
	if nested || l.noKeys || l.noVals {
		c.w.Array(len(all))
	} else {
		c.w.Array(2 * len(all))
	}
	for _, e := range all {
		if nested {
			c.w.Array(2)
		}
		if !l.noKeys {
			c.w.Text(e.key)
		}
		if !l.noVals {
			c.w.Bulk(e.val)
		}
	}
}

// pair writes an entry.
func (c *call) pair(key string, val []byte) {
	c.w.Array(2)
	c.w.Text(key)
	c.w.Bulk(val)
}

func runRange(c *call) {
	b, never := rangeOf(c.args[1], c.args[2])
	l, ok := c.listingOf(c.args[3:])
	if !ok {
		return
	}
	if never {
		l.count = 0
	}
	b.Descending = l.rev
	if all, ok := c.entries(c.here(), b, l.limit); ok {
		c.write(all, l)
	}
}

func runPrefix(c *call) {
	l, ok := c.listingOf(c.args[2:])
	if !ok {
		return
	}
	src := c.here()
	if _, numbers := src.(Numbers); numbers {
		c.w.Error("ERR keys that are numbers have no prefixes")
		return
	}
	b := Prefix(text(c.args[1]))
	b.Descending = l.rev
	if all, ok := c.entries(src, b, l.limit); ok {
		c.write(all, l)
	}
}

func runCount(c *call) {
	b, never := rangeOf(c.args[1], c.args[2])
	src := c.here()
	switch {
	case never:
		c.w.Int(0)
	case c.checks(src, b):
		c.w.Int(int64(src.Count(b)))
	}
}

func runRank(c *call) {
	b := Bounds{Hi: text(c.args[1]), To: Without}
	if src := c.here(); c.checks(src, b) {
		c.w.Int(int64(src.Count(b)))
	}
}

func runAt(c *call) {
	i, ok := resp.ParseInt(c.args[1])
	if !ok {
		c.w.Error(errNotInt)
		return
	}
	src := c.here()
	if i < 0 {
		i += int64(src.Len())
	}
	if i < 0 || i > math.MaxInt32 && i >= int64(src.Len()) {
		c.w.NullArray()
		return
	}
	if key, val, ok := src.At(int(i)); ok {
		c.pair(key, val)
	} else {
		c.w.NullArray()
	}
}

// first answers with the first entry within bounds.
func (c *call) first(b Bounds) {
	src := c.here()
	if !c.checks(src, b) {
		return
	}
	for key, val := range src.Scan(b) {
		c.pair(key, val)
		return
	}
	c.w.NullArray()
}

func runDelRange(c *call) {
	b, never := rangeOf(c.args[1], c.args[2])
	if never {
		c.w.Int(0)
		return
	}
	n, err := c.here().(Changer).DeleteRange(b)
	if err != nil {
		c.w.Error(c.problem(err))
		return
	}
	c.w.Int(int64(n))
}

// numbers calls yield for the values of a range that two arguments are, each as a number. It writes an
// error if a value is none.
func (c *call) numbers(yield func(key string, val []byte, x float64) bool) (ok bool) {
	b, never := rangeOf(c.args[1], c.args[2])
	src := c.here()
	if !c.checks(src, b) {
		return false
	}
	if never {
		return true
	}
	for key, val := range src.Scan(b) {
		x, err := strconv.ParseFloat(text(val), 64)
		if err != nil {
			c.w.Error("ERR the value of '" + begin([]byte(key), longestWord) + "' is not a number")
			return false
		}
		if !yield(key, val, x) {
			break
		}
	}
	return true
}

func runAgg(c *call) {
	var s sum.Sum
	if !c.numbers(func(_ string, val []byte, x float64) bool { s.Add(val, x); return true }) {
		return
	}
	c.w.Map(5)
	c.w.Text("count")
	c.w.Int(int64(s.Count))
	c.w.Text("sum")
	if s.Whole {
		c.w.Int(s.Exact)
	} else {
		c.w.Float(s.Sum)
	}
	c.w.Text("min")
	c.w.Float(s.Low)
	c.w.Text("max")
	c.w.Float(s.High)
	c.w.Text("mean")
	c.w.Float(s.Mean())
}

// floats reads numbers. It writes an error if one is none.
func (c *call) floats(args [][]byte) (all []float64, ok bool) {
	for _, a := range args {
		x, err := strconv.ParseFloat(text(a), 64)
		if err != nil || math.IsNaN(x) {
			c.w.Error("ERR value is not a valid float")
			return nil, false
		}
		all = append(all, x)
	}
	return all, true
}

func runHist(c *call) {
	bounds, ok := c.floats(c.args[3:])
	if !ok {
		return
	}
	if !slices.IsSorted(bounds) {
		c.w.Error("ERR bounds must ascend")
		return
	}
	counts := make([]int64, len(bounds)+1)
	if !c.numbers(func(_ string, _ []byte, x float64) bool {
		counts[sum.Bin(bounds, x)]++
		return true
	}) {
		return
	}
	c.w.Array(len(counts))
	for _, n := range counts {
		c.w.Int(n)
	}
}

func runSelect(c *call) {
	word, n := c.args[3], 1
	if is(word, "between") {
		n = 2
	}
	if len(c.args) < 4+n {
		c.w.Error(errSyntax)
		return
	}
	x, ok := c.floats(c.args[4 : 4+n])
	if !ok {
		return
	}
	var good func(v float64) bool
	switch {
	case is(word, "below"):
		good = func(v float64) bool { return v < x[0] }
	case is(word, "above"):
		good = func(v float64) bool { return v > x[0] }
	case is(word, "equal"):
		good = func(v float64) bool { return v == x[0] }
	case is(word, "between"):
		good = func(v float64) bool { return v >= x[0] && v <= x[1] }
	default:
		c.w.Error(errSyntax)
		return
	}
	l, ok := c.listingOf(c.args[4+n:])
	if !ok {
		return
	}
	if l.rev {
		c.w.Error(errSyntax)
		return
	}
	var all []entry
	size := 0
	if !c.numbers(func(key string, val []byte, v float64) bool {
		if int64(len(all)) < l.count && good(v) {
			all = append(all, entry{key, val})
			size += len(key) + len(val) + overhead
		}
		return int64(len(all)) < l.count && size <= c.srv.cfg.reply
	}) {
		return
	}
	if size > c.srv.cfg.reply {
		c.w.Error(errTooMuch)
		return
	}
	c.write(all, l)
}
