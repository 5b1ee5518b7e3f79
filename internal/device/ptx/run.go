package ptx

import "math/bits"

// run executes up to n instructions of a thread, fewer if it has to wait,
// exits or fails, and returns how many.
func (m *machine) run(t *thread, n int) int {
	code, r, pc := m.k.code, t.regs, t.pc
	left := n
	for left > 0 {
		in := &code[pc]
		pc++
		left--
		if in.fn != nil {
			in.fn(r, in)
			continue
		}
		switch in.op {
		case opBra:
			pc = int(in.imm)
		case opBraIf:
			if r[in.a] != 0 {
				pc = int(in.imm)
			}
		case opBraUnless:
			if r[in.a] == 0 {
				pc = int(in.imm)
			}
		case opGuardIf:
			if r[in.a] != 0 {
				pc = int(in.imm)
			} else {
				left++ // it is counted with the instruction it guards
			}
		case opGuardUnless:
			if r[in.a] == 0 {
				pc = int(in.imm)
			} else {
				left++
			}
		case opLoad:
			if !m.load(t, r, in) {
				return n - left
			}
		case opStore:
			if !m.store(t, r, in) {
				return n - left
			}
		case opAtom:
			if !m.atomic(t, r, in) {
				return n - left
			}
		default:
			t.pc = pc - 1
			if !m.rare(t, in, n-left) {
				return n - left
			}
			pc = t.pc
		}
	}
	t.pc = pc
	return n
}

// runTogether is run for lanes of a warp that are at the same instruction:
// each instruction is executed for all of them before the next. They separate
// where a branch divides them, and at every rare instruction.
func (m *machine) runTogether(lanes []*thread, n int) int {
	if len(lanes) == 1 {
		return m.run(lanes[0], n)
	}
	code, pc := m.k.code, lanes[0].pc
	done := 0
	for ; done < n; done++ {
		in := &code[pc]
		pc++
		if in.fn != nil {
			for _, t := range lanes {
				in.fn(t.regs, in)
			}
			continue
		}
		switch in.op {
		case opBra:
			pc = int(in.imm)
		case opBraIf, opBraUnless, opGuardIf, opGuardUnless:
			if !part(lanes, in, pc) {
				return (done + 1) * len(lanes)
			}
			pc = lanes[0].pc
		case opLoad, opStore, opAtom:
			if !m.accessTogether(lanes, in) {
				return done * len(lanes)
			}
		default:
			for _, t := range lanes {
				t.pc = pc - 1
			}
			m.rareTogether(lanes, in, done)
			return (done + 1) * len(lanes)
		}
	}
	for _, t := range lanes {
		t.pc = pc
	}
	return done * len(lanes)
}

// part moves each lane along its branch; it returns false if they do not all
// go the same way.
func part(lanes []*thread, in *inst, next int) bool {
	jumps := bit(in.op == opBraIf || in.op == opGuardIf)
	same := true
	for _, t := range lanes {
		t.pc = next
		if t.regs[in.a] == jumps {
			t.pc = int(in.imm)
		}
		same = same && t.pc == lanes[0].pc
	}
	return same
}

func (m *machine) accessTogether(lanes []*thread, in *inst) bool {
	for _, t := range lanes {
		ok := true
		switch in.op {
		case opLoad:
			ok = m.load(t, t.regs, in)
		case opStore:
			ok = m.store(t, t.regs, in)
		case opAtom:
			ok = m.atomic(t, t.regs, in)
		}
		if !ok {
			return false
		}
	}
	return true
}

// rareTogether executes a rare instruction for each lane that has not already
// executed it with another lane.
func (m *machine) rareTogether(lanes []*thread, in *inst, done int) {
	at := lanes[0].pc
	for _, t := range lanes {
		if t.pc == at && m.fault == nil {
			m.rare(t, in, done)
		}
	}
}

// rare executes instructions that touch more than registers and memory. t.pc
// is at the instruction and is advanced. The result is false if the thread
// cannot continue now.
func (m *machine) rare(t *thread, in *inst, done int) bool {
	r := t.regs
	switch in.op {
	case opWarp:
		return m.meet(t, in)
	case opBarrier:
		return m.arrive(t, in)
	case opActive:
		m.activeMask(t, in)
		return true
	case opBrx:
		i, table := r[in.a], m.k.tables[in.imm]
		if i >= uint64(len(table)) {
			m.fail(OutOfBounds, t, in, "index outside the list of branch targets")
			return false
		}
		t.pc = int(table[i])
		return true
	case opFence:
		m.fence(t)
	case opCopy:
		m.startCopy(t, r, in)
	case opCommit:
		t.batch++
	case opCopyWait:
		if !m.waitCopies(t, int(in.imm), in.mode == 1) {
			return false
		}
	case opClock:
		r[in.d] = (m.steps + uint64(done)) >> in.mode & in.imm
	case opYield:
		t.pc++
		return false
	case opNothing:
	case opTrap:
		m.fail(Trap, t, in, "")
		return false
	case opExit:
		m.exit(t, in)
		return false
	}
	t.pc++
	return true
}

// activeMask sets the destination to the lanes that are at this instruction
// together: a subset of those at it, chosen by the schedule. All of them
// execute it now.
func (m *machine) activeMask(t *thread, in *inst) {
	w := t.warp
	here := uint32(1) << t.lane
	choice := uint32(m.rng.next()) | here
	for l := w.ready & choice; l != 0; l &= l - 1 {
		if i := bits.TrailingZeros32(l); w.lanes[i].pc == t.pc {
			here |= 1 << i
		}
	}
	for l := here; l != 0; l &= l - 1 {
		o := w.lanes[bits.TrailingZeros32(l)]
		o.regs[in.d] = uint64(here)
		o.pc++
	}
}
