package simd

import (
	"runtime"
	"unsafe"
)

// Lines says where the nodes of one level are, in lines of 64 bytes from a
// base: node x is at line
//
//	At + (x >> Shift)·Page + (x >> Sub & Mask)
//
// With pages of Page lines, x>>Shift is the number of a page and what Mask
// leaves of x the number of the node among those of its level in that page. A
// level that lies in one piece has Page 1, Shift 0 and Mask 0.
type Lines struct {
	At         int
	Page, Mask int
	Shift, Sub int
}

// NoLines is the Step.Next of a step after which nothing is fetched.
var NoLines = Lines{At: -1}

// none says that there are no such lines.
func (l *Lines) none() bool { return l.Page == 0 && l.Mask == 0 && l.At < 0 }

// Line gives the line of node x.
func (l *Lines) Line(x int) int { return l.At + x>>l.Shift*l.Page + x>>l.Sub&l.Mask }

// inRow says that Sub and Mask follow from Shift, as in a row of pages: then
// the line is x + (x>>Shift)·(Page-1<<Shift), two instructions less.
func (l *Lines) inRow() bool { return l.Sub == 0 && l.Mask == 1<<l.Shift-1 }

// Step is one level of a tree whose nodes are told apart by their number on
// the level: node x has the children x<<Fan + j, where j is the number of keys
// in its line that are below the key searched for.
type Step struct {
	Base     unsafe.Pointer
	Here     Lines          // the line that is compared
	Next     Lines          // the line that is fetched for the child; NoLines for none
	NextBase unsafe.Pointer // base of Next; nil for Base
	Fan      int
	Last     int // the child's number is cut to this, so that nonsense stays inside; math.MaxInt for no cut
}

// StepDown takes queries down one level: nodes[i] is the number of the node
// that keys[i] has come to, and becomes that of its child. nodes is at least
// as long as keys.
func StepDown[C Code](s *Step, keys []C, nodes []int) {
	_ = nodes[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		stepGo(s, keys, nodes)
		return
	}
	flat := s.flatten()
	stepAsm(&flat, wide[C](), bytes(&keys[0]), len(keys), &nodes[0])
	runtime.KeepAlive(s)
}

// stepGo is StepDown in plain Go, which cannot ask for lines.
func stepGo[C Code](s *Step, keys []C, nodes []int) {
	for i, key := range keys {
		at := unsafe.Add(s.Base, s.Here.Line(nodes[i])*LineBytes)
		line := unsafe.Slice((*C)(at), nodeKeys[C]())
		nodes[i] = min(nodes[i]<<s.Fan+linear(line, key), s.Last)
	}
}

// FetchEach asks for the line at base + at[i]·size, for each i: they will be
// read soon. Plain Go cannot ask. Addresses without memory do no harm.
func FetchEach(base unsafe.Pointer, at []int, size int) {
	if active != Go && len(at) > 0 {
		fetchAsm((*byte)(base), &at[0], len(at), size)
	}
}

// flatStep is a Step as the assembly takes it; step_amd64_test.go compares the
// offsets.
type flatStep struct {
	here, next flatLines
	fan, last  int
	inRow      bool
}

// flatLines are Lines as the assembly takes them. at is no pointer: what is to
// be fetched may lie outside of everything, which the garbage collector would
// not bear.
type flatLines struct {
	at         uintptr // address of line At
	page, mask int     // in a row, page is Page - 1<<Shift
	shift, sub int
}

func (s *Step) flatten() flatStep {
	base, next := s.NextBase, s.Next
	if next.none() { // then fetch a line that is there, always the same
		base, next = nil, Lines{At: s.Here.At}
	}
	if base == nil {
		base = s.Base
	}
	f := flatStep{here: s.Here.flatten(s.Base), next: next.flatten(base), fan: s.Fan, last: s.Last}
	if f.inRow = s.Here.inRow() && next.inRow(); f.inRow {
		f.here.page -= 1 << s.Here.Shift
		f.next.page -= 1 << next.Shift
	}
	return f
}

func (l *Lines) flatten(base unsafe.Pointer) flatLines {
	at := uintptr(base) + uintptr(l.At)*LineBytes
	return flatLines{at: at, page: l.Page, mask: l.Mask, shift: l.Shift, sub: l.Sub}
}
