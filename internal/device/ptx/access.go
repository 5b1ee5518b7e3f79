package ptx

import (
	"bytes"
	"encoding/binary"
)

// loadModel executes a load under the model: now, or later (late.go).
func (m *machine) loadModel(t *thread, in *inst) bool {
	addr := t.regs[in.a] + in.imm
	b := m.at(t, in, addr, false)
	if b == nil {
		return false
	}
	l, common := m.locate(t, in, addr)
	if !common {
		m.deliver(t, in, b)
		return true
	}
	m.bindAt(t, l, uint64(in.bytes))
	if in.order&acquire != 0 {
		m.bindAll(t)
	}
	if !m.admitted(t, in, l) {
		return false
	}
	if m.delays(in) {
		t.observer.late = append(t.observer.late, lateAccess{in: in, at: l})
		return true
	}
	m.finishLoad(t, in, l)
	return true
}

// finishLoad chooses what a load returns.
func (m *machine) finishLoad(t *thread, in *inst, l location) {
	var buf [16]byte
	m.fetch(t, in, l, buf[:in.bytes])
	m.deliver(t, in, buf[:])
}

// deliver stores the bytes of a load in its registers.
func (m *machine) deliver(t *thread, in *inst, b []byte) {
	if in.vec == nil {
		t.regs[in.d] = element(b, in)
		return
	}
	for i := range in.vec.n {
		t.regs[in.vec.slot[i]] = element(b[i*int(in.width):], in)
	}
}

// fetch reads the elements of an access one by one, in any order.
func (m *machine) fetch(t *thread, in *inst, l location, to []byte) {
	n := len(to) / int(in.width)
	first := 0
	if n > 1 {
		first = m.rng.below(n)
	}
	for i := range n {
		off := uint64((first+i)%n) * uint64(in.width)
		m.readElement(t, in, location{l.mem, l.off + off, l.block, l.base}, to[off:])
	}
}

// readElement reads one scalar. PTX promises that it is whole only to strong
// accesses; others are read word by word.
func (m *machine) readElement(t *thread, in *inst, l location, to []byte) {
	a := scalar(t, in, l.off)
	w := m.model.word(l, l.off)
	m.note(t, in, w)
	if in.width <= 4 {
		v := m.readWord(&a, w) >> (8 * (l.off % 4))
		for i := range in.width {
			to[i] = byte(v >> (8 * i))
		}
		return
	}
	hi := m.model.word(l, l.off+4)
	if in.order&strong != 0 {
		binary.LittleEndian.PutUint64(to, m.readPair(&a, w, hi))
		return
	}
	binary.LittleEndian.PutUint32(to, m.readWord(&a, w))
	binary.LittleEndian.PutUint32(to[4:], m.readWord(&a, hi))
}

// storeModel executes a store under the model. It returns false if the thread's
// turn ends.
func (m *machine) storeModel(t *thread, in *inst) bool {
	addr := t.regs[in.a] + in.imm
	b := m.at(t, in, addr, true)
	if b == nil {
		return false
	}
	l, common := m.locate(t, in, addr)
	if !common {
		var old [16]byte
		copy(old[:], b)
		ok := m.store(t, t.regs, in)
		if !bytes.Equal(old[:len(b)], b) {
			t.observer.spin.since = 0 // its own memory is part of a thread's state
		}
		return ok
	}
	if in.order&release != 0 {
		m.bindAll(t)
	}
	m.bindAt(t, l, uint64(in.bytes))
	if !m.admitted(t, in, l) {
		return false
	}
	if in.vec == nil {
		m.writeElement(t, in, l, t.regs[in.b])
		return !m.lingers(t)
	}
	first := m.rng.below(in.vec.n)
	for i := range in.vec.n {
		j := (first + i) % in.vec.n
		m.writeElement(t, in, location{l.mem, l.off + uint64(j)*uint64(in.width), l.block, l.base}, t.regs[in.vec.slot[j]])
	}
	return !m.lingers(t)
}

// writeElement is readElement for stores.
func (m *machine) writeElement(t *thread, in *inst, l location, v uint64) {
	a := scalar(t, in, l.off)
	w := m.model.word(l, l.off)
	switch {
	case in.width <= 4:
		m.put(a, w, m.spot(&a, w), uint32(v)<<(8*(l.off%4)), nil)
	case in.order&strong != 0:
		m.writePair(a, w, m.model.word(l, l.off+4), v)
	default:
		hi := m.model.word(l, l.off+4)
		m.put(a, w, m.spot(&a, w), uint32(v), nil)
		m.put(a, hi, m.spot(&a, hi), uint32(v>>32), nil)
	}
	if in.order&release != 0 {
		t.observer.tick(t.observer.id)
	}
}

// atomicModel executes atom and red under the model: now, or, if nothing orders
// it, later.
func (m *machine) atomicModel(t *thread, in *inst) bool {
	r := t.regs
	addr := r[in.a] + in.imm
	if m.at(t, in, addr, true) == nil {
		return false
	}
	l, common := m.locate(t, in, addr)
	if !common {
		return m.atomic(t, r, in)
	}
	if in.order&(acquire|release) != 0 {
		m.bindAll(t)
	}
	m.bindAt(t, l, uint64(in.bytes))
	if !m.admitted(t, in, l) {
		return false
	}
	if m.delays(in) {
		t.observer.late = append(t.observer.late, lateAccess{in: in, at: l, b: r[in.b], c: r[in.c]})
		return true
	}
	m.finishAtomic(t, in, l, r[in.b], r[in.c])
	return true
}

// finishAtomic reads, computes and writes. A cas that fails only reads.
func (m *machine) finishAtomic(t *thread, in *inst, l location, b, c uint64) {
	a := scalar(t, in, l.off)
	w := m.model.word(l, l.off)
	m.note(t, in, w)
	op := &atomics[in.what]
	next := func(old uint64) (uint64, bool) {
		return op.next(old, b, c), op.compares() && old != b
	}
	var old uint64
	var failed, changed bool
	if in.width == 8 {
		old, failed, changed = m.changePair(a, w, m.model.word(l, l.off+4), next)
	} else {
		old, failed, changed = m.changeWord(a, w, uint(8*(l.off%4)), next)
	}
	t.regs[in.d] = old
	if in.order&release != 0 && !failed {
		t.observer.tick(t.observer.id)
	}
	if changed {
		m.won(t)
	}
}

// changeWord is a read-modify-write of up to 4 bytes: nothing comes between its
// read and its write.
func (m *machine) changeWord(a access, w *word, shift uint, next func(uint64) (uint64, bool)) (old uint64, failed, changed bool) {
	at := m.pick(w.floor(a.by), len(w.writes))
	for {
		old = uint64(w.value(at)&bytesOf(a.mask)) >> shift
		v, fails := next(old)
		if !fails && w.closed(at, &a) {
			at = len(w.writes) - 1
			continue
		}
		x := w.writes[at]
		a.observed(w, x)
		if !fails {
			m.put(a, w, at, uint32(v)<<shift, x)
		}
		return old, fails, v != old
	}
}

// changePair is changeWord for 8 bytes.
func (m *machine) changePair(a access, lo, hi *word, next func(uint64) (uint64, bool)) (old uint64, failed, changed bool) {
	at, up := len(lo.writes)-1, len(hi.writes)-1
	if parallel(lo, hi) {
		at = m.pick(max(lo.floor(a.by), hi.floor(a.by)), len(lo.writes))
		up = at
	}
	for {
		old = uint64(hi.value(up))<<32 | uint64(lo.value(at))
		v, fails := next(old)
		if !fails && (lo.closed(at, &a) || hi.closed(up, &a)) {
			at, up = len(lo.writes)-1, len(hi.writes)-1
			continue
		}
		x, y := lo.writes[at], hi.writes[up]
		a.observed(lo, x)
		a.observed(hi, y)
		if !fails {
			m.putPair(a, lo, hi, at, up, v, x, y)
		}
		return old, fails, v != old
	}
}

// copyModel is copyNow under the model: plain reads of bytes, and plain writes of
// words.
func (m *machine) copyModel(t *thread, c transfer) bool {
	from, to := *c.in, *c.in
	from.op, from.space, from.width, from.bytes = opLoad, global, 1, 1
	to.op, to.width = opStore, 4
	var buf [16]byte
	for i := range c.valid {
		if m.at(t, &from, c.src+i, false) == nil {
			return false
		}
		l, _ := m.locate(t, &from, c.src+i)
		if !m.admitted(t, &from, l) {
			return false
		}
		m.readElement(t, &from, l, buf[i:])
	}
	if c.src&uint64(c.in.bytes-1) != 0 {
		m.memoryFault(Misaligned, t, c.in, global, c.src, "source of cp.async")
		return false
	}
	if m.at(t, &to, c.dst, true) == nil {
		return false
	}
	l, _ := m.locate(t, &to, c.dst)
	if !m.admitted(t, &to, l) {
		return false
	}
	for i := uint64(0); i < uint64(c.in.bytes); i += 4 {
		m.writeElement(t, &to, location{l.mem, l.off + i, l.block, l.base}, uint64(binary.LittleEndian.Uint32(buf[i:])))
	}
	return true
}
