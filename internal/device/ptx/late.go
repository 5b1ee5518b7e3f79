package ptx

// Load buffering. PTX lets a load return what was written after later stores of
// the same thread, unless something orders them or the stores depend on it. So
// a load may be put off: its thread goes on, and the load takes its value when
// an instruction needs its register, when the thread accesses the same word
// again, at anything that orders memory, or at a moment that the seed chooses.
// Branches need their predicate, so no store is ever made that might not be.

// lateAccess is a load, or an atomic without order, that has not been executed.
type lateAccess struct {
	in   *inst
	at   location
	b, c uint64 // operands of an atomic
}

// delays decides whether to put an access off.
func (m *machine) delays(in *inst) bool {
	if in.order&(acquire|release|reducing) != 0 || in.what == 1 && in.op == opLoad || !m.model.loose() {
		return false
	}
	if in.vec == nil && in.d == slotSink*warpSize {
		return false
	}
	return m.rng.next()&255 < m.plan.late
}

// lingers decides, after a store, whether a thread that has put loads off waits
// for others to see the store: few instructions later it would need the loads.
func (m *machine) lingers(t *thread) bool {
	if len(t.observer.late) == 0 || m.rng.next()&1 == 0 {
		return false
	}
	m.hold(t, 1<<m.rng.below(8))
	return true
}

// bind executes one of the accesses that a thread has put off.
func (m *machine) bind(t *thread, i int) {
	o := t.observer
	x := o.late[i]
	o.late = append(o.late[:i], o.late[i+1:]...)
	if x.in.op == opLoad {
		m.finishLoad(t, x.in, x.at)
	} else {
		m.finishAtomic(t, x.in, x.at, x.b, x.c)
	}
}

// bindAll executes all of them.
func (m *machine) bindAll(t *thread) {
	for len(t.observer.late) > 0 {
		m.bind(t, 0)
	}
}

// bindAt executes those to words that an access touches.
func (m *machine) bindAt(t *thread, l location, n uint64) {
	o := t.observer
	for i := 0; i < len(o.late); i++ {
		x := &o.late[i]
		if x.at.block == l.block && x.at.base == l.base && x.at.off < (l.off+n+3)&^3 && l.off < (x.at.off+uint64(x.in.bytes)+3)&^3 {
			m.bind(t, i)
			i--
		}
	}
}

// bindFor executes those whose registers an instruction uses, and now and then
// another one.
func (m *machine) bindFor(t *thread, in *inst) {
	o := t.observer
	for i := 0; i < len(o.late); i++ {
		if in.uses(o.late[i].in) {
			m.bind(t, i)
			i--
		}
	}
	if n := len(o.late); n > 0 && m.rng.next()&15 == 0 {
		m.bind(t, m.rng.below(n))
	}
}

// uses reports whether an instruction reads or writes a register that another
// one writes.
func (in *inst) uses(of *inst) bool {
	if of.vec == nil {
		return in.touches(of.d)
	}
	for _, slot := range of.vec.slot[:of.vec.n] {
		if in.touches(slot) {
			return true
		}
	}
	return false
}

func (in *inst) touches(slot int32) bool {
	if in.d == slot || in.e == slot || in.a == slot || in.b == slot || in.c == slot || in.f == slot {
		return true
	}
	if in.vec != nil {
		for _, s := range in.vec.slot[:in.vec.n] {
			if s == slot {
				return true
			}
		}
	}
	return false
}
