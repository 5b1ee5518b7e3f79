package ptx

// transfer is a cp.async that has not moved its bytes yet. It moves them when
// the thread waits for it, the latest moment that PTX allows, so that a read
// without the wait sees the old bytes.
type transfer struct {
	in       *inst
	dst, src uint64
	valid    uint64 // bytes to take from the source; zeros follow
	group    int
}

func (m *machine) startCopy(t *thread, r []uint64, in *inst) {
	t.copies = append(t.copies, transfer{
		in: in, dst: r[in.a] + in.imm, src: r[in.b],
		valid: min(r[in.c], uint64(in.bytes)), group: t.batch,
	})
}

// waitCopies completes the copies of all groups but the latest pending ones;
// if all is set, of all groups, committed or not.
func (m *machine) waitCopies(t *thread, pending int, all bool) bool {
	kept := t.copies[:0]
	for _, c := range t.copies {
		if !all && c.group >= t.batch-pending {
			kept = append(kept, c)
			continue
		}
		if !m.copyNow(t, c) {
			return false
		}
	}
	t.copies = kept
	return true
}

func (m *machine) copyNow(t *thread, c transfer) bool {
	if m.model != nil {
		return m.copyModel(t, c)
	}
	var buf [16]byte
	if c.valid > 0 {
		from := *c.in
		from.space, from.bytes = global, uint8(1)
		for i := range c.valid { // byte by byte: valid need not be a power of two
			b := m.at(t, &from, c.src+i, false)
			if b == nil {
				return false
			}
			buf[i] = b[0]
		}
	}
	if c.src&uint64(c.in.bytes-1) != 0 {
		m.memoryFault(Misaligned, t, c.in, global, c.src, "source of cp.async")
		return false
	}
	to := m.at(t, c.in, c.dst, true)
	if to == nil {
		return false
	}
	copy(to, buf[:c.in.bytes])
	return true
}
