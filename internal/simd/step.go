package simd

import (
	"runtime"
	"unsafe"
)

// Lines tells where the nodes of one level are, in lines of 64 bytes from a
// base: node x is at line
//
//	At + (x >> Shift)·Page + (x >> Sub & Mask)
//
// With pages of Page lines, x>>Shift is the number of a page, and x>>Sub &
// Mask is the number of the node among the nodes of its level in that page. A
// contiguous level has Page 1, Shift 0 and Mask 0.
type Lines struct {
	At         int
	Page, Mask int
	Shift, Sub int
}

// NoLines is the Step.Next of a step that fetches nothing for the child.
var NoLines = Lines{At: -1}

// none reports whether l is NoLines.
func (l *Lines) none() bool { return l.Page == 0 && l.Mask == 0 && l.At < 0 }

// Line returns the line of node x.
func (l *Lines) Line(x int) int { return l.At + x>>l.Shift*l.Page + x>>l.Sub&l.Mask }

// inRow reports whether Sub and Mask follow from Shift, as in a row of pages:
// then the line is x + (x>>Shift)·(Page-1<<Shift), which takes two
// instructions less.
func (l *Lines) inRow() bool { return l.Sub == 0 && l.Mask == 1<<l.Shift-1 }

// Step is one level of a tree whose nodes are numbered on each level: node x
// has the children x<<Fan + j, where j is the number of keys in its line that
// are below the key searched for.
type Step struct {
	Base     unsafe.Pointer
	Here     Lines          // the line that is searched
	Next     Lines          // the line that is fetched for the child; NoLines for none
	NextBase unsafe.Pointer // base of Next; nil for Base
	Fan      int
	Last     int // the child's number is clamped to this, so that garbage stays inside; math.MaxInt for no limit
}

// StepDown takes queries down one level: nodes[i] is the number of the node
// that keys[i] has reached, and is replaced by that of its child. nodes must
// be at least as long as keys.
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

// stepGo is StepDown in plain Go, which cannot prefetch lines.
func stepGo[C Code](s *Step, keys []C, nodes []int) {
	for i, key := range keys {
		at := unsafe.Add(s.Base, s.Here.Line(nodes[i])*LineBytes)
		line := unsafe.Slice((*C)(at), nodeKeys[C]())
		nodes[i] = min(nodes[i]<<s.Fan+linear(line, key), s.Last)
	}
}

// FetchEach prefetches the line at base + at[i]·size, for each i: it will be
// read soon. In plain Go it does nothing. Unmapped addresses do no harm.
func FetchEach(base unsafe.Pointer, at []int, size int) {
	if active != Go && len(at) > 0 {
		fetchAsm((*byte)(base), &at[0], len(at), size)
	}
}

// flatStep is a Step in the form that the assembly reads; step_amd64_test.go
// checks the offsets.
type flatStep struct {
	here, next flatLines
	fan, last  int
	inRow      bool
}

// flatLines are Lines in the form that the assembly reads. at is not a
// pointer: the address to fetch may lie outside any allocation, which the
// garbage collector does not tolerate.
type flatLines struct {
	at         uintptr // address of line At
	page, mask int     // in a row, page is Page - 1<<Shift
	shift, sub int
}

func (s *Step) flatten() flatStep {
	base, next := s.NextBase, s.Next
	if next.none() { // then fetch a line that exists, always the same
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
