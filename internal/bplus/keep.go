package bplus

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// A state that is kept for a snapshot is whole, which is a leaf like any other,
// or incomplete: then it has those lines of the leaf that were to be changed
// since, as they were. The other lines are still as they were, so they are found
// in the state that the next newer snapshot has kept of the leaf, if any, and else
// in the leaf itself. With each line of the block goes the line of its separator,
// since no other is written with it, unless the leaf is written anew: before that
// its state is made whole. The index line follows from the separators. Which lines
// of the block have still to be kept before they are changed is in the leaf's
// info.

// state is what is kept of a leaf: the number of a leaf, or of a first piece.
type state struct {
	at    uint32
	whole bool
}

// pieceRoom is the number of lines in a piece: most often two or three are kept at
// once.
const pieceRoom = 3

// mostLines is the number of lines of a block that an incomplete state has at
// most, unless it comes from two: above, a leaf takes hardly more memory.
const mostLines = 24

// piece is memory for lines of an incomplete state.
type piece struct {
	have  uint64           // in the first piece: lines of the block that the state has
	known known            // in the first piece
	last  uint32           // in the first piece: the last
	more  uint32           // the next piece, or nothing
	n     uint8            // lines in this one
	which [pieceRoom]uint8 // their numbers: see lineSet
	_     [simd.LineBytes - 44]byte
	lines [pieceRoom][simd.LineBytes / 8]uint64
}

// known is what an incomplete state knows beside its lines: what else of a leaf
// may change when it is not written anew.
type known struct {
	epoch, full uint64 // of the leaf's info
	entries     uint64
}

const pieceBytes = simd.LineBytes * (1 + pieceRoom)

// keeps is the memory for pieces of all trees. A chunk is a huge page.
var keeps = arena.NewPoolOf(1<<30, arena.HugeSize/pieceBytes, pieceBytes)

// lineSet is lines of a leaf: those of separators, and those of the block. These
// have numbers from 0 on, those of separators from lines on.
type lineSet struct{ seps, block uint64 }

// allLines returns all of them.
func allLines[C Code]() lineSet { return keptWith[C](^uint64(0)) }

// keptWith returns the lines that a state has which has these lines of a block.
func keptWith[C Code](block uint64) lineSet {
	s, perLine := lineSet{0, block}, simd.LineBytes/width[C]()
	for block != 0 {
		i := bits.TrailingZeros64(block) / perLine
		s.seps |= 1 << i
		block &^= (1<<perLine - 1) << (i * perLine)
	}
	return s
}

func (s lineSet) without(o lineSet) lineSet { return lineSet{s.seps &^ o.seps, s.block &^ o.block} }

func (s lineSet) len() int { return bits.OnesCount64(s.seps) + bits.OnesCount64(s.block) }

// next takes one line out of a set, those of separators first, and returns its
// number.
func (s *lineSet) next() int {
	if s.seps != 0 {
		i := bits.TrailingZeros64(s.seps)
		s.seps &= s.seps - 1
		return lines + i
	}
	i := bits.TrailingZeros64(s.block)
	s.block &= s.block - 1
	return i
}

// add adds the line of a number, and reports whether it was missing.
func (s *lineSet) add(i int) bool {
	set := &s.block
	if i >= lines {
		set = &s.seps
	}
	bit := uint64(1) << (i % lines)
	missing := *set&bit == 0
	*set |= bit
	return missing
}

// numbered returns the address of a line by its number.
func (l leaf[C]) numbered(i int) unsafe.Pointer {
	if i >= lines {
		return l.sepLine(i - lines)
	}
	return l.at(i)
}

// setEntries sets a leaf's word to one with another number of entries.
func (l leaf[C]) setEntries(word uint64, n int) {
	atomic.StoreUint64(l.word(), word&^(simd.WordCountMax<<simd.WordCount)|uint64(n)<<simd.WordCount)
}

// copyLines copies lines from one leaf to another.
func (l leaf[C]) copyLines(from leaf[C], set lineSet) {
	for range set.len() {
		i := set.next()
		copyLine(l.numbered(i), from.numbered(i))
	}
}

// piece returns the piece of a number.
func (t *Tree[C]) piece(y uint32) *piece {
	return (*piece)(unsafe.Add(t.keeps.pool.Base(0), uintptr(y)*pieceBytes))
}

// newPiece returns an empty piece.
func (t *Tree[C]) newPiece() (uint32, *piece, error) {
	y, _, err := t.keeps.take(false)
	if err != nil {
		return 0, nil, err
	}
	p := t.piece(y)
	p.more, p.n = nothing, 0
	return y, p, nil
}

// epochOf returns the epoch in which a state was the present one.
func (t *Tree[C]) epochOf(s state) uint64 {
	if s.whole {
		return t.leaf(s.at).info().changed()
	}
	return t.piece(s.at).known.epoch
}

// keeping is a state that is to be kept.
type keeping struct {
	m       *moment
	x       uint32
	changed bool // the leaf was changed since: without a state it is younger than the snapshot
	binds   bool // the limit does
}

// settled reports whether nothing of the leaf has to be kept any more. The moment
// is locked. A state that has all lines is not enough: it does not know which leaf
// is next.
func (k *keeping) settled() bool {
	st, there := k.m.saved.get(k.x)
	return there && st.whole || !there && k.changed
}

// keepLines adds lines of a block to an incomplete state, with what belongs to
// them, or begins one. from has them as they were, and the leaf's word and info;
// lines that are kept already are left alone. It reports whether nothing of the
// leaf has to be kept any more. The moment is locked. If memory fails, fewer lines
// are kept.
func (t *Tree[C]) keepLines(k *keeping, from leaf[C], block uint64) (settled bool, err error) {
	st, there := k.m.saved.get(k.x)
	if k.settled() {
		return true, nil
	}
	var first, last *piece
	more, room := keptWith[C](block), 0
	if there {
		first = t.piece(st.at)
		last = t.piece(first.last)
		more, room = keptWith[C](block|first.have).without(keptWith[C](first.have)), pieceRoom-int(last.n)
	}
	left := more.len()
	if k.binds && left > room {
		if err := t.room(int64((left-room+pieceRoom-1)/pieceRoom) * pieceBytes); err != nil {
			return false, err
		}
	}
	for ; left > 0; left-- {
		if last == nil || last.n == pieceRoom {
			y, p, err := t.newPiece()
			switch {
			case err != nil:
				return false, err
			case first == nil:
				in := from.info()
				first = p
				first.have, first.known = 0, known{in.changed(), in.full, uint64(simd.Entries(from.loadWord()))}
				k.m.saved.put(k.x, state{at: y})
			default:
				last.more = y
			}
			last, first.last = p, y
		}
		i := more.next()
		last.put(i, from.numbered(i))
		if i < lines {
			first.have |= 1 << i
		}
	}
	return false, nil
}

// put adds a line to a piece that has room.
func (p *piece) put(i int, line unsafe.Pointer) {
	p.which[p.n] = uint8(i)
	copyLine(unsafe.Pointer(&p.lines[p.n]), line)
	p.n++
}

// addTo copies the lines of an incomplete state to c, but for those that were
// copied already.
func (t *Tree[C]) addTo(c leaf[C], y uint32, done *lineSet) {
	for y != nothing {
		p := t.piece(y)
		for i := range p.n {
			if n := int(p.which[i]); done.add(n) {
				copyLine(c.numbered(n), unsafe.Pointer(&p.lines[i]))
			}
		}
		y = p.more
	}
}

// finish sets what else is known of a state in a leaf that has all of its lines.
// The leaf's word becomes the one given, but for the number of entries.
func (l leaf[C]) finish(k known, word uint64) {
	in := l.info()
	in.epoch, in.full = k.epoch, k.full
	setIndex[C](l.pilot)
	l.setEntries(word, int(k.entries))
}

// complete makes whole what an incomplete state and a later one, which is in c,
// are together. The memory of the former is free then.
func (t *Tree[C]) complete(c leaf[C], y uint32, word uint64) {
	t.addTo(c, y, new(lineSet))
	c.finish(t.piece(y).known, word)
	t.dropPieces(y)
}

// pass gives what a snapshot that is closed has kept of leaf x to the next older
// one, as far as that needs it. What is not needed is free. Nobody else has the
// history.
func (t *Tree[C]) pass(older *moment, x uint32, st state) {
	if older == nil {
		t.drop(st)
		return
	}
	old, there := older.saved.get(x)
	switch {
	case !there && t.epochOf(st) <= older.epoch:
		older.saved.put(x, st)
	case !there || old.whole:
		t.drop(st)
	case st.whole:
		c := t.leaf(st.at)
		t.complete(c, old.at, c.loadWord())
		older.saved.put(x, st)
	default:
		t.joinStates(old.at, st.at)
	}
}

// joinStates adds those lines to an incomplete state that a later one has in
// addition, and gives the rest of that one's memory back.
func (t *Tree[C]) joinStates(to, from uint32) {
	s := t.scratches.Get().ready()
	defer t.scratches.Put(s)
	first := t.piece(to)
	last, had := t.piece(first.last), t.piece(from).have
	done := keptWith[C](first.have)
	more := keptWith[C](first.have | had).without(done)
	t.addTo(s.copy, from, &done)
	for range more.len() {
		if last.n == pieceRoom { // there is another one: it has had as many lines
			p := t.piece(from)
			last.more, first.last, last = from, from, p
			from, p.more, p.n = p.more, nothing, 0
		}
		i := more.next()
		last.put(i, s.copy.numbered(i))
	}
	first.have |= had
	t.dropPieces(from)
}

// drop gives the memory of a state back.
func (t *Tree[C]) drop(st state) {
	if !st.whole {
		t.dropPieces(st.at)
		return
	}
	t.snapshots.kept.Add(-1)
	t.retire(st.at, false)
}

// dropPieces gives pieces back.
func (t *Tree[C]) dropPieces(y uint32) {
	for y != nothing {
		more := t.piece(y).more
		t.keeps.give(y)
		y = more
	}
}

// touchLines is touch for changes of some lines of the leaf's block, and of what
// is changed with them. It returns the leaf's word if nothing else has changed,
// or 0.
func (t *Tree[C]) touchLines(x uint32, word, gen, epoch, block uint64, used *promises) (uint64, error) {
	l := t.leaf(x)
	missing := l.info().missing
	if l.info().epoch != epoch {
		var ok bool
		var err error
		if missing, ok, err = t.preserve(x, word, gen, block, used); !ok {
			return 0, err
		}
	}
	stall.At("touch: state kept")
	var line [simd.LineBytes / 8]uint64
	in := (*info)(unsafe.Pointer(&line))
	*in = *l.info()
	was := in.dirty
	in.dirty = 1
	in.set(epoch, missing)
	c := t.changeOf(l, word, simd.Entries(word), gen, epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = unsafe.Pointer(l.info()), unsafe.Pointer(&line), 1
	done := simd.Commit(&c)
	if done && was == 0 {
		t.noteDirty(x)
	}
	t.note(StepTouch, 0, x, nothing)
	if !done {
		return 0, nil
	}
	return c.Will, nil
}

// packs reports whether a leaf with n entries is packed anew rather than that
// entries move over so many lines.
func packs[C Code](over, n int) bool { return over > reach && n <= packAt[C]() }

// lines returns the lines of the leaf's block that the change writes at most,
// where these lines are full.
func (w *writing[C]) lines(full uint64) uint64 {
	if w.had || full>>w.j&1 == 0 {
		return 1 << w.j
	}
	first, last := nearestRoom(full, w.j)
	if n := simd.Entries(w.word); n >= capacity[C]() || first == last || packs[C](last-first, n) {
		return ^uint64(0)
	}
	return (1<<(last-first) - 1) << first
}

// unkept reports whether the change writes lines that may have to be kept before,
// or nothing has to be kept any more, of a leaf that is not prepared for all
// changes in the present epoch.
func (w *writing[C]) unkept(in *info) bool {
	if mutant.On && mutant.Is("kept lines") && in.changed() == w.epoch {
		return false
	}
	return in.changed() != w.epoch || in.missing&w.lines(in.full) != 0 || w.t.snapshots.newest.Load() == nil
}
