package bplus

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// A snapshot keeps the former state of a leaf whole or incomplete. A whole state
// is a leaf like any other. An incomplete state holds copies of only those lines
// of the leaf that writers were about to change. The other lines have not changed
// since: a reader takes them from the state that the next newer snapshot keeps of
// the leaf, if there is one, or else from the leaf itself. A line of the block is
// kept together with the line that holds its separator, since a change writes no
// other line of separators. A writer that rewrites the leaf makes its state whole
// first. The index line is computed from the separators. The leaf's info has the
// set of lines of the block that are still to be kept before they are changed.

// state is the kept state of a leaf: the number of a leaf if it is whole, else of its
// first piece.
type state struct {
	at    uint32
	whole bool
}

// pieceRoom is the number of lines that a piece has room for: most changes keep
// two or three.
const pieceRoom = 3

// mostLines is the greatest number of lines of a block in an incomplete state,
// unless two states were joined: with more lines, a whole leaf takes hardly
// more memory.
const mostLines = 24

// piece is memory for lines of an incomplete state.
type piece struct {
	have  uint64           // in the first piece: lines of the block that the state has
	known known            // in the first piece
	last  uint32           // in the first piece: the last
	more  uint32           // the next piece, or nothing
	n     uint8            // lines in this piece
	which [pieceRoom]uint8 // their numbers: see lineSet
	_     [simd.LineBytes - 44]byte
	lines [pieceRoom][simd.LineBytes / 8]uint64
}

// known holds the rest of an incomplete state: the words of a leaf, beside its
// lines, that a change without rewriting the leaf may alter.
type known struct {
	epoch, full uint64 // of the leaf's info
	entries     uint64
}

const pieceBytes = simd.LineBytes * (1 + pieceRoom)

// keeps is the memory for pieces of all trees. A chunk is a huge page.
var keeps = arena.NewPoolOf(1<<30, arena.HugeSize/pieceBytes, pieceBytes)

// lineSet is a set of lines of a leaf. Lines of the block are numbered from 0
// on, lines of separators from lines on.
type lineSet struct{ seps, block uint64 }

// allLines returns the set of all lines of a leaf.
func allLines[C Code]() lineSet { return keptWith[C](^uint64(0)) }

// keptWith returns the lines of a state that has the given lines of a block: these
// and the lines of their separators.
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

// next removes one line from the set, lines of separators first, and returns
// its number.
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

// add adds line i, and reports whether it was missing.
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

// numbered returns the address of line i.
func (l leaf[C]) numbered(i int) unsafe.Pointer {
	if i >= lines {
		return l.sepLine(i - lines)
	}
	return l.at(i)
}

// setEntries sets the leaf's word to word, with n as the number of entries.
func (l leaf[C]) setEntries(word uint64, n int) {
	atomic.StoreUint64(l.word(), word&^(simd.WordCountMax<<simd.WordCount)|uint64(n)<<simd.WordCount)
}

// copyLines copies the lines of a set from another leaf.
func (l leaf[C]) copyLines(from leaf[C], set lineSet) {
	for range set.len() {
		i := set.next()
		copyLine(l.numbered(i), from.numbered(i))
	}
}

// piece returns piece y.
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

// keeping describes a state that is to be kept for a snapshot.
type keeping struct {
	m       *moment
	x       uint32
	changed bool // the leaf was changed since the snapshot: if it has no state, it is younger
	binds   bool // the memory limit applies
}

// settled reports whether nothing of the leaf is left to be kept. The caller holds
// the moment's lock. An incomplete state with all lines does not settle it: the
// link to the next leaf is missing.
func (k *keeping) settled() bool {
	st, there := k.m.saved.get(k.x)
	return there && st.whole || !there && k.changed
}

// keepLines adds lines of a block, and the lines of their separators, to the
// incomplete state of a leaf, or begins one. from has the lines as they were, and
// the leaf's word and info; lines that are kept already are left alone. It reports
// whether nothing of the leaf is left to be kept. The caller holds the moment's
// lock. If memory runs out, fewer lines are kept.
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

// addTo copies the lines of an incomplete state to c, except those in done, and
// adds them to done.
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

// finish makes a leaf that has all lines of a state complete: it sets epoch,
// full and number of entries from k, the index line, and the rest of the leaf's
// word from word.
func (l leaf[C]) finish(k known, word uint64) {
	in := l.info()
	in.epoch, in.full = k.epoch, k.full
	setIndex[C](l.pilot)
	l.setEntries(word, int(k.entries))
}

// complete turns c, which holds a later state, into the whole state that the
// pieces from y on and c make up together, and frees the pieces.
func (t *Tree[C]) complete(c leaf[C], y uint32, word uint64) {
	t.addTo(c, y, new(lineSet))
	c.finish(t.piece(y).known, word)
	t.dropPieces(y)
}

// pass hands st, the state of leaf x that a closed snapshot has kept, to the
// next older snapshot, as far as that needs it, and frees the rest. The caller
// holds the history alone.
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

// joinStates adds to an incomplete state the lines that only a later one has,
// and gives the rest of the later one's memory back.
func (t *Tree[C]) joinStates(to, from uint32) {
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	first := t.piece(to)
	last, had := t.piece(first.last), t.piece(from).have
	done := keptWith[C](first.have)
	more := keptWith[C](first.have | had).without(done)
	t.addTo(s.copy, from, &done)
	for range more.len() {
		if last.n == pieceRoom { // from has a piece left: it had as many lines
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

// drop gives the memory of a state back. The caller holds the history alone.
func (t *Tree[C]) drop(st state) {
	if !st.whole {
		t.dropPieces(st.at)
		return
	}
	t.snapshots.freed = append(t.snapshots.freed, st.at)
}

// dropPieces gives pieces back.
func (t *Tree[C]) dropPieces(y uint32) {
	for y != nothing {
		more := t.piece(y).more
		t.keeps.give(y)
		y = more
	}
}

// touchLines is touch for a change of some lines of the leaf's block, and of
// their separators. It returns the leaf's word, or 0 if the leaf has changed
// otherwise.
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

// packs reports whether a leaf with n entries is packed anew instead of moving
// entries over as many lines as over says.
func packs[C Code](over, n int) bool { return over > reach && n <= packAt[C]() }

// lines returns the lines of the leaf's block that the change may write, where
// full is the set of full lines.
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

// unkept reports whether a leaf has to be touched before the change: the change
// writes lines that may still have to be kept, or no snapshot is left. The leaf
// is not prepared for all changes in the present epoch.
func (w *writing[C]) unkept(in *info) bool {
	if mutant.On && mutant.Is("kept lines") && in.changed() == w.epoch {
		return false
	}
	return in.changed() != w.epoch || in.missing&w.lines(in.full) != 0 || w.t.snapshots.newest.Load() == nil
}
