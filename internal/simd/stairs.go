package simd

import (
	"runtime"
	"unsafe"
)

// Stairs is a tree whose inner levels are Steps, in rows of pages. The queries
// of a batch go down as in a Tree, far enough apart that each finds its next
// line already fetched. StepDown, by contrast, goes level by level, so memory
// is idle while a group is at the upper levels, which are in the caches.
//
// The last key of every line is the maximum, so it is never counted. All
// fields of Tree are used except Next and Fanout. Between two steps, a query's
// position is 8 times the number of a node on its level.
//
// As in Tree, even a search that reads garbage (every key of a line counted)
// is clamped to LastLeaf at the end; Reach bounds how far it may get before
// that.
//
// The assembly reads the fields at fixed offsets; step_amd64_test.go checks
// them.
type Stairs struct {
	Tree
	flat  int                  // number of first levels that lie in a row of one page
	table [MaxLevels + 1]stair // one more, for the leaves
}

// stair is a level in the form that the assembly reads: the node at position
// x, 8 times its number, is at the address at + 8·x + (x>>shift)·page.
type stair struct {
	at          uintptr
	shift, page int
	_           int // pads an entry to 32 bytes
}

// NewStairs makes a tree of steps over leaves, the root's step first. leaves
// tells where the leaves are and how they hold entries; the first top levels
// are near enough to be walked without waiting. All steps must begin at the
// base of leaves, have as many children as keys and lie in a row.
func NewStairs[C Code](leaves Tree, steps []Step, top int) *Stairs {
	s := &Stairs{Tree: leaves}
	s.Levels, s.Top, s.From = len(steps), top, 0
	for i := range steps {
		step := &steps[i]
		if !step.Here.inRow() || 1<<step.Fan != nodeKeys[C]() || step.Base != leaves.Base {
			panic("simd: stairs of another kind of steps")
		}
		s.table[i] = s.stair(&step.Here)
		if i == s.flat && i < top && step.Here.Shift == i*step.Fan {
			s.flat++
		}
	}
	s.table[len(steps)] = s.stair(&Lines{At: int(leaves.Leaves * 8 / LineBytes), Page: 1})
	return s
}

func (s *Stairs) stair(l *Lines) stair {
	return stair{
		at:    uintptr(s.Base) + uintptr(l.At)*LineBytes,
		shift: l.Shift + 3,
		page:  (l.Page - 1<<l.Shift) * LineBytes,
	}
}

// Reach returns the number of lines from the base within which every search
// through steps stays until it reaches the leaves, whatever it reads: a line
// of zeros counts one key more than a node has children.
func Reach(steps []Step) (lines int) {
	x := 0
	for i := range steps {
		lines = max(lines, steps[i].Here.Line(x)+1)
		x = (x + 1) << steps[i].Fan
	}
	return lines
}

// Cut returns the tree as seen by a search that goes from level from to level
// to. If from is above 0, the position that a query has reached is passed in
// where its result will be stored. last is the number of the last node below
// the last level, unless these are the leaves.
func (s *Stairs) Cut(from, to, last int) Stairs {
	part := *s
	part.Tree = s.Part(from, to)
	part.flat = min(s.flat, part.Top)
	if to < s.Levels {
		part.Leaves, part.LastLeaf = 0, uint64(last)*8
	}
	return part
}

// RankDown is Rank for Stairs.
func RankDown[C Code](s *Stairs, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		leaf := s.leaf()
		walkGo(s, keys, ranks)
		rankGo(&leaf, keys, ranks)
		return
	}
	rankDownAsm(bytes(s), wide[C](), bytes(&keys[0]), len(keys), &ranks[0])
	runtime.KeepAlive(s)
}

// FindDown is Find for Stairs.
func FindDown[C Code](s *Stairs, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		leaf := s.leaf()
		walkGo(s, keys, ranks)
		findGo(&leaf, keys, ranks)
		return
	}
	findDownAsm(bytes(s), wide[C](), bytes(&keys[0]), len(keys), &ranks[0])
	runtime.KeepAlive(s)
}

// GetPairsDown is GetPairs for Stairs.
func GetPairsDown[C Code](s *Stairs, keys, vals []C, found []bool) (hits int) {
	_ = vals[:len(keys)]
	if len(keys) == 0 {
		return 0
	}
	if found != nil {
		_ = found[:len(keys)]
	}
	if active == Go {
		return getDownGo(s, keys, vals, found)
	}
	hits = getDownAsm(bytes(s), wide[C](), bytes(&keys[0]), len(keys), bytes(&vals[0]), unsafe.SliceData(found))
	runtime.KeepAlive(s)
	return hits
}

// Down sets places[i] to the position that keys[i] leads to: 8 times the
// number of a node or, at the end of the whole tree, the place of a leaf.
func Down[C Code](s *Stairs, keys []C, places []int) {
	_ = places[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		walkGo(s, keys, places)
		return
	}
	downStairsAsm(bytes(s), wide[C](), bytes(&keys[0]), len(keys), &places[0])
	runtime.KeepAlive(s)
}

// walkGo is Down in plain Go.
func walkGo[C Code](s *Stairs, keys []C, places []int) {
	if s.From == 0 {
		clear(places[:len(keys)])
	}
	for len(keys) > 0 {
		n := min(len(keys), group)
		for l := s.From; l < s.Levels; l++ {
			for i, key := range keys[:n] {
				places[i] = places[i]*nodeKeys[C]() + 8*linear(lineOf[C](s, l, places[i]), key)
			}
		}
		for i := range n {
			places[i] = min(places[i]+int(s.Leaves), int(s.LastLeaf))
		}
		keys, places = keys[n:], places[n:]
	}
}

// lineOf returns the line of the node at position x, 8 times its number, on
// level l.
func lineOf[C Code](s *Stairs, l, x int) []C {
	e := &s.table[l]
	at := int(e.at-uintptr(s.Base)) + 8*x + x>>e.shift*e.page
	return unsafe.Slice((*C)(unsafe.Add(s.Base, at)), nodeKeys[C]())
}

// leaf returns the tree for queries that have reached the place of a leaf.
func (s *Stairs) leaf() Tree {
	leaf := s.Tree
	leaf.From, leaf.Levels, leaf.Top = 1, 1, 1
	return leaf
}

// getDownGo is GetPairsDown in plain Go.
func getDownGo[C Code](s *Stairs, keys, vals []C, found []bool) (hits int) {
	leaf := s.leaf()
	nodes := make([]int, group)
	for len(keys) > 0 {
		n := min(len(keys), group)
		for i := range n {
			nodes[i] = int(vals[i])
		}
		walkGo(s, keys[:n], nodes)
		for i, x := range nodes[:n] {
			vals[i] = C(x)
		}
		hits += getGo(&leaf, keys[:n], vals, found)
		keys, vals = keys[n:], vals[n:]
		if found != nil {
			found = found[n:]
		}
	}
	return hits
}
