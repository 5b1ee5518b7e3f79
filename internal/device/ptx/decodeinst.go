package ptx

import (
	"slices"
	"strings"
)

// instruction decodes one instruction without its guard. It rejects anything
// it does not know, to the last modifier.
func (d *decoder) instruction(s *stmt) {
	if sp, ok := registry()[s.name]; ok {
		d.pure(s, sp)
		return
	}
	m := &modifiers{s: s, left: strings.Split(s.name, ".")}
	head := m.left[0]
	m.left = m.left[1:]
	switch head {
	case "mov":
		d.mov(s, m)
	case "bra":
		m.take("uni")
		m.end()
		d.branch(s, inst{op: opBra})
	case "ret":
		m.take("uni")
		m.end()
		d.args(s, 0, 0)
		d.ret()
	case "call":
		d.call(s, m)
	case "brx":
		d.brx(s, m)
	case "exit", "trap":
		m.end()
		d.args(s, 0, 0)
		d.emit(inst{op: map[string]opcode{"exit": opExit, "trap": opTrap}[head]})
	case "nanosleep":
		m.must("u32")
		m.end()
		d.args(s, 1, 1)
		d.source(s.args[0], k32, 0)
		d.emit(inst{op: opYield})
	default:
		if !d.memory(head, s, m) && !d.sync(head, s, m) {
			m.unknown()
		}
	}
}

// modifiers are the words after the first word of an opcode, consumed from the
// front: PTX fixes their order.
type modifiers struct {
	s    *stmt
	left []string
}

func (m *modifiers) unknown() {
	reject(m.s.line, "instruction %q is not known", m.s.name)
}

// take consumes the next modifier if it is one of these, and returns it.
func (m *modifiers) take(of ...string) string {
	if len(m.left) == 0 || !slices.Contains(of, m.left[0]) {
		return ""
	}
	w := m.left[0]
	m.left = m.left[1:]
	return w
}

// must is take where one of these is required.
func (m *modifiers) must(of ...string) string {
	w := m.take(of...)
	if w == "" {
		m.unknown()
	}
	return w
}

// typ consumes the type, which must be the last modifier.
func (m *modifiers) typ() valueType {
	if len(m.left) != 1 {
		m.unknown()
	}
	ty, ok := types[m.left[0]]
	if !ok {
		m.unknown()
	}
	m.left = nil
	return ty
}

func (m *modifiers) end() {
	if len(m.left) != 0 {
		m.unknown()
	}
}

// needs rejects an instruction that the text's own .version or .target does
// not have, as the driver would.
func (d *decoder) needs(version, target int) {
	if d.text.version < version || d.text.target < target {
		reject(d.line, "needs .version %d.%d and sm_%d", version/10, version%10, target)
	}
}

// pure decodes an instruction that only computes.
func (d *decoder) pure(s *stmt, sp spec) {
	d.args(s, 1+len(sp.src), 1+len(sp.src))
	d.needs(sp.version, sp.target)
	in := inst{op: opALU, fn: sp.fn, e: slotSink}
	if sp.wide {
		d.convert(s, sp, in)
		return
	}
	first := s.args[0]
	if first.second != "" {
		if sp.full == nil {
			reject(s.line, "%s has one destination", s.name)
		}
		in.fn = sp.full
		in.e = d.reg(first.second, 1)
	}
	in.d = d.dest(first, sp.dst)
	slots := [...]*int32{&in.a, &in.b, &in.c, &in.f}
	for i, k := range sp.src {
		o := s.args[1+i]
		if k == kImm {
			if o.kind != argInt {
				reject(s.line, "the last operand must be a literal")
			}
			in.imm = o.value
			continue
		}
		*slots[i] = d.source(o, k, i)
	}
	if d.neg != 0 && !sp.negatable {
		reject(s.line, "%s takes no negated predicate", s.name)
	}
	d.emit(in)
}

// convert decodes cvt: its registers may be wider than its types.
func (d *decoder) convert(s *stmt, sp spec, in inst) {
	dst, src := s.args[0], s.args[1]
	in.d = slotSink
	in.imm = maskOf(64)
	if dst.name != "_" {
		var bits int
		in.d, bits = d.atLeast(dst, sp.dst, sp.dstFloat)
		in.imm = maskOf(bits)
	}
	if src.kind == argName && !src.not {
		if _, ok := d.findReg(src.name); ok {
			in.a, _ = d.atLeast(src, sp.src[0], sp.srcFloat)
			d.emit(in)
			return
		}
	}
	in.a = d.source(src, sp.src[0], 0)
	d.emit(in)
}

// atLeast returns the slot and width of a register that has as many bits as
// the kind, or more if exact is not set.
func (d *decoder) atLeast(o operand, k kind, exact bool) (int32, int) {
	r, ok := d.findReg(o.name)
	if !ok || o.kind != argName || o.not || o.second != "" {
		reject(d.line, "%s is no register", o.name)
	}
	if r.bits < k.bits() || exact && r.bits != k.bits() || r.bits == 1 {
		reject(d.line, "register %s has %d bits where %d are needed", o.name, r.bits, k.bits())
	}
	return r.slot, r.bits
}

// mov decodes plain moves, reads of counters, and packing and unpacking.
func (d *decoder) mov(s *stmt, m *modifiers) {
	ty := m.typ()
	d.args(s, 2, 2)
	k := kindOf(ty.bits)
	dst, src := s.args[0], s.args[1]
	switch {
	case ty.bits == 8:
		m.unknown()
	case dst.kind == argVector || src.kind == argVector:
		if ty.class != 'b' {
			m.unknown()
		}
		d.pack(dst, src, ty.bits)
	case clocks[src.name].bits != 0:
		d.readClock(dst, src.name, ty.bits)
	default:
		in := inst{op: opALU, fn: move, d: d.dest(dst, k), a: d.source(src, k, 0)}
		if d.neg != 0 {
			reject(s.line, "mov of !%s", src.name)
		}
		d.emit(in)
	}
}

// pack decodes mov.b64 d, {a, b} and mov.b64 {a, b}, d.
func (d *decoder) pack(dst, src operand, bits int) {
	if dst.kind == argVector && src.kind == argVector {
		reject(d.line, "both operands are vectors")
	}
	if src.kind == argVector {
		k := kindOf(bits / max(len(src.elems), 1))
		v := d.vector(src, func(o operand, i int) int32 { return d.source(o, k, i) })
		d.emit(inst{op: opALU, fn: packInto, vec: v, imm: uint64(k.bits()), d: d.dest(dst, kindOf(bits))})
		return
	}
	k := kindOf(bits / max(len(dst.elems), 1))
	v := d.vector(dst, func(o operand, _ int) int32 { return d.dest(o, k) })
	d.emit(inst{op: opALU, fn: unpack, vec: v, imm: uint64(k.bits()), a: d.source(src, kindOf(bits), 0)})
}

// vector resolves 2 or 4 elements.
func (d *decoder) vector(o operand, slot func(operand, int) int32) *vector {
	v := &vector{n: len(o.elems)}
	if v.n != 2 && v.n != 4 {
		reject(d.line, "a vector of %d", v.n)
	}
	for i, e := range o.elems {
		v.slot[i] = slot(e, i)
	}
	return v
}

func (d *decoder) branch(s *stmt, in inst) {
	d.args(s, 1, 1)
	if s.args[0].kind != argName {
		reject(s.line, "the target is no label")
	}
	d.jump(in, d.findLabel(s.args[0].name))
}

// brx decodes brx.idx a, list.
func (d *decoder) brx(s *stmt, m *modifiers) {
	m.must("idx")
	m.take("uni")
	m.end()
	d.args(s, 2, 2)
	var list []operand
	for i := len(d.scopes) - 1; i >= 0 && list == nil; i-- {
		list = d.scopes[i].tables[s.args[1].name]
	}
	if list == nil {
		reject(s.line, "no .branchtargets %s", s.args[1].name)
	}
	in := inst{op: opBrx, a: d.source(s.args[0], k32, 0), imm: uint64(len(d.k.tables))}
	d.k.tables = append(d.k.tables, make([]int32, len(list)))
	for i, o := range list {
		d.jumps = append(d.jumps, jump{len(d.k.code), i, d.findLabel(o.name)})
	}
	d.emit(in)
}

// call inlines the called function. Its parameters are the caller's .param
// variables, so nothing is copied. Recursive functions cannot be decoded this
// way.
func (d *decoder) call(s *stmt, m *modifiers) {
	m.take("uni")
	m.end()
	results, name, args := callParts(s)
	f := d.callee(name)
	if len(results) != len(f.results) || len(args) != len(f.params) {
		reject(s.line, "%s takes %d parameters and gives %d results", name, len(f.params), len(f.results))
	}
	vars := map[string]place{}
	for i, v := range append(slices.Clone(f.results), f.params...) {
		o := append(slices.Clone(results), args...)[i]
		p, ok := d.findVar(o.name)
		if o.kind != argName || !ok || p.space != local {
			reject(s.line, "%s is no .param variable of this function", o.name)
		}
		vars[v.name] = p
	}
	end := new(label)
	d.after = append(d.after, end)
	d.enter(f.body, true).vars = vars
	d.function(f)
	d.after = d.after[:len(d.after)-1]
	end.pc = len(d.k.code)
}

func callParts(s *stmt) (results []operand, name string, args []operand) {
	rest := s.args
	if len(rest) > 0 && rest[0].kind == argList {
		results, rest = rest[0].elems, rest[1:]
	}
	if len(rest) == 0 || len(rest) > 2 || rest[0].kind != argName {
		reject(s.line, "a call of this form is not known")
	}
	name = rest[0].name
	if len(rest) == 2 {
		if rest[1].kind != argList {
			reject(s.line, "a call of this form is not known")
		}
		args = rest[1].elems
	}
	return results, name, args
}

func (d *decoder) callee(name string) *function {
	for _, f := range d.calls {
		if f.name == name {
			reject(d.line, "%s calls itself", name)
		}
	}
	for _, f := range d.text.funcs {
		if f.name == name && f.defined && !f.entry {
			return f
		}
	}
	reject(d.line, "function %s is not defined", name)
	return nil
}
