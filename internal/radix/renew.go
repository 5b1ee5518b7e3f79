package radix

import (
	"math"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

const (
	// mostTops limits how long it takes to make the table, and its size.
	mostTops = 1 << 20
	// deepest is the most bytes behind the common prefix that are hashed.
	deepest = 64
)

// renewPiece is how many links are looked at before others have their turn again: somewhat
// less than a millisecond. It is a variable for tests.
var renewPiece = 8 * bucketKeys

func init() {
	if stall.On {
		renewPiece = 2
	}
}

// untilShort returns how many changes a writer may make before it asks again, and
// reports whether other shortcuts are due.
func (t *Tree) untilShort() (changes int64, due bool) {
	n, s := t.entries(), t.short.Load()
	switch {
	case t.bare:
		return math.MaxInt64, false
	case s == nil:
		changes = leastShort - n
	default:
		changes = min(2*s.built-n, n-max(s.built/4-1, 0))
	}
	return max(changes/int64(len(*t.desks.Load())), 1), changes <= 0
}

// renewShort makes new shortcuts where they are due: there are many more entries than when
// the old ones were made, or many fewer. Others write meanwhile, and wait for a piece of the
// work at a time. An entry of the table is a hint, so that one which is filled in part is right,
// too, and writers keep it so between two pieces.
func (t *Tree) renewShort() {
	if !t.renewal.TryLock() {
		return // somebody is at it
	}
	defer t.renewal.Unlock()
	if _, due := t.untilShort(); !due {
		return
	}
	s := t.exchangeShort(t.countTops(int(min(t.entries()/perTop, mostTops))))
	if s == nil {
		return
	}
	var tops []link
	w := t.walkTops(s, func(l link) { tops = append(tops, l) })
	for more := true; more; tops = tops[:0] {
		t.lockWrite()
		if more = t.short.Load() == s; more { // else it is closed, or others are due again
			more = w.some()
			t.fill(s, tops)
		}
		t.unlockWrite()
	}
}

// walkTops returns a walk that calls visit with each top.
func (t *Tree) walkTops(s *shortcuts, visit func(l link)) *walk {
	w := &walk{t: t, bytes: s.depth, visit: func(l link) bool {
		if l.isInner() && int(l.header().depth) < s.depth {
			return true
		}
		visit(l)
		return false
	}}
	if mutant.On && mutant.Is("radix: walk by depth") {
		w.bytes = math.MaxInt // it may go on below a top that has come meanwhile
	}
	return w
}

// exchangeShort gives the tree shortcuts without entries, and returns them; nil if it has none
// now.
func (t *Tree) exchangeShort(tops, depth int) *shortcuts {
	t.lockWrite()
	defer t.unlockWrite()
	n := t.entries()
	if t.bare || t.closed.Load() {
		return nil
	}
	t.setShort(nil)
	if n < leastShort {
		return nil
	}
	room := int64(0)
	if t.limit > 0 {
		room = max(t.limit-t.inUse(), 1)
	}
	s, err := newShortcuts(tops, room)
	if err != nil {
		t.bare = true
		return nil
	}
	s.depth, s.built = depth, n
	if l := t.top.link; l.isInner() {
		s.skip = min(int(l.header().depth), depth)
	}
	s.exact = s.isExact()
	t.setShort(s)
	return s
}

// setShort exchanges the shortcuts. Who still reads the old ones finds none there. The
// caller has all desks.
func (t *Tree) setShort(s *shortcuts) {
	for _, d := range *t.desks.Load() {
		d.look = 0
	}
	if old := t.short.Swap(s); old != nil {
		old.block.Release()
	}
}

// countTops returns the greatest depth at which there are at most so many tops, together with
// keys that end above them, and how many there are. It counts beside writers, so that it is
// right but for what they change meanwhile; a desk keeps what it looks at from being reused.
func (t *Tree) countTops(most int) (tops, depth int) {
	first := 0
	if l := load(&t.top.link); l.isInner() {
		first = int(l.header().depth)
	}
	var add [deepest]int // by how many there are more where nodes of a depth are not tops
	tops, deep := 1, deepest-1
	w := walk{t: t, bytes: first + deepest, visit: func(l link) bool {
		if !l.isInner() {
			return false
		}
		h := l.header()
		d := max(int(h.depth)-first, 0)
		if d > deep {
			return false
		}
		n := h.children() - 1
		if load(&h.own) != 0 {
			n++
		}
		add[d], tops = add[d]+n, tops+n
		for ; tops > most && deep >= 0; deep-- {
			tops -= add[deep]
		}
		return d <= deep
	}}
	for more := true; more; {
		d := t.enter()
		more = !t.closed.Load() && w.some()
		t.leave(d)
	}
	return max(tops, 1), first + deep + 1
}

// fill puts tops into the table.
func (t *Tree) fill(s *shortcuts, tops []link) {
	par.Run(t.Workers, (len(tops)+bucketKeys-1)/bucketKeys, par.Func(func(p int) {
		t.fillBucket(s, tops[p*bucketKeys:min((p+1)*bucketKeys, len(tops))])
	}))
}

// fillBucket puts a few tops into the table. The bytes that are hashed are in the leaves below
// them: all take a step down, then what their next steps will read is asked for.
func (t *Tree) fillBucket(s *shortcuts, tops []link) {
	e := bucketPool.Get().(*bucket)
	defer bucketPool.Put(e)
	leaves := e.links[:copy(e.links[:], tops)]
	for _, l := range leaves {
		e.asked.down(l, s.depth)
	}
	for e.asked.fetch() {
		for i, l := range leaves {
			if l.isInner() {
				leaves[i] = downFrom(l)
				e.asked.down(leaves[i], s.depth)
			}
		}
	}
	var keys [bucketKeys]string
	for i, l := range leaves {
		keys[i] = t.key(l)
	}
	e.place(s, keys[:len(tops)])
	for i, tag := range e.tags[:len(tops)] {
		if tag != 0 {
			s.lines[e.lines[i]].put(tag, tops[i])
		}
	}
}

// down adds what a step through a link on the way down to any leaf will read, of which
// so many bytes are wanted.
func (a *asks) down(l link, bytes int) {
	if l.isLeaf() {
		a.add(unsafe.Pointer(l.leaf()), 1+min(headBytes+bytes, mostAsked)>>6)
	} else {
		a.step(l, "", 0)
	}
}

// walk goes through a tree in the order of its keys, a piece at a time. Between two pieces
// the tree may change: then it goes on at the first of what is there.
type walk struct {
	t     *Tree
	bytes int                       // first bytes of keys that tell where it is
	visit func(l link) (below bool) // with each link; below: with those below it, too
	from  string                    // what begins with less was visited
	left  int                       // links until the end of the piece
}

// some goes through a piece, and reports whether there is more.
func (w *walk) some() bool {
	l := load(&w.t.top.link)
	w.left = renewPiece
	return l != 0 && !w.through(l, w.from != "")
}

// through goes through what is below a link, and reports whether it has come to the end of
// that. If cut is set, some of it may have been visited before.
func (w *walk) through(l link, cut bool) bool {
	least := 0
	if cut {
		switch begin := w.begin(l); {
		case begin >= w.from:
			cut = false
		case !l.isInner() || !strings.HasPrefix(w.from, begin):
			return true
		default:
			least = int(w.from[len(begin)])
		}
	}
	if !cut {
		if w.left == 0 {
			w.from = strings.Clone(w.begin(l))
			return false
		}
		w.left--
		if !w.visit(l) {
			return true
		}
	}
	for b, to := atOrAfter(l, least); to != 0; b, to = atOrAfter(l, b+1) {
		if to.isInner() {
			simd.PrefetchAt(to.at(), 1)
		}
	}
	for b, to := atOrAfter(l, least); to != 0; b, to = atOrAfter(l, b+1) {
		if !w.through(to, cut && b == least) {
			return false
		}
	}
	return true
}

// begin returns what all keys below a link begin with, or the first bytes of that.
func (w *walk) begin(l link) string {
	some := anyLeaf(l)
	if !some.isLeaf() { // met between two stores of a change
		return ""
	}
	key := w.t.key(some)
	n := min(len(key), w.bytes)
	if l.isInner() {
		n = min(n, int(l.header().depth))
	}
	return key[:n]
}
