package bplus

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Changer computes new values: always the same one for equal old ones.
type Changer interface {
	// Lines changes the values in lines of a leaf's block, which are in the second
	// half of each, of width bytes.
	Lines(at unsafe.Pointer, lines, width int)
	// Value changes one value.
	Value(v uint64) uint64
}

// Transform changes the values of the entries from lo to hi, and returns how many
// these are. Each is changed at once and once; others may be changed, set or
// deleted between. cuts are ascending keys above lo at which workers divide the
// range among them, entries is about how many it has. If there is not enough
// memory nothing has been changed.
func (t *Tree[C]) Transform(lo, hi C, cuts []C, entries int, f Changer, workers int) (changed int, err error) {
	t.many.RLock()
	defer t.many.RUnlock()
	t.rw.Lock()
	defer t.rw.Unlock()
	if t.Closed() {
		return 0, op.ErrClosed
	}
	if lo > hi {
		return 0, nil
	}
	t.edges.ReleaseAll()
	need := t.keptBy(lo, hi, entries)
	if err := t.room(int64(need) * int64(t.leaves.pool.SlotBytes())); need > 0 && err != nil {
		return 0, err
	}
	if err := t.leaves.promise(need); err != nil {
		return 0, err
	}
	used := &promises{left: need}
	var total atomic.Int64
	var once sync.Once
	par.Run(workers, len(cuts)+1, par.Func(func(p int) {
		from, to := lo, hi
		if p > 0 {
			from = cuts[p-1]
		}
		if p < len(cuts) {
			to = cuts[p] - 1
		}
		n, e := t.transform(from, to, f, used)
		total.Add(int64(n))
		if e != nil {
			once.Do(func() { err = e })
		}
	}))
	t.leaves.unpromise(max(used.left, 0))
	t.edges.AcquireAll()
	return int(total.Load()), err
}

// keptBy returns the number of leaves that have to be kept for a snapshot, at
// most, if entries from lo to hi are changed. Under a limit it is worth to look
// closer.
func (t *Tree[C]) keptBy(lo, hi C, entries int) (n int) {
	m := t.snapshots.newest.Load()
	if m == nil {
		return 0
	}
	if t.limit.Load() == 0 {
		return min(t.leaves.inUse(), entries+2)
	}
	for !t.Closed() {
		x, _, word := t.seek(lo)
		l := t.leaf(x)
		high, in := l.high(), *l.info()
		if l.loadWord() != word {
			continue
		}
		if in.changed() <= m.epoch || in.missing != 0 {
			n++
		}
		if high >= hi {
			break
		}
		lo = high + 1
	}
	return n
}

// transform is Transform for one worker.
func (t *Tree[C]) transform(pos, hi C, f Changer, used *promises) (changed int, err error) {
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	for try := 0; ; try++ {
		w := transforming[C]{pos: pos, hi: hi, used: used}
		var ok bool
		if w.gen, ok = t.enter(); !ok {
			return changed, op.ErrClosed
		}
		w.epoch = t.Epoch()
		w.x, _, w.word = t.seek(pos)
		w.l = t.leaf(w.x)
		s.load(w.l)
		stall.At("transform: leaf read")
		if w.word&simd.WordBusy != 0 || w.l.loadWord() != w.word || !t.Current(w.gen) {
			simd.Wait(try)
			continue
		}
		n, done, err := t.transformLeaf(&w, s, f)
		if err != nil {
			return changed, err
		}
		if !done {
			continue
		}
		changed += n
		high := s.copy.high()
		if high >= hi {
			return changed, nil
		}
		pos, try = high+1, 0
	}
}

// transforming is a change of a leaf on its way.
type transforming[C Code] struct {
	pos, hi    C
	gen, epoch uint64
	x          uint32
	l          leaf[C]
	word       uint64
	used       *promises
}

// transformLeaf changes the values of a leaf, a copy of which is in s, from pos
// to hi. It returns false if the leaf was changed meanwhile.
func (t *Tree[C]) transformLeaf(w *transforming[C], s *scratch[C], f Changer) (n int, done bool, err error) {
	in, high := s.copy.info(), s.copy.high()
	if in.next != nothing {
		t.leaf(in.next).fetch()
	}
	entries := simd.Entries(w.word)
	if high <= w.hi && (in.first == 1 && w.pos == 0 || in.first == 0 && C(in.low) == w.pos-1) {
		n = entries
		f.Lines(s.copy.block, lines, width[C]())
	} else {
		n = s.copy.changeBetween(w.pos, w.hi, f)
	}
	if n == 0 {
		return 0, w.l.loadWord() == w.word, nil
	}
	c := t.changeOf(w.l, w.word, entries, w.gen, w.epoch)
	c.Dst[0], c.Src[0], c.Lines[0] = w.l.block, s.copy.block, lines
	if in.epoch != w.epoch {
		missing, ok, err := t.preserve(w.x, w.word, w.gen, ^uint64(0), w.used)
		if !ok {
			return 0, false, err
		}
		in.set(w.epoch, missing) // the number of entries stays: there is nothing to count
		c.Dst[1], c.Src[1], c.Lines[1] = unsafe.Pointer(w.l.info()), unsafe.Pointer(in), 1
	}
	stall.At("transform: decided")
	return n, simd.Commit(&c), nil
}

// changeBetween changes the values of the entries of a leaf with keys from lo to
// hi, and returns how many these are. Places that repeat an entry change with it.
func (l leaf[C]) changeBetween(lo, hi C, f Changer) (n int) {
	half := linePairs[C]()
	for j := range lines {
		line := l.line(j)
		for i, m := 0, l.entries(j); i < half; i++ {
			if k := line[i]; k < lo || k > hi {
				continue
			}
			if line[half+i] = C(f.Value(uint64(line[half+i]))); i < m {
				n++
			}
		}
	}
	return n
}
