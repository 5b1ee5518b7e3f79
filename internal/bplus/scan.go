package bplus

import (
	"slices"
	"sort"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Scan calls each with the entries from lo to hi in key order, as many at a time
// as a leaf holds: those of one leaf at one moment. An entry that is there from
// begin to end is handed over once; others at most once. The slices are each's
// to change, until it returns. Without withKeys, only values are read, and keys
// are nil.
func (t *Tree[C]) Scan(lo, hi C, withKeys bool, each func(keys, vals []C)) {
	t.rw.RLock()
	defer t.rw.RUnlock()
	defer t.edges.AcquireAll()
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	sc := scanning[C]{t: t, pos: lo, hi: hi, next: nothing}
	for try := 0; sc.pos <= hi && !t.Closed(); try++ {
		high, n, ok := sc.leaf(s, withKeys)
		if !ok {
			simd.Wait(try)
			continue
		}
		if try = 0; n > 0 {
			each(sc.entries(s, n, withKeys))
		}
		if high >= hi {
			break
		}
		sc.pos = high + 1
	}
}

// scanning is a scan on its way.
type scanning[C Code] struct {
	t       *Tree[C]
	pos, hi C
	next    uint32 // the leaf that pos is said to be in, or nothing
	gen     uint64 // in which it was said
	from    int    // of the entries read, the first that is wanted
}

// entries returns n of the entries that were read.
func (sc *scanning[C]) entries(s *scratch[C], n int, withKeys bool) (keys, vals []C) {
	if withKeys {
		keys = s.run.keys[sc.from : sc.from+n]
	}
	return keys, s.run.vals[sc.from : sc.from+n]
}

// leaf reads the leaf that pos is in to s.run, and returns its high key and the
// number of entries that are wanted. It returns false if the leaf was changed
// meanwhile.
func (sc *scanning[C]) leaf(s *scratch[C], withKeys bool) (high C, n int, ok bool) {
	t, x := sc.t, sc.next
	if x == nothing {
		sc.gen = t.Gen()
		x, _, _ = t.seek(sc.pos)
	}
	sc.next = nothing
	l := t.leaf(x)
	word, in := l.loadWord(), *l.info()
	stall.At("scan: leaf found")
	high = l.high()
	inside := in.owner == t.id && high >= sc.pos && (in.first == 1 || C(in.low) < sc.pos)
	if word&unread != 0 || !inside {
		return 0, 0, false
	}
	if in.next != nothing {
		t.leaf(in.next).fetch() // it is read soon
	}
	// Where the leaf reaches beyond the range, keys tell which entries are in it.
	whole := high <= sc.hi && (in.first == 1 && sc.pos == 0 || in.first == 0 && C(in.low) == sc.pos-1)
	n = unpackTo(l, &in, s, withKeys || !whole)
	stall.At("scan: leaf read")
	if l.loadWord() != word || !t.Current(sc.gen) {
		return 0, 0, false
	}
	sc.next, sc.from = in.next, 0
	if whole {
		return high, n, true
	}
	keys := s.run.keys[:n]
	sc.from = sort.Search(n, func(i int) bool { return keys[i] >= sc.pos })
	end := sort.Search(n, func(i int) bool { return keys[i] > sc.hi })
	return high, max(0, end-sc.from), true
}

// fetchAhead is the number of lines of the next leaf's block that a scan asks
// for; the hardware prefetches the lines that follow by itself. Experiment
// aggregate.
const fetchAhead = 24

// fetch prefetches a leaf that will be read as a whole.
func (l leaf[C]) fetch() {
	simd.Fetch(l.pilot, simd.RegularPilot[C]()/simd.LineBytes)
	simd.Fetch(l.block, fetchAhead)
}

// fetchAll prefetches all of a leaf.
func (l leaf[C]) fetchAll() {
	simd.Fetch(l.pilot, simd.RegularPilot[C]()/simd.LineBytes)
	simd.Fetch(l.block, lines)
}

// unpackTo copies a leaf's entries to s.run, keys only where they are wanted, and
// returns how many there are.
func unpackTo[C Code](l leaf[C], in *info, s *scratch[C], withKeys bool) int {
	room := simd.RegularRoom[C]()
	s.run.clear()
	s.run.keys, s.run.vals = slices.Grow(s.run.keys, room), slices.Grow(s.run.vals, room)
	var keys []C
	if withKeys {
		keys = s.run.keys[:room]
	}
	return simd.UnpackRegular(l.pilot, l.block, C(in.low), in.first == 0, keys, s.run.vals[:room])
}

// Scan calls each with n entries from lo on, in key order, as many at a time as a
// leaf holds. The slices are each's to change, until it returns. Without
// withKeys, only values are read, and keys are nil.
func (v *View[C]) Scan(lo, n int, withKeys bool, each func(keys, vals []C)) {
	s := par.Get(v.tree.scratches).ready()
	defer par.Put(v.tree.scratches, s)
	at := sort.SearchInts(v.first, lo+1) - 1
	for end := lo + n; lo < end && at < len(v.refs); at++ {
		if at+1 < len(v.refs) {
			v.tree.leaf(v.refs[at+1]).fetch()
		}
		entries := 0
		v.read(v.refs[at], func(l leaf[C], _ int) {
			in := *l.info()
			entries = unpackTo(l, &in, s, withKeys)
		})
		from := lo - v.first[at]
		k := min(entries-from, end-lo)
		if k <= 0 { // it is being closed
			return
		}
		var keys []C
		if withKeys {
			keys = s.run.keys[from : from+k]
		}
		each(keys, s.run.vals[from:from+k])
		lo += k
	}
}
