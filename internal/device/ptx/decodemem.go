package ptx

import "slices"

// memory decodes instructions that have to do with addresses. It returns false
// if head is not one of them.
func (d *decoder) memory(head string, s *stmt, m *modifiers) bool {
	switch head {
	case "ld":
		d.load(s, m)
	case "st":
		d.store(s, m)
	case "atom", "red":
		d.atomic(s, m, head == "red")
	case "cvta":
		d.cvta(s, m)
	case "isspacep":
		in := inst{op: opALU, fn: isWithin, imm: uint64(d.spaceOf(m.must("global", "shared", "local", "const", "param")))}
		m.end()
		d.args(s, 2, 2)
		in.d, in.a = d.dest(s.args[0], kPred), d.source(s.args[1], k64, 0)
		d.emit(in)
	case "cp":
		d.copyAsync(s, m)
	case "prefetch", "prefetchu", "applypriority", "discard":
		d.hint(head, s, m)
	case "createpolicy":
		d.policy(s, m)
	default:
		return false
	}
	return true
}

func (d *decoder) spaceOf(word string) space {
	switch word {
	case "":
		return generic
	case "shared::cta":
		return shared
	case "param::entry", "param::func":
		return param
	}
	return spaceNames["."+word]
}

// strength consumes .weak, .volatile, or .relaxed and the like with their
// scope.
func (d *decoder) strength(m *modifiers, sem ...string) order {
	switch w := m.take(append(sem, "weak", "volatile")...); w {
	case "", "weak":
		return plain
	case "volatile":
		return strong
	default:
		return semantics(w) | scopeOf(m.must(scopes...))
	}
}

var scopes = []string{"cta", "gpu", "sys", "cluster"}

// scopeOf returns the order of a scope. Every block is a cluster of its own, and
// there is one device.
func scopeOf(w string) order {
	if w == "cta" || w == "cluster" {
		return narrow
	}
	return 0
}

func semantics(w string) order {
	switch w {
	case "acquire":
		return strong | acquire
	case "release":
		return strong | release
	case "acq_rel":
		return strong | acquire | release
	}
	return strong
}

// caching consumes the cache hints that may follow, and reports whether a
// policy operand comes with them.
func (d *decoder) caching(m *modifiers) (policy bool) {
	if m.take("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate") != "" {
		d.needs(74, 70)
	}
	if m.take("L2::evict_normal", "L2::evict_first", "L2::evict_last") != "" {
		d.needs(74, 80)
	}
	if m.take("L2::cache_hint") != "" {
		d.needs(74, 80)
		policy = true
	}
	if m.take("L2::64B", "L2::128B") != "" {
		d.needs(74, 75)
	}
	if m.take("L2::256B") != "" {
		d.needs(74, 80)
	}
	return policy
}

// access fills in what ld, st and the like have in common: size, vector form,
// and the policy operand, which is checked and dropped.
func (d *decoder) access(in *inst, s *stmt, m *modifiers, policy bool) valueType {
	lanes := 1
	switch m.take("v2", "v4") {
	case "v2":
		lanes = 2
	case "v4":
		lanes = 4
	}
	ty := m.typ()
	if ty.class == 'p' || lanes*ty.bits > 128 {
		m.unknown()
	}
	in.width = uint8(ty.bits / 8)
	in.bytes = uint8(lanes) * in.width
	n := 2
	if policy {
		n = 3
	}
	d.args(s, n, n)
	if policy {
		d.source(s.args[2], k64, 2)
	}
	return ty
}

// value returns the register of one element of a load or store.
func (d *decoder) value(o operand, ty valueType, store bool) (int32, int) {
	if o.kind == argName && o.name == "_" && !store {
		return slotSink, 64
	}
	if store && o.kind != argName {
		return d.source(o, kindOf(ty.bits), 1), ty.bits
	}
	return d.atLeast(o, kindOf(ty.bits), ty.class == 'f')
}

func (d *decoder) load(s *stmt, m *modifiers) {
	in := inst{op: opLoad}
	in.order = d.strength(m, "relaxed", "acquire")
	in.space = d.spaceOf(m.take("global", "shared", "shared::cta", "local", "const", "param", "param::entry", "param::func"))
	m.take("ca", "cg", "cs", "lu", "cv")
	if m.take("nc") != "" {
		if in.space != global || in.order != plain {
			m.unknown()
		}
		in.what = 1
	}
	policy := d.caching(m)
	ty := d.access(&in, s, m, policy)
	d.address(&in, s.args[1])
	dst := s.args[0]
	width := 64
	slot := func(o operand, _ int) int32 {
		r, bits := d.value(o, ty, false)
		width = bits
		return r
	}
	if in.bytes != in.width {
		d.elements(&in, dst, slot)
	} else {
		in.d = slot(dst, 0)
	}
	if ty.class == 's' && width > ty.bits {
		in.mode = uint8(width)
	}
	d.emit(in)
}

func (d *decoder) store(s *stmt, m *modifiers) {
	in := inst{op: opStore}
	in.order = d.strength(m, "relaxed", "release")
	in.space = d.spaceOf(m.take("global", "shared", "shared::cta", "local", "param", "param::func"))
	m.take("wb", "cg", "cs", "wt")
	policy := d.caching(m)
	ty := d.access(&in, s, m, policy)
	d.address(&in, s.args[0])
	slot := func(o operand, _ int) int32 {
		r, _ := d.value(o, ty, true)
		return r
	}
	if in.bytes != in.width {
		d.elements(&in, s.args[1], slot)
	} else {
		in.b = slot(s.args[1], 0)
	}
	d.emit(in)
}

// elements resolves the {a, b} of a vector access.
func (d *decoder) elements(in *inst, o operand, slot func(operand, int) int32) {
	if o.kind != argVector || len(o.elems) != int(in.bytes/in.width) {
		reject(d.line, "a vector of %d should be here", in.bytes/in.width)
	}
	in.vec = d.vector(o, slot)
}

// address resolves [base+offset]. A variable's space must be that of the
// instruction, unless the instruction is generic.
func (d *decoder) address(in *inst, o operand) {
	in.a, in.imm, in.space = d.locate(o, in.space, in.op == opStore)
}

func (d *decoder) locate(o operand, sp space, store bool) (slot int32, offset uint64, in space) {
	if o.kind != argAddr {
		reject(d.line, "an address in brackets should be here")
	}
	if sp == param && (store || len(d.after) > 0) {
		sp = local // the .param variables of a call
	}
	if o.name == "" {
		return d.constant(o.value), 0, sp
	}
	if r, ok := d.findReg(o.name); ok {
		if r.bits != 64 && (r.bits != 32 || sp == generic || sp == global) {
			reject(d.line, "%s holds no %v address", o.name, sp)
		}
		return r.slot, o.value, sp
	}
	v, ok := d.findVar(o.name)
	if !ok {
		reject(d.line, "%s is not known", o.name)
	}
	if sp == param {
		sp = v.space // an entry reads a call's result
		if sp != local && sp != param {
			reject(d.line, "%s is %v memory", o.name, v.space)
		}
	}
	if sp != generic && sp != v.space {
		reject(d.line, "%s is %v memory", o.name, v.space)
	}
	return d.symbol(v, o.value), 0, v.space
}

func (d *decoder) atomic(s *stmt, m *modifiers, reduce bool) {
	in := inst{op: opAtom, order: strong, d: slotSink}
	if w := m.take("relaxed", "acquire", "release", "acq_rel"); w != "" {
		in.order = semantics(w)
	}
	in.order |= scopeOf(m.take(scopes...))
	if reduce {
		in.order |= reducing
	}
	in.space = d.spaceOf(m.take("global", "shared", "shared::cta"))
	name := m.must("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
	policy := m.take("L2::cache_hint") != ""
	if len(m.left) != 1 {
		m.unknown()
	}
	what := slices.IndexFunc(atomics, func(a atomicOp) bool { return a.name == name+"."+m.left[0] })
	if what < 0 || reduce && (name == "exch" || name == "cas") {
		m.unknown()
	}
	in.what = uint8(what)
	in.width = uint8(atomics[what].bits / 8)
	in.bytes = in.width
	args := d.atomicArgs(&in, s, reduce, name == "cas", policy)
	k := kindOf(atomics[what].bits)
	d.address(&in, args[0])
	in.b = d.source(args[1], k, 1)
	if name == "cas" {
		in.c = d.source(args[2], k, 2)
	}
	d.emit(in)
}

// atomicArgs removes the destination and the policy from the operands, and
// returns the rest.
func (d *decoder) atomicArgs(in *inst, s *stmt, reduce, cas, policy bool) []operand {
	n := 2
	for _, more := range []bool{!reduce, cas, policy} {
		if more {
			n++
		}
	}
	d.args(s, n, n)
	args := s.args
	if policy {
		d.needs(74, 80)
		d.source(args[n-1], k64, 3)
	}
	if !reduce {
		in.d = d.dest(args[0], kindOf(8*int(in.width)))
		args = args[1:]
	}
	return args
}

// cvta decodes conversions between a space's own addresses and generic ones.
func (d *decoder) cvta(s *stmt, m *modifiers) {
	to := m.take("to") != ""
	sp := d.spaceOf(m.must("global", "shared", "shared::cta", "local", "const", "param"))
	m.must("u64")
	m.end()
	d.args(s, 2, 2)
	if sp == param && len(d.after) > 0 {
		sp = local
	}
	in := inst{op: opALU, fn: addTo[uint64], d: d.dest(s.args[0], k64), a: d.source(s.args[1], k64, 0)}
	in.b = d.constant(windows[sp])
	if to {
		in.fn = subFrom[uint64]
	}
	d.emit(in)
}

// copyAsync decodes cp.async. The bytes move when the thread waits for them.
func (d *decoder) copyAsync(s *stmt, m *modifiers) {
	m.must("async")
	d.needs(70, 80)
	switch m.must("ca", "cg", "commit_group", "wait_group", "wait_all") {
	case "commit_group":
		m.end()
		d.args(s, 0, 0)
		d.emit(inst{op: opCommit})
	case "wait_group":
		m.end()
		d.args(s, 1, 1)
		if s.args[0].kind != argInt {
			reject(s.line, "the number of groups must be a literal")
		}
		d.emit(inst{op: opCopyWait, imm: s.args[0].value})
	case "wait_all":
		m.end()
		d.args(s, 0, 0)
		d.emit(inst{op: opCopyWait, mode: 1})
	case "ca":
		d.copyBody(s, m, 4, 8, 16)
	case "cg":
		d.copyBody(s, m, 16)
	}
}

func (d *decoder) copyBody(s *stmt, m *modifiers, sizes ...uint64) {
	m.must("shared", "shared::cta")
	m.must("global")
	policy := d.caching(m)
	m.end()
	args := s.args
	if policy && len(args) > 0 {
		d.source(args[len(args)-1], k64, 3)
		args = args[:len(args)-1]
	}
	if len(args) < 3 || len(args) > 4 || args[2].kind != argInt || !slices.Contains(sizes, args[2].value) {
		reject(s.line, "cp.async of this form is not known")
	}
	in := inst{op: opCopy, space: shared, bytes: uint8(args[2].value), c: d.constant(args[2].value)}
	if len(args) == 4 { // the number of bytes to take from the source; zeros follow
		in.c = d.source(args[3], k32, 2)
	}
	in.a, in.imm, _ = d.locate(args[0], shared, true)
	in.b = d.wholeAddress(args[1], global)
	d.emit(in)
}

// wholeAddress returns a slot that holds the sum of base and offset.
func (d *decoder) wholeAddress(o operand, sp space) int32 {
	base, offset, _ := d.locate(o, sp, false)
	if offset == 0 {
		return base
	}
	sum := d.newSlot(0)
	d.emit(inst{op: opALU, fn: addTo[uint64], d: sum, a: base, b: d.constant(offset)})
	return sum
}

// hint decodes instructions that move lines between caches: they do nothing
// here.
func (d *decoder) hint(head string, s *stmt, m *modifiers) {
	n := 1
	sp := generic
	switch head {
	case "prefetch":
		sp = d.spaceOf(m.take("global", "local"))
		if w := m.must("L1", "L2", "L2::evict_last", "L2::evict_normal"); len(w) > 2 {
			d.needs(74, 80)
		}
	case "prefetchu":
		m.must("L1")
	case "applypriority":
		sp = d.spaceOf(m.take("global"))
		m.must("L2::evict_normal")
		d.needs(74, 80)
		n = 2
	case "discard":
		sp = d.spaceOf(m.take("global"))
		m.must("L2")
		d.needs(74, 80)
		n = 2
	}
	m.end()
	d.args(s, n, n)
	d.locate(s.args[0], sp, false)
	if n == 2 && (s.args[1].kind != argInt || s.args[1].value != 128) {
		reject(s.line, "the size must be 128")
	}
	d.emit(inst{op: opNothing})
}

// policy decodes createpolicy.fractional, whose result only hints use.
func (d *decoder) policy(s *stmt, m *modifiers) {
	m.must("fractional")
	m.must("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
	m.take("L2::evict_first", "L2::evict_unchanged")
	m.must("b64")
	m.end()
	d.needs(74, 80)
	d.args(s, 1, 2)
	if len(s.args) == 2 {
		d.source(s.args[1], k32, 0)
	}
	d.emit(inst{op: opALU, fn: move, d: d.dest(s.args[0], k64), a: slotZero})
}
