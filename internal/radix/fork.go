package radix

// fork is a tree beside the tree: a batch that may run out of memory changes
// copies, as if a snapshot had just been taken, and puts them in the tree's place
// when all of it is done.
type fork struct {
	top  top
	made []link // nodes that are part of the fork alone
	dead []link // nodes that are not part of it, or no longer
}

// begin makes changes go to a fork.
func (t *Tree) begin() {
	t.fork = &fork{top: t.top}
	t.work = &t.fork.top
	t.frozen = t.nextAge()
}

// commit puts the fork in the tree's place, abort forgets it. All that the fork has
// changed is on the way to one of keys.
func (t *Tree) commit(keys []string) {
	f := t.done()
	s := t.short.Load()
	for i := 0; s != nil && i < len(keys); i++ {
		if x, tag := s.place(keys[i]); x != nil {
			x.remove(x.get(tag))
		}
	}
	t.relink(step{}, f.top.link)
	for _, l := range f.dead {
		t.drop(l)
	}
	for i := 0; s != nil && i < len(keys); i++ {
		t.hintWay(s, keys[i])
	}
	t.resizeShort()
}

func (t *Tree) abort() {
	for _, l := range t.done().made {
		t.give(l)
	}
}

// done makes changes go to the tree again.
func (t *Tree) done() *fork {
	f := t.fork
	t.fork, t.work = nil, &t.top
	t.thaw()
	return f
}
