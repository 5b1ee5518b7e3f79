package pandoserver

import (
	"errors"
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
}

// item is a command of a gathering, and its operations.
type item struct {
	cmd      *command
	from, to int
	problem  string // its reply, if it has no operations because of it
}

// mostKept is how many commands and operations a connection keeps room for when they are done: there may be
// thousands of connections.
const mostKept = 1 << 10

func (g *gathering) reset() {
	clear(g.keys)
	clear(g.vals)
	g.ops, g.keys, g.vals, g.found, g.items = g.ops[:0], g.keys[:0], g.vals[:0], g.found[:0], g.items[:0]
	g.reading, g.deleting, g.asking, g.wide, g.longest = true, true, false, false, 0
}

// text returns bytes as a string without copying them: it is valid as long as they are.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// add adds an operation.
func (g *gathering) add(op pando.Op, key, val []byte) {
	g.ops = append(g.ops, op)
	g.keys = append(g.keys, text(key))
	g.vals = append(g.vals, val)
	g.longest = max(g.longest, len(val))
	g.reading = g.reading && op == pando.OpGet
	g.deleting = g.deleting && op == pando.OpDelete
	g.asking = g.asking || op != pando.OpSet
}

// command adds the operations of a command.
func (g *gathering) command(cmd *command, args [][]byte) {
	from := len(g.ops)
	problem := cmd.gather(g, args)
	g.items = append(g.items, item{cmd, from, len(g.ops), problem})
	g.wide = g.wide || cmd.flags&writes != 0 && len(g.ops)-from > 1
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
	if l, ok := src.(*live); ok && g.wide {
		return l.applyWide(g.ops, g.keys, vals, found)
	}
	return src.(Changer).Apply(g.ops, g.keys, vals, found)
}

// read looks all keys up, some at a time. Values that nobody asks for are forgotten at once.
func (g *gathering) read(src Source, srv *Server) error {
	bare := true
	for _, i := range g.items {
		bare = bare && i.cmd.flags&presence != 0
	}
	size := 0
	for from := 0; from < len(g.keys); {
		to := min(len(g.keys), from+srv.atOnce())
		src.GetBatch(g.keys[from:to], g.vals[from:to], g.found[from:to])
		for i := from; i < to; i++ {
			srv.saw(len(g.vals[i]))
			size += len(g.vals[i])
		}
		switch {
		case bare:
			clear(g.vals[from:to])
		case size > srv.cfg.reply && len(g.items) == 1:
			return errLongReply
		}
		from = to
	}
	return nil
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
	all := true
	for i := range s.pending {
		all = all && s.pending[i].gathers()
	}
	switch {
	case all:
		s.together(s.pending)
	case len(s.pending) == 1 && s.pending[0].cmd.flags&alone == 0:
		s.pending[0].change(s.space(s.db))
	default:
		for rest := s.pending; len(rest) > 0 && !s.closing; s.ease() {
			rest = rest[s.asOne(rest, false):]
		}
	}
	s.srv.stats.batch(len(s.pending))
	clear(s.pending)
	s.pending = s.pending[:0]
	if cap(s.pending) > mostKept {
		s.pending = nil
	}
	if cap(s.gathering.keys) > mostKept || cap(s.gathering.items) > mostKept {
		s.gathering = gathering{}
	}
}

// together does commands that gather as one batch, or as several where values are long.
func (s *session) together(calls []call) {
	g := &s.gathering
	for len(calls) > 0 && !s.closing {
		g.reset()
		n, most := 0, s.srv.atOnce()
		for n < len(calls) && (n == 0 || len(g.ops)+len(calls[n].args) <= most) {
			g.command(calls[n].cmd, calls[n].args)
			n++
		}
		err := g.do(s.space(s.db), s.srv)
		for j := 0; j < len(g.items) && !s.closing; j++ {
			s.reply(g, g.items[j], err)
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
	switch {
	case c.cmd.flags&writes != 0 && c.cmd.flags&ordered == 0 && c.db.live.Changer == nil: // selected since
		c.w.Error(errReadOnly)
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
	mark := c.w.Len()
	key := text(c.args[1])
	var val [1][]byte
	var found [1]bool
	src.GetBatch([]string{key}, val[:], found[:])
	if _, what := c.cmd.modify(c, val[0], found[0]); what == leave {
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

// transaction is several commands that nobody else's changes come between.
type transaction struct {
	views map[*served]*overlay
	order []*served
	steps int // of its overlays
}

// mostSteps is how many steps the ranges and counts of a transaction may take, since nobody else changes anything
// meanwhile: about a second.
const mostSteps = 1 << 24

var errSteps = errors.New("transaction takes too long: it has too many ranges and counts behind too many changes")

// view returns a served index as the transaction has changed it.
func (tx *transaction) view(on *served) Source {
	base, ok := on.src.(Changer)
	if !ok {
		return on.src
	}
	if tx.views[on] == nil {
		tx.views[on] = newOverlay(base, &tx.steps)
		tx.order = append(tx.order, on)
	}
	return tx.views[on]
}

// asOne does commands as one change: each sees what those before it did, nobody else
// changes anything meanwhile, and all that they do to an index is one Apply, so that all of it
// or nothing survives a crash. begin writes what comes before the replies. If Apply fails,
// its error is the reply. A transaction is all of them, and its replies are an array. Others stop
// where replies are many, and the result is how many are done.
func (s *session) asOne(calls []call, whole bool) (done int) {
	mark := s.w.Len()
	if whole {
		s.w.Array(len(calls))
	}
	err := func() error {
		if !(mutant.On && mutant.Is("server: transaction alone")) {
			s.srv.changes.Lock()
			defer s.srv.changes.Unlock()
		}
		tx := &transaction{views: map[*served]*overlay{}}
		for done < len(calls) && (whole || s.w.Len() <= mark+flushAt) {
			calls[done].tx = tx
			calls[done].do()
			done++
			if tx.steps > mostSteps {
				return errSteps
			}
		}
		for _, on := range tx.order {
			if err := tx.views[on].commit(); err != nil {
				return err
			}
		}
		return nil
	}()
	if err == nil {
		return done
	}
	s.w.Cut(mark)
	s.w.Error(s.problem(err))
	for i := 1; i < done && !whole; i++ {
		s.w.Error(s.problem(err))
	}
	return done
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
