package ptx

import "strings"

// atomicOp is a read-modify-write: it computes the new value from the old one
// and the operands, all in the low bits.
type atomicOp struct {
	name string // operation and type
	bits int
	next func(old, b, c uint64) uint64
}

// atomics lists every operation of atom and red. There is no add.s64 in PTX.
var atomics = []atomicOp{
	{"add.u32", 32, func(old, b, _ uint64) uint64 { return uint64(uint32(old + b)) }},
	{"add.s32", 32, func(old, b, _ uint64) uint64 { return uint64(uint32(old + b)) }},
	{"add.u64", 64, func(old, b, _ uint64) uint64 { return old + b }},
	{"add.f32", 32, func(old, b, _ uint64) uint64 { return bits32(f32(old) + f32(b)) }},
	{"add.f64", 64, func(old, b, _ uint64) uint64 { return bits64(f64(old) + f64(b)) }},
	{"min.u32", 32, func(old, b, _ uint64) uint64 { return min(old, b) }},
	{"max.u32", 32, func(old, b, _ uint64) uint64 { return max(old, b) }},
	{"min.u64", 64, func(old, b, _ uint64) uint64 { return min(old, b) }},
	{"max.u64", 64, func(old, b, _ uint64) uint64 { return max(old, b) }},
	{"min.s32", 32, func(old, b, _ uint64) uint64 { return uint64(uint32(min(s32(old), s32(b)))) }},
	{"max.s32", 32, func(old, b, _ uint64) uint64 { return uint64(uint32(max(s32(old), s32(b)))) }},
	{"min.s64", 64, func(old, b, _ uint64) uint64 { return uint64(min(int64(old), int64(b))) }},
	{"max.s64", 64, func(old, b, _ uint64) uint64 { return uint64(max(int64(old), int64(b))) }},
	{"and.b32", 32, func(old, b, _ uint64) uint64 { return old & b }},
	{"and.b64", 64, func(old, b, _ uint64) uint64 { return old & b }},
	{"or.b32", 32, func(old, b, _ uint64) uint64 { return old | b }},
	{"or.b64", 64, func(old, b, _ uint64) uint64 { return old | b }},
	{"xor.b32", 32, func(old, b, _ uint64) uint64 { return old ^ b }},
	{"xor.b64", 64, func(old, b, _ uint64) uint64 { return old ^ b }},
	{"exch.b32", 32, func(_, b, _ uint64) uint64 { return b }},
	{"exch.b64", 64, func(_, b, _ uint64) uint64 { return b }},
	{"cas.b16", 16, compareAndSwap},
	{"cas.b32", 32, compareAndSwap},
	{"cas.b64", 64, compareAndSwap},
	{"inc.u32", 32, func(old, b, _ uint64) uint64 {
		if old >= b {
			return 0
		}
		return old + 1
	}},
	{"dec.u32", 32, func(old, b, _ uint64) uint64 {
		if old == 0 || old > b {
			return b
		}
		return old - 1
	}},
}

// compares reports whether the operation is a cas, which writes nothing if the
// old value is not b.
func (a *atomicOp) compares() bool { return strings.HasPrefix(a.name, "cas.") }

func compareAndSwap(old, b, c uint64) uint64 {
	if old == b {
		return c
	}
	return old
}

func (m *machine) atomic(t *thread, r []uint64, in *inst) bool {
	addr := r[in.a] + in.imm
	b := m.at(t, in, addr, true)
	if b == nil {
		return false
	}
	if m.races {
		m.strong(t, in, addr, true, true)
	}
	old := element(b, in)
	setElement(b, in.width, atomics[in.what].next(old, r[in.b], r[in.c]))
	r[in.d] = old
	return true
}
