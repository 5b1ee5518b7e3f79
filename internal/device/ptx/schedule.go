package ptx

import (
	"fmt"
	"math/bits"
	"slices"
)

// progress is the outcome of a turn.
type progress uint8

const (
	moved    progress = iota
	waits             // every thread that can run spins
	finished          // no thread is left, or there is a fault
)

// turn is the schedule's state of a thread.
type turn struct {
	priority uint64
	since    uint64 // version of memory since which it has run,
	alone    int    // and for how many instructions
	fuse     int    // instructions until it freezes, 0 for never
	until    uint64 // steps until which it is frozen
}

// startTurn draws what a schedule needs to know of a new thread.
func (m *machine) startTurn(o *observer) {
	if m.model.pct > 0 {
		o.turn.priority = 1<<63 | m.rng.next()>>1
	}
}

// The character of schedules under the model: finer than others, since races
// happen between few instructions.
var (
	modelGrains = [...]uint64{0, 0, 0, 1, 2, 4, 6, 8}
	modelStays  = [...]uint64{0, 0, 32, 64, 128, 192, 224, 252}
	latenesses  = [...]uint64{0, 16, 64, 224} // out of 256: chance that a load is late
)

// startModel draws the character of a launch's schedule.
func (m *machine) startModel() {
	d := m.model
	x := m.rng.next()
	m.plan.grain, m.plan.stay, m.plan.late = modelGrains[x%8], modelStays[x>>8%8], latenesses[x>>16%4]
	m.frozen, m.points, m.lowest = m.frozen[:0], m.points[:0], 1<<62
	m.began, m.ended, m.final = d.steps, false, knowledge{}
	if d.pct > 0 {
		// Nobody knows how long the launch will be: 16 to 2048 instructions a
		// thread.
		length := min(m.grid.Blocks*m.grid.Threads, 1<<16) << (4 + m.rng.below(8))
		for range d.pct {
			m.points = append(m.points, uint64(m.rng.below(length)))
		}
		slices.Sort(m.points)
	}
}

// scheduleModel is schedule under the model.
func (m *machine) scheduleModel() {
	m.admit()
	for {
		switch m.turn() {
		case waits:
			m.deadlock()
			return
		case finished:
			return
		}
	}
}

// turn lets one thread run for a while.
func (m *machine) turn() progress {
	if m.fault != nil || len(m.ready) == 0 {
		return finished
	}
	m.thaw(false)
	t := m.choose()
	if t == nil && m.thaw(true) {
		t = m.choose()
	}
	if t == nil {
		return waits
	}
	m.sawTurn(t)
	n := m.runModel(t, m.length(t))
	m.steps += uint64(n)
	m.model.steps += uint64(n)
	m.afterTurn(t, n)
	if m.maxSteps != 0 && m.steps > m.maxSteps && m.fault == nil {
		m.fail(Runaway, t, &m.k.code[t.pc], fmt.Sprintf("after %d instructions; memory last changed %d instructions ago",
			m.steps, m.model.steps-m.model.changed))
	}
	return moved
}

// length draws for how many instructions a thread runs.
func (m *machine) length(t *thread) int {
	n := 8
	switch {
	case m.model.pct == 0:
		x := m.rng.next()
		n = 1 + int(x>>13&(1<<(x>>26&15%(m.plan.grain+1))-1))
	case len(m.points) > 0:
		n = int(min(8, max(1, m.points[0]-min(m.points[0], m.steps))))
	}
	if fuse := t.observer.turn.fuse; fuse > 0 {
		n = min(n, fuse)
	}
	return n
}

// choose returns the thread that runs next, nil if all that could run spin or
// are frozen.
func (m *machine) choose() *thread {
	if m.model.pct > 0 {
		return m.foremost()
	}
	x := m.rng.next()
	if w := m.current; w != nil && w.ready&^w.idle != 0 && x&255 < m.plan.stay {
		return w.any(x >> 8)
	}
	first := int(x >> 32 * uint64(len(m.ready)) >> 32)
	for i := range m.ready {
		w := m.ready[(first+i)%len(m.ready)]
		if w.ready&^w.idle != 0 {
			m.current = w
			return w.any(x >> 8)
		}
	}
	return nil
}

// any returns a lane that can run, each with the same chance for x of 16 bits.
func (w *warp) any(x uint64) *thread {
	lanes := w.ready &^ w.idle
	for n := x & 0xffff * uint64(bits.OnesCount32(lanes)) >> 16; n > 0; n-- {
		lanes &= lanes - 1
	}
	return w.lanes[bits.TrailingZeros32(lanes)]
}

// foremost returns the thread with the highest priority.
func (m *machine) foremost() *thread {
	var best *thread
	for _, w := range m.ready {
		for l := w.ready &^ w.idle; l != 0; l &= l - 1 {
			t := w.lanes[bits.TrailingZeros32(l)]
			if best == nil || t.observer.turn.priority > best.observer.turn.priority {
				best = t
			}
		}
	}
	return best
}

// patience is how long a thread keeps its priority while nothing changes: one
// that spins would otherwise keep it forever.
const patience = 256

// afterTurn lowers priorities and freezes.
func (m *machine) afterTurn(t *thread, n int) {
	o := t.observer
	s := &o.turn
	if s.since != m.model.version {
		s.since, s.alone = m.model.version, 0
	}
	s.alone += n
	falls := s.alone > patience
	for len(m.points) > 0 && m.steps >= m.points[0] {
		m.points = m.points[1:]
		falls = true
	}
	if falls {
		m.lowest--
		s.priority, s.alone = m.lowest, 0
	}
	if s.fuse == 0 {
		return
	}
	if s.fuse = max(0, s.fuse-n); s.fuse == 0 && !o.exited {
		m.hold(t, 1<<(6+m.rng.below(9)))
	}
}

// hold freezes a thread for a number of instructions of others.
func (m *machine) hold(t *thread, steps uint64) {
	t.observer.turn.until = m.steps + steps
	if t.warp.idle>>t.lane&1 == 0 {
		m.frozen = append(m.frozen, t)
		t.warp.idle |= 1 << t.lane
	}
}

// won is called when an atomic of a thread has changed a word.
func (m *machine) won(t *thread) {
	if s := &t.observer.turn; m.model.freeze && s.fuse == 0 && m.rng.next()&1 == 0 {
		s.fuse = 1 + m.rng.below(24)
	}
}

// thaw lets frozen threads run again whose time is over, or all of them. It
// reports whether there were any.
func (m *machine) thaw(all bool) bool {
	before := len(m.frozen)
	m.frozen = slices.DeleteFunc(m.frozen, func(t *thread) bool {
		if !all && m.steps < t.observer.turn.until {
			return false
		}
		t.warp.idle &^= 1 << t.lane
		return true
	})
	return len(m.frozen) < before
}

// runModel is run under the model.
func (m *machine) runModel(t *thread, n int) int {
	code, r := m.k.code, t.regs
	for i := range n {
		at := t.pc
		in := &code[at]
		if len(t.observer.late) > 0 {
			m.bindFor(t, in)
		}
		t.pc++
		ok := true
		switch {
		case in.fn != nil:
			in.fn(r, in)
			continue
		case in.op == opBra,
			(in.op == opBraIf || in.op == opGuardIf) && r[in.a] != 0,
			(in.op == opBraUnless || in.op == opGuardUnless) && r[in.a] == 0:
			t.pc = int(in.imm)
		case in.op <= opGuardUnless:
		case in.op == opLoad:
			ok = m.loadModel(t, in)
		case in.op == opStore:
			ok = m.storeModel(t, in)
		case in.op == opAtom:
			ok = m.atomicModel(t, in)
		default:
			t.pc = at
			ok = m.rareModel(t, in, i)
		}
		if !ok || t.pc <= at && m.looped(t) {
			return i + 1
		}
	}
	return n
}

// rareModel is rare under the model.
func (m *machine) rareModel(t *thread, in *inst, done int) bool {
	m.bindAll(t)
	switch in.op {
	case opFence:
		m.model.fence(t, in)
		t.pc++
		return true
	case opExit:
		if !m.waitCopies(t, 0, true) {
			return false
		}
		t.observer.exited = true
		m.final.join(t.observer.publish())
		m.model.changed = m.model.steps
	}
	return m.rare(t, in, done)
}
