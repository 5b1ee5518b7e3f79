package radix

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
)

// A node has the number of keys below it as of the last count. A writer that adds or
// deletes a key marks the nodes on its way as not counted: where many write, these are
// marked already, and nothing is stored. A search for a rank counts them, and only
// them, while no writer is there, so that between two operations it is true that all
// nodes above one that is not counted are not counted either.

// unknown stands for the keys below some bytes of a node 256 that are not counted.
const unknown = math.MaxUint32

var unknownSums = func() (s [16]uint32) {
	for i := range s {
		s[i] = unknown
	}
	return s
}()

// canMark reports whether all nodes above a change can be marked: they are on the way,
// or the first one of it is marked, and then those above it are: they are marked before
// a node is made or marked that says so.
func (w *writer) canMark() bool {
	first := w.steps[0].node
	return first == 0 || first.header().entries == 0
}

// mark marks the nodes of the way as not counted.
func (w *writer) mark() {
	switch {
	case mutant.On && mutant.Is("radix: mark"):
	case mutant.On && mutant.Is("radix: mark first"):
		way := slices.Clone(w.steps)
		w.late = append(w.late, func() { mark(way) })
	default:
		mark(w.steps)
	}
}

func mark(way []step) {
	for _, s := range way {
		if s.node != 0 {
			stale(s.node, int(s.b))
		}
	}
}

// stale marks a node as not counted, below a byte.
func stale(l link, b int) {
	if h := l.header(); h.entries != 0 {
		h.entries = 0
	}
	if l.kind() == node256 && b >= 0 {
		if x := (*inner256)(l.at()); x.sums[b>>4] != unknown {
			x.sums[b>>4] = unknown
		}
	}
}

// entriesOf returns the keys below a link, and false if they are not counted.
func entriesOf(l link) (n int64, ok bool) {
	switch {
	case l.isInner():
		n := atomic.LoadUint32(&l.header().entries)
		return int64(n), n != 0
	case l.isLeaf():
		return 1, true
	}
	return 0, true
}

// sumOf returns the keys below a group of bytes of a node 256, and false if they are not
// counted.
func sumOf(x *inner256, group int) (n int64, ok bool) {
	sum := atomic.LoadUint32(&x.sums[group])
	return int64(sum), sum != unknown
}

// countBelow returns the keys below the bytes that are below b, and false if they are
// not counted.
func countBelow(l link, b int) (n int64, ok bool) {
	from := 0
	if l.kind() == node256 {
		x := (*inner256)(l.at())
		for i := range b >> 4 {
			sum, ok := sumOf(x, i)
			if !ok {
				return 0, false
			}
			n += sum
		}
		from = b &^ 15
	}
	for k, to := atOrAfter(l, from); to != 0 && k < b; k, to = atOrAfter(l, k+1) {
		sum, ok := entriesOf(to)
		if !ok {
			return 0, false
		}
		n += sum
	}
	return n, true
}

// counter counts nodes that are not counted, as long as it has links left to look
// at. No writer changes the nodes meanwhile. Others may count the same.
type counter struct{ left int }

// count returns the keys below a link, and false if it has not come to an end.
func (c *counter) count(l link) (n int64, ok bool) {
	if n, ok = entriesOf(l); ok {
		return n, true
	}
	if c.left -= linksIn(l); c.left < 0 {
		return 0, false
	}
	if load(&l.header().own) != 0 {
		n = 1
	}
	if l.kind() == node256 {
		x := (*inner256)(l.at())
		for group := range x.sums {
			sum, ok := sumOf(x, group)
			if !ok {
				if sum, ok = c.span(l, 16*group, 16*group+15); !ok {
					return 0, false
				}
				atomic.StoreUint32(&x.sums[group], uint32(sum))
			}
			n += sum
		}
	} else {
		sum, ok := c.span(l, 0, 255)
		if !ok {
			return 0, false
		}
		n += sum
	}
	atomic.StoreUint32(&l.header().entries, uint32(n))
	return n, true
}

// span returns the keys below some bytes of a node. It prefetches the nodes that it
// is going to look at together.
func (c *counter) span(l link, lo, hi int) (n int64, ok bool) {
	for b, to := atOrAfter(l, lo); to != 0 && b <= hi; b, to = atOrAfter(l, b+1) {
		if to.isInner() {
			simd.PrefetchAt(to.at(), 1)
		}
	}
	for b, to := atOrAfter(l, lo); to != 0 && b <= hi; b, to = atOrAfter(l, b+1) {
		sum, ok := c.count(to)
		if !ok {
			return 0, false
		}
		n += sum
	}
	return n, true
}

// countPiece is how many links are looked at before writers have their turn again: some hundred
// microseconds. It is a variable for tests.
var countPiece = 8192

// whenCounted calls f when all nodes are counted and there is no writer. Writers wait for a part
// of the count at a time. Nodes that they change between two parts are counted again; only where
// they are so fast that it would not end, they wait for more and more of it.
func (t *Tree) whenCounted(f func(root link)) {
	for left, pieces := countPiece, 0; !t.countSome(left, f); pieces++ {
		if pieces > t.countPieces() {
			left *= 2
		}
		runtime.Gosched() // lets waiting writers run
	}
}

// countPieces returns twice the greatest number of parts that a count has without writers: there
// are fewer than two links for each entry, and each part begins with the nodes above the last
// one.
func (t *Tree) countPieces() int { return 8 + 4*t.Len()/(countPiece/2) }

func (t *Tree) countSome(left int, f func(root link)) bool {
	t.lockWrite()
	defer t.unlockWrite()
	if t.Closed() {
		f(0)
		return true
	}
	c := counter{left}
	_, ok := c.count(t.top.link)
	if ok {
		f(t.top.link)
	}
	return ok
}
