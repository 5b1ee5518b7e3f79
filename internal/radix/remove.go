package radix

import (
	"strings"
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Pop deletes the least entry, or the greatest, and returns it. Others write meanwhile.
//
// It notes the way to the entry as any writer does, and locks the nodes that a delete changes.
// Then it looks at the words of all other nodes of the way: if they are unchanged, the entry was
// the first one when the lock was taken, and from then on nobody finds it any more.
func (t *Tree) Pop(greatest bool) (key string, val uint64, ok bool, err error) {
	t.edges.ReleaseAll()
	d := t.enter()
	for try := range popTries {
		if t.Closed() {
			err = op.ErrClosed
		}
		done := err != nil
		if !done {
			key, val, ok, done, err = d.pop(greatest)
		}
		if done || err != nil {
			t.leave(d)
			t.edges.AcquireString(key)
			return key, val, ok && err == nil, err
		}
		simd.Wait(try)
	}
	t.leave(d)
	return t.popAlone(greatest)
}

// popTries is how often Pop begins anew beside others before it takes all desks, so that it ends.
const popTries = 64

// popAlone is Pop while nobody else writes.
func (t *Tree) popAlone(greatest bool) (key string, val uint64, ok bool, err error) {
	w := t.lockWrite()
	defer t.unlockWrite()
	for done := false; !done && err == nil; {
		if t.Closed() {
			return "", 0, false, op.ErrClosed
		}
		key, val, ok, done, err = w.pop(greatest)
	}
	w.rest()
	t.edges.AcquireString(key)
	return key, val, ok && err == nil, err
}

// pop tries to delete the first entry, or the last one, which may be none. done is false if others have changed
// something on the way to it.
func (w *writer) pop(greatest bool) (key string, val uint64, ok, done bool, err error) {
	l, good := w.walkEdge(greatest)
	if !good || l == 0 {
		return "", 0, false, good, nil
	}
	w.free = true
	c := change{key: strings.Clone(w.t.key(l)), kind: op.Delete, edge: true}
	stall.At("radix: writer's way found")
	done, err = w.attempt(&c, end{leaf: l})
	return c.key, c.old, true, done && !c.missed, err
}

// walkEdge is walk to the first leaf, or the last one; 0 if the tree is empty.
func (w *writer) walkEdge(last bool) (l link, ok bool) {
	top := w.t.work
	word := atomic.LoadUint32(&top.word)
	w.steps = append(w.steps[:0], step{word: word})
	if l = load(&top.link); word&locked != 0 {
		return 0, false
	}
	for l.isInner() {
		h := l.header()
		word := h.load()
		b, next := 0, link(0)
		if last {
			b, next = atOrBefore(l, 255)
		} else {
			b, next = atOrAfter(l, -1)
		}
		stall.At("radix: writer has read a link")
		if word&(locked|dead) != 0 || h.load() != word || next == 0 {
			return 0, false
		}
		w.steps = append(w.steps, step{l, word, int32(b)})
		l = next
	}
	return l, true
}

// unchanged reports whether all nodes of the way are unchanged, the last ones of which the
// writer has locked.
func (w *writer) unchanged(held int) bool {
	if mutant.On && mutant.Is("radix: pop's way") {
		return true
	}
	for i := range w.steps[:len(w.steps)-held] {
		if s := &w.steps[i]; atomic.LoadUint32(w.word(s)) != s.word {
			return false
		}
	}
	return true
}

// DeleteRange deletes the entries from lo to hi, and returns how many there were.
// gone, unless it is nil, gets their values. It deletes a few at a time, beside other writers:
// each key by itself, in ascending order. Entries that other writers put behind it meanwhile
// stay.
func (t *Tree) DeleteRange(lo, hi string, gone func(val uint64)) (n int, err error) {
	t.edges.ReleaseAll()
	defer t.edges.AcquireAll()
	c := t.Cursor()
	c.Move(lo, false, false)
	o := &Ops{Kind: op.Delete, Keys: make([]string, 0, warmKeys), Old: make([]uint64, warmKeys), Found: make([]bool, warmKeys)}
	for more := true; more && err == nil; {
		o.Keys = o.Keys[:0]
		for more && len(o.Keys) < warmKeys {
			key, _, ok := c.Next()
			if more = ok && key <= hi; more {
				o.Keys = append(o.Keys, key)
			}
		}
		clear(o.Found)
		err = t.deleteSome(o)
		for i, had := range o.Found {
			if had {
				n++
			}
			if had && gone != nil {
				gone(o.Old[i])
			}
		}
	}
	return n, err
}

// deleteSome deletes a few keys, as single writers do.
func (t *Tree) deleteSome(o *Ops) error {
	d := t.enter()
	defer t.leave(d)
	if t.Closed() {
		return op.ErrClosed
	}
	d.free = true
	var rows [warmKeys]int32
	for i := range o.Keys {
		rows[i] = int32(i)
	}
	return d.apply(o, rows[:len(o.Keys)])
}
