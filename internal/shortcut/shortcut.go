// Package shortcut is the root table of radix trees, and the first step of batches of
// searches. The tree that changes (package radix) and the one that is built once
// (package trie) share it. It knows no nodes: a link is a number that leads to one,
// and 0 leads to none.
package shortcut

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Table is a root table: for the first bytes of a key it has the link that
// these lead to, so that a search begins there and not at the root. All keys with the
// same first Depth bytes are below one link, which is called their top: that of the
// first node on their way whose keys have at least Depth bytes in common, or a leaf.
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
// Writers keep that true while others read: package radix has the rules, docs/radix.md the
// whole argument.
type Table struct {
	Depth int // bytes that lead to a top
	Skip  int // of these, the ones that all keys had in common
	Lines []Line
	Built int64 // entries of the tree when it was made
	Exact bool  // a line and a tag are those of one beginning of keys alone

	block *arena.Block // has the lines; nil if another owner has
}

// Line is the shortcuts that have a cache line in common.
type Line struct {
	tags  [lineTops]uint16
	lock  uint32 // odd while a writer puts a link in, and another even number afterwards
	links [lineTops]uint32
}

const (
	lineTops = 10
	// LineFill is the number of tops for each line when a table is made.
	LineFill = 7
	// Deepest is the most bytes behind the common prefix that are hashed.
	Deepest = 64
)

// Least is from how many entries on there are shortcuts, PerTop how many entries
// there are at least for each top. They are variables for tests; in builds with stalls,
// whose histories have few keys, there are shortcuts at once.
var Least, PerTop = func() (int64, int64) {
	if stall.On {
		return 2, 2
	}
	return 4096, 8
}()

// Place returns the line for a key and its tag; nil if the key is too short.
func (s *Table) Place(key string) (line *Line, tag uint16) {
	if len(key) < s.Depth {
		return nil, 0
	}
	at, tag := s.spread(s.Hash(key))
	return &s.Lines[at], tag
}

// spread returns the number of the line for a hash, and the tag.
func (s *Table) spread(h uint64) (line int, tag uint16) {
	hi, lo := bits.Mul64(h, uint64(len(s.Lines)))
	return int(hi), uint16(lo>>48) | 1
}

// Get returns the link with a tag, 0 if there is none.
func (x *Line) Get(tag uint16) uint32 {
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
	return atomic.LoadUint32(&x.links[i>>4+4*(i&3)])
}

// Put puts a link with a tag into the line, while nobody but searches reads it: files have
// lines as this leaves them, too.
func (x *Line) Put(tag uint16, l uint32) {
	was := x.change()
	x.set(tag, l)
	atomic.StoreUint32(&x.lock, was)
}

// PutBeside is Put beside writers, which have to see that the line has changed.
func (x *Line) PutBeside(tag uint16, l uint32) {
	was := x.change()
	x.set(tag, l)
	atomic.StoreUint32(&x.lock, was+2)
}

// Links returns the links of the line, and 0 where it has none.
func (x *Line) Links() []uint32 { return x.links[:] }

// change locks the line, for some nanoseconds, and returns the old value of its lock.
func (x *Line) change() (was uint32) {
	for try := 0; ; try++ {
		if was := atomic.LoadUint32(&x.lock); was&1 == 0 && atomic.CompareAndSwapUint32(&x.lock, was, was+1) {
			return was
		}
		simd.Wait(try)
	}
}

func (x *Line) set(tag uint16, l uint32) {
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
	atomic.StoreUint32(&x.links[at], l)
}

// Remove takes a link out.
func (x *Line) Remove(l uint32) {
	for i := range x.links {
		if atomic.LoadUint32(&x.links[i]) == l { // it may be driven out now, but nobody else puts it in
			atomic.CompareAndSwapUint32(&x.links[i], l, 0)
		}
	}
}

// Hash returns the hash of the first bytes of a key that is long enough.
func (s *Table) Hash(key string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	var h uint64
	i := s.Skip
	for ; i+8 <= s.Depth; i += 8 {
		h = (h ^ simd.EightOf(key, i)) * odd
		h ^= h >> 32
	}
	if rest := s.Depth - i; rest > 0 {
		var w uint64
		if i+8 <= len(key) {
			w = simd.EightOf(key, i) << (64 - 8*uint(rest))
		} else {
			for j := range rest {
				w = w>>8 | uint64(key[i+j])<<56
			}
		}
		h = (h ^ bits.ReverseBytes64(w)) * odd
	}
	return h
}

// Enter returns the link to begin a search with, and reports whether it is a
// shortcut.
func (s *Table) Enter(key string) (l uint32, ok bool) {
	if s == nil {
		return 0, false
	}
	x, tag := s.Place(key)
	if x == nil {
		return 0, false
	}
	l = x.Get(tag)
	stall.At("radix: shortcut read")
	runtime.KeepAlive(s)
	return l, l != 0
}

// EnterSure is Enter, and reports whether the link is sure to be that of the key's own top:
// no other beginning of keys has its place, and nobody has changed the line meanwhile.
func (s *Table) EnterSure(key string) (l uint32, sure bool) {
	x, tag := s.Place(key)
	if x == nil {
		return 0, false
	}
	was := atomic.LoadUint32(&x.lock)
	l = x.Get(tag)
	stall.At("radix: shortcut read by a writer")
	return l, s.Exact && was&1 == 0 && atomic.LoadUint32(&x.lock) == was
}

// Release gives the memory back of a table that New has made.
func (s *Table) Release() { s.block.Release() }

// Bytes returns the memory of the table.
func (s *Table) Bytes() int64 {
	if s == nil {
		return 0
	}
	return s.block.Bytes()
}

// New returns a table for some tops, or an error for a lack of memory.
func New(tops int, limit int64) (*Table, error) {
	size, pages := (1+tops/LineFill)*int(unsafe.Sizeof(Line{})), arena.Small
	if size >= arena.HugeSize {
		pages = arena.HugeAll
	}
	block, err := arena.New([]int{size}, 0, pages, limit)
	if err != nil {
		return nil, err
	}
	return &Table{block: block, Lines: arena.As[Line](block.Segment(0))}, nil
}

// Proves reports whether a search for a key that has come from a shortcut to a leaf of
// another key has come to where the key would be.
func (s *Table) Proves(key, other string) bool {
	return len(other) >= s.Depth && len(key) >= s.Depth && key[:s.Depth] == other[:s.Depth]
}

// leastGap[n] is by how much the hashes of two keys of n bytes differ at least.
var leastGap = [...]uint64{1: 35406288129814301, 2: 177916553307232, 3: 552555416720}

// IsExact reports whether no two keys have the same line and tag: they have few bytes, all of
// which are hashed, so that their hashes are too far apart.
func (s *Table) IsExact() bool {
	if s.Skip > 0 || s.Depth < 1 || s.Depth >= len(leastGap) {
		return false
	}
	const tagBits = 15
	return leastGap[s.Depth] >= 1<<(64-tagBits)/uint64(len(s.Lines))+1
}
