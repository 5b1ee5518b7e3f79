package pandoserver

import (
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// scanCommands are the commands that go through all keys.
var scanCommands = []*command{
	{name: "scan", arity: -2, flags: reads, cats: []string{"keyspace"}, summary: "Returns some keys and a cursor, by which the next call goes on. Options: MATCH, COUNT, TYPE.", within: withinMatch, run: runScan},
	{name: "keys", arity: 2, flags: reads | risky, cats: []string{"keyspace"}, summary: "Returns all keys that match a pattern.", run: runKeys,
		within: func(args [][]byte) Bounds {
			return Prefix((&scanning{pattern: text(args[1]), matches: true}).literal())
		}},
}

// scanning is the options of SCAN.
type scanning struct {
	cursor  uint64
	pattern string
	matches bool // there is a pattern
	count   int64
	none    bool // keys of another type are asked for
	most    int  // bytes of keys
	tx      *transaction
	stopped bool // a match has taken too long
}

// scanOf reads the arguments of SCAN. It writes an error if they are wrong.
func (c *call) scanOf() (s scanning, ok bool) {
	if s.cursor, ok = cursorIn(c.args[1]); !ok {
		c.w.Error("ERR invalid cursor")
		return s, false
	}
	s.count = 10
	for i := 2; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			c.w.Error(errSyntax)
			return s, false
		}
		v := c.args[i+1]
		switch {
		case is(c.args[i], "match"):
			s.pattern, s.matches = text(v), string(v) != "*"
		case is(c.args[i], "type"):
			s.none = !is(v, "string")
		case is(c.args[i], "count"):
			if s.count, ok = resp.ParseInt(v); !ok {
				c.w.Error(errNotInt)
				return s, false
			}
			if s.count < 1 {
				c.w.Error(errSyntax)
				return s, false
			}
		default:
			c.w.Error(errSyntax)
			return s, false
		}
	}
	return s, true
}

// cursorIn reads a cursor as redis does: a sign may stand before it, and zeros.
func cursorIn(arg []byte) (cursor uint64, ok bool) {
	const longest = 64
	if len(arg) > longest {
		return 0, false
	}
	digits := strings.TrimPrefix(text(arg), "+")
	negative := len(digits) == len(arg) && strings.HasPrefix(digits, "-")
	if negative {
		digits = digits[1:]
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}

func runScan(c *call) {
	s, ok := c.scanOf()
	if !ok {
		return
	}
	s.most, s.tx = c.srv.cfg.reply, c.tx
	next, keys := uint64(0), []string(nil)
	src := c.here()
	if n, numbers := src.(Numbers); numbers {
		next, keys, ok = s.numbers(n)
	} else {
		next, keys, ok = s.texts(src)
	}
	if s.stopped {
		c.w.Error(errPattern)
		return
	}
	if !ok {
		c.w.Error("ERR the reply is too long: too many keys begin alike for SCAN to stop between them, use PANDO.RANGE - + KEYS, and go on from (the last key")
		return
	}
	if s.none {
		keys = nil
	}
	c.w.Array(2)
	c.w.Text(strconv.FormatUint(next, 10))
	c.w.Array(len(keys))
	for _, k := range keys {
		c.w.Text(k)
	}
}

// literal returns what all keys begin with that match.
func (s *scanning) literal() string {
	if !s.matches {
		return ""
	}
	if n := strings.IndexAny(s.pattern, `*?[\`); n >= 0 {
		return s.pattern[:n]
	}
	return s.pattern
}

// edges returns the first and the last key within bounds.
func edges(src Source, b Bounds) (first, last string, ok bool) {
	for k := range src.Scan(b) {
		first, last, ok = k, k, true
		break
	}
	b.Descending = true
	for k := range src.Scan(b) {
		last = k
		break
	}
	return first, last, ok
}

// common returns how many bytes two keys begin with alike.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// texts returns the next keys, and the cursor behind them. cursor.go says why it is right.
func (s *scanning) texts(src Source) (next uint64, keys []string, fits bool) {
	start := s.literal()
	b := Prefix(start)
	first, last, ok := edges(src, b)
	if !ok {
		return 0, nil, true
	}
	if p := placeOf(s.cursor); s.cursor != 0 && len(first) >= len(start)+p.skip {
		b.Lo = first[:len(start)+p.skip] + keyOf(p.code)
	}
	here := place{skip: min(common(first, last)-len(start), mostSkip)}
	if mutant.On && mutant.Is("server: what all keys share") {
		here.skip = min(len(first)-len(start), mostSkip)
	}
	stem := first[:len(start)+here.skip]
	return s.collect(src, b, func(key string) (uint64, bool) {
		if !strings.HasPrefix(key, stem) {
			return 0, false // it has come since stem was found
		}
		here.code = codeOf(key[len(stem):])
		return here.cursor(), true
	})
}

// numbers is texts where keys are numbers: their codes are places.
func (s *scanning) numbers(src Numbers) (next uint64, keys []string, fits bool) {
	return s.collect(src, src.From(s.cursor), func(key string) (uint64, bool) { return src.Code(key), true })
}

// mostScanned is how many bytes of keys SCAN returns, whatever COUNT says, if it can stop between them.
const mostScanned = 16 << 20

// collect returns keys up to the first whose cursor differs from that of the last, once there are as
// many as asked for. cursorOf returns false for a key that need not be returned. Keys that do not fit are not returned.
func (s *scanning) collect(src Source, b Bounds, cursorOf func(key string) (uint64, bool)) (next uint64, keys []string, fits bool) {
	n, last, size := int64(0), uint64(0), 0
	for key := range src.Scan(b) {
		at, ok := cursorOf(key)
		if ok && (n >= s.count || size > mostScanned) && (at != last || mutant.On && mutant.Is("server: keys of one code together")) {
			return at, keys, true
		}
		if ok {
			last = at
			n++
		}
		found := !s.matches || s.match(key)
		if s.stopped {
			return 0, nil, true
		}
		if found {
			keys = append(keys, key)
			if size += len(key) + overhead; size > s.most {
				return 0, nil, false
			}
		}
	}
	return 0, keys, true
}

func runKeys(c *call) {
	s := scanning{pattern: text(c.args[1]), matches: true, tx: c.tx}
	b := Prefix(s.literal())
	src := c.here()
	if _, numbers := src.(Numbers); numbers {
		b = Bounds{}
	}
	var keys []string
	size := 0
	for key := range src.Scan(b) {
		found := s.match(key)
		if s.stopped {
			c.w.Error(errPattern)
			return
		}
		if !found {
			continue
		}
		if size += len(key) + overhead; size > c.srv.cfg.reply {
			c.w.Error("ERR the reply is too long: use SCAN")
			return
		}
		keys = append(keys, key)
	}
	c.w.Array(len(keys))
	for _, k := range keys {
		c.w.Text(k)
	}
}

// A long key and a long pattern may take a time proportional to the product of their lengths. So what is
// compared for one key is bounded, to some 50 ms, and counts as steps of a transaction.
const (
	mostCompared = 1 << 24 // bytes for a key
	stepCompared = 16      // of them in a step
	errPattern   = "ERR the pattern takes too long to be compared with a key: take a shorter one, or one with fewer *"
)

// match reports whether a key matches the pattern.
func (s *scanning) match(key string) bool {
	found, compared := match(s.pattern, key)
	s.stopped = compared > mostCompared
	if s.tx != nil {
		s.tx.steps += compared / stepCompared
		s.stopped = s.stopped || s.tx.over() != nil // nothing of it will be done
	}
	return found
}

// matches reports whether a key matches a pattern, both of which are short.
func matches(pattern, key string) bool {
	found, _ := match(pattern, key)
	return found
}

// match reports whether a key matches a pattern, by redis' rules: * is any bytes, ? one, [a-z]
// one of these, [^a-z] one of the others, and a backslash makes the next byte mean itself. It returns how many
// bytes it has compared, and gives up where they are more than mostCompared.
func match(pattern, key string) (found bool, compared int) {
	star, rest := -1, 0 // where the last * was, and what of the key is behind it
	p, k := 0, 0
	for ; k < len(key); compared++ {
		if compared > mostCompared {
			return false, compared
		}
		if p < len(pattern) && pattern[p] == '*' {
			star, rest = p, k
			p++
			continue
		}
		if p < len(pattern) {
			if n, ok := matchOne(pattern[p:], key[k]); ok {
				p += n
				k++
				continue
			}
		}
		if star < 0 {
			return false, compared
		}
		rest++ // the * takes one more
		p, k = star+1, rest
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern), compared
}

// matchOne reports whether a byte matches the begin of a pattern, and how many bytes of the
// pattern that is.
func matchOne(pattern string, c byte) (n int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// matchClass is matchOne for a class of bytes. One that does not end ends with the pattern.
func matchClass(pattern string, c byte) (n int, ok bool) {
	n = 1
	not := n < len(pattern) && pattern[n] == '^'
	if not {
		n++
	}
	for ; n < len(pattern); n++ {
		switch {
		case pattern[n] == '\\' && n+1 < len(pattern):
			n++
			ok = ok || pattern[n] == c
		case pattern[n] == ']':
			return n + 1, ok != not
		case n+2 < len(pattern) && pattern[n+1] == '-':
			lo, hi := pattern[n], pattern[n+2]
			ok = ok || min(lo, hi) <= c && c <= max(lo, hi)
			n += 2
		default:
			ok = ok || pattern[n] == c
		}
	}
	return len(pattern), ok != not
}
