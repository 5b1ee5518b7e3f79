package bplus

import (
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
		busy := uint64(simd.WordBusy)
		if mutant.On && mutant.Is("dead") {
			busy &^= simd.WordDead
		}
		if w.word&busy != 0 {
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
}

// find finds the key's leaf and line, and reads the line. It returns false if the
// tree was closed.
func (w *writing[C]) find() (ok bool) {
	if w.gen, ok = w.t.enter(); !ok {
		return false
	}
	w.epoch = w.t.Epoch()
	w.x, w.j, w.word = w.t.seek(w.key)
	w.read()
	return true
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
	switch in := w.l.info(); {
	case !w.had && !keep || w.had && keep && line[half+w.at] == val:
		return w.stable(), nil
	case in.epoch != w.epoch || in.dirty == 0 && w.had != keep:
		return false, w.t.touch(w.x, w.word, w.gen, w.epoch, w.used)
	case w.had && keep:
		line[half+w.at] = val
		return w.commitLine(n), nil
	}
	lo, bounded, hi := w.l.lineRange(w.j)
	m := entriesIn(line[:half], lo, bounded, hi)
	switch {
	case w.had && w.at >= m: // the separators are no longer those of the line
		return false, nil
	case w.had:
		removeFrom(line, m, w.at, outside(lo, bounded, hi))
		if !w.commitLine(n - 1) {
			return false, nil
		}
		w.t.count(w.x, -1)
		if n-1 < thin[C]() && (n-1)%8 == 0 { // not each time, where the neighbours are too full
			w.t.tidy(w.key)
		}
		return true, nil
	case m == half:
		return w.t.spill(w, val)
	}
	insertIn(line, m, w.key, val)
	if !w.commitLine(n + 1) {
		return false, nil
	}
	w.t.count(w.x, 1)
	return true, nil
}

// thin returns the number of entries below which a leaf is merged with a
// neighbour.
func thin[C Code]() int { return capacity[C]() / 4 }

// commitLine writes the line; the leaf then has n entries.
func (w *writing[C]) commitLine(n int) bool {
	c := w.t.changeOf(w.l, w.word, n, w.gen, w.epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = w.l.at(w.j), unsafe.Pointer(&w.buf), 1
	return simd.Commit(&c)
}

// changeOf returns the change of a leaf that then has n entries, without any
// lines yet.
func (t *Tree[C]) changeOf(l leaf[C], word uint64, n int, gen, epoch uint64) simd.Change {
	return simd.Change{
		Word: l.word(), Was: word, Will: simd.NextWord(word, n),
		Epoch: &t.control.epoch, EpochIs: epoch, Gen: &t.control.gen, GenIs: gen,
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
	l := t.leaf(x)
	if l.info().epoch != epoch {
		if ok, err := t.preserve(x, word, gen, used); !ok {
			return err
		}
	}
	stall.At("touch: state kept")
	var line [simd.LineBytes / 8]uint64
	in := (*info)(unsafe.Pointer(&line))
	*in = *l.info()
	was := in.dirty
	in.epoch, in.dirty = epoch, 1
	c := t.changeOf(l, word, simd.Entries(word), gen, epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = unsafe.Pointer(l.info()), unsafe.Pointer(&line), 1
	if simd.Commit(&c) && was == 0 {
		t.noteDirty(x)
	}
	t.note(StepTouch, 0, x, nothing)
	return nil
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

// near is how many lines on either side of a full one are prefetched.
const near = 4

// spill makes the change of a key that is not there and whose line is full: it
// moves entries to the nearest line with room, or splits the leaf.
func (t *Tree[C]) spill(w *writing[C], val C) (done bool, err error) {
	s := t.scratches.Get().ready()
	defer t.scratches.Put(s)
	n := simd.Entries(w.word)
	if n >= capacity[C]() {
		return t.unpackSplit(w, s, val)
	}
	from := max(w.j-near, 0) // room is mostly near, and looked for on both sides
	simd.Fetch(w.l.at(from), min(w.j+near+1, lines)-from)
	s.loadPilot(w.l)
	first, last := s.copy.lineForAppend(w.line(), w.j, w.key), lines
	appends := first >= 0
	if !appends {
		if first, last = w.l.nearestRoom(w.j); first < 0 {
			return false, nil // changed meanwhile
		}
		if last-first > reach && n <= packAt[C]() {
			return t.repack(w, s, val)
		}
	}
	for j := first; j < last; j++ {
		s.loadLine(w.l, j)
	}
	if !w.stable() {
		return false, nil
	}
	switch {
	case appends:
		s.copy.appendLine(first, w.key, val)
	case first < w.j:
		s.copy.carryLeft(w.j, first, w.key, val)
	default:
		s.copy.carryRight(w.j, last-1, w.key, val)
	}
	if !t.commitCopy(w.l, s.copy, first, last, w.word, n+1, w.gen, w.epoch) {
		return false, nil
	}
	w.moved = true
	t.count(w.x, 1)
	t.note(StepCarry, w.key, w.x, nothing)
	return true, nil
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
	t.count(w.x, 1)
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
	if !w.unpack(s) {
		return false, nil
	}
	if w.inPlace {
		return false, ErrStructure
	}
	s.run.insert(w.key, val)
	return t.split(w, s)
}

// lineForAppend returns the first of the unused lines before the last, if key is
// to be put behind all others of the leaf, whose last line is given, and there
// are such; else -1. An unused line has a range without keys.
func (l leaf[C]) lineForAppend(line []C, j int, key C) int {
	if j != lines-1 || key <= line[len(line)/2-1] {
		return -1
	}
	seps, u := l.seps(), lines-1
	for u > 1 && seps[u-1] == seps[u-2] {
		u--
	}
	if u == lines-1 {
		return -1
	}
	return u
}

// nearestRoom returns the lines from line j to the nearest that has room, or -1.
func (l leaf[C]) nearestRoom(j int) (first, last int) {
	for d := 1; d < lines; d++ {
		if g := j - d; g >= 0 && l.hasRoom(g) {
			return g, j + 1
		}
		if g := j + d; g < lines && l.hasRoom(g) {
			return j, g + 1
		}
	}
	return -1, -1
}

// appendLine puts an entry behind all others of a leaf whose last line is full:
// that line moves to line u, the first of those that are unused.
func (l leaf[C]) appendLine(u int, key, val C) {
	last, half, seps := l.line(lines-1), linePairs[C](), l.seps()
	copy(l.line(u), last)
	for i := u; i < lines-1; i++ {
		seps[i] = last[half-1]
	}
	fillLine(last, key, val)
	setIndex[C](l.pilot)
}

// entries returns the number of entries in line j.
func (l leaf[C]) entries(j int) int {
	lo, bounded, hi := l.lineRange(j)
	return entriesIn(l.line(j)[:linePairs[C]()], lo, bounded, hi)
}

func (l leaf[C]) hasRoom(j int) bool { return l.entries(j) < linePairs[C]() }

// carryLeft makes room for an entry in full line j: the first entry of each
// line from g+1 to j moves to the end of the line before. Line g has room, those
// between are full.
func (l leaf[C]) carryLeft(j, g int, key, val C) {
	half, seps, m := linePairs[C](), l.seps(), l.entries(g)
	defer setIndex[C](l.pilot)
	for i := g + 1; i <= j; i++ {
		line := l.line(i)
		k, v := line[0], line[half]
		if i == j && key < k { // the new entry is the one that moves
			insertIn(l.line(i-1), m, key, val)
			seps[i-1] = key
			return
		}
		insertIn(l.line(i-1), m, k, v)
		seps[i-1] = k
		removeFrom(line, half, 0, 0)
		m = half - 1
	}
	insertIn(l.line(j), half-1, key, val)
}

// carryRight does the same with line g on the other side: the last entry of
// each line from j to g-1 moves to the front of the next.
func (l leaf[C]) carryRight(j, g int, key, val C) {
	half, seps, m := linePairs[C](), l.seps(), l.entries(g)
	defer setIndex[C](l.pilot)
	for i := g; i > j; i-- {
		line := l.line(i - 1)
		k, v, end := line[half-1], line[2*half-1], line[half-2]
		if i-1 == j && key > k {
			insertIn(l.line(i), m, key, val)
			seps[j] = k
			return
		}
		insertIn(l.line(i), m, k, v)
		removeFrom(line, half, half-1, 0)
		seps[i-1] = end
		m = half - 1
	}
	insertIn(l.line(j), half-1, key, val)
	seps[j] = max(seps[j], key)
}

// split makes the change of a key that is not there and whose leaf is full: the
// leaf's upper part moves to a new one. s.run has the leaf's entries and the new
// one.
func (t *Tree[C]) split(w *writing[C], s *scratch[C]) (done bool, err error) {
	right, err := t.splitOff(w, s)
	if err != nil || right == nothing {
		return false, err
	}
	stall.At("split: parent not told")
	t.count(w.x, 1)
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
	keys, vals := s.run.keys, s.run.vals
	n, in := len(keys), s.copy.info()
	mid, packRight := n/2, right.pack
	if keys[n-1] == w.key && (in.next == nothing || n > capacity[C]()-linePairs[C]()) {
		mid, packRight = n-1, right.packLeft // ascending keys leave full leaves behind
	}
	bound := keys[mid-1]
	*right.info() = info{epoch: w.epoch, born: w.epoch, low: uint64(bound), owner: t.id, next: in.next, dirty: 1}
	packRight(run[C]{keys[mid:], vals[mid:]}, s.copy.high())
	t.revive(right, n-mid)
	t.note(StepFill, w.key, x, nothing)
	stall.At("split: right leaf filled")
	in.next = x
	s.copy.pack(run[C]{keys[:mid], vals[:mid]}, bound)
	if !t.commitCopy(w.l, s.copy, 0, lines, w.word, mid, w.gen, w.epoch) {
		t.freeLeaf(x)
		return nothing, nil
	}
	t.note(StepSplit, w.key, w.x, x)
	return x, nil
}
