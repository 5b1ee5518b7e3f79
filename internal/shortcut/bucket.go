package shortcut

import (
	"runtime"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Keys is the number of keys that are looked up together.
const Keys = 256

// Bucket is the state of searches for some keys that are under way, in a tree whose
// links are of type L.
type Bucket[L ~uint32] struct {
	Links [Keys]L // where they begin: at shortcuts, or 0
	Asked Asks

	lines [Keys]int
	tags  [Keys]uint16
}

// Asks is the cache lines that the next steps of some searches will read. All of them are asked
// for in a loop that does nothing else: then the machine finds out where many of them lie at
// a time. Between the steps of searches it would do that for one after the other, and a tree has
// more pages than the machine remembers.
type Asks struct{ lines []int }

// Room returns asks with room for the lines that the steps of a bucket add.
func Room() Asks { return Asks{make([]int, 0, 4*Keys)} }

// Add adds some lines. For a search that is alone a is nil, and they are asked for at once.
func (a *Asks) Add(at unsafe.Pointer, lines int) {
	if a == nil {
		simd.PrefetchAt(at, lines)
		return
	}
	for i := range lines {
		a.lines = append(a.lines, int(uintptr(at))+i*64)
	}
}

// Fetch asks for the lines, and reports whether there are any.
func (a *Asks) Fetch() bool {
	n := len(a.lines)
	simd.FetchEach(nil, a.lines, 1)
	a.lines = a.lines[:0]
	return n > 0
}

// Find sets Links to where searches for keys begin, and prefetches the lines that they will
// read there: ask adds those of the first step of search i from link l on, which may be 0.
// The table may be nil.
func (e *Bucket[L]) Find(s *Table, keys []string, ask func(l L, i int)) {
	simd.FetchStrings(keys)
	if s == nil {
		clear(e.Links[:len(keys)])
		return
	}
	e.place(s, keys)
	for i, tag := range e.tags[:len(keys)] {
		if e.Links[i] = 0; tag != 0 {
			l := L(s.Lines[e.lines[i]].Get(tag))
			ask(l, i)
			e.Links[i] = l
		}
	}
	e.Asked.Fetch()
	runtime.KeepAlive(s)
}

// Fill puts the link of each key that is long enough into the table, while nobody but
// searches reads it.
func (e *Bucket[L]) Fill(s *Table, keys []string, links []L) {
	e.place(s, keys)
	for i, tag := range e.tags[:len(keys)] {
		if tag != 0 {
			s.Lines[e.lines[i]].Put(tag, uint32(links[i]))
		}
	}
}

// place sets lines and tags to the places of keys in the table, and asks for these. The tag
// of a key that is too short is 0.
func (e *Bucket[L]) place(s *Table, keys []string) {
	for i, key := range keys {
		if e.tags[i] = 0; len(key) >= s.Depth {
			e.lines[i], e.tags[i] = s.spread(s.Hash(key))
		}
	}
	simd.FetchEach(unsafe.Pointer(&s.Lines[0]), e.lines[:len(keys)], int(unsafe.Sizeof(s.Lines[0])))
}
