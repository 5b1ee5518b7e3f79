package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in a simd.Stairs, and in an entry of its table.
const (
	offFlat  = 232
	offTable = 240

	offStairAt    = 0
	offStairShift = 8
	offStairPage  = 16
)

// stairs emits the searches of a tree whose levels are simd.Steps.
func stairs(isa vectors) {
	for _, w := range []width{32, 64} {
		in := numbers{}
		rank(in, isa, w, linear)
		down(in, isa, w)
		find(in, isa, w)
		get(in, isa, w)
	}
}

// numbers is the way of simd.Stairs: nodes are identified by 8 times their
// number on their level.
type numbers struct{}

func (numbers) name() string { return "Stairs" }
func (numbers) table() int   { return offTable }
func (numbers) stride() int  { return 32 }

func (n numbers) node(_ *routine, entry Register, ahead int, x GPVirtual) Mem {
	field := func(o int) Mem { return Mem{Base: entry, Disp: ahead*n.stride() + o} }
	page := GP64()
	MOVQ(field(offStairShift), page)
	SHRXQ(page, x, page)
	IMULQ(field(offStairPage), page)
	ADDQ(field(offStairAt), page)
	return Mem{Base: page, Index: x, Scale: 8}
}

func (numbers) child(r *routine, _ Register, x, n GPVirtual) {
	fan := 3 // a node has as many children as keys
	if r.w == 32 {
		fan = 4
	}
	SHLQ(Imm(uint64(fan)), x)
	LEAQ(Mem{Base: x, Index: n, Scale: 8}, x)
}

// near walks the levels of the root's page, the only page in its row.
func (n numbers) near(r *routine) func(q query, entry Register, x GPVirtual) {
	end, at := AllocLocal(8), GP64()
	r.entryOf(offFlat, at)
	MOVQ(at, end)
	return func(q query, entry Register, x GPVirtual) {
		CMPQ(entry, end)
		JAE(LabelRef("paged"))
		Label("flat")
		at, count := GP64(), GP64()
		MOVQ(Mem{Base: entry, Disp: offStairAt}, at)
		r.count(q, nil, Mem{Base: at, Index: x, Scale: 8}, count)
		n.child(r, entry, x, count)
		ADDQ(Imm(uint64(n.stride())), entry)
		CMPQ(entry, end)
		JNE(LabelRef("flat"))
		Label("paged")
	}
}

func (numbers) leaf(r *routine, x GPVirtual) {
	ADDQ(r.field(offLeaves), x)
	r.clamp(x)
}
