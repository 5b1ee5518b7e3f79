package radix

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/stall"
)

// step is a node on the way to a key, and which of its links the way goes on by:
// that of byte b, or that of the key which ends there if b is below 0. Link 0 is
// the top.
type step struct {
	node link
	b    int
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

// slot returns where the link of a step lies that does not lead from the top.
func (t *Tree) slot(s step) *link {
	if s.b < 0 {
		return &s.node.header().own
	}
	return find(s.node, byte(s.b))
}

func lock(word *uint32)   { setWord(word, *word|locked) }
func unlock(word *uint32) { setWord(word, (*word+nextSeq)&^locked) }

// setWord is a call of its own, so that no store is moved past it or left out.
//
//go:noinline
func setWord(word *uint32, to uint32) { *word = to }

// setValue is setWord for a value.
//
//go:noinline
func setValue(val *uint64, to uint64) { *val = to }

// relink sets the link of a step.
func (t *Tree) relink(s step, to link) {
	if s.node == 0 { // on the Go heap
		w := t.work
		atomic.StoreUint64(&w.word, w.word|locked)
		atomic.StoreUint32((*uint32)(&w.link), uint32(to))
		atomic.StoreUint64(&w.word, (w.word+nextSeq)&^locked)
		return
	}
	word, at := &s.node.header().word, t.slot(s)
	lock(word)
	stall.At("held: radix word locked")
	store(at, to)
	unlock(word)
}

// walk goes to where a key is, or would be, and notes the way. It skips compressed
// paths, as a lookup does; what the key has in common with them shows in a leaf.
func (t *Tree) walk(key string) end {
	t.steps = append(t.steps[:0], step{})
	l, from, sure := t.work.link, 0, true
	for l.isInner() {
		h := l.header()
		d := int(h.depth)
		sure = sure && d == from
		if d > len(key) {
			break
		}
		b := byteAt(key, d)
		t.steps = append(t.steps, step{l, b})
		from = d + 1
		l = child(l, b)
	}
	if l == 0 && sure {
		return end{}
	}
	return t.diverge(key, l)
}

// diverge returns where a way ends that has led to a link, which may be 0, past bytes
// that were not looked at.
func (t *Tree) diverge(key string, l link) end {
	below := l
	if l == 0 {
		below = t.steps[len(t.steps)-1].node
	}
	k := t.key(t.anyLeaf(below))
	if l.isLeaf() && k == key {
		return end{leaf: l}
	}
	at := common(k, key)
	for i, s := range t.steps[1:] {
		if int(s.node.header().depth) > at {
			t.steps = t.steps[:i+1]
			return end{below: s.node, split: at, other: byteAt(k, at)}
		}
	}
	if l == 0 {
		return end{}
	}
	return end{below: l, split: at, other: byteAt(k, at)}
}

// common returns how many bytes two strings begin with alike.
func common(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+blockBytes <= n && a[i:i+blockBytes] == b[i:i+blockBytes]; i += blockBytes {
	}
	for ; i+8 <= n; i += 8 {
		if x := eightOf(a, i) ^ eightOf(b, i); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}

// blockBytes is how many bytes of long keys are compared at a time.
const blockBytes = 256

// eightOf returns eight bytes of a string.
func eightOf(s string, i int) uint64 {
	return eightAt(unsafe.Pointer(unsafe.StringData(s)), uintptr(i))
}

// anyLeaf returns a leaf below a node, a near one if it has some: each further node
// has to come from memory. A late reader may get none.
func (t *Tree) anyLeaf(l link) link {
	for l.isInner() {
		if l.kind() < node48 {
			if _, links := sorted(l); len(links) > 0 {
				l = someLeaf(links)
				continue
			}
		}
		_, l = atOrAfter(l, -1)
	}
	return l
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

// room returns an error if bytes more are over the limit.
func (t *Tree) room(bytes int64) error {
	if t.limit == 0 || t.free || t.promised || t.fits(bytes) {
		return nil
	}
	if t.advance(); !t.fits(bytes) && t.short.Load() != nil {
		t.bare = true
		t.setShort(nil)
	}
	if !t.fits(bytes) {
		return ErrLimit
	}
	return nil
}

// fits reports whether bytes more are not over the limit.
func (t *Tree) fits(bytes int64) bool { return t.used+t.short.Load().bytes()+bytes <= t.limit }

// take returns memory for a node or leaf.
func (t *Tree) take(class int) (link, error) {
	if err := t.room(int64(sizeOf(class))); err != nil {
		return 0, err
	}
	l, err := t.memory.take(class, t.promised)
	if err == nil && t.fork != nil {
		t.fork.made = append(t.fork.made, l)
	}
	return l, err
}

// untake gives back what take has returned and nobody has seen.
func (t *Tree) untake(l link) {
	if t.fork != nil {
		return // it goes with the fork, or is retired
	}
	t.give(l)
}

// newLeaf returns a leaf.
func (t *Tree) newLeaf(key string, val uint64) (link, error) {
	class := leafClass(len(key))
	if len(key) > mostShort {
		return t.newLongLeaf(key, val)
	}
	l, err := t.take(class)
	if err != nil {
		return 0, err
	}
	x := l.leaf()
	x.head, x.value = t.age<<lengthBits|uint32(len(key)), val
	copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(x), headBytes)), len(key)), key)
	return l, nil
}

func (t *Tree) newLongLeaf(key string, val uint64) (link, error) {
	if err := t.room(int64(len(key) + sizeOf(longClass))); err != nil {
		return 0, err
	}
	l, err := t.take(longClass)
	if err != nil {
		return 0, err
	}
	x := (*longLeaf)(unsafe.Pointer(l.leaf()))
	x.head, x.value = t.age<<lengthBits|longLength, val
	x.length, x.handle = uint64(len(key)), t.long.put(key)
	t.account(int64(len(key)))
	return l, nil
}

// blank returns an inner node without anything.
func (t *Tree) blank(kind int) (link, error) {
	l, err := t.take(kind)
	if err != nil {
		return 0, err
	}
	h := l.header()
	*h = header{word: (h.word + nextSeq) &^ (locked | dead), meta: t.age << lengthBits}
	wipe(l)
	return l, nil
}

// resized returns a copy of an inner node as another type, but for the child of
// byte without, which is below 0 for none.
func (t *Tree) resized(l link, kind, without int) (link, error) {
	c, err := t.blank(kind)
	if err != nil {
		return 0, err
	}
	to, from := c.header(), l.header()
	to.depth, to.own, to.entries = from.depth, from.own, from.entries
	copyChildren(c, l, without)
	return c, nil
}

// thawPath makes sure that all nodes of the way may be changed: those that a
// snapshot has are replaced by copies. If memory fails for that the tree is still
// what it was.
func (t *Tree) thawPath(key string) error {
	if t.frozen == 0 {
		return nil
	}
	for i := 1; i < len(t.steps); i++ {
		l := t.steps[i].node
		if l.header().age() > t.frozen {
			continue
		}
		c, err := t.take(l.kind())
		if err != nil {
			return err
		}
		n := sizeOf(l.kind())
		word := c.header().word
		copy(unsafe.Slice((*byte)(c.at()), n), unsafe.Slice((*byte)(l.at()), n))
		h := c.header()
		h.word = (word + nextSeq) &^ (locked | dead)
		h.meta = t.age<<lengthBits | h.meta&lengthMax
		t.replace(key, i, c)
	}
	return nil
}

// put sets the value of a key. The way to it has just been walked.
func (t *Tree) put(key string, val uint64, e end) (err error) {
	if e.leaf != 0 && e.leaf.leaf().age() > t.frozen {
		setValue(&e.leaf.leaf().value, val)
		return nil
	}
	if err := t.thawPath(key); err != nil {
		return err
	}
	l, err := t.newLeaf(key, val)
	if err != nil {
		return err
	}
	last := t.steps[len(t.steps)-1]
	switch {
	case e.leaf != 0:
		t.unhint(key, e.leaf)
		t.relink(last, l)
		t.drop(e.leaf)
		t.hint(key, last.node, l)
		return nil
	case e.below != 0:
		err = t.branch(key, l, e)
	default:
		err = t.add(key, last, l)
	}
	if err != nil {
		t.untake(l)
		return err
	}
	t.countPath(1)
	t.resizeShort()
	return nil
}

// branch puts a new node above what the way does not lead into, with a new leaf
// beside that.
func (t *Tree) branch(key string, l link, e end) error {
	n, err := t.blank(node2)
	if err != nil {
		return err
	}
	h := n.header()
	h.depth, h.entries = uint32(e.split), 1+uint32(entriesOf(e.below))
	for _, c := range []struct {
		b  int
		to link
	}{{e.other, e.below}, {byteAt(key, e.split), l}} {
		if c.b < 0 {
			h.own = c.to
		} else {
			insert(n, byte(c.b), c.to)
		}
	}
	last := t.steps[len(t.steps)-1]
	t.unhint(key, e.below)
	t.relink(last, n)
	stall.At("held: radix node put above")
	t.hint(key, last.node, n)
	t.hint(key, n, l)
	return nil
}

// byteAt returns a byte of a key, or -1 if it ends there.
func byteAt(key string, i int) int {
	if i < len(key) {
		return int(key[i])
	}
	return -1
}

// add adds a link to the last node of the way, or to a larger one in its place.
func (t *Tree) add(key string, s step, to link) error {
	if s.node == 0 || s.b < 0 {
		t.relink(s, to)
		return nil
	}
	h := s.node.header()
	kind := s.node.kind()
	if h.children() < capacity(kind) {
		lock(&h.word)
		stall.At("held: radix node locked")
		insert(s.node, byte(s.b), to)
		unlock(&h.word)
		t.hint(key, s.node, to)
		return nil
	}
	grown, err := t.resized(s.node, kind+1, -1)
	if err != nil {
		return err
	}
	insert(grown, byte(s.b), to)
	t.replace(key, len(t.steps)-1, grown)
	t.hint(key, grown, to)
	return nil
}

// replace puts another node in the place of one of the way to a key.
func (t *Tree) replace(key string, i int, by link) {
	old, above := t.steps[i].node, t.steps[i-1]
	t.unhint(key, old)
	t.relink(above, by)
	stall.At("held: radix node exchanged")
	t.drop(old)
	t.hint(key, above.node, by)
	t.steps[i].node = by
}

// countPath adds to the counts of the way.
func (t *Tree) countPath(delta int64) {
	for _, s := range t.steps[1:] {
		count(s.node, s.b, delta)
	}
}

// cut deletes the key whose leaf the way leads to.
func (t *Tree) cut(l link) error {
	key := t.key(l)
	if err := t.thawPath(key); err != nil {
		return err
	}
	t.unhint(key, l)
	i := len(t.steps) - 1
	s := t.steps[i]
	if s.node == 0 {
		t.relink(s, 0)
	} else {
		t.unlink(key, s)
	}
	t.drop(l)
	t.countPath(-1)
	t.resizeShort()
	return nil
}

// unlink takes the link of the last step away. A node with one link left gives way
// to what that leads to, one with few to a smaller one if there is memory.
func (t *Tree) unlink(key string, s step) {
	h := s.node.header()
	n := h.children()
	if h.own != 0 {
		n++
	}
	if n == 2 {
		b, rest := atOrAfter(s.node, -1)
		if b == s.b {
			_, rest = atOrAfter(s.node, b+1)
		}
		i := len(t.steps) - 1
		t.unhint(key, s.node)
		t.relink(t.steps[i-1], rest)
		t.drop(s.node)
		if x := t.short.Load(); x != nil && int(h.depth) >= x.depth { // else rest has another slot
			t.hint(key, t.steps[i-1].node, rest)
		}
		t.steps = t.steps[:i]
		return
	}
	if s.b < 0 {
		t.relink(s, 0)
		return
	}
	if kind := s.node.kind(); h.children()-1 <= few[kind] {
		if c, err := t.resized(s.node, kind-1, s.b); err == nil {
			t.replace(key, len(t.steps)-1, c)
			return
		}
	}
	lock(&h.word)
	remove(s.node, byte(s.b))
	unlock(&h.word)
}

// few is with how many children a node of each type gives way to a smaller one:
// some fewer than that one holds, so that a key that comes and goes does not make
// nodes do so, too.
var few = [...]int{node2: -1, node5: 1, node12: 4, node21: 9, node48: 17, node256: 36}
