package ptx

import (
	"math"
	"strings"
)

// place is the location of a variable: an address in its own space.
type place struct {
	space space
	addr  uint64
	dyn   bool // addr is relative to the start of dynamic shared memory
}

// register is a name for one slot or a row of them.
type register struct {
	slot  int32
	count int32 // 0 for a single one
	bits  int
}

// scope is one pair of braces; names inside hide those outside.
type scope struct {
	regs   map[string]register
	vars   map[string]place
	labels map[string]*label
	tables map[string][]operand
	root   bool // the braces of a function: the outer scope is the module
}

type label struct{ pc int }

// jump is a branch whose target is known only at the end.
type jump struct {
	inst  int
	entry int // index in the table of opBrx, -1 for imm
	to    *label
}

// decoder turns one entry point, with the device functions it calls inlined,
// into flat code.
type decoder struct {
	text     *text
	globals  map[string]place // module variables that have an address
	k        *kernel
	consts   map[uint64]int32
	named    map[string]int32 // special registers
	statics  map[string]place // module-level shared variables in use
	scopes   []*scope
	jumps    []jump
	dynamic  []int32 // constants relative to dynBase
	dynAlign int     // alignment of dynamic shared memory
	calls    []*function
	after    []*label // where ret goes, by call depth
	line     int
	// Bit i is set if source i of the current instruction is a negated
	// predicate.
	neg uint8
}

// decodeEntry decodes an entry point. globals holds the address of every
// .global and .const variable.
func decodeEntry(t *text, f *function, globals map[string]place) *kernel {
	d := newDecoder(t, f, globals)
	sc := d.enter(f.body, true)
	at := paramBase
	for _, v := range f.params {
		at = roundUp(at, v.align)
		sc.vars[v.name] = place{space: param, addr: uint64(at)}
		at += v.bytes()
	}
	d.k.paramBytes = at - paramBase
	if d.k.paramBytes > maxParams {
		reject(f.line, "%s: %d bytes of parameters", f.name, d.k.paramBytes)
	}
	d.function(f)
	return d.finish()
}

// checkFunction decodes a device function by itself, only to find errors.
func checkFunction(t *text, f *function, globals map[string]place) {
	d := newDecoder(t, f, globals)
	d.after = append(d.after, new(label))
	sc := d.enter(f.body, true)
	for _, v := range append(f.results, f.params...) {
		sc.vars[v.name] = d.takeLocal(v)
	}
	d.function(f)
	d.finish()
}

func newDecoder(t *text, f *function, globals map[string]place) *decoder {
	d := &decoder{
		text: t, globals: globals, line: f.line,
		consts:  map[uint64]int32{0: slotZero},
		named:   map[string]int32{},
		statics: map[string]place{},
		k:       &kernel{name: f.name, maxThreads: f.maxThreads, reqThreads: f.reqThreads},
	}
	d.k.template = make([]uint64, firstRegist)
	d.k.staticBytes = sharedBase
	d.k.localBytes = localBase
	d.dynAlign = 16
	return d
}

// function decodes a body whose scope has been entered, and leaves that scope.
func (d *decoder) function(f *function) {
	d.calls = append(d.calls, f)
	d.statements(f.body)
	d.ret()
	d.calls = d.calls[:len(d.calls)-1]
	d.scopes = d.scopes[:len(d.scopes)-1]
}

// ret leaves a function: by an exit in the outermost function, otherwise by a
// jump to after the call.
func (d *decoder) ret() {
	if n := len(d.after); n > 0 {
		d.jump(inst{op: opBra}, d.after[n-1])
		return
	}
	d.emit(inst{op: opExit})
}

// finish sets what was not known before the end.
func (d *decoder) finish() *kernel {
	k := d.k
	k.dynBase = roundUp(k.staticBytes, d.dynAlign)
	for _, slot := range d.dynamic {
		k.template[slot] += uint64(k.dynBase)
	}
	for _, j := range d.jumps {
		if j.entry >= 0 {
			k.tables[k.code[j.inst].imm][j.entry] = int32(j.to.pc)
		} else {
			k.code[j.inst].imm = uint64(j.to.pc)
		}
	}
	d.emit(inst{op: opExit}) // a label may be at the very end
	k.localBytes -= localBase
	k.interleave()
	return k
}

// interleave turns slots into offsets in the registers of a warp, in which
// lanes are adjacent: lanes that run together then touch the same cache lines.
func (k *kernel) interleave() {
	for i := range k.code {
		in := &k.code[i]
		for _, slot := range []*int32{&in.d, &in.e, &in.a, &in.b, &in.c, &in.f} {
			*slot *= warpSize
		}
		if in.vec != nil {
			for j := range in.vec.slot {
				in.vec.slot[j] *= warpSize
			}
		}
	}
	for i := range k.specials {
		k.specials[i].slot *= warpSize
	}
}

// enter opens a scope and declares its labels, so that they can be used before
// they appear.
func (d *decoder) enter(body []*stmt, root bool) *scope {
	sc := &scope{
		regs: map[string]register{}, vars: map[string]place{},
		labels: map[string]*label{}, tables: map[string][]operand{}, root: root,
	}
	for _, s := range body {
		switch s.kind {
		case stmtLabel:
			if sc.labels[s.name] != nil {
				reject(s.line, "label %s stands twice", s.name)
			}
			sc.labels[s.name] = new(label)
		case stmtTargets:
			sc.tables[s.name] = s.args
		}
	}
	d.scopes = append(d.scopes, sc)
	return sc
}

func (d *decoder) statements(body []*stmt) {
	sc := d.scopes[len(d.scopes)-1]
	for _, s := range body {
		d.line = s.line
		switch s.kind {
		case stmtInst:
			d.guarded(s)
		case stmtLabel:
			sc.labels[s.name].pc = len(d.k.code)
		case stmtRegs:
			d.declareRegs(sc, s)
		case stmtVar:
			sc.vars[s.name] = d.declareVar(s.v)
		case stmtBlock:
			d.enter(s.body, false)
			d.statements(s.body)
			d.scopes = d.scopes[:len(d.scopes)-1]
		}
	}
}

func (d *decoder) declareRegs(sc *scope, s *stmt) {
	n := max(s.count, 1)
	slot := int32(len(d.k.template))
	if _, ok := sc.regs[s.name]; ok || len(d.k.template)+n > maxSlots {
		reject(s.line, "register %s stands twice, or too many registers", s.name)
	}
	sc.regs[s.name] = register{slot, int32(s.count), s.bits}
	d.k.template = append(d.k.template, make([]uint64, n)...)
	d.k.noise = append(d.k.noise, noise{slot, slot + int32(n), maskOf(s.bits)})
}

// declareVar assigns a variable of a function its address. The .param
// variables of a call live in the thread's local memory.
func (d *decoder) declareVar(v *variable) place {
	if v.init != nil || v.count == 0 && v.space != shared {
		reject(v.line, "%s: cannot stand in a function", v.name)
	}
	switch v.space {
	case local, param:
		return d.takeLocal(v)
	case shared:
		return d.takeShared(v)
	}
	reject(v.line, "%s: a %v variable in a function", v.name, v.space)
	return place{}
}

func (d *decoder) takeLocal(v *variable) place {
	at := roundUp(d.k.localBytes, v.align)
	d.k.localBytes = at + v.bytes()
	if d.k.localBytes > maxLocal {
		reject(v.line, "%s: more than %d bytes of local memory", v.name, maxLocal)
	}
	return place{space: local, addr: uint64(at)}
}

func (d *decoder) takeShared(v *variable) place {
	if v.count == 0 {
		d.dynAlign = max(d.dynAlign, v.align)
		return place{space: shared, dyn: true}
	}
	at := roundUp(d.k.staticBytes, v.align)
	d.k.staticBytes = at + v.bytes()
	if d.k.staticBytes-sharedBase > maxShared {
		reject(v.line, "%s: more than %d bytes of shared memory", v.name, maxShared)
	}
	return place{space: shared, addr: uint64(at)}
}

// guarded decodes an instruction with its @p: a branch over it, or the branch
// itself if it is one.
func (d *decoder) guarded(s *stmt) {
	if s.guard == "" {
		d.instruction(s)
		return
	}
	p := d.reg(s.guard, 1)
	if head, _, _ := strings.Cut(s.name, "."); head == "bra" {
		op := opBraIf
		if s.not {
			op = opBraUnless
		}
		d.branch(s, inst{op: op, a: p})
		return
	}
	over := new(label)
	op := opGuardUnless
	if s.not {
		op = opGuardIf
	}
	d.jump(inst{op: op, a: p}, over)
	d.instruction(s)
	over.pc = len(d.k.code)
}

func (d *decoder) emit(in inst) {
	in.line = int32(d.line)
	in.neg = d.neg
	d.neg = 0
	switch in.op {
	case opLoad, opStore, opAtom, opCopy:
		in.site = int32(d.k.sites)
		d.k.sites++
	}
	d.k.code = append(d.k.code, in)
	if len(d.k.code) > maxCode {
		reject(d.line, "more than %d instructions", maxCode)
	}
}

func (d *decoder) jump(in inst, to *label) {
	d.jumps = append(d.jumps, jump{len(d.k.code), -1, to})
	d.emit(in)
}

// reg returns the slot of a register that must have the given number of bits.
func (d *decoder) reg(name string, bits int) int32 {
	r, ok := d.findReg(name)
	if !ok {
		reject(d.line, "register %s is not known", name)
	}
	if r.bits != bits {
		reject(d.line, "register %s has %d bits where %d are needed", name, r.bits, bits)
	}
	return r.slot
}

func (d *decoder) findReg(name string) (register, bool) {
	stem := strings.TrimRight(name, "0123456789")
	index, _ := parseNumber(name[len(stem):])
	for i := len(d.scopes) - 1; i >= 0; i-- {
		sc := d.scopes[i]
		if r, ok := sc.regs[name]; ok && r.count == 0 {
			return r, true
		}
		if r, ok := sc.regs[stem]; ok && stem != name && index.value < uint64(r.count) {
			return register{r.slot + int32(index.value), 0, r.bits}, true
		}
		if sc.root {
			break
		}
	}
	return register{}, false
}

func (d *decoder) findVar(name string) (place, bool) {
	for i := len(d.scopes) - 1; i >= 0; i-- {
		if v, ok := d.scopes[i].vars[name]; ok {
			return v, true
		}
		if d.scopes[i].root {
			break
		}
	}
	if v, ok := d.globals[name]; ok {
		return v, true
	}
	if v, ok := d.statics[name]; ok {
		return v, true
	}
	for _, v := range d.text.vars {
		if v.name == name && v.space == shared {
			d.statics[name] = d.takeShared(v)
			return d.statics[name], true
		}
	}
	return place{}, false
}

func (d *decoder) findLabel(name string) *label {
	for i := len(d.scopes) - 1; i >= 0; i-- {
		if l, ok := d.scopes[i].labels[name]; ok {
			return l
		}
		if d.scopes[i].root {
			break
		}
	}
	reject(d.line, "label %s is not known", name)
	return nil
}

// constant returns the slot that holds a value.
func (d *decoder) constant(v uint64) int32 {
	slot, ok := d.consts[v]
	if !ok {
		slot = d.newSlot(v)
		d.consts[v] = slot
	}
	return slot
}

func (d *decoder) newSlot(v uint64) int32 {
	d.k.template = append(d.k.template, v)
	return int32(len(d.k.template) - 1)
}

// symbol returns the slot that holds a variable's address plus an offset.
func (d *decoder) symbol(p place, offset uint64) int32 {
	if !p.dyn {
		return d.constant(p.addr + offset)
	}
	slot := d.newSlot(p.addr + offset)
	d.dynamic = append(d.dynamic, slot)
	return slot
}

// source returns the slot of an operand read as kind k: a register, a literal,
// a special register, or the address of a variable.
func (d *decoder) source(o operand, k kind, index int) int32 {
	switch o.kind {
	case argInt, argFloat32, argFloat64:
		return d.constant(literalAs(o, k))
	case argName:
	default:
		reject(d.line, "operand %d is of the wrong form", index+1)
	}
	if o.second != "" {
		reject(d.line, "%s|%s is no source", o.name, o.second)
	}
	if o.not {
		if k != kPred {
			reject(d.line, "!%s is no predicate", o.name)
		}
		d.neg |= 1 << index
	}
	if _, ok := d.findReg(o.name); ok {
		return d.reg(o.name, k.bits())
	}
	if bits, ok := specialBits(o.name); ok {
		if bits != k.bits() {
			reject(d.line, "%s has %d bits where %d are needed", o.name, bits, k.bits())
		}
		return d.special(o.name)
	}
	if o.name == "WARP_SZ" {
		return d.constant(warpSize)
	}
	v, ok := d.findVar(o.name)
	if !ok {
		reject(d.line, "%s is not known", o.name)
	}
	if k.bits() < 32 {
		reject(d.line, "address of %s in %d bits", o.name, k.bits())
	}
	return d.symbol(v, o.value)
}

// literalAs returns the bits of a literal in an operand of kind k. A float
// literal takes the operand's own format.
func literalAs(o operand, k kind) uint64 {
	v := o.value
	switch {
	case o.kind == argFloat64 && k.bits() == 32:
		v = uint64(math.Float32bits(float32(math.Float64frombits(v))))
	case o.kind == argFloat32 && k.bits() == 64:
		v = math.Float64bits(float64(math.Float32frombits(uint32(v))))
	}
	if k == kPred && v != 0 {
		return 1
	}
	return v & maskOf(k.bits())
}

// dest returns the slot of a destination register; "_" is the sink.
func (d *decoder) dest(o operand, k kind) int32 {
	if o.kind != argName || o.not || o.value != 0 {
		reject(d.line, "the destination is no register")
	}
	if o.name == "_" {
		return slotSink
	}
	return d.reg(o.name, k.bits())
}

// special returns the slot of a register such as %tid.x.
func (d *decoder) special(name string) int32 {
	slot, ok := d.named[name]
	if !ok {
		slot = d.newSlot(0)
		d.named[name] = slot
		d.k.specials = append(d.k.specials, special{slot, name})
	}
	return slot
}

// args checks the number of operands.
func (d *decoder) args(s *stmt, least, most int) {
	if len(s.args) < least || len(s.args) > most {
		reject(s.line, "%s with %d operands", s.name, len(s.args))
	}
}
