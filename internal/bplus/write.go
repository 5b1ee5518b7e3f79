package bplus

import (
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// edit is what a change of one key does, decided when its old value is known.
// It may be asked more than once.
type edit[C Code] interface {
	// decide returns the new value of a key, and false if the key is to be
	// deleted, or not to be there. gen is the generation in which the old value
	// was looked for.
	decide(old C, had bool, gen uint64) (val C, keep bool)
}

type (
	setTo[C Code]    struct{ val C }
	remove[C Code]   struct{}
	decideBy[C Code] struct {
		f func(C, bool, uint64) (C, bool)
	}
)

func (e setTo[C]) decide(C, bool, uint64) (C, bool)                { return e.val, true }
func (remove[C]) decide(C, bool, uint64) (C, bool)                 { return 0, false }
func (e decideBy[C]) decide(old C, had bool, gen uint64) (C, bool) { return e.f(old, had, gen) }

// Set sets the value of a key, and returns the one it had.
func (t *Tree[C]) Set(key, val C) (old C, had bool, err error) {
	if old, had, ok := t.quickSet(key, val); ok {
		return old, had, nil
	}
	return changeWithin(t, key, setTo[C]{val}, nil)
}

// Delete deletes a key, and returns the value it had.
func (t *Tree[C]) Delete(key C) (old C, had bool, err error) {
	return changeWithin(t, key, remove[C]{}, new(promises))
}

// Update sets the value of a key to what f makes of the old one, or deletes the
// key where f returns false. f may be called more than once; gen is for Current.
func (t *Tree[C]) Update(key C, f func(old C, had bool, gen uint64) (val C, keep bool)) (old C, had bool, err error) {
	return changeWithin(t, key, decideBy[C]{f}, nil)
}

// changeWithin changes one key, with memory that was promised unless used is
// nil. A promise of nothing is one that the limit does not bind: a delete may have
// to keep old states, and must not fail.
func changeWithin[C Code, E edit[C]](t *Tree[C], key C, e E, used *promises) (old C, had bool, err error) {
	t.lockWrite()
	defer t.unlockWrite()
	return changeLocked(t, key, e, used)
}

// changeLocked is changeWithin for whoever holds the lock, where there is one.
func changeLocked[C Code, E edit[C]](t *Tree[C], key C, e E, used *promises) (old C, had bool, err error) {
	w := writing[C]{t: t, key: key, used: used}
	for try := 0; ; try++ {
		if !w.find() {
			return 0, false, ErrClosed
		}
		stall.At("write: line read")
		if w.word&busy() != 0 {
			pause(try)
			continue
		}
		if !w.stable() { // what was read may be nonsense
			continue
		}
		acquired(t, key) // the caller may read what the old value stands for, and write what the new one does
		val, keep := e.decide(w.old, w.had, w.gen)
		released(t, key)
		stall.At("write: decided")
		done, err := w.put(val, keep)
		if err != nil {
			return 0, false, err
		}
		if done {
			return w.old, w.had, nil
		}
		t.note(StepRetry, key, w.x, nothing)
	}
}

// busy returns the bits of a word that keep writers off its leaf.
func busy() uint64 {
	if mutant.On && mutant.Is("dead") {
		return simd.WordBusy &^ simd.WordDead
	}
	return simd.WordBusy
}

// writing is a change of one key on its way.
type writing[C Code] struct {
	t          *Tree[C]
	key        C
	gen, epoch uint64
	x          uint32
	l          leaf[C]
	j          int // line
	word       uint64
	at         int // of the key in its line
	old        C
	had        bool
	buf        [simd.LineBytes / 4]C // the line to be
	used       *promises             // memory promised to a batch; nil for none
	inPlace    bool                  // the leaf must not be split: see SetInPlace
	moved      bool                  // entries have moved to other lines
	delta      *int                  // where a batch counts entries; nil for the tree's count
}

// find finds the key's leaf and line, and reads the line. It returns false if the
// tree was closed.
func (w *writing[C]) find() (ok bool) {
	if w.gen, ok = w.t.enter(); !ok {
		return false
	}
	w.epoch = w.t.Epoch()
	if !w.inTail() {
		w.x, w.j, w.word = w.t.seek(w.key)
		w.l = w.t.leaf(w.x)
		w.noteTail()
	}
	w.l.fetchRoom(w.j)
	w.read()
	return true
}

// tail is the last leaf of the tree, as it was in a generation. Keys that come in
// ascending order are found there without a search.
type tail struct {
	leaf uint32
	gen  uint64
	low  uint64 // all keys of the leaf are above
}

// tailOf returns the last leaf if a key belongs there, or nil. What is known from an
// earlier generation is only good for as long as that one is current.
func (t *Tree[C]) tailOf(key C, gen uint64) *tail {
	if last := t.tail.Load(); last != nil && gen-last.gen <= 1 && uint64(key) > last.low {
		return last
	}
	return nil
}

// inTail finds the key's leaf and line if it is the last leaf.
func (w *writing[C]) inTail() bool {
	last := w.t.tailOf(w.key, w.gen)
	if last == nil {
		return false
	}
	l := w.t.leaf(last.leaf)
	word, in := l.loadWord(), l.info()
	if word&busy() != 0 || in.next != nothing {
		return false
	}
	stall.At("write: last leaf")
	j, again := w.t.within(last.leaf, w.key)
	if again != word || j == lines {
		return false
	}
	w.x, w.l, w.j, w.word, w.gen = last.leaf, l, j, word, last.gen
	return true
}

// noteTail remembers the leaf if it is the last one, and not the only one: a
// leaf's low key is the same for as long as it lives, and the first has none.
func (w *writing[C]) noteTail() {
	in := w.l.info()
	if in.next != nothing || in.first == 1 {
		return
	}
	if last := w.t.tail.Load(); last == nil || last.leaf != w.x || last.gen != w.gen {
		if low := in.low; w.stable() {
			w.t.tail.Store(&tail{w.x, w.gen, low})
		}
	}
}

// read reads the line, and looks for the key.
func (w *writing[C]) read() {
	w.l = w.t.leaf(w.x)
	line := w.line()
	copy(line, w.l.line(w.j))
	w.old, w.had = 0, false
	if w.at = placeIn(line, w.key); w.at >= 0 {
		w.old, w.had = line[len(line)/2+w.at], true
	}
}

func (w *writing[C]) line() []C { return w.buf[:2*linePairs[C]()] }

// stable reports whether what was read is still so.
func (w *writing[C]) stable() bool { return w.l.loadWord() == w.word && w.t.Current(w.gen) }

// put makes the change. It returns false if it must be begun anew.
func (w *writing[C]) put(val C, keep bool) (done bool, err error) {
	n, line, half := simd.Entries(w.word), w.line(), linePairs[C]()
	in := w.l.info()
	switch {
	case !w.had && !keep || w.had && keep && line[half+w.at] == val:
		return w.stable(), nil
	case in.epoch != w.epoch && w.unkept(in) || in.dirty == 0 && w.had != keep:
		word, err := w.t.touchLines(w.x, w.word, w.gen, w.epoch, w.lines(in.full), w.used)
		if word == 0 {
			return false, err
		}
		w.word = word // what was read is still so
		return w.put(val, keep)
	case w.had && keep:
		line[half+w.at] = val
		return w.commitLine(n, in.full), nil
	case !w.had && in.full>>w.j&1 == 1:
		return w.t.spill(w, val)
	}
	full := in.full &^ (1 << w.j)
	lo, bounded, hi := w.l.lineRange(w.j)
	m := entriesIn(line[:half], lo, bounded, hi)
	switch {
	case w.had && w.at >= m: // the separators are no longer those of the line
		return false, nil
	case w.had:
		removeFrom(line, m, w.at, outside(lo, bounded, hi))
		if !w.commitLine(n-1, full) {
			return false, nil
		}
		w.count(-1)
		if n-1 < thin[C]() && (n-1)%8 == 0 { // not each time, where the neighbours are too full
			w.t.tidy(w.key)
		}
		return true, nil
	case m == half: // full since
		return false, nil
	case m == half-1:
		full |= 1 << w.j
	}
	insertIn(line, m, w.key, val)
	if !w.commitLine(n+1, full) {
		return false, nil
	}
	w.count(1)
	return true, nil
}

// count adds to the number of entries.
func (w *writing[C]) count(delta int) {
	if w.delta != nil {
		*w.delta += delta
		return
	}
	w.t.count(w.x, delta)
}

// thin returns the number of entries below which a leaf is merged with a
// neighbour.
func thin[C Code]() int { return capacity[C]() / 4 }

// commitLine writes the line; the leaf then has n entries, and these full lines.
func (w *writing[C]) commitLine(n int, full uint64) bool {
	c := w.t.changeOf(w.l, w.word, n, w.gen, w.epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = w.l.at(w.j), unsafe.Pointer(&w.buf), 1
	in := *w.l.info()
	if in.full != full {
		in.full = full
		c.Dst[1], c.Src[1], c.Lines[1] = unsafe.Pointer(w.l.info()), unsafe.Pointer(&in), 1
	}
	return simd.Commit(&c)
}

// changeOf returns the change of a leaf that then has n entries, without any
// lines yet.
func (t *Tree[C]) changeOf(l leaf[C], word uint64, n int, gen, epoch uint64) simd.Change {
	return simd.Change{
		Word: l.word(), Was: word, Will: simd.NextWord(word, n),
		Epoch: &t.control.Epoch, EpochIs: epoch, Gen: &t.control.Gen, GenIs: gen,
	}
}

// commitCopy writes a copy's pilot, and lines [from, to) of its block, to leaf
// l.
func (t *Tree[C]) commitCopy(l, from leaf[C], first, last int, word uint64, n int, gen, epoch uint64) bool {
	*from.word() = word | simd.WordLocked // the line that it is in is written while the leaf is locked
	c := t.changeOf(l, word, n, gen, epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = l.pilot, from.pilot, simd.RegularPilot[C]()/simd.LineBytes
	c.Dst[1], c.Src[1], c.Lines[1] = l.at(first), from.at(first), last-first
	return simd.Commit(&c)
}

// touch prepares a leaf for changes in the present epoch: its state is kept if a
// snapshot needs it, and it is noted that its entries are to be counted.
func (t *Tree[C]) touch(x uint32, word, gen, epoch uint64, used *promises) error {
	_, err := t.touchLines(x, word, gen, epoch, ^uint64(0), used)
	return err
}

// noteDirty remembers that a leaf's entries are to be counted.
func (t *Tree[C]) noteDirty(x uint32) {
	d := &t.dirty[x%stripes]
	d.mu.Lock()
	d.leaves = append(d.leaves, x)
	d.mu.Unlock()
}

// reach is how many lines away a full line looks for room, on either side,
// before its leaf is packed anew; a leaf that is nearly full looks further.
const reach = 8

// spill makes the change of a key that is not there and whose line is full: it
// moves entries to the nearest line with room, or splits the leaf. Only the lines
// and separators between change, and are read.
func (t *Tree[C]) spill(w *writing[C], val C) (done bool, err error) {
	s := t.scratches.Get().ready()
	defer t.scratches.Put(s)
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
// separators between them, and what else of the pilot has changed.
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
	if t.closed.Load() {
		return nothing, ErrClosed
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
