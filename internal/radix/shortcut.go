package radix

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// Shortcuts are the root table: for the first bytes of a key it has the link that
// these lead to, so that a search begins there and not at the root. All keys with the
// same first depth bytes are below one link, which is called their top: that of the
// first node on their way that has at least so many bytes in common, or a leaf.
//
// The paper indexes its table by the first three bytes, which a common prefix makes
// useless, and so does an alphabet of few letters. Here the bytes behind the common
// prefix are hashed, as many of them as there is room for tops in the table.
//
// An entry is a hint: it has a top that is part of the tree. Where a line is full, one
// drives out another. A search that has found its key by a shortcut has found it; one
// that has not, and has no leaf to prove that it was in the right place, begins again
// at the root. So the 16 bits of the hash that an entry has may be those of others.
//
// Writers keep that true: before a top is taken out of the tree, or another node
// put above it, it is taken out of the table; so whoever looks there after a link was
// exchanged finds the new one, or none. All of that is done while the node that has the
// link to the top is locked. docs/radix.md has the whole argument.
type shortcuts struct {
	depth int // bytes that lead to a top
	skip  int // of these, the ones that all keys had in common
	lines []shortLine
	block *arena.Block // has them
	built int64        // entries of the tree when it was made
	exact bool         // a line and a tag are those of one beginning of keys alone
}

// shortLine is the shortcuts that have a cache line in common.
type shortLine struct {
	tags  [lineTops]uint16
	lock  uint32 // odd while somebody puts something in, and another even number afterwards
	links [lineTops]uint32
}

const (
	lineTops = 10
	lineFill = 7 // tops for each line when the table is made
)

// leastShort is from how many entries on there are shortcuts, perTop how many entries
// there are at least for each top. They are variables for tests; in builds with stalls,
// whose histories have few keys, there are shortcuts at once.
var leastShort, perTop = func() (int64, int64) {
	if stall.On {
		return 2, 2
	}
	return 4096, 8
}()

// place returns the line for a key and its tag; nil if the key is too short.
func (s *shortcuts) place(key string) (line *shortLine, tag uint16) {
	if len(key) < s.depth {
		return nil, 0
	}
	at, tag := s.spread(s.hash(key))
	return &s.lines[at], tag
}

// spread returns the number of the line for a hash, and the tag.
func (s *shortcuts) spread(h uint64) (line int, tag uint16) {
	hi, lo := bits.Mul64(h, uint64(len(s.lines)))
	return int(hi), uint16(lo>>48) | 1
}

// get returns the link with a tag, 0 if there is none.
func (x *shortLine) get(tag uint16) link {
	const low, most = 0x0001000100010001, 0x7fff7fff7fff7fff
	// A loop over the tags would have a branch that is often mispredicted. So four are compared
	// at a time: bit 15 of a lane is set where the tag is equal, and all other bits are 0. In p,
	// bit 16*lane + group stands for tag 4*group + lane.
	t, four := &x.tags, uint64(tag)*low
	a := four ^ (uint64(t[0]) | uint64(t[1])<<16 | uint64(t[2])<<32 | uint64(t[3])<<48)
	b := four ^ (uint64(t[4]) | uint64(t[5])<<16 | uint64(t[6])<<32 | uint64(t[7])<<48)
	c := four ^ (uint64(t[8]) | uint64(t[9])<<16)
	a, b, c = ^((a&most + most) | a | most), ^((b&most + most) | b | most), ^((c&most + most) | c | most)
	p := a>>15 | b>>14 | c&(1<<32-1)>>13
	if p == 0 {
		return 0
	}
	i := bits.TrailingZeros64(p)
	return link(atomic.LoadUint32(&x.links[i>>4+4*(i&3)]))
}

// put puts a link with a tag into the line, while nobody but searches reads it: files have
// lines as this leaves them, too.
func (x *shortLine) put(tag uint16, l link) {
	was := x.change()
	x.set(tag, l)
	atomic.StoreUint32(&x.lock, was)
}

// putBeside is put beside writers, who have to see that the line has changed.
func (x *shortLine) putBeside(tag uint16, l link) {
	was := x.change()
	x.set(tag, l)
	atomic.StoreUint32(&x.lock, was+2)
}

// change locks the line, for some nanoseconds, and returns what its lock was.
func (x *shortLine) change() (was uint32) {
	for try := 0; ; try++ {
		if was := atomic.LoadUint32(&x.lock); was&1 == 0 && atomic.CompareAndSwapUint32(&x.lock, was, was+1) {
			return was
		}
		pause(try)
	}
}

func (x *shortLine) set(tag uint16, l link) {
	at := int(tag>>1) % lineTops // if there is no better place
	for i := range x.tags {
		if x.tags[i] == tag {
			at = i
			break
		}
		if x.links[i] == 0 {
			at = i
		}
	}
	atomic.StoreUint32(&x.links[at], 0)
	x.tags[at] = tag
	stall.At("held: radix shortcut between two")
	atomic.StoreUint32(&x.links[at], uint32(l))
}

// remove takes a link out.
func (x *shortLine) remove(l link) {
	for i := range x.links {
		if atomic.LoadUint32(&x.links[i]) == uint32(l) { // it may be driven out now, but nobody else puts it in
			atomic.CompareAndSwapUint32(&x.links[i], uint32(l), 0)
		}
	}
}

// hash returns the hash of the first bytes of a key that is long enough.
func (s *shortcuts) hash(key string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	var h uint64
	i := s.skip
	for ; i+8 <= s.depth; i += 8 {
		h = (h ^ eightOf(key, i)) * odd
		h ^= h >> 32
	}
	if rest := s.depth - i; rest > 0 {
		var w uint64
		if i+8 <= len(key) {
			w = eightOf(key, i) << (64 - 8*uint(rest))
		} else {
			for j := range rest {
				w = w>>8 | uint64(key[i+j])<<56
			}
		}
		h = (h ^ bits.ReverseBytes64(w)) * odd
	}
	return h
}

// enter returns the link to begin a search with, and reports whether it is a
// shortcut.
func (s *shortcuts) enter(key string) (l link, ok bool) {
	if s == nil {
		return 0, false
	}
	x, tag := s.place(key)
	if x == nil {
		return 0, false
	}
	l = x.get(tag)
	stall.At("radix: shortcut read")
	runtime.KeepAlive(s)
	return l, l != 0
}

// bytes returns the memory of the table.
func (s *shortcuts) bytes() int64 {
	if s == nil {
		return 0
	}
	return s.block.Bytes()
}

// newShortcuts returns a table for some tops, or an error for a lack of memory.
func newShortcuts(tops int, limit int64) (*shortcuts, error) {
	size, pages := (1+tops/lineFill)*int(unsafe.Sizeof(shortLine{})), arena.Small
	if size >= arena.HugeSize {
		pages = arena.HugeAll
	}
	block, err := arena.New([]int{size}, 0, pages, limit)
	if err != nil {
		return nil, err
	}
	return &shortcuts{block: block, lines: arena.As[shortLine](block.Segment(0))}, nil
}

// proves reports whether a search for a key that has come from a shortcut to a leaf of
// another key has come to where the key would be.
func (s *shortcuts) proves(key, other string) bool {
	return len(other) >= s.depth && len(key) >= s.depth && key[:s.depth] == other[:s.depth]
}

// unhint takes a link out of the table, where a key's is, before it is taken out of the tree or
// something is put above it. parent is the node above it.
func (w *writer) unhint(key string, parent, l link) {
	if mutant.On && mutant.Is("radix: shortcut out first") {
		w.late = append(w.late, func() { w.unhintNow(key, parent, l) })
		return
	}
	w.unhintNow(key, parent, l)
}

func (w *writer) unhintNow(key string, parent, l link) {
	s := w.t.short.Load()
	if s == nil || w.t.forked || s.below(parent) {
		return
	}
	if x, _ := s.place(key); x != nil {
		x.remove(l)
	}
}

// below reports whether what a node has links to is below the tops.
func (s *shortcuts) below(parent link) bool {
	return parent != 0 && int(parent.header().depth) >= s.depth
}

// hint puts a link into the table that is a key's top: parent is the node above it.
func (w *writer) hint(key string, parent, l link) {
	if mutant.On && mutant.Is("radix: shortcut put in under lock") {
		w.late = append(w.late, func() { w.hintNow(key, parent, l) })
		return
	}
	w.hintNow(key, parent, l)
}

func (w *writer) hintNow(key string, parent, l link) {
	s := w.t.short.Load()
	if s == nil || w.t.forked || s.below(parent) || l.isInner() && int(l.header().depth) < s.depth {
		return
	}
	if x, tag := s.place(key); x != nil {
		x.putBeside(tag, l)
	}
}

// hintWay puts the top on the way to a key into the table.
func (t *Tree) hintWay(s *shortcuts, key string) {
	if x, tag := s.place(key); x != nil {
		if l := t.topOf(s, key); l != 0 && s.proves(key, t.key(anyLeaf(l))) {
			x.put(tag, l)
		}
	}
}

// topOf returns the top of a key that is long enough, 0 if no key like it is there.
func (t *Tree) topOf(s *shortcuts, key string) link {
	l := t.top.link
	for l.isInner() {
		d := int(l.header().depth)
		if d >= s.depth {
			break
		}
		l = child(l, int(key[d]))
	}
	return l
}

// entrance returns the node where a writer begins its way to a key, and asks for its memory;
// 0 is the root. depth is as many first bytes of the key as are sure to be those of all keys
// below; if it is 0 a leaf has to show it.
func (t *Tree) entrance(key string) (l link, depth int) {
	s := t.short.Load()
	if s == nil {
		return 0, 0
	}
	x, tag := s.place(key)
	if x == nil {
		return 0, 0
	}
	was := atomic.LoadUint32(&x.lock)
	l = x.get(tag)
	stall.At("radix: shortcut read by a writer")
	if s.exact && was&1 == 0 && atomic.LoadUint32(&x.lock) == was {
		depth = s.depth
	}
	fetch(l, key, s.depth)
	return l, depth
}

// leastGap is by how much the hashes of two keys of so many bytes differ at least.
var leastGap = [...]uint64{1: 35406288129814301, 2: 177916553307232, 3: 552555416720}

// isExact reports whether no two keys have the same line and tag: they have few bytes, all of
// which are hashed, so that their hashes are too far apart.
func (s *shortcuts) isExact() bool {
	if s.skip > 0 || s.depth < 1 || s.depth >= len(leastGap) {
		return false
	}
	const tagBits = 15
	return leastGap[s.depth] >= 1<<(64-tagBits)/uint64(len(s.lines))+1
}
