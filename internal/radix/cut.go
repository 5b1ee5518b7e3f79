package radix

import (
	"github.com/pando-index/pando/internal/stall"
)

// cut deletes the key whose leaf the way leads to.
func (w *writer) cut(c *change, l link) (done bool, err error) {
	if !w.canMark() {
		return false, nil
	}
	w.mark() // before anybody sees the change, as add does
	s := w.last()
	if s.node == 0 || s.b < 0 && linksIn(s.node) > 2 {
		done = w.unlink(c, s, l)
	} else if n := linksIn(s.node); n == 2 {
		done = w.collapse(c, l)
	} else if kind := s.node.kind(); kind == node2 || s.node.header().children()-1 > few[kind] {
		done = w.unlink(c, s, l)
	} else if len(w.steps) == 1 {
		return false, nil // the nodes above are not known
	} else if small, err := w.spare(kind - 1); err == nil {
		done = w.shrink(c, l, small)
	} else {
		done = w.unlink(c, s, l)
	}
	if done && !c.missed {
		w.drop(l)
		w.counted(-1)
	}
	return done, nil
}

// spare is blank for a node that is not strictly needed: the limit binds it, and nothing makes
// room for it.
func (w *writer) spare(kind int) (link, error) {
	free, alone := w.free, w.alone
	w.free, w.alone = false, false
	l, err := w.blank(kind)
	w.free, w.alone = free, alone
	return l, err
}

// linksIn returns the number of links that a node has.
func linksIn(l link) int {
	h := l.header()
	if load(&h.own) != 0 {
		return h.children() + 1
	}
	return h.children()
}

// unlink takes the link to a leaf away.
func (w *writer) unlink(c *change, s *step, l link) bool {
	if !w.lock(s) {
		return false
	}
	if !w.see(c, l, 1) {
		w.release(s)
		return true
	}
	w.unhint(c.key, s.node, l)
	if s.node == 0 || s.b < 0 {
		w.relink(s, 0)
	} else {
		remove(s.node, byte(s.b))
	}
	w.unlock(s)
	return true
}

// collapse puts the other link of a node with two in the node's place.
func (w *writer) collapse(c *change, l link) bool {
	i := len(w.steps) - 1
	if i == 0 {
		return false // the nodes above are not known
	}
	above, s := &w.steps[i-1], &w.steps[i]
	if !w.lockBoth(above, s) {
		return false
	}
	if !w.see(c, l, 2) {
		w.release(s)
		w.release(above)
		return true
	}
	b, rest := atOrAfter(s.node, -1)
	if b == int(s.b) {
		_, rest = atOrAfter(s.node, b+1)
	}
	w.unhint(c.key, s.node, l)
	w.unhint(c.key, above.node, s.node)
	w.relink(above, rest)
	stall.At("held: radix node taken out")
	if x := w.t.short.Load(); x != nil && int(s.node.header().depth) >= x.Depth { // else rest has another slot
		w.hint(c.key, above.node, rest)
	}
	w.bury(s)
	w.unlock(above)
	w.drop(s.node)
	w.steps = w.steps[:i]
	return true
}

// shrink puts a smaller node in the place of the last one, with one link less.
func (w *writer) shrink(c *change, l, small link) bool {
	i := len(w.steps) - 1
	s := &w.steps[i]
	if !w.lockBoth(&w.steps[i-1], s) {
		w.untake(small)
		return false
	}
	if !w.see(c, l, 2) {
		w.release(s)
		w.release(&w.steps[i-1])
		w.untake(small)
		return true
	}
	w.unhint(c.key, s.node, l)
	copyNode(small, s.node, int(s.b))
	w.exchange(c.key, i, small, 0)
	return true
}

// few is with how many children a node of each type gives way to a smaller one:
// some fewer than that one holds, so that a key that comes and goes does not make
// nodes do so, too.
var few = [...]int{node2: -1, node5: 1, node12: 4, node21: 9, node48: 17, node256: 36}
