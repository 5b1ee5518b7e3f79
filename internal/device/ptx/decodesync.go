package ptx

// The kinds of meetings of a warp: inst.what of opWarp. The mode and width are
// in inst.mode, so that two instructions meet only if they are the same.
const (
	warpBar uint8 = iota
	warpShuffle
	warpVote
	warpBallot
	warpMatchAny
	warpMatchAll
	warpReduce
	warpElect
)

// Modes of warpShuffle.
const (
	shuffleUp uint8 = iota
	shuffleDown
	shuffleButterfly
	shuffleIndex
)

// Modes of warpVote.
const (
	voteAll uint8 = iota
	voteAny
	voteUniform
)

// Actions of a block's barrier: inst.what of opBarrier.
const (
	barSync uint8 = iota
	barArrive
	barPopc
	barAnd
	barOr
)

// bothWays is the order of every fence.
const bothWays = strong | acquire | release

// sync decodes what threads do together. It returns false if head is not such
// an instruction.
func (d *decoder) sync(head string, s *stmt, m *modifiers) bool {
	switch head {
	case "bar", "barrier":
		if head == "bar" && m.take("warp") != "" {
			m.must("sync")
			m.end()
			d.args(s, 1, 1)
			d.meet(inst{what: warpBar}, s.args[0])
			return true
		}
		d.barrier(s, m, head == "bar")
	case "shfl":
		d.shuffle(s, m)
	case "vote":
		d.vote(s, m)
	case "match":
		d.match(s, m)
	case "redux":
		d.redux(s, m)
	case "elect":
		m.must("sync")
		m.end()
		d.needs(80, 90)
		d.args(s, 2, 2)
		in := inst{what: warpElect}
		in.d, in.e = d.pair(s.args[0], true)
		d.meet(in, s.args[1])
	case "activemask":
		m.must("b32")
		m.end()
		d.args(s, 1, 1)
		d.emit(inst{op: opActive, d: d.dest(s.args[0], k32)})
	case "membar":
		scope := scopeOf(m.must("cta", "gl", "sys"))
		m.end()
		d.args(s, 0, 0)
		d.emit(inst{op: opFence, order: bothWays | sequential | scope})
	case "fence":
		in := inst{op: opFence, order: bothWays}
		if m.take("sc", "acq_rel") == "sc" {
			in.order |= sequential
		}
		in.order |= scopeOf(m.must(scopes...))
		m.end()
		d.args(s, 0, 0)
		d.emit(in)
	default:
		return false
	}
	return true
}

// meet emits an opWarp with its mask of lanes.
func (d *decoder) meet(in inst, mask operand) {
	in.op = opWarp
	in.f = d.source(mask, k32, 3)
	d.emit(in)
}

// pair resolves d|p, where p is required if must is set.
func (d *decoder) pair(o operand, must bool) (int32, int32) {
	if o.second == "" {
		if must {
			reject(d.line, "d|p should be here")
		}
		return d.dest(o, k32), slotSink
	}
	p := int32(slotSink)
	if o.second != "_" {
		p = d.reg(o.second, 1)
	}
	return d.dest(o, k32), p
}

func (d *decoder) shuffle(s *stmt, m *modifiers) {
	m.must("sync")
	modes := map[string]uint8{"up": shuffleUp, "down": shuffleDown, "bfly": shuffleButterfly, "idx": shuffleIndex}
	in := inst{what: warpShuffle, mode: modes[m.must("up", "down", "bfly", "idx")]}
	m.must("b32")
	m.end()
	d.args(s, 5, 5)
	in.d, in.e = d.pair(s.args[0], false)
	in.a = d.source(s.args[1], k32, 0)
	in.b = d.source(s.args[2], k32, 1)
	in.c = d.source(s.args[3], k32, 2)
	d.meet(in, s.args[4])
}

func (d *decoder) vote(s *stmt, m *modifiers) {
	m.must("sync")
	in := inst{what: warpVote}
	k := kPred
	switch m.must("all", "any", "uni", "ballot") {
	case "all":
		in.mode = voteAll
	case "any":
		in.mode = voteAny
	case "uni":
		in.mode = voteUniform
	case "ballot":
		in.what = warpBallot
		k = k32
	}
	m.must(map[kind]string{kPred: "pred", k32: "b32"}[k])
	m.end()
	d.args(s, 3, 3)
	in.d = d.dest(s.args[0], k)
	in.a = d.source(s.args[1], kPred, 0)
	d.meet(in, s.args[2])
}

func (d *decoder) match(s *stmt, m *modifiers) {
	in := inst{what: warpMatchAny}
	all := m.must("any", "all") == "all"
	m.must("sync")
	ty := m.typ()
	if ty.class != 'b' || ty.bits < 32 {
		m.unknown()
	}
	d.args(s, 3, 3)
	in.e = slotSink
	if all {
		in.what = warpMatchAll
		in.d, in.e = d.pair(s.args[0], false)
	} else {
		in.d = d.dest(s.args[0], k32)
	}
	in.mode = uint8(ty.bits)
	in.a = d.source(s.args[1], kindOf(ty.bits), 0)
	d.meet(in, s.args[2])
}

func (d *decoder) redux(s *stmt, m *modifiers) {
	m.must("sync")
	d.needs(70, 80)
	name := m.must("add", "min", "max", "and", "or", "xor")
	ty := m.must("u32", "s32", "b32")
	m.end()
	d.args(s, 3, 3)
	in := inst{what: warpReduce}
	in.mode = reduction(name + "." + ty)
	if in.mode == 0xff {
		m.unknown()
	}
	in.d = d.dest(s.args[0], k32)
	in.a = d.source(s.args[1], k32, 0)
	d.meet(in, s.args[2])
}

// reduction returns the atomic operation that folds two lanes of redux.sync
// into one, 0xff if there is none.
func reduction(name string) uint8 {
	for i, a := range atomics {
		if a.name == name && a.bits == 32 {
			return uint8(i)
		}
	}
	return 0xff
}

// barrier decodes bar and barrier, which differ in what they promise of the
// warp: bar is always aligned, that is, all lanes come to the same
// instruction.
func (d *decoder) barrier(s *stmt, m *modifiers, aligned bool) {
	m.take("cta")
	in := inst{op: opBarrier, d: slotSink}
	what := m.must("sync", "arrive", "red")
	k := k32
	if what == "red" {
		in.what = map[string]uint8{"popc": barPopc, "and": barAnd, "or": barOr}[m.must("popc", "and", "or")]
		if in.what != barPopc {
			k = kPred
		}
	} else if what == "arrive" {
		in.what = barArrive
	}
	if !aligned && m.take("aligned") != "" {
		aligned = true
	}
	if aligned {
		in.mode = 1
	}
	args := s.args
	if what == "red" {
		m.must(map[kind]string{kPred: "pred", k32: "u32"}[k])
		d.args(s, 3, 4)
		in.d = d.dest(args[0], k)
		in.c = d.source(args[len(args)-1], kPred, 2)
		args = args[1 : len(args)-1]
	}
	m.end()
	if len(args) < 1 || len(args) > 2 || what == "arrive" && len(args) != 2 {
		reject(s.line, "%s with %d operands", s.name, len(s.args))
	}
	in.a = d.source(args[0], k32, 0)
	in.b = slotZero // all threads of the block
	if len(args) == 2 {
		in.b = d.source(args[1], k32, 1)
	}
	d.emit(in)
}
