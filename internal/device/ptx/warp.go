package ptx

import (
	"fmt"
	"math/bits"
)

// meeting is a *.sync at which some lanes have arrived and others have not.
type meeting struct {
	what, mode uint8
	mask       uint32
	arrived    uint32
}

// meet brings a thread to a *.sync. The last of the lanes named in the mask
// executes it for all; the others wait. The result is false if this thread has
// to wait.
func (m *machine) meet(t *thread, in *inst) bool {
	w := t.warp
	mask := uint32(t.regs[in.f])
	if mask>>t.lane&1 == 0 {
		m.fail(BadSync, t, in, fmt.Sprintf("the thread is lane %d, which the mask %#x does not name", t.lane, mask))
		return false
	}
	if mask&^w.live != 0 {
		m.fail(Deadlock, t, in, fmt.Sprintf("mask %#x names lanes %#x of warp %d, which have exited or never were",
			mask, mask&^w.live, t.index/warpSize))
		return false
	}
	i := w.meeting(in, mask)
	g := &w.meetings[i]
	g.arrived |= 1 << t.lane
	if g.arrived != mask {
		m.block(t)
		m.checkStuck(t.block)
		return false
	}
	last := len(w.meetings) - 1
	w.meetings[i] = w.meetings[last]
	w.meetings = w.meetings[:last]
	m.exchange(w, in, mask)
	for l := mask; l != 0; l &= l - 1 {
		o := w.lanes[bits.TrailingZeros32(l)]
		o.pc++
		if o != t {
			m.wake(o)
		}
	}
	return true
}

// meeting finds the meeting with the same instruction and mask, or opens one.
// The instructions need not be at the same position.
func (w *warp) meeting(in *inst, mask uint32) int {
	for i := range w.meetings {
		if g := &w.meetings[i]; g.mask == mask && g.what == in.what && g.mode == in.mode {
			return i
		}
	}
	w.meetings = append(w.meetings, meeting{in.what, in.mode, mask, 0})
	return len(w.meetings) - 1
}

// exchange computes the results of a *.sync for all lanes of the mask.
func (m *machine) exchange(w *warp, in *inst, mask uint32) {
	if m.races {
		m.party = m.party[:0]
		for l := mask; l != 0; l &= l - 1 {
			m.party = append(m.party, w.lanes[bits.TrailingZeros32(l)])
		}
		m.order(w.block, m.party, len(m.party) == len(w.block.threads))
	}
	if m.model != nil {
		w.met(in, mask)
	}
	switch in.what {
	case warpShuffle:
		m.shuffle(w, mask)
	case warpVote, warpBallot:
		m.vote(w, in, mask)
	case warpMatchAny, warpMatchAll:
		m.match(w, in.what == warpMatchAll, mask)
	case warpReduce:
		m.reduce(w, in, mask)
	case warpElect:
		m.elect(w, mask)
	}
}

// lane returns a lane and the instruction it is at.
func (m *machine) lane(w *warp, i int) (*thread, *inst) {
	t := w.lanes[i]
	return t, &m.k.code[t.pc]
}

func (m *machine) shuffle(w *warp, mask uint32) {
	var value [warpSize]uint64
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		t, in := m.lane(w, i)
		value[i] = t.regs[in.a]
	}
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		t, in := m.lane(w, i)
		from, inRange := shuffleSource(in.mode, i, int(t.regs[in.b]&31), int(t.regs[in.c]))
		v := value[from]
		if mask>>from&1 == 0 {
			v = m.rng.next() & maskOf(32) // undefined: that lane is not here
		}
		t.regs[in.d], t.regs[in.e] = v, bit(inRange)
	}
}

// shuffleSource returns the lane that lane i reads from: itself if the
// requested one is outside its segment.
func shuffleSource(mode uint8, i, b, c int) (from int, inRange bool) {
	clamp, segment := c&31, c>>8&31
	first := i & segment
	last := first | clamp&^segment
	switch mode {
	case shuffleUp:
		from = i - b
		inRange = from >= last
	case shuffleDown:
		from = i + b
		inRange = from <= last
	case shuffleButterfly:
		from = i ^ b
		inRange = from <= last
	case shuffleIndex:
		from = first | b&^segment
		inRange = from <= last
	}
	if !inRange {
		from = i
	}
	return from, inRange
}

func (m *machine) vote(w *warp, in *inst, mask uint32) {
	var yes uint32
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		t, own := m.lane(w, i)
		if t.regs[own.a] != 0 != (own.neg&1 != 0) {
			yes |= 1 << i
		}
	}
	v := uint64(yes)
	if in.what == warpVote {
		switch in.mode {
		case voteAll:
			v = bit(yes == mask)
		case voteAny:
			v = bit(yes != 0)
		case voteUniform:
			v = bit(yes == mask || yes == 0)
		}
	}
	for l := mask; l != 0; l &= l - 1 {
		t, own := m.lane(w, bits.TrailingZeros32(l))
		t.regs[own.d] = v
	}
}

func (m *machine) match(w *warp, all bool, mask uint32) {
	var same [warpSize]uint32
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		t, in := m.lane(w, i)
		for k := mask; k != 0; k &= k - 1 {
			j := bits.TrailingZeros32(k)
			if o, oin := m.lane(w, j); o.regs[oin.a] == t.regs[in.a] {
				same[i] |= 1 << j
			}
		}
	}
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		t, in := m.lane(w, i)
		if all && same[i] != mask {
			same[i] = 0
		}
		t.regs[in.e] = bit(same[i] != 0)
		t.regs[in.d] = uint64(same[i])
	}
}

func (m *machine) reduce(w *warp, in *inst, mask uint32) {
	fold := atomics[in.mode].next
	t, own := m.lane(w, bits.TrailingZeros32(mask))
	v := t.regs[own.a]
	for l := mask & (mask - 1); l != 0; l &= l - 1 {
		t, own := m.lane(w, bits.TrailingZeros32(l))
		v = fold(v, t.regs[own.a], 0)
	}
	for l := mask; l != 0; l &= l - 1 {
		t, own := m.lane(w, bits.TrailingZeros32(l))
		t.regs[own.d] = v
	}
}

// elect makes any lane of the mask the leader.
func (m *machine) elect(w *warp, mask uint32) {
	turn := m.rng.below(warpSize)
	leader := (bits.TrailingZeros32(bits.RotateLeft32(mask, -turn)) + turn) & 31
	for l := mask; l != 0; l &= l - 1 {
		i := bits.TrailingZeros32(l)
		t, in := m.lane(w, i)
		t.regs[in.d], t.regs[in.e] = uint64(leader), bit(i == leader)
	}
}
