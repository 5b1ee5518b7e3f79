package ptx

// Observer sees what a launch does, while it runs: for a viewer that shows
// schedules. It must not call the device.
type Observer interface {
	// Begin is called when a launch starts, with its grid.
	Begin(kernel string, blocks, threads int)
	// Turn is called when the schedule lets lanes of a warp run; lanes is the mask
	// of those that do. waiting are those of the warp that have not exited and
	// cannot run.
	Turn(block, warp int, lanes, waiting uint32)
	// Access is called for each access of a thread to global memory that is
	// allowed. line is that of the instruction in the PTX.
	Access(a Access)
}

// Access is one access to global memory.
type Access struct {
	Block, Warp, Lane int
	Line              int
	Addr              uint64
	Bytes             int
	Write, Atomic     bool
	// Value is what a store of one element, or an atomic, leaves there. Under weak
	// memory, others may go on reading what was there before.
	Value uint64
}

// Observe makes an observer see all launches.
func Observe(o Observer) Option { return func(d *Device) { d.machine.observer = o } }

// sawLaunch tells the observer of a launch.
func (m *machine) sawLaunch() {
	if m.observer != nil {
		m.observer.Begin(m.k.name, m.grid.Blocks, m.grid.Threads)
	}
}

// sawTurn tells the observer whose turn it is.
func (m *machine) sawTurn(lanes ...*thread) {
	if m.observer == nil {
		return
	}
	w, mask := lanes[0].warp, uint32(0)
	for _, t := range lanes {
		mask |= 1 << t.lane
	}
	m.observer.Turn(w.block.index, lanes[0].index/warpSize, mask, w.live&^w.ready)
}

// saw tells the observer of an access to memory b, before it happens.
func (m *machine) saw(t *thread, in *inst, addr uint64, b []byte, write bool) {
	a := Access{
		Block: t.block.index, Warp: t.index / warpSize, Lane: int(t.lane), Line: int(in.line), Addr: addr, Bytes: len(b),
		Write: write, Atomic: in.op == opAtom,
	}
	switch {
	case in.op == opAtom:
		a.Value = atomics[in.what].next(element(b, in), t.regs[in.b], t.regs[in.c])
	case in.op == opStore && in.vec == nil:
		a.Value = t.regs[in.b] & (1<<(8*in.width) - 1)
	}
	m.observer.Access(a)
}
