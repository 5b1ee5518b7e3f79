package pandoserver

import (
	"time"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
)

// call is a command with its arguments, on its way.
type call struct {
	*session
	cmd  *command
	args [][]byte
	tx   *transaction // whose part it is, or nil

	trial bool // modify need not make the new value
}

// gathering is operations of one or of several commands, done as one batch.
type gathering struct {
	ops   []pando.Op
	keys  []string
	vals  [][]byte
	found []bool
	items []item

	reading  bool // there are only OpGets
	deleting bool // there are only OpDeletes, and nobody asks for values
	asking   bool // some command asks what was there before
	wide     bool // some command changes several keys
	longest  int  // value that is set
	bytes    int  // of keys and values
}

// item is a command of a gathering, and its operations.
type item struct {
	cmd      *command
	args     [][]byte
	from, to int
	problem  string // its reply, if it has no operations because of it
}

// mostKept is how many commands and operations a connection keeps room for when they are done: there may be
// thousands of connections.
const mostKept = 1 << 10

func (g *gathering) reset() {
	clear(g.keys)
	clear(g.vals)
	clear(g.items)
	g.ops, g.keys, g.vals, g.found, g.items = g.ops[:0], g.keys[:0], g.vals[:0], g.found[:0], g.items[:0]
	g.reading, g.deleting, g.asking, g.wide, g.longest, g.bytes = true, true, false, false, 0, 0
}

// text returns bytes as a string without copying them: it is valid as long as they are.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// add adds an operation.
func (g *gathering) add(op pando.Op, key, val []byte) {
	g.ops = append(g.ops, op)
	g.keys = append(g.keys, text(key))
	g.vals = append(g.vals, val)
	g.longest = max(g.longest, len(val))
	g.bytes += len(key) + len(val)
	g.reading = g.reading && op == pando.OpGet
	g.deleting = g.deleting && op == pando.OpDelete
	g.asking = g.asking || op != pando.OpSet
}

// command adds the operations of a command.
func (g *gathering) command(cmd *command, args [][]byte) {
	from := len(g.ops)
	problem := cmd.gather(g, args)
	g.items = append(g.items, item{cmd, args, from, len(g.ops), problem})
	g.wide = g.wide || cmd.flags&writes != 0 && len(g.ops)-from > 1
}

// most returns how many operations may be done at once.
func (g *gathering) most(srv *Server) int {
	if g.deleting || !g.asking {
		return valuesAtOnce / usualValue
	}
	return srv.atOnce()
}

// do does all operations.
func (g *gathering) do(src Source, srv *Server) error {
	if len(g.ops) == 0 {
		return nil
	}
	g.found = append(g.found, make([]bool, len(g.ops))...)
	vals, found := g.vals, g.found
	switch {
	case g.reading:
		return g.read(src, srv)
	case !g.asking:
		found = nil
	case g.deleting:
		vals = nil
	}
	srv.saw(g.longest)
	srv.stats.keys.Add(uint64(len(g.ops)), int64(len(g.ops)), 1)
	var err error
	if l, ok := src.(*live); ok && g.wide {
		err = l.applyWide(g.ops, g.keys, vals, found)
	} else {
		err = src.(Changer).Apply(g.ops, g.keys, vals, found)
	}
	if vals != nil && found != nil {
		srv.took(vals)
	}
	if found != nil && err == nil {
		hits, all := 0, 0
		for i, op := range g.ops {
			if op == pando.OpGet {
				all++
				if found[i] {
					hits++
				}
			}
		}
		srv.stats.looked(hits, all)
	}
	return err
}

// read looks all keys up, some at a time.
func (g *gathering) read(src Source, srv *Server) error {
	bare, part := true, true
	for _, i := range g.items {
		bare = bare && i.cmd.flags&presence != 0
		part = part && i.cmd.flags&partly != 0
	}
	srv.stats.keys.Add(uint64(len(g.keys)), int64(len(g.keys)), 1)
	if bare {
		srv.stats.looked(srv.present(src, g.keys, g.found), len(g.keys))
		return nil
	}
	size := 0
	for from := 0; from < len(g.keys); {
		to := min(len(g.keys), from+srv.atOnce())
		srv.stats.looked(src.GetBatch(g.keys[from:to], g.vals[from:to], g.found[from:to]), to-from)
		size += srv.took(g.vals[from:to])
		if size > srv.cfg.reply && len(g.items) == 1 && !part {
			return errLongReply
		}
		from = to
	}
	return nil
}

// present reports which keys are there, and how many. A source that cannot tell without values
// is asked for some of them at a time.
func (s *Server) present(src Source, keys []string, found []bool) (hits int) {
	if a, ok := src.(Asker); ok {
		return a.HasBatch(keys, found)
	}
	vals := make([][]byte, min(len(keys), s.atOnce()))
	for len(keys) > 0 {
		n := min(len(keys), len(vals), s.atOnce())
		hits += src.GetBatch(keys[:n], vals[:n], found[:n])
		s.took(vals[:n])
		clear(vals[:n])
		keys, found = keys[n:], found[n:]
	}
	return hits
}

// gathers reports whether a command can be part of a gathering with others.
func (c *call) gathers() bool {
	return c.cmd.gather != nil && (c.cmd.modify == nil || len(c.args) == 3)
}

// later puts a command on keys into the run under way: what one read has brought of such
// commands, one behind the other, is done together.
func (s *session) later(cmd *command, args [][]byte) {
	s.pending = append(s.pending, call{session: s, cmd: cmd, args: args})
}

// finish does the commands of the run under way, and writes their replies.
func (s *session) finish() {
	if len(s.pending) == 0 {
		return
	}
	all, began := true, time.Now()
	for i := range s.pending {
		all = all && s.pending[i].gathers()
	}
	switch {
	case all:
		s.together(s.pending)
	case len(s.pending) == 1 && s.pending[0].cmd.flags&alone == 0:
		s.counted(s.pending[0].cmd, func() { s.pending[0].change(s.space(s.db)) })
	default:
		for rest := s.pending; len(rest) > 0 && !s.closing; s.ease() {
			rest = rest[s.asOne(rest, false):]
		}
	}
	s.srv.didTogether(s, s.pending, time.Since(began))
	clear(s.pending)
	s.pending = s.pending[:0]
	if cap(s.pending) > mostKept {
		s.pending = nil
	}
	if cap(s.gathering.keys) > mostKept || cap(s.gathering.items) > mostKept {
		s.gathering = gathering{}
	}
	s.gathering.reset() // it has values, and the buffer of their keys
}

// together does commands that gather as one batch, or as several where values are long.
func (s *session) together(calls []call) {
	g := &s.gathering
	for len(calls) > 0 && !s.closing {
		g.reset()
		n := 0
		for ; n < len(calls); n++ {
			before := *g
			g.command(calls[n].cmd, calls[n].args)
			if n > 0 && (len(g.ops) > g.most(s.srv) || g.bytes > valuesAtOnce) {
				*g = before
				break
			}
		}
		err := g.do(s.space(s.db), s.srv)
		for j := 0; j < len(g.items) && !s.closing; j++ {
			s.counted(g.items[j].cmd, func() { s.reply(g, g.items[j], err) })
			s.ease()
		}
		calls = calls[n:]
	}
}

// reply answers a command of a gathering that is done.
func (s *session) reply(g *gathering, i item, err error) {
	switch {
	case i.problem != "":
		s.w.Error(i.problem)
	case err != nil:
		s.w.Error(s.problem(err))
	default:
		i.cmd.answer(&s.w, g, i)
	}
}

// do does a command by itself, on its own or in a transaction.
func (c *call) do() {
	problem := ""
	if c.tx != nil { // another index may be selected since, and the user may do less
		problem = c.refuses(c.cmd, c.args)
	}
	switch {
	case problem != "":
		c.w.Error(problem)
	case c.cmd.run != nil:
		c.cmd.run(c)
	case c.gathers():
		space := c.here()
		g := new(gathering)
		g.reset()
		g.command(c.cmd, c.args)
		c.reply(g, g.items[0], g.do(space, c.srv))
	default:
		c.change(c.here())
	}
}

// change does a command that modifies one key. The key is read first: what leaves it as it is
// need not wait for other changes.
func (c *call) change(src Source) {
	mark := c.w.Mark()
	key := text(c.args[1])
	if c.tries(src, key) == leave {
		return
	}
	err := src.(Changer).Update(key, func(old []byte, had bool) ([]byte, bool) {
		c.w.Cut(mark) // it may run more than once
		val, what := c.cmd.modify(c, old, had)
		switch what {
		case set:
			c.srv.saw(len(val))
			return val, true
		case remove:
			return nil, false
		}
		return old, had
	})
	if err != nil {
		c.w.Cut(mark)
		c.w.Error(c.problem(err))
	}
}

// tries does a command that modifies one key up to its new value, and returns what is to become of the key.
func (c *call) tries(src Source, key string) action {
	var val [1][]byte
	var found [1]bool
	src.GetBatch([]string{key}, val[:], found[:])
	c.trial = true
	_, what := c.cmd.modify(c, val[0], found[0])
	c.trial = false
	return what
}

// here returns the index that a command is about.
func (c *call) here() Source { return c.on(c.db) }

func (c *call) on(db *served) Source {
	if c.tx != nil {
		return c.tx.view(db)
	}
	return c.space(db)
}

// space returns an index as a command by itself sees it.
func (s *session) space(db *served) Source {
	if db.live.Changer != nil {
		return &db.live
	}
	return db.src
}

// live is an index that connections change beside each other, each key for itself, but not
// while somebody has it alone.
type live struct {
	Changer
	srv *Server
}

// share keeps those away who want to be alone, until its result is called.
func (l *live) share() (done func()) {
	if mutant.On && mutant.Is("server: changes are shared") {
		return func() {}
	}
	l.srv.changes.RLock()
	return l.srv.changes.RUnlock
}

func (l *live) HasBatch(keys []string, found []bool) int {
	return l.srv.present(l.Changer, keys, found)
}

func (l *live) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	defer l.share()()
	return l.Changer.Apply(ops, keys, vals, found)
}

// applyWide is Apply where several keys belong together: of two such batches on the same keys, one is
// done before the other for all of them. A tree does batches key by key.
func (l *live) applyWide(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	if _, ok := l.Changer.(Sequential); ok || mutant.On && mutant.Is("server: several keys together") {
		return l.Apply(ops, keys, vals, found)
	}
	l.srv.changes.Lock()
	defer l.srv.changes.Unlock()
	return l.Changer.Apply(ops, keys, vals, found)
}

func (l *live) Update(key string, f func(old []byte, had bool) (val []byte, keep bool)) error {
	defer l.share()()
	return l.Changer.Update(key, f)
}

func (l *live) DeleteRange(b Bounds) (int, error) {
	l.srv.changes.Lock()
	defer l.srv.changes.Unlock()
	return l.Changer.DeleteRange(b)
}
