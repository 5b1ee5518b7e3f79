package bplus

import (
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// This file makes room for a pair whose line is full: see spill.

// reach is how many lines away a full line looks for room, on either side,
// before its leaf is packed anew; a leaf that is nearly full looks further.
const reach = 8

// spill makes the change of a key that is not there and whose line is full: it
// moves entries to the nearest line with room, or splits the leaf. Only the lines
// and separators between change, and are read.
func (t *Tree[C]) spill(w *writing[C], val C) (done bool, err error) {
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	n := simd.Entries(w.word)
	if n >= capacity[C]() {
		return t.unpackSplit(w, s, val)
	}
	first, last := nearestRoom(w.l.info().full, w.j)
	if last == first {
		return false, nil // changed meanwhile
	}
	if packs[C](last-first, n) {
		return t.repack(w, s, val)
	}
	s.loadPart(w.l, first, last)
	if !w.stable() {
		return false, nil
	}
	if first < w.j {
		s.copy.carryLeft(w.j, first, w.key, val)
	} else {
		s.copy.carryRight(w.j, last-1, w.key, val)
	}
	if !t.commitPart(w, s.copy, first, last, n+1) {
		return false, nil
	}
	w.moved = true
	w.count(1)
	t.note(StepCarry, w.key, w.x, nothing)
	return true, nil
}

// commitPart writes lines [first, last) of a copy's block to the leaf, the
// separators between them, and the other parts of the pilot that have changed.
func (t *Tree[C]) commitPart(w *writing[C], from leaf[C], first, last, n int) bool {
	perLine := simd.LineBytes / width[C]()
	c := t.changeOf(w.l, w.word, n, w.gen, w.epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = w.l.at(first), from.at(first), last-first
	sep, end := first/perLine, (last-2)/perLine+1 // the last line's separator stays
	c.Dst[1], c.Src[1], c.Lines[1] = w.l.sepLine(sep), from.sepLine(sep), end-sep
	at, k := simd.LineBytes, 1 // the line behind the index line: which lines are full
	if setIndexOf[C](from.pilot, first, last-1) {
		*from.word() = w.word | simd.WordLocked // as it is while this line is written
		at, k = 0, 2
	}
	c.Dst[2], c.Src[2], c.Lines[2] = unsafe.Add(w.l.pilot, at), unsafe.Add(from.pilot, at), k
	return simd.Commit(&c)
}

// packAt returns the number of entries up to which packing a leaf anew makes
// room in every line.
func packAt[C Code]() int { return capacity[C]() * 3 / 4 }

// repack makes the change by packing the leaf anew.
func (t *Tree[C]) repack(w *writing[C], s *scratch[C], val C) (done bool, err error) {
	if !w.unpack(s) {
		return false, nil
	}
	s.run.insert(w.key, val)
	s.copy.pack(s.run, s.copy.high())
	n := len(s.run.keys)
	if !t.commitCopy(w.l, s.copy, 0, lines, w.word, n, w.gen, w.epoch) {
		return false, nil
	}
	w.moved = true
	w.count(1)
	t.note(StepPack, w.key, w.x, nothing)
	return true, nil
}

// unpack copies the leaf and its entries to s. It returns false if the leaf was
// changed meanwhile.
func (w *writing[C]) unpack(s *scratch[C]) bool {
	s.load(w.l)
	s.run.clear()
	s.copy.unpack(&s.run)
	return w.stable()
}

// unpackSplit makes the change by splitting the leaf.
func (t *Tree[C]) unpackSplit(w *writing[C], s *scratch[C], val C) (done bool, err error) {
	last := w.l.line(lines - 1)[linePairs[C]()-1] // of a leaf that is full, the greatest key
	if w.j == lines-1 && w.key > last {
		s.loadPilot(w.l)
		s.run.clear()
		s.run.add(last, 0)
		if !w.stable() {
			return false, nil
		}
	} else if !w.unpack(s) {
		return false, nil
	}
	if w.inPlace {
		return false, ErrStructure
	}
	s.run.insert(w.key, val)
	return t.split(w, s)
}

// nearestRoom returns the lines from full line j to the nearest that has room,
// or none.
func nearestRoom(full uint64, j int) (first, last int) {
	left, right := bits.LeadingZeros64(^full<<(lines-1-j)), bits.TrailingZeros64(^full>>j)
	switch {
	case min(left, right) == lines:
		return j, j
	case left <= right:
		return j - left, j + 1
	}
	return j, j + right + 1
}

// fetchRoom prefetches the lines to which entries will move if an entry comes
// to line j: none, if it has room.
func (l leaf[C]) fetchRoom(j int) {
	full := l.info().full
	if full>>j&1 == 0 {
		return
	}
	if first, last := nearestRoom(full, j); last-first <= reach {
		simd.Fetch(l.at(first), last-first)
	}
}

// entries returns the number of entries in line j.
func (l leaf[C]) entries(j int) int {
	lo, bounded, hi := l.lineRange(j)
	return entriesIn(l.line(j)[:linePairs[C]()], lo, bounded, hi)
}

// carryLeft makes room for an entry in full line j: the first entry of each
// line from g+1 to j moves to the end of the line before. Line g has room, those
// between are full. The index line is the caller's to set.
func (l leaf[C]) carryLeft(j, g int, key, val C) {
	half, seps, to, m := linePairs[C](), l.seps(), l.line(g), l.entries(g)
	for i := g + 1; i <= j; i++ {
		line := l.line(i)
		k, v, ends := line[0], line[half], i == j && key < line[0]
		if ends { // the new entry is the one that moves
			k, v = key, val
		}
		to[m], to[half+m] = k, v
		pad(to[:half], to[half:], m+1)
		if i == g+1 && m == half-1 {
			l.info().full |= 1 << g
		}
		if seps[i-1] = k; ends {
			return
		}
		shiftLeft(line)
		to, m = line, half-1
	}
	insertIn(to, half-1, key, val)
}

// carryRight does the same with line g on the other side: the last entry of
// each line from j to g-1 moves to the front of the next.
func (l leaf[C]) carryRight(j, g int, key, val C) {
	half, seps, to, m := linePairs[C](), l.seps(), l.line(g), l.entries(g)
	for i := g - 1; i >= j; i-- {
		line := l.line(i)
		k, v, ends := line[half-1], line[2*half-1], i == j && key > line[half-1]
		if ends {
			k, v = key, val
		}
		if m > 0 {
			shiftRight(to)
		}
		to[0], to[half] = k, v
		if m == 0 {
			pad(to[:half], to[half:], 1)
		}
		if i == g-1 && m == half-1 {
			l.info().full |= 1 << g
		}
		if ends {
			seps[i] = line[half-1]
			return
		}
		seps[i] = line[half-2]
		to, m = line, half-1
	}
	insertIn(to, half-1, key, val)
	seps[j] = max(seps[j], key)
}

// shiftLeft drops the first entry of a full line. The last one is there twice
// then.
func shiftLeft[C Code](line []C) {
	half := len(line) / 2
	ks, vs := line[:half], line[half:]
	for i := 1; i < len(ks) && i < len(vs); i++ {
		ks[i-1], vs[i-1] = ks[i], vs[i]
	}
}

// shiftRight drops the last entry of a line. The first one is there twice then.
func shiftRight[C Code](line []C) {
	half := len(line) / 2
	ks, vs := line[:half], line[half:]
	for i := len(ks) - 1; i > 0 && i < len(vs); i-- {
		ks[i], vs[i] = ks[i-1], vs[i-1]
	}
}

// split makes the change of a key that is not there and whose leaf is full: the
// leaf's upper part moves to a new one. s.run has the leaf's entries and the new
// one; where that is the greatest, it is enough to have the one before it.
func (t *Tree[C]) split(w *writing[C], s *scratch[C]) (done bool, err error) {
	right, err := t.splitOff(w, s)
	if err != nil || right == nothing {
		return false, err
	}
	stall.At("split: parent not told")
	w.count(1)
	t.noteDirty(right)
	t.addBoundaries([]boundary[C]{{C(t.leaf(right).info().low), right}})
	return true, nil
}

// splitOff splits a leaf in two, and returns the new one, or nothing if the leaf
// was changed meanwhile.
func (t *Tree[C]) splitOff(w *writing[C], s *scratch[C]) (uint32, error) {
	t.filling.RLock()
	defer t.filling.RUnlock()
	if t.Closed() {
		return nothing, op.ErrClosed
	}
	x, right, err := t.newLeaf(w.used)
	if err != nil {
		return nothing, err
	}
	simd.Fetch(right.block, lines)
	keys, vals := s.run.keys, s.run.vals
	n, in, high, next := len(keys), s.copy.info(), s.copy.high(), s.copy.info().next
	in.next = x
	mid, stay, changed, packRight := n/2, n/2, lines, right.pack
	if keys[n-1] == w.key { // ascending keys leave full leaves behind, as they are
		mid, stay, changed, packRight = n-1, simd.Entries(w.word), 0, right.packLeft
		s.copy.seps()[lines-1] = keys[mid-1]
	} else {
		s.copy.pack(run[C]{keys[:mid], vals[:mid]}, keys[mid-1])
	}
	*right.info() = info{epoch: w.epoch, born: w.epoch, low: uint64(keys[mid-1]), owner: t.id, next: next, dirty: 1}
	packRight(run[C]{keys[mid:], vals[mid:]}, high)
	t.revive(right, n-mid)
	t.note(StepFill, w.key, x, nothing)
	stall.At("split: right leaf filled")
	if !t.commitCopy(w.l, s.copy, 0, changed, w.word, stay, w.gen, w.epoch) {
		t.freeLeaf(x)
		return nothing, nil
	}
	t.note(StepSplit, w.key, w.x, x)
	return x, nil
}
