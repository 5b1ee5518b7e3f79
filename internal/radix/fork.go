package radix

import (
	"sync/atomic"
)

// A fork is a tree beside the tree: a batch that may run out of memory changes
// copies, as if a snapshot had just been taken, and puts them in the tree's place
// when all of it is done. Nobody else writes meanwhile.

// ownFork is the changes that a writer has made to a fork.
type ownFork struct {
	made    []link // nodes that are part of the fork alone
	dead    []link // nodes that are not part of it, or no longer
	entries int64  // keys added, less those deleted
}

// begin makes changes go to a fork.
func (t *Tree) begin() {
	t.work, t.forked = &top{link: t.top.link}, true
	t.frozen = t.nextAge()
}

// commit puts the fork in the tree's place. All that it has changed is on the way to
// one of keys.
func (t *Tree) commit(w *writer, keys []string) {
	root := t.work.link
	t.done()
	s := t.short.Load()
	for i := 0; s != nil && i < len(keys); i++ {
		if x, tag := s.Place(keys[i]); x != nil {
			x.Remove(x.Get(tag))
		}
	}
	at := step{word: atomic.LoadUint32(&t.top.word)}
	w.lock(&at)
	w.relink(&at, root)
	w.unlock(&at)
	for _, d := range *t.desks.Load() {
		for _, l := range d.fork.dead {
			if l.isInner() {
				h := l.header()
				setWord(&h.word, (h.word+nextSeq)|dead)
			}
			w.drop(l)
		}
		w.counted(d.fork.entries)
		d.fork = ownFork{}
	}
	for i := 0; s != nil && i < len(keys); i++ {
		t.hintWay(s, keys[i])
	}
}

// abort forgets the fork.
func (t *Tree) abort() {
	t.done()
	for _, d := range *t.desks.Load() {
		t.memory.give(d.fork.made...)
		d.fork = ownFork{}
	}
}

// done makes changes go to the tree again.
func (t *Tree) done() {
	t.work, t.forked = &t.top, false
	t.thaw()
}
