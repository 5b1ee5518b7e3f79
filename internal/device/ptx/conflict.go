package ptx

import "fmt"

// admitted checks an access for races and for reads of the read-only cache, and
// records it. It returns false if there is a fault.
func (m *machine) admitted(t *thread, in *inst, l location) bool {
	d := m.model
	for off := l.off &^ 3; off < l.off+uint64(in.bytes); off += 4 {
		w := d.word(l, off)
		a := scalar(t, in, l.off)
		from, to := max(off, l.off), min(off+4, l.off+uint64(in.bytes))
		a.mask = uint8(1<<(to-off)-1) &^ uint8(1<<(from-off)-1)
		if in.op == opLoad && in.what == 1 {
			if !m.readOnlyWord(t, &a, w) {
				return false
			}
		} else if a.write && !m.notReadOnly(t, &a, w) {
			return false
		}
		if d.races && !m.orderly(t, &a, w) {
			return false
		}
	}
	return true
}

// readOnlyWord checks a ld.global.nc: the word must not be written while the
// launch runs.
func (m *machine) readOnlyWord(t *thread, a *access, w *word) bool {
	if w.wrote <= m.began {
		w.readOnly = a
		return true
	}
	x := w.writes[len(w.writes)-1]
	f := m.fail(NonCoherent, t, a.in, "the word was written by "+x.access.String())
	f.Addr, f.Size = w.addr, int(a.in.bytes)
	return false
}

// notReadOnly is the same check from the side of the write.
func (m *machine) notReadOnly(t *thread, a *access, w *word) bool {
	r := w.readOnly
	if r == nil || r.by.m.ended {
		return true
	}
	f := m.fail(NonCoherent, t, a.in, "the word was read by "+r.String())
	f.Addr, f.Size = w.addr, int(a.in.bytes)
	return false
}

// orderly reports whether an access is in order with all conflicting ones, and
// remembers it: the latest of each thread and kind.
func (m *machine) orderly(t *thread, a *access, w *word) bool {
	kept := w.accesses[:0]
	for i := range w.accesses {
		o := &w.accesses[i]
		if o.by != a.by && (o.write || a.write) && o.mask&a.mask != 0 && m.model.racing(o, a) {
			m.conflictFault(t, a, o, w)
			return false
		}
		replaced := o.by == a.by && o.write == a.write && o.in.order == a.in.order && o.size == a.size && o.mask == a.mask
		covered := a.write && a.in.order == plain && o.mask&^a.mask == 0 // a orders all later ones after o
		if !replaced && !covered {
			kept = append(kept, *o)
		}
	}
	w.accesses = append(kept, *a)
	return true
}

// racing reports whether the second of two conflicting accesses races with the
// first.
func (d *model) racing(o, a *access) bool {
	if a.by.knows(o.by.id, o.stamp) {
		return false
	}
	if d.strict {
		return !morallyStrong(o, a)
	}
	return o.write && o.in.order == plain || a.write && a.in.order == plain
}

func (m *machine) conflictFault(t *thread, a, o *access, w *word) {
	f := m.fail(Race, t, a.in, fmt.Sprintf("%s a word that was %s by %s, with nothing that orders them",
		a.does("reads", "writes"), o.does("read", "written"), o))
	f.Addr, f.Size = w.addr, int(a.in.bytes)
}

func (a *access) does(read, write string) string {
	s := read
	if a.write {
		s = write
	}
	switch {
	case a.in.order == plain:
		return s + " plainly"
	case a.in.order&narrow != 0:
		return s + " with the scope of its block"
	}
	return s + " strongly"
}

// String names the thread and the instruction of an access.
func (a *access) String() string {
	if a.by == nobody || a.by.m == nil {
		return "the host"
	}
	return fmt.Sprintf("%v at line %d (%s)", a.by, a.in.line, a.by.m.k.mod.line(int(a.in.line)))
}

// String names a thread, and the kernel if several run.
func (o *observer) String() string {
	s := fmt.Sprintf("block %d, thread %d", o.home, o.index)
	if o.m.model.both {
		s += " of " + o.m.k.name
	}
	return s
}
