package radix

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// change is a change of one key.
type change struct {
	key  string
	kind op.Kind
	val  uint64 // of Set
	// only, unless it is nil, is the state that the key must have for the change to
	// be done.
	only *state
	edge bool // all nodes of the way must be unchanged when it is done

	old    uint64 // the value before
	had    bool
	missed bool // nothing was done, since the key had another state
}

// state is the state of a key in a generation.
type state struct {
	val   uint64
	there bool
	gen   uint64
}

// do does a change. It finds the way to the key, and the leaf there, without a lock.
// Then it locks the nodes to be changed, if they are unchanged; else it begins anew.
// It takes memory before.
//
// near, unless it is 0, is a node that was part of the tree since the writer has come,
// and that the key is most likely below: the way begins there. Where it turns out that it
// must not, it begins at the root. depth, unless it is 0, is as many first bytes of the key
// as are sure to be those of all keys below near.
func (w *writer) do(c *change, near link, depth int) error {
	if near.isInner() && w.t.frozen == 0 {
		if e, ok := w.walkFrom(c.key, near, depth); ok {
			stall.At("radix: writer's way found")
			if done, err := w.attempt(c, e); done || err != nil {
				return err
			}
		}
	}
	for try := 0; ; try++ {
		if e, ok := w.walk(c.key); ok {
			stall.At("radix: writer's way found")
			if done, err := w.attempt(c, e); done || err != nil {
				return err
			}
		}
		simd.Wait(try)
	}
}

// attempt does a change at the end of a way. It returns false if another writer was
// faster.
func (w *writer) attempt(c *change, e end) (done bool, err error) {
	if e.leaf == 0 {
		if c.old, c.had = 0, false; c.only != nil && c.only.there {
			c.missed = true
			return true, nil
		}
		if c.kind != op.Set {
			return true, nil
		}
		return w.add(c, e)
	}
	switch {
	case c.kind == op.Get:
		w.see(c, e.leaf, 0)
		return atomic.LoadUint32(w.word(w.last())) == w.last().word, nil
	case c.kind == op.Set && e.leaf.leaf().age() > w.t.frozen:
		return w.overwrite(c, e.leaf), nil
	}
	if done, err := w.thawPath(c.key); !done {
		return false, err
	}
	if c.kind == op.Set {
		return w.exchangeLeaf(c, e.leaf)
	}
	return w.cut(c, e.leaf)
}

// see notes the value of a leaf that the way leads to, and reports whether the change
// is to be done. The last held nodes of the way are locked.
func (w *writer) see(c *change, l link, held int) bool {
	c.old, c.had = atomic.LoadUint64(&l.leaf().value), true
	if o := c.only; o != nil && (!o.there || o.val != c.old || !w.t.Current(o.gen)) {
		c.missed = true
	}
	if c.edge && !w.first(c, l, held) {
		c.missed = true
	}
	return !c.missed
}

// first reports whether a leaf that the way leads to is still the first one, or the last. Then nobody finds it any
// more: the nodes above it are locked, and its shortcut, by which readers come to it without a look at these, is out.
func (w *writer) first(c *change, l link, held int) bool {
	above := w.last().node
	if !(mutant.On && mutant.Is("radix: pop's shortcut")) {
		w.unhint(c.key, above, l)
	}
	stall.At("held: radix shortcut of the first entry out")
	if w.unchanged(held) {
		return true
	}
	w.hint(c.key, above, l)
	return false
}

// overwrite sets the value of a leaf. Readers of the node above it are not affected.
func (w *writer) overwrite(c *change, l link) bool {
	s := w.last()
	if !(mutant.On && mutant.Is("radix: value under lock")) && !w.lock(s) {
		return false
	}
	if w.see(c, l, 1) {
		stall.At("held: radix value seen")
		setValue(&l.leaf().value, c.val)
	}
	w.release(s)
	return true
}

// exchangeLeaf puts a new leaf in the place of one that a snapshot has.
func (w *writer) exchangeLeaf(c *change, old link) (done bool, err error) {
	l, err := w.newLeaf(c.key, c.val)
	if err != nil {
		return false, err
	}
	s := w.last()
	if !w.lock(s) {
		w.untake(l)
		return false, nil
	}
	if !w.see(c, old, 1) {
		w.release(s)
		w.untake(l)
		return true, nil
	}
	w.unhint(c.key, s.node, old)
	w.relink(s, l)
	w.hint(c.key, s.node, l)
	w.unlock(s)
	w.drop(old)
	return true, nil
}

// add adds a key.
func (w *writer) add(c *change, e end) (done bool, err error) {
	if !w.canMark() {
		return false, nil
	}
	if done, err := w.thawPath(c.key); !done {
		return false, err
	}
	s := w.last()
	full := e.below == 0 && s.node != 0 && s.b >= 0 && s.node.header().children() >= capacity(s.node.kind())
	if full && len(w.steps) == 1 {
		return false, nil // the nodes above are not known
	}
	l, err := w.newLeaf(c.key, c.val)
	if err != nil {
		return false, err
	}
	w.mark() // before anybody sees the change: a new node is not counted, and says that those above it are not either
	switch {
	case e.below != 0:
		done, err = w.branch(c.key, l, e)
	case full:
		done, err = w.grow(c.key, l)
	default:
		done = w.insert(c.key, s, l)
	}
	if !done {
		w.untake(l)
		return false, err
	}
	w.counted(1)
	return true, nil
}

// branch puts a new node above the one that the way does not lead into, with a
// new leaf beside that.
func (w *writer) branch(key string, l link, e end) (done bool, err error) {
	n, err := w.blank(node2)
	if err != nil {
		return false, err
	}
	h := n.header()
	h.depth = uint32(e.split)
	for _, c := range [...]struct {
		b  int
		to link
	}{{e.other, e.below}, {simd.ByteAt(key, e.split), l}} {
		if c.b < 0 {
			h.own = c.to
		} else {
			insert(n, byte(c.b), c.to)
		}
	}
	s := w.last()
	if !w.lock(s) {
		w.untake(n)
		return false, nil
	}
	w.unhint(key, s.node, e.below)
	w.relink(s, n)
	stall.At("held: radix node put above")
	w.hint(key, s.node, n)
	w.hint(key, n, l)
	w.publish(n)
	w.unlock(s)
	return true, nil
}

// insert adds a link to a node that has room for it.
func (w *writer) insert(key string, s *step, to link) bool {
	if !w.lock(s) {
		return false
	}
	stall.At("held: radix node locked")
	if s.node == 0 || s.b < 0 {
		w.relink(s, to)
	} else {
		insert(s.node, byte(s.b), to)
		w.hint(key, s.node, to)
	}
	w.unlock(s)
	return true
}

// grow puts a larger node in the place of the last one, with one link more.
func (w *writer) grow(key string, to link) (done bool, err error) {
	i := len(w.steps) - 1
	s := &w.steps[i]
	if s.node.kind() == node256 { // others have filled it meanwhile
		return false, nil
	}
	grown, err := w.blank(s.node.kind() + 1)
	if err != nil {
		return false, err
	}
	if !w.lockBoth(&w.steps[i-1], s) {
		w.untake(grown)
		return false, nil
	}
	copyNode(grown, s.node, -1)
	insert(grown, byte(s.b), to)
	w.exchange(key, i, grown, to)
	return true, nil
}

// exchange puts another node in the place of one of the way, both of which and the one
// above are locked, and unlocks them. more, unless it is 0, is a link that the new
// one has and the old one had not.
func (w *writer) exchange(key string, i int, by, more link) {
	above, s := &w.steps[i-1], &w.steps[i]
	w.unhint(key, above.node, s.node)
	w.relink(above, by)
	stall.At("held: radix node exchanged")
	w.hint(key, above.node, by)
	if more != 0 {
		w.hint(key, by, more)
	}
	w.bury(s)
	word := w.publish(by)
	w.unlock(above)
	w.drop(s.node)
	s.node, s.word = by, word
}

// bury unlocks a node that is no longer part of the tree.
func (w *writer) bury(s *step) {
	// A node that a fork has copied is still part of the tree; writers lock it only to copy
	// it, and with the node above it, which is another by now.
	if w.t.forked && s.node.header().age() <= w.t.frozen || mutant.On && mutant.Is("radix: dead") {
		w.release(s)
		return
	}
	setWord(&s.node.header().word, (s.word+nextSeq)|dead)
}

// thawPath makes sure that all nodes of the way may be changed: those that a
// snapshot has are replaced by copies. If that fails the tree is unchanged.
func (w *writer) thawPath(key string) (done bool, err error) {
	if w.t.frozen == 0 || mutant.On && mutant.Is("radix: thaw") {
		return true, nil
	}
	copied := false
	for i := 1; i < len(w.steps); i++ {
		if w.steps[i].node.header().age() > w.t.frozen {
			continue
		}
		if done, err := w.thawNode(key, i); !done {
			w.steps = w.steps[:i]
			w.mark()
			return false, err
		}
		copied = true
	}
	if copied {
		w.mark()
	}
	return true, nil
}

// thawNode replaces a node of the way by a copy.
func (w *writer) thawNode(key string, i int) (done bool, err error) {
	s := &w.steps[i]
	c, err := w.take(s.node.kind())
	if err != nil {
		return false, err
	}
	if !w.lockBoth(&w.steps[i-1], s) {
		w.untake(c)
		return false, nil
	}
	n := sizeOf(s.node.kind())
	h := c.header()
	word := h.word
	copy(unsafe.Slice((*byte)(c.at()), n), unsafe.Slice((*byte)(s.node.at()), n))
	h.word = (word+nextSeq)&^dead | locked
	h.meta = w.t.age<<lengthBits | h.meta&lengthMax
	h.entries = 0
	w.exchange(key, i, c, 0)
	return true, nil
}

// newLeaf returns a leaf.
func (w *writer) newLeaf(key string, val uint64) (link, error) {
	if len(key) > mostShort {
		return w.newLongLeaf(key, val)
	}
	l, err := w.take(leafClass(len(key)))
	if err != nil {
		return 0, err
	}
	x := l.leaf()
	x.head, x.value = w.t.age<<lengthBits|uint32(len(key)), val
	copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(x), headBytes)), len(key)), key)
	return l, nil
}

func (w *writer) newLongLeaf(key string, val uint64) (link, error) {
	t, size := w.t, int64(len(key))
	node := int64(sizeOf(longClass))
	err := t.claim(size, node, w.bound())
	if err != nil && w.alone && t.makeRoom(w, size+node) {
		err = t.claim(size, node, w.bound())
	}
	if err != nil {
		return 0, err
	}
	l, err := w.take(longClass)
	if err != nil {
		t.claim(-size, 0, 0)
		return 0, err
	}
	x := (*longLeaf)(unsafe.Pointer(l.leaf()))
	x.head, x.value = t.age<<lengthBits|longLength, val
	x.length, x.handle = uint64(size), t.long.put(key)
	return l, nil
}

// blank returns an inner node without anything, and locked.
func (w *writer) blank(kind int) (link, error) {
	l, err := w.take(kind)
	if err != nil {
		return 0, err
	}
	h := l.header()
	*h = header{word: (h.word+nextSeq)&^dead | locked, meta: w.t.age << lengthBits}
	wipe(l)
	return l, nil
}

// publish unlocks a new node, which is part of the tree by now, and returns its word.
func (w *writer) publish(l link) (word uint32) {
	h := l.header()
	word = (h.word + nextSeq) &^ locked
	setWord(&h.word, word)
	return word
}

// copyNode copies a node to a new one, but for the child of byte without, which is
// below 0 for none.
func copyNode(to, from link, without int) {
	h, old := to.header(), from.header()
	h.depth, h.own = old.depth, old.own
	copyChildren(to, from, without)
}
