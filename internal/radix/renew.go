package radix

import (
	"math"
	"strings"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

const (
	// mostTops limits how long it takes to make the table, and its size.
	mostTops = 1 << 20
	deepest  = shortcut.Deepest
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
	case t.bare.Load() || t.Closed():
		return math.MaxInt64, false
	case s == nil:
		changes = shortcut.Least - n
	default:
		changes = min(2*s.Built-n, n-max(s.Built/4-1, 0))
	}
	if changes <= 0 {
		return whileRenewed, true
	}
	return max(changes/int64(len(*t.desks.Load())), 1), false
}

// whileRenewed is how many changes a writer makes before it asks again while another makes
// new shortcuts.
const whileRenewed = 64

// renewShort makes new shortcuts where they are due: there are many more entries than when
// the old ones were made, or many fewer. Others write meanwhile, and wait for a piece of the
// work at a time. An entry of the table is a hint, so that one which is filled in part is right,
// too, and writers keep it so between two pieces.
func (t *Tree) renewShort() {
	// The goroutine that holds the lock asks again when it is done, for all that have
	// come meanwhile.
	for t.shortDue() && t.renewal.TryLock() {
		t.renewOnce()
	}
}

// renewLater is renewShort for a writer of a key or a few: where that takes longer than a
// millisecond or two, it is done beside the caller.
func (t *Tree) renewLater() {
	if t.entries() < renewBeside {
		t.renewShort()
		return
	}
	if !t.shortDue() || !t.renewal.TryLock() {
		return
	}
	go func() {
		t.renewOnce()
		t.renewShort()
	}()
}

// renewBeside is from how many entries on new shortcuts are made beside single writers. It is a variable for tests.
var renewBeside = int64(32 << 10)

// renewOnce makes new shortcuts. The caller holds renewal, which it unlocks.
func (t *Tree) renewOnce() {
	defer t.renewal.Unlock()
	n := t.entries()
	if s := t.exchangeShort(n, t.countTops(int(min(n/shortcut.PerTop, mostTops)))); s != nil {
		t.fillShort(s)
	}
}

func (t *Tree) shortDue() bool {
	_, due := t.untilShort()
	return due
}

// fillShort puts all tops into the table. Where others have the desks for long, it does more
// and more at a time, so that it ends.
func (t *Tree) fillShort(s *shortcut.Table) {
	var tops []link
	w := t.walkTops(s, func(l link) { tops = append(tops, l) })
	piece := renewPiece
	for more := true; more; tops = tops[:0] {
		began := time.Now()
		t.lockWrite()
		if time.Since(began) > longWait {
			piece *= 2
		}
		if more = t.short.Load() == s; more { // else it was closed, or was short of memory
			more = w.some(piece)
			t.fill(s, tops)
		}
		t.unlockWrite()
	}
}

// longWait is much longer than the usual wait for the writers at their desks.
const longWait = 20 * time.Millisecond

// walkTops returns a walk that calls visit with each top.
func (t *Tree) walkTops(s *shortcut.Table, visit func(l link)) *walk {
	w := &walk{t: t, bytes: s.Depth, visit: func(l link) bool {
		if l.isInner() && int(l.header().depth) < s.Depth {
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
// now. c is the count when there were n entries.
func (t *Tree) exchangeShort(n int64, c topCount) *shortcut.Table {
	t.lockWrite()
	defer t.unlockWrite()
	if t.bare.Load() || t.Closed() {
		return nil
	}
	t.setShort(nil)
	if t.entries() < shortcut.Least {
		return nil
	}
	room := int64(0)
	if limit := t.limit.Load(); limit > 0 {
		room = max(limit-t.inUse()-t.besides(), 1) // there are none now
	}
	s, err := shortcut.New(c.tops, room)
	if err != nil {
		t.bare.Store(true)
		return nil
	}
	s.Depth, s.Built = c.depth, n
	s.Skip = min(t.rootDepth(), s.Depth)
	s.Exact = s.IsExact()
	t.setShort(s)
	return s
}

// setShort exchanges the shortcuts. A search that still reads the old ones finds none
// there. The caller has all desks.
func (t *Tree) setShort(s *shortcut.Table) {
	for _, d := range *t.desks.Load() {
		d.look = 0
	}
	if old := t.short.Swap(s); old != nil {
		old.Release()
	}
}

// topCount is a depth, and how many tops there are for it, together with keys that end
// above them.
type topCount struct{ depth, tops int }

// countTops returns the greatest depth for which there are at most most tops. It counts beside
// writers, so that it is exact but for their changes meanwhile; a desk keeps the nodes that it
// looks at from being reused.
func (t *Tree) countTops(most int) topCount {
	at := t.enter()
	first := t.rootDepth()
	t.leave(at)
	var add [deepest]int       // by how many there are more where nodes of a depth are not tops
	tops, deep := 1, deepest-1 // nodes below deep are tops
	if s := t.short.Load(); s != nil {
		deep = min(deep, max(s.Depth-first, 0)+deeper)
	}
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
		at := t.enter()
		more = !t.Closed() && w.some(renewPiece)
		t.leave(at)
	}
	return topCount{first + deep + 1, max(tops, 1)}
}

// deeper is by how many bytes shortcuts become deeper at most when a tree has doubled. Nodes
// further below would be counted in vain.
const deeper = 6

// rootDepth returns how many bytes all keys have in common, if there are several. The caller
// is at a desk.
func (t *Tree) rootDepth() int {
	if l := load(&t.top.link); l.isInner() {
		return int(l.header().depth)
	}
	return 0
}

// fill puts tops into the table.
func (t *Tree) fill(s *shortcut.Table, tops []link) {
	par.Run(t.Workers, (len(tops)+bucketKeys-1)/bucketKeys, par.Func(func(p int) {
		t.fillBucket(s, tops[p*bucketKeys:min((p+1)*bucketKeys, len(tops))])
	}))
}

// fillBucket puts a few tops into the table. The bytes that are hashed are in the leaves below
// them: all take a step down, then the lines of their next steps are prefetched.
func (t *Tree) fillBucket(s *shortcut.Table, tops []link) {
	e := bucketPool.Get().(*bucket)
	defer bucketPool.Put(e)
	leaves := e.Links[:copy(e.Links[:], tops)]
	for _, l := range leaves {
		askDown(&e.Asked, l, s.Depth)
	}
	for e.Asked.Fetch() {
		for i, l := range leaves {
			if l.isInner() {
				leaves[i] = downFrom(l)
				askDown(&e.Asked, leaves[i], s.Depth)
			}
		}
	}
	var keys [bucketKeys]string
	for i, l := range leaves {
		keys[i] = t.key(l)
	}
	e.Fill(s, keys[:len(tops)], tops)
}

// askDown adds the memory that a step through a link on the way down to any leaf will
// read; of the leaf, the given bytes are wanted.
func askDown(a *shortcut.Asks, l link, bytes int) {
	if l.isLeaf() {
		a.Add(unsafe.Pointer(l.leaf()), 1+min(headBytes+bytes, mostAsked)>>6)
	} else {
		askStep(a, l, "", 0)
	}
}

// walk goes through a tree in the order of its keys, a piece at a time. Between two pieces
// the tree may change: then it goes on at the first key that is there.
type walk struct {
	t     *Tree
	bytes int                       // first bytes of keys that tell where it is
	visit func(l link) (below bool) // with each link; below: with those below it, too
	from  string                    // keys that begin with less were visited
	left  int                       // links until the end of the piece
}

// some visits the given number of links, and reports whether there are more.
func (w *walk) some(links int) bool {
	l := load(&w.t.top.link)
	w.left = links
	return l != 0 && !w.through(l, w.from != "")
}

// through visits the nodes below a link, and reports whether it has come to their end. If
// cut is set, some of it may have been visited before.
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
		if w.left--; w.left < 0 {
			if begin := w.begin(l); begin != "" { // else it goes on until it knows where it is
				w.from = strings.Clone(begin)
				return false
			}
		}
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

// begin returns the common prefix of all keys below a link, or its first bytes.
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
