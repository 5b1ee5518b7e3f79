package ptx

// specialBits returns the width of a register that is constant throughout a
// thread's life, such as %tid.x.
func specialBits(name string) (int, bool) {
	for _, stem := range []string{"%tid", "%ntid", "%ctaid", "%nctaid"} {
		for _, axis := range []string{".x", ".y", ".z"} {
			if name == stem+axis {
				return 32, true
			}
		}
	}
	switch name {
	case "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%dynamic_smem_size", "%total_smem_size",
		"%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt":
		return 32, true
	case "%gridid":
		return 64, true
	}
	return 0, false
}

// counter is a register that changes while the thread runs.
type counter struct {
	bits  int
	shift uint8
}

var clocks = map[string]counter{
	"%clock": {32, 0}, "%clock_hi": {32, 32}, "%clock64": {64, 0},
	"%globaltimer": {64, 0}, "%globaltimer_lo": {32, 0}, "%globaltimer_hi": {32, 32},
}

func (d *decoder) readClock(dst operand, name string, bits int) {
	c := clocks[name]
	if c.bits != bits {
		reject(d.line, "%s has %d bits", name, c.bits)
	}
	d.emit(inst{op: opClock, mode: c.shift, imm: maskOf(bits), d: d.dest(dst, kindOf(bits))})
}

// setSpecials fills in the special registers of a thread.
func (m *machine) setSpecials(t *thread) {
	lane := uint(t.lane)
	for _, s := range m.k.specials {
		t.regs[s.slot] = m.specialValue(s.name, t, lane)
	}
}

func (m *machine) specialValue(name string, t *thread, lane uint) uint64 {
	switch name {
	case "%tid.x":
		return uint64(t.index)
	case "%ctaid.x":
		return uint64(t.block.index)
	case "%ntid.x":
		return uint64(m.grid.Threads)
	case "%nctaid.x":
		return uint64(m.grid.Blocks)
	case "%ntid.y", "%ntid.z", "%nctaid.y", "%nctaid.z":
		return 1
	case "%laneid":
		return uint64(lane)
	case "%warpid":
		return uint64(t.index / warpSize)
	case "%nwarpid":
		return uint64(len(t.block.warps))
	case "%smid":
		return uint64(t.block.home)
	case "%nsmid":
		return processors
	case "%gridid":
		return m.launches
	case "%dynamic_smem_size":
		return uint64(m.grid.Shared)
	case "%total_smem_size":
		return uint64(len(t.block.shared))
	case "%lanemask_eq":
		return 1 << lane
	case "%lanemask_lt":
		return 1<<lane - 1
	case "%lanemask_le":
		return 2<<lane - 1
	case "%lanemask_gt":
		return maskOf(32) &^ (2<<lane - 1)
	case "%lanemask_ge":
		return maskOf(32) &^ (1<<lane - 1)
	}
	return 0 // %tid.y and the other coordinates of a launch in one dimension
}
