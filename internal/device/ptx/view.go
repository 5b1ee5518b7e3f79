package ptx

// floor returns the index of the oldest write of a word that a thread may still
// read, and after which it may still write: the latest one that it knows.
func (w *word) floor(o *observer) int {
	at := 0
	for i := len(w.writes) - 1; i > 0; i-- {
		if x := w.writes[i]; o.knows(x.by.id, x.stamp) {
			at = i
			break
		}
	}
	if x := o.seen[w]; x != nil {
		at = max(at, x.at)
	}
	return at
}

// value returns the word as it was after the write at an index.
func (w *word) value(at int) uint32 {
	x := w.writes[at]
	bits, have := x.bits, x.mask
	for have != 15 && at > 0 {
		at--
		x = w.writes[at]
		more := x.mask &^ have
		bits |= x.bits & bytesOf(more)
		have |= more
	}
	return bits
}

// bytesOf returns the bits of the bytes in a mask.
func bytesOf(mask uint8) uint32 {
	return uint32(mask&1)*0xff | uint32(mask>>1&1)*0xff00 | uint32(mask>>2&1)*0xff0000 | uint32(mask>>3&1)*0xff000000
}

// closed reports whether a write may not follow the one at an index, because a
// later atomic has read that one, or an earlier one.
func (w *word) closed(at int, a *access) bool {
	for _, x := range w.writes[at+1:] {
		if x.read != nil && x.read.at <= at && morallyStrong(&x.access, a) {
			return true
		}
	}
	return false
}

// insert puts a write behind the one at an index.
func (w *word) insert(at int, x *write) {
	w.writes = append(w.writes, nil)
	copy(w.writes[at+2:], w.writes[at+1:])
	w.writes[at+1] = x
	if len(w.writes) > keepWrites {
		second := w.writes[1]
		second.bits, second.mask = w.value(1), 15
		w.writes[0].at = -1
		w.writes = append(w.writes[:0], w.writes[1:]...)
	}
	for i, x := range w.writes {
		x.at = i
	}
}

// quiet reports whether memory has not changed for so long that threads seem to
// wait for each other.
func (d *model) quiet() bool {
	return d.steps-d.changed >= 1024+256*uint64(d.threads)
}

// loose reports whether the model may choose. In a quiet time threads see all
// there is, so that a deadlock can be told from bad luck.
func (d *model) loose() bool { return d.weak && !d.quiet() }

// pick returns an index from low to below high, the last one half of the time.
func (m *machine) pick(low, high int) int {
	if !m.model.loose() || high-low == 1 {
		return high - 1
	}
	x := m.rng.next()
	if x&1 == 0 {
		return high - 1
	}
	return low + int(x>>32*uint64(high-low)>>32)
}

// spot returns the index behind which a write goes: mostly the last one,
// otherwise any other that the thread does not know to be overwritten.
func (m *machine) spot(a *access, w *word) int {
	last := len(w.writes) - 1
	if !m.model.loose() || m.rng.next()&3 != 0 {
		return last
	}
	at := m.pick(w.floor(a.by), last+1)
	if w.closed(at, a) {
		return last
	}
	return at
}

// put writes to a word, behind the write at an index.
func (m *machine) put(a access, w *word, at int, bits uint32, read *write) *write {
	x := &write{access: a, bits: bits & bytesOf(a.mask), read: read, offers: a.releasing(w)}
	if read != nil && morallyStrong(&read.access, &a) {
		x.offers = merged(x.offers, read.offers...)
	}
	w.insert(at, x)
	m.model.settled(w)
	return x
}

// settled stores the latest value of a word, and notes whether it is new.
func (d *model) settled(w *word) {
	v := w.value(len(w.writes) - 1)
	w.wrote = d.steps + 1
	same, back := true, w.back()
	for i := range back {
		b := byte(v >> (8 * i))
		same = same && back[i] == b
		back[i] = b
	}
	if !same {
		d.version++
		d.changed = d.steps
		d.wakeAll()
	}
}

// readWord returns what a read of one word returns.
func (m *machine) readWord(a *access, w *word) uint32 {
	at := m.pick(w.floor(a.by), len(w.writes))
	v := w.value(at)
	a.observed(w, w.writes[at])
	return v
}

// readPair is readWord for a strong access of 8 bytes, which never sees one half
// of a write and not the other.
func (m *machine) readPair(a *access, lo, hi *word) uint64 {
	x := lo.writes[m.pick(lo.floor(a.by), len(lo.writes))]
	from := hi.floor(a.by)
	if x.pair != nil && morallyStrong(a, &x.access) {
		from = max(from, x.pair.at)
	}
	y := hi.writes[m.pick(from, len(hi.writes))]
	if y.pair != nil && y.pair.at > x.at && morallyStrong(a, &y.access) {
		x = y.pair
	}
	v := uint64(hi.value(y.at))<<32 | uint64(lo.value(x.at))
	a.observed(lo, x)
	a.observed(hi, y)
	return v
}

// parallel reports whether all writes to two words were of 8 bytes.
func parallel(lo, hi *word) bool {
	if len(lo.writes) != len(hi.writes) {
		return false
	}
	for i, x := range lo.writes[1:] {
		if x.pair == nil || x.pair != hi.writes[i+1] {
			return false
		}
	}
	return true
}

// writePair writes 8 bytes at once.
func (m *machine) writePair(a access, lo, hi *word, v uint64) {
	at, up := len(lo.writes)-1, len(hi.writes)-1
	if parallel(lo, hi) {
		at = max(m.spot(&a, lo), hi.floor(a.by))
		if hi.closed(at, &a) || lo.closed(at, &a) {
			at = up
		}
		up = at
	}
	m.putPair(a, lo, hi, at, up, v, nil, nil)
}

func (m *machine) putPair(a access, lo, hi *word, at, up int, v uint64, readLo, readHi *write) {
	x := m.put(a, lo, at, uint32(v), readLo)
	y := m.put(a, hi, up, uint32(v>>32), readHi)
	x.pair, y.pair = y, x
}
