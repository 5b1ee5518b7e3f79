package bplus

import (
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Pop deletes the least entry, or the greatest, and returns it.
func (t *Tree[C]) Pop(greatest bool) (key, val C, ok bool, err error) {
	t.rw.Lock()
	defer t.rw.Unlock()
	end := C(0)
	if greatest {
		end = ^C(0)
	}
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	for try := 0; ; try++ {
		w := writing[C]{t: t, key: end, used: new(promises)}
		if !w.find() {
			return 0, 0, false, op.ErrClosed
		}
		in := *w.l.info()
		s.run.clear()
		w.l.unpack(&s.run)
		if !w.stable() || w.word&simd.WordBusy != 0 {
			simd.Wait(try)
			continue
		}
		stall.At("pop: leaf read")
		n := len(s.run.keys)
		if n == 0 {
			if only := in.first == 1 && in.next == nothing; only {
				return 0, 0, false, nil
			}
			t.tidy(end)
			simd.Wait(try)
			continue
		}
		w.key = s.run.keys[0]
		if greatest {
			w.key = s.run.keys[n-1]
		}
		word := w.word
		if w.j, w.word = t.within(w.x, w.key); w.word != word {
			continue
		}
		w.read()
		t.edges.Release(uint64(w.key))
		if done, err := w.put(0, false); done || err != nil {
			t.edges.Acquire(uint64(w.key))
			return w.key, w.old, err == nil, err
		}
	}
}

// DeleteRange deletes the entries from lo to hi, leaf by leaf, and returns how
// many there were. gone gets the values, unless it is nil.
func (t *Tree[C]) DeleteRange(lo, hi C, gone func(val C)) (deleted int, err error) {
	t.many.RLock()
	defer t.many.RUnlock()
	t.rw.Lock()
	defer t.rw.Unlock()
	t.edges.ReleaseAll()
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	for try := 0; lo <= hi; try++ {
		gen, ok := t.enter()
		if !ok {
			return deleted, op.ErrClosed
		}
		epoch := t.Epoch()
		x, _, word := t.seek(lo)
		l := t.leaf(x)
		s.load(l)
		if word&simd.WordBusy != 0 || l.loadWord() != word || !t.Current(gen) {
			simd.Wait(try)
			continue
		}
		high, in := s.copy.high(), s.copy.info()
		s.run.clear()
		s.more.clear()
		s.copy.unpack(&s.run)
		for i, k := range s.run.keys {
			if k < lo || k > hi {
				s.more.add(k, s.run.vals[i])
			}
		}
		n := len(s.run.keys) - len(s.more.keys)
		if n > 0 {
			if in.epoch != epoch || in.dirty == 0 {
				if err := t.touch(x, word, gen, epoch, new(promises)); err != nil {
					return deleted, err
				}
				continue
			}
			stall.At("delete range: leaf read")
			s.copy.pack(s.more, high)
			if !t.commitCopy(l, s.copy, 0, lines, word, len(s.more.keys), gen, epoch) {
				continue
			}
			t.count(x, -n)
			deleted += n
			for i, k := range s.run.keys {
				if gone != nil && k >= lo && k <= hi {
					gone(s.run.vals[i])
				}
			}
			if len(s.more.keys) < thin[C]() {
				t.tidy(lo)
			}
		}
		if high >= hi {
			break
		}
		lo = high + 1
	}
	t.edges.AcquireAll()
	return deleted, nil
}
