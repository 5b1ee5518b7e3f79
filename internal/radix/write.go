package radix

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// step is a node on the way to a key, the word that it had then, and which of its
// links the way goes on by: that of byte b, or that of the key which ends there if b is
// below 0. Link 0 is the top.
type step struct {
	node link
	word uint32
	b    int32
}

// end is where the way to a key ends.
type end struct {
	leaf link // with the key, if it is there
	// below, unless it is 0, is a node or leaf that the way does not lead into:
	// its keys have the first split bytes in common with the key, and not the next.
	below link
	split int
	other int // that next byte of theirs, below 0 for one that ends there
}

// word returns where the word of a step's node lies.
func (w *writer) word(s *step) *uint32 {
	if s.node == 0 {
		return &w.t.work.word
	}
	return &s.node.header().word
}

// slot returns where the link of a step lies, whose node is locked.
func (w *writer) slot(s *step) *link {
	switch {
	case s.node == 0:
		return &w.t.work.link
	case s.b < 0:
		return &s.node.header().own
	}
	return find(s.node, byte(s.b))
}

// lock locks the node of a step, if it is unchanged since the way led there.
func (w *writer) lock(s *step) bool {
	if mutant.On && mutant.Is("radix: changed since") {
		word := w.word(s)
		s.word = atomic.LoadUint32(word) &^ locked
	}
	return atomic.CompareAndSwapUint32(w.word(s), s.word, s.word|locked)
}

// lockBoth locks the nodes of a step and of the next one, which its link leads to.
func (w *writer) lockBoth(above, s *step) bool {
	if !w.lock(above) {
		return false
	}
	if mutant.On && mutant.Is("radix: node exchanged is locked") {
		return true
	}
	if !w.lock(s) {
		w.release(above)
		return false
	}
	stall.At("held: radix two nodes locked")
	return true
}

// release unlocks a node that was not changed.
func (w *writer) release(s *step) { w.setWord(s) }

// unlock unlocks a node that was changed.
func (w *writer) unlock(s *step) {
	s.word += nextSeq
	w.setWord(s)
	stall.At("radix: node unlocked")
	if mutant.On {
		for _, f := range w.late {
			f()
		}
		w.late = nil
	}
}

func (w *writer) setWord(s *step) {
	if s.node == 0 { // on the Go heap
		atomic.StoreUint32(&w.t.work.word, s.word)
		return
	}
	setWord(&s.node.header().word, s.word)
}

// setWord is a call of its own, so that no store is moved past it or left out.
//
//go:noinline
func setWord(word *uint32, to uint32) { *word = to }

// setValue is setWord for a value.
//
//go:noinline
func setValue(val *uint64, to uint64) { *val = to }

// relink sets the link of a step, whose node is locked.
func (w *writer) relink(s *step, to link) {
	if s.node == 0 { // on the Go heap
		atomic.StoreUint32((*uint32)(&w.t.work.link), uint32(to))
	} else {
		store(w.slot(s), to)
	}
	stall.At("held: radix link exchanged")
}

// last returns the last step of the way.
func (w *writer) last() *step { return &w.steps[len(w.steps)-1] }

// walk goes to where a key is, or would be, and notes the way. It skips compressed
// paths, as a lookup does, and compares the key with a leaf afterwards. It returns
// false if it has met a node that is being changed, or is no longer part of the
// tree.
func (w *writer) walk(key string) (e end, ok bool) {
	top := w.t.work
	word := atomic.LoadUint32(&top.word)
	w.steps = append(w.steps[:0], step{word: word})
	l := load(&top.link)
	if word&locked != 0 {
		return end{}, false
	}
	l, sure, ok := w.walkOn(key, l, 0)
	if !ok || l == 0 && sure {
		return end{}, ok
	}
	return w.diverge(key, l)
}

// walkFrom is walk from a node on that is part of the tree, or was since the writer has
// come to its desk. It returns false, too, if the key's place is not below that node, or is
// the link to it. depth, unless it is 0, is as many first bytes of the key as are sure to be those
// of all keys below.
func (w *writer) walkFrom(key string, l link, depth int) (e end, ok bool) {
	w.steps = w.steps[:0]
	l, sure, ok := w.walkOn(key, l, depth)
	if !ok || len(w.steps) == 0 {
		return end{}, false
	}
	if l == 0 && sure && depth > 0 {
		return end{}, true
	}
	return w.diverge(key, l)
}

// walkOn adds steps to the way of a key, and returns the link that it has led to. sure
// reports whether there were no bytes on it, behind the first ones, that were not looked at.
func (w *writer) walkOn(key string, l link, from int) (to link, sure, ok bool) {
	steps := w.steps
	sure = true
	for l.isInner() {
		h := l.header()
		word := h.load()
		d := int(h.depth)
		sure = sure && d == from
		var next link
		b := -1
		if d < len(key) {
			b = int(key[d])
			if at := findIn(unsafe.Pointer(h), l.kind(), byte(b)); at != nil {
				next = load(at)
			}
		} else if d == len(key) {
			next = load(&h.own)
		} else {
			break
		}
		stall.At("radix: writer has read a link")
		if (word&(locked|dead) != 0 || h.load() != word) && !(mutant.On && mutant.Is("radix: writer's version")) {
			return 0, false, false
		}
		steps = append(steps, step{l, word, int32(b)})
		from = d + 1
		l = next
	}
	w.steps = steps
	return l, sure, true
}

// diverge returns where a way ends that has led to a link, which may be 0, past bytes
// that were not looked at.
func (w *writer) diverge(key string, l link) (e end, ok bool) {
	below := l
	if l == 0 {
		below = w.last().node
	}
	some := anyLeaf(below)
	if !some.isLeaf() { // met between two stores of a change
		return end{}, below == 0
	}
	stall.At("radix: writer has found a leaf")
	k := w.t.key(some)
	if l.isLeaf() && k == key {
		return end{leaf: l}, true
	}
	at := simd.CommonPrefix(k, key)
	for w.last().depth() > at {
		n := len(w.steps) - 1
		if l, w.steps = w.steps[n].node, w.steps[:n]; n == 0 {
			return end{}, false // the way began too far below
		}
	}
	if l == 0 {
		return end{}, true
	}
	return end{below: l, split: at, other: simd.ByteAt(k, at)}, true
}

// depth returns the bytes that all keys below a step's node begin with.
func (s *step) depth() int {
	if s.node == 0 {
		return 0
	}
	return int(s.node.header().depth)
}

// anyLeaf returns a leaf below a node, a near one if it has some: each further node
// has to come from memory. A late reader may get none.
func anyLeaf(l link) link {
	for l.isInner() {
		l = downFrom(l)
	}
	return l
}

// downFrom returns where anyLeaf goes from a node.
func downFrom(l link) link {
	if links := someLinks(l); len(links) > 0 {
		return someLeaf(links)
	}
	_, l = atOrAfter(l, -1)
	return l
}

// someLinks returns links of a node that lie together; none of one of 256.
func someLinks(l link) []link {
	switch l.kind() {
	case node256:
		return nil
	case node48:
		x := (*inner48)(l.at())
		return x.links[:min(x.children(), len(x.links))]
	}
	_, links := sorted(l)
	return links
}

// someLeaf returns the first link that leads to a leaf, or the last one.
func someLeaf(links []link) (l link) {
	for i := range links {
		if l = load(&links[i]); l.isLeaf() {
			break
		}
	}
	return l
}
