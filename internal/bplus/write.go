package bplus

import (
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// edit decides what a change of one key does, given its old value. It may be
// asked more than once.
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

// Update sets the value of a key to the result of f for the old one, or deletes
// the key where f returns false. f may be called more than once; gen is for
// Current. Nothing is locked while f runs: it may use the tree.
func (t *Tree[C]) Update(key C, f func(old C, had bool, gen uint64) (val C, keep bool)) (old C, had bool, err error) {
	if epoch.Optimistic {
		return changeWithin(t, key, decideBy[C]{f}, nil)
	}
	for {
		gen := t.Gen()
		if t.Closed() {
			return 0, false, op.ErrClosed
		}
		old, had = t.Get(key)
		e := ifStill[C]{old: old, had: had, missed: new(bool)}
		e.val, e.keep = f(old, had, gen)
		e.current = func() bool { return t.Current(gen) }
		if old, had, err = changeWithin(t, key, e, nil); err != nil || !*e.missed {
			return old, had, err
		}
	}
}

// ifStill is an edit that was decided earlier: it changes nothing, and says so, where
// a key has another value by now.
type ifStill[C Code] struct {
	old, val  C
	had, keep bool
	current   func() bool // reports whether an equal value is the same
	missed    *bool
}

func (e ifStill[C]) decide(old C, had bool, _ uint64) (C, bool) {
	if *e.missed = had != e.had || old != e.old || !e.current(); *e.missed {
		return old, had
	}
	return e.val, e.keep
}

// changeWithin changes one key, with memory that was promised unless used is
// nil. A promise of nothing is one that the limit does not bind: a delete may have
// to keep old states, and must not fail.
func changeWithin[C Code, E edit[C]](t *Tree[C], key C, e E, used *promises) (old C, had bool, err error) {
	t.rw.Lock()
	defer t.rw.Unlock()
	return changeLocked(t, key, e, used)
}

// changeLocked is changeWithin for a caller that holds the lock, where there is one.
func changeLocked[C Code, E edit[C]](t *Tree[C], key C, e E, used *promises) (old C, had bool, err error) {
	w := writing[C]{t: t, key: key, used: used}
	for try := 0; ; try++ {
		if !w.find() {
			return 0, false, op.ErrClosed
		}
		stall.At("write: line read")
		if w.word&busy() != 0 {
			simd.Wait(try)
			continue
		}
		if !w.stable() { // the leaf may have been read half changed
			continue
		}
		t.edges.Acquire(uint64(key)) // the caller may read the memory that the old value stands for, and write that of the new one
		val, keep := e.decide(w.old, w.had, w.gen)
		t.edges.Release(uint64(key))
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

// tailOf returns the last leaf if a key belongs there, or nil. A tail that was noted
// in an earlier generation is valid only while that generation is current.
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

// stable reports whether the leaf is still as it was read.
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
		w.word = word // the leaf is still as it was read
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
		Epoch: &t.Control().Epoch, EpochIs: epoch, Gen: &t.Control().Gen, GenIs: gen,
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
