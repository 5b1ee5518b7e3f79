package ptx

import (
	"fmt"
	"math/bits"
)

// barrier is one of the 16 named barriers of a block.
type barrier struct {
	arrived int // threads counted in this round
	want    int // threads that complete it, 0 for all live ones
	what    uint8
	waiting []*thread
	absent  bool // a thread came by bar.arrive, and does not wait
	yes     int  // number of predicates that were true
	pool    []uint32
	known   *knowledge // under the model: knowledge of the threads that arrived
}

func (b *barrier) reset() {
	clear(b.waiting)
	b.waiting = b.waiting[:0]
	b.arrived, b.want, b.yes, b.absent, b.pool, b.known = 0, 0, 0, false, nil, nil
}

// arrive brings a thread to a barrier. The last one releases all of them. The
// result is false if this thread has to wait.
func (m *machine) arrive(t *thread, in *inst) bool {
	id, want := t.regs[in.a], int(t.regs[in.b])
	if id >= 16 || want%warpSize != 0 || want > roundUp(len(t.block.threads), warpSize) {
		m.fail(BadSync, t, in, fmt.Sprintf("barrier %d for %d threads of %d", id, want, len(t.block.threads)))
		return false
	}
	want = min(want, len(t.block.threads)) // the last warp may be incomplete
	b := &t.block.barriers[id]
	if !m.sameRound(b, t, in, want) {
		return false
	}
	b.want, b.arrived = want, b.arrived+1
	if t.regs[in.c] != 0 != (in.neg&4 != 0) {
		b.yes++
	}
	if m.races && want != 0 {
		m.joinPool(b, t)
	}
	if m.model != nil {
		b.gather(t)
	}
	if in.what == barArrive {
		b.absent = true
		t.pc++
	} else {
		b.what = in.what
		b.waiting = append(b.waiting, t)
		m.block(t)
	}
	m.tryBarrier(t.block, b)
	if in.what == barArrive {
		return m.fault == nil
	}
	if t.warp.ready>>t.lane&1 != 0 { // it was the last
		return m.fault == nil
	}
	m.checkStuck(t.block)
	return false
}

// sameRound checks that a thread's operands agree with those of the threads
// already waiting.
func (m *machine) sameRound(b *barrier, t *thread, in *inst, want int) bool {
	if b.arrived > 0 && b.want != want {
		m.fail(BadSync, t, in, fmt.Sprintf("a barrier for %d threads, where others wait for %d (0 is all)", want, b.want))
		return false
	}
	if len(b.waiting) > 0 && in.what != barArrive && in.what != b.what {
		other := &m.k.code[b.waiting[0].pc]
		m.fail(BadSync, t, in, fmt.Sprintf("thread %d waits at the same barrier by another instruction, line %d",
			b.waiting[0].index, other.line))
		return false
	}
	return true
}

// tryBarrier releases the waiting threads if all have arrived.
func (m *machine) tryBarrier(blk *block, b *barrier) {
	if b.arrived == 0 || b.arrived < b.want || b.want == 0 && b.arrived < blk.live {
		return
	}
	if !m.checkAligned(b) {
		return
	}
	if m.races {
		m.orderBarrier(blk, b)
	}
	for _, t := range b.waiting {
		if m.model != nil {
			t.observer.join(b.known)
			t.observer.spin.block = true
		}
		in := &m.k.code[t.pc]
		switch in.what {
		case barPopc:
			t.regs[in.d] = uint64(b.yes)
		case barAnd:
			t.regs[in.d] = bit(b.yes == b.arrived)
		case barOr:
			t.regs[in.d] = bit(b.yes > 0)
		}
		t.pc++
		m.wake(t)
	}
	b.reset()
}

// checkAligned tests the promise of bar and .aligned: the live lanes of a warp
// have arrived together, at the same instruction.
func (m *machine) checkAligned(b *barrier) bool {
	if b.absent {
		return true
	}
	for _, t := range b.waiting {
		in := &m.k.code[t.pc]
		first := t.warp.lanes[bits.TrailingZeros32(t.warp.live)]
		lanes := uint32(1) << first.lane
		if first == t {
			lanes = t.warp.live
		}
		for l := lanes; l != 0 && in.mode == 1; l &= l - 1 {
			i := bits.TrailingZeros32(l)
			o := t.warp.lanes[i]
			if o.pc == t.pc && t.warp.ready>>i&1 == 0 {
				continue
			}
			m.fail(BadSync, t, in, fmt.Sprintf("the warp is divided at an aligned barrier: thread %d stands at line %d",
				o.index, m.k.code[o.pc].line))
			return false
		}
	}
	return true
}

// recheckBarriers is called when a thread has exited: it no longer counts.
func (m *machine) recheckBarriers(blk *block) {
	for i := range blk.barriers {
		if b := &blk.barriers[i]; b.arrived > 0 && b.want == 0 {
			m.tryBarrier(blk, b)
		}
	}
}
