package ptx

import "sync"

// kind is the kind of register that an operand must be.
type kind uint8

const (
	kPred kind = iota
	k8
	k16
	k32
	k64
	kImm // a literal, kept in inst.imm
)

func (k kind) bits() int { return [...]int{1, 8, 16, 32, 64, 64}[k] }

func kindOf(bits int) kind {
	switch bits {
	case 1:
		return kPred
	case 8:
		return k8
	case 16:
		return k16
	case 32:
		return k32
	}
	return k64
}

// compute implements an opALU. A register of n bits holds its value in the low
// n bits of its slot and zeros above; every compute preserves that.
type compute = func(r []uint64, in *inst)

// spec tells how an instruction that only computes is written and executed.
type spec struct {
	fn   compute
	full compute // the form with a second destination, p|q; nil if there is none
	dst  kind
	src  []kind

	negatable          bool // the predicate among the sources may be !p
	wide               bool // cvt: registers may be wider than the types
	dstFloat, srcFloat bool // cvt: which types must match exactly
	version, target    int  // minimum that the text must declare, 0 for nothing beyond sm_70
}

type table map[string]spec

func (t table) put(name string, fn compute, dst kind, src ...kind) {
	if _, ok := t[name]; ok {
		panic("ptx: instruction entered twice: " + name)
	}
	t[name] = spec{fn: fn, dst: dst, src: src}
}

// registry returns every instruction that only computes, by its full name.
var registry = sync.OnceValue(func() table {
	t := table{}
	t.integers()
	t.carries()
	t.bitwise()
	t.bitFields()
	t.comparisons()
	t.selections()
	t.floats()
	t.conversions()
	return t
})

func move(r []uint64, in *inst) { r[in.d] = r[in.a] }

// packInto joins elements of imm bits each, the first in the lowest bits.
func packInto(r []uint64, in *inst) {
	var v uint64
	for i := range in.vec.n {
		v |= r[in.vec.slot[i]] << (uint(i) * uint(in.imm))
	}
	r[in.d] = v
}

// unpack is packInto's inverse.
func unpack(r []uint64, in *inst) {
	v := r[in.a]
	for i := range in.vec.n {
		r[in.vec.slot[i]] = v >> (uint(i) * uint(in.imm)) & maskOf(int(in.imm))
	}
}

// isWithin implements isspacep.
func isWithin(r []uint64, in *inst) {
	s, _ := window(r[in.a])
	r[in.d] = bit(s == space(in.imm))
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
