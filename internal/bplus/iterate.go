package bplus

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Cursor reads entries of a tree one after the other, in either direction,
// while others change it: each entry that it returns is the next one of those
// that are there at that time.
type Cursor[C Code] struct {
	t       *Tree[C]
	gen     uint64
	from    run[C] // entries of the leaf that are still to come, the next one first
	passed  []seen // leaves that the way led through since the last entry
	here    seen   // leaf of the entries
	pos     C      // the next entry is not before
	last    C      // key returned last
	end     bool   // there is none
	down    bool
	buffers run[C]
}

// seen is a leaf and its word when it was read.
type seen struct {
	leaf uint32
	word uint64
}

// Ascend returns a cursor over the entries from key on.
func (t *Tree[C]) Ascend(key C) *Cursor[C] { return t.cursor(key, false) }

// Descend returns a cursor over the entries up to key, in descending order.
func (t *Tree[C]) Descend(key C) *Cursor[C] { return t.cursor(key, true) }

func (t *Tree[C]) cursor(key C, down bool) *Cursor[C] {
	c := t.cursors.Get()
	c.t = t
	c.Move(key, down)
	return c
}

// Done gives the cursor's memory to a later one. It must not be used again.
func (c *Cursor[C]) Done() {
	t := c.t
	c.t = nil // what is in the pool does not keep the tree
	t.cursors.Put(c)
}

// Next returns the next entry, and false if there is none.
func (c *Cursor[C]) Next() (key, val C, ok bool) {
	if len(c.from.keys) > 0 && len(c.passed) == 0 && c.here.word&simd.WordSealed == 0 && !stall.On && !mutant.On && c.valid() {
		key, val = c.take() // as nearly always: the leaf is still what it was
		return key, val, true
	}
	return c.next()
}

// take returns the next of the entries that were read.
func (c *Cursor[C]) take() (key, val C) {
	if i := len(c.from.keys) - 1; c.down {
		key, val = c.from.keys[i], c.from.vals[i]
		c.from.keys, c.from.vals = c.from.keys[:i], c.from.vals[:i]
		c.pos, c.end = key-1, key == 0
	} else {
		key, val = c.from.keys[0], c.from.vals[0]
		c.from.keys, c.from.vals = c.from.keys[1:], c.from.vals[1:]
		c.pos, c.end = key+1, key == ^C(0)
	}
	c.last = key
	acquired(c.t, key)
	return key, val
}

// next is Next for all cases.
func (c *Cursor[C]) next() (key, val C, ok bool) {
	if !c.ready() {
		return 0, 0, false
	}
	key, val = c.take()
	return key, val, true
}

// Span returns entries that come next, at least one unless there is none. All
// are there at this time; they are in key order, whatever the direction. Before
// each but the first is used, the guard has to say that it still comes next, and
// Skip says how many were.
func (c *Cursor[C]) Span() (keys, vals []C, g Guard) {
	if !c.ready() {
		return nil, nil, g
	}
	keys, vals = c.from.keys, c.from.vals
	if c.here.word&simd.WordSealed != 0 { // see ready
		keys, vals = keys[:1], vals[:1]
	}
	acquiredEach(c.t, keys)
	return keys, vals, Guard{c.t.leaf(c.here.leaf).word(), &c.t.control.Gen, c.here.word, c.gen}
}

// Guard tells whether a leaf is still what it was.
type Guard struct {
	word, gen *uint64
	was, at   uint64
}

// Holds reports whether what is left of a span is still what comes next.
func (g *Guard) Holds() bool {
	return atomic.LoadUint64(g.word) == g.was && atomic.LoadUint64(g.gen)-g.at <= 1 || mutant.On && mutant.Is("cursor's version")
}

// Skip goes past n entries of a span, at least one.
func (c *Cursor[C]) Skip(n int) {
	c.from.keys, c.from.vals = c.from.keys[n-1:], c.from.vals[n-1:]
	c.take()
}

// ready makes sure that the next entry has been read, and is there at this time.
// It reports whether there is one.
func (c *Cursor[C]) ready() bool {
	c.t.lockRead()
	defer c.t.unlockRead()
	if c.here.word&simd.WordSealed != 0 && !(mutant.On && mutant.Is("sealed leaf read again")) {
		// Another leaf may have taken its entries since, and may have changed. It
		// was right when it was read: to be used for that call alone.
		c.restart()
	}
	for !c.end {
		if len(c.from.keys) == 0 {
			c.fill()
			continue
		}
		if !c.valid() {
			c.restart()
			continue
		}
		stall.At("cursor: entry found")
		c.passed = c.passed[:0]
		return true
	}
	return false
}

// Move makes Next return the first entry from key on, or down from it, whatever
// the cursor has returned before. It allocates nothing.
func (c *Cursor[C]) Move(key C, down bool) {
	c.pos, c.down, c.end = key, down, false
	c.restart()
}

// Again makes Next return the entry that it has returned last, or what has come
// in its place.
func (c *Cursor[C]) Again() {
	c.pos, c.end = c.last, false
	c.restart()
}

// valid reports whether what was read is still so.
func (c *Cursor[C]) valid() bool {
	if mutant.On && mutant.Is("cursor's version") {
		return true
	}
	for _, p := range c.passed {
		if c.t.leaf(p.leaf).loadWord() != p.word {
			return false
		}
	}
	return (c.here.leaf == nothing || c.t.leaf(c.here.leaf).loadWord() == c.here.word) && c.t.Current(c.gen)
}

// restart begins again at the position.
func (c *Cursor[C]) restart() {
	c.from, c.passed, c.here = run[C]{}, c.passed[:0], seen{nothing, 0}
}

// fill reads the next leaf, or finds that there is none.
func (c *Cursor[C]) fill() {
	if c.t.closed.Load() {
		c.end = true
		return
	}
	pos, sideways := c.pos, c.here.leaf != nothing
	if sideways { // the leaf has no more: on to the one beside it
		l := c.t.leaf(c.here.leaf)
		in, high := *l.info(), l.high()
		if !c.valid() {
			c.restart()
			return
		}
		if c.down && in.first == 1 || !c.down && high == ^C(0) {
			c.end = true
			return
		}
		c.passed = append(c.passed, c.here)
		if pos = high + 1; c.down {
			pos = C(in.low)
		}
	} else {
		c.gen = c.t.Gen()
	}
	x, _, word := c.t.seek(pos)
	stall.At("cursor: leaf found")
	c.here = seen{x, word}
	c.buffers.clear()
	l := c.t.leaf(x)
	if next := l.info().next; sideways && !c.down && next != nothing { // where the entries of this leaf are read, the next one comes
		c.t.leaf(next).fetch()
	}
	l.unpack(&c.buffers)
	c.cut(pos)
	stall.At("cursor: leaf read")
	if !c.valid() {
		c.restart()
	}
}

// cut keeps the entries on the right side of a position.
func (c *Cursor[C]) cut(pos C) {
	if !c.down && len(c.buffers.keys) > 0 && c.buffers.keys[0] >= pos { // all of them, as nearly always
		c.from = c.buffers
		return
	}
	i := below(append(c.buffers.keys, 0), pos)
	c.from = run[C]{c.buffers.keys[i:], c.buffers.vals[i:]}
	if c.down {
		if i < len(c.buffers.keys) && c.buffers.keys[i] == pos {
			i++
		}
		c.from = run[C]{c.buffers.keys[:i], c.buffers.vals[:i]}
	}
}

// Pop deletes the least entry, or the greatest, and returns it.
func (t *Tree[C]) Pop(greatest bool) (key, val C, ok bool, err error) {
	t.lockWrite()
	defer t.unlockWrite()
	end := C(0)
	if greatest {
		end = ^C(0)
	}
	s := t.scratches.Get().ready()
	defer t.scratches.Put(s)
	for try := 0; ; try++ {
		w := writing[C]{t: t, key: end, used: new(promises)}
		if !w.find() {
			return 0, 0, false, ErrClosed
		}
		in := *w.l.info()
		s.run.clear()
		w.l.unpack(&s.run)
		if !w.stable() || w.word&simd.WordBusy != 0 {
			pause(try)
			continue
		}
		stall.At("pop: leaf read")
		n := len(s.run.keys)
		if n == 0 {
			if only := in.first == 1 && in.next == nothing; only {
				return 0, 0, false, nil
			}
			t.tidy(end)
			pause(try)
			continue
		}
		w.key = s.run.keys[0]
		if greatest {
			w.key = s.run.keys[n-1]
		}
		word := w.word
		if w.j, w.word = t.within(w.x, w.key); w.word != word {
			continue
		}
		w.read()
		released(t, w.key)
		if done, err := w.put(0, false); done || err != nil {
			acquired(t, w.key)
			return w.key, w.old, err == nil, err
		}
	}
}

// DeleteRange deletes the entries from lo to hi, leaf by leaf, and returns how
// many there were. gone gets the values, unless it is nil.
func (t *Tree[C]) DeleteRange(lo, hi C, gone func(val C)) (deleted int, err error) {
	t.lockWrite()
	defer t.unlockWrite()
	releasedAll(t)
	s := t.scratches.Get().ready()
	defer t.scratches.Put(s)
	for try := 0; lo <= hi; try++ {
		gen, ok := t.enter()
		if !ok {
			return deleted, ErrClosed
		}
		epoch := t.Epoch()
		x, _, word := t.seek(lo)
		l := t.leaf(x)
		s.load(l)
		if word&simd.WordBusy != 0 || l.loadWord() != word || !t.Current(gen) {
			pause(try)
			continue
		}
		high, in := s.copy.high(), s.copy.info()
		s.run.clear()
		s.more.clear()
		s.copy.unpack(&s.run)
		for i, k := range s.run.keys {
			if k < lo || k > hi {
				s.more.add(k, s.run.vals[i])
			}
		}
		n := len(s.run.keys) - len(s.more.keys)
		if n > 0 {
			if in.epoch != epoch || in.dirty == 0 {
				if err := t.touch(x, word, gen, epoch, new(promises)); err != nil {
					return deleted, err
				}
				continue
			}
			stall.At("delete range: leaf read")
			s.copy.pack(s.more, high)
			if !t.commitCopy(l, s.copy, 0, lines, word, len(s.more.keys), gen, epoch) {
				continue
			}
			t.count(x, -n)
			deleted += n
			for i, k := range s.run.keys {
				if gone != nil && k >= lo && k <= hi {
					gone(s.run.vals[i])
				}
			}
			if len(s.more.keys) < thin[C]() {
				t.tidy(lo)
			}
		}
		if high >= hi {
			break
		}
		lo = high + 1
	}
	acquiredAll(t)
	return deleted, nil
}
