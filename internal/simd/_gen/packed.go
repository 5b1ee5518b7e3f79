package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Packed and of a row.
const (
	packTable    = 0
	packWords    = 8
	packLast     = 16
	packEnd      = 24
	packLen      = 32
	packDistance = 40
	packShift    = 48
	packVals     = 56
	packValSize  = 64
	packRows     = 72

	rowBit   = 0
	rowFirst = 64
	rowRight = 128
	rowMask  = 192
)

// packed emits the routines that search pages of packed differences.
func packed(isa vectors) {
	for _, w := range []width{32, 64} {
		packedRank(isa, w, "", (*packer).staircase)
		packedFind(isa, w, "", (*packer).staircase)
		if isa.name() == "AVX512" {
			packedRank(isa, w, "Eights", (*packer).eights)
			packedFind(isa, w, "Eights", (*packer).eights)
		}
		packedSeek(isa, w)
		unpack(isa, w)
	}
}

// packer is the state that all steps of one routine share.
type packer struct {
	isa    vectors
	w      width // width of the keys
	t      Register
	sign   consts     // AVX2: sign bits of 32-bit lanes
	sign64 consts     // and of 64-bit lanes
	dword  VecVirtual // 32 in every lane
	below  VecVirtual // 31 in every lane
	one    VecVirtual // 1 in every lane
	stride int        // bytes between two words of a slot
	labels int
}

// A slot keeps what is known of a query between two of its steps: four words,
// each in an array of its own, so that a vector can set eight of them.
const (
	slotAt   = 0 // address of the page, then of the group
	slotRow  = 1 // address of the row of its width
	slotD    = 2 // the query's difference, 0 if it is below the page's least
	slotBits = 3 // width; in the upper half, slotBelow and slotSame
	slots    = 4

	slotBelow = 4 // byte in that word: 16 bits, differences that are below in any case
	slotSame  = 6 // and 16 bits, differences that may be equal

	slotCount = 128
)

// in returns the operand for a word of a slot.
func (p *packer) in(slot Register, word int) Mem { return Mem{Base: slot, Disp: word * p.stride} }

func beginPacked(isa vectors, w width, name, signature, doc string) *packer {
	TEXT(fmt.Sprintf("%s%d%s", name, w, isa.name()), NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
	p := &packer{isa: isa, w: w, stride: 8 * slotCount}
	p.t = Load(Param("t"), GP64())
	p.constants()
	return p
}

func (p *packer) constants() {
	p.sign = p.isa.prepare(32)
	if _, ok := p.isa.(avx2); ok && p.w == 64 {
		p.sign64 = p.isa.prepare(64)
	}
	p.one, p.below, p.dword = p.vector(), p.vector(), p.vector()
	p.ones(p.dword)
	VPSRLD(Imm(31), p.dword, p.one)
	VPSRLD(Imm(27), p.dword, p.below)
	VPADDD(p.below, p.one, p.dword)
}

// vector returns a vector register of the instruction set's width.
func (p *packer) vector() VecVirtual {
	if p.is512() {
		return ZMM()
	}
	return YMM()
}

// ones sets all bits of a vector.
func (p *packer) ones(v VecVirtual) {
	if p.is512() {
		VPTERNLOGD(Imm(0xff), v, v, v)
		return
	}
	VPCMPEQD(v, v, v)
}

func (p *packer) field(offset int) Mem { return Mem{Base: p.t, Disp: offset} }

func (p *packer) label(name string) string {
	p.labels++
	return fmt.Sprintf("%s%d", name, p.labels)
}

func (p *packer) is512() bool { _, ok := p.isa.(avx512); return ok }

// cut clamps x to a limit: a number from a damaged table can be anything.
func (p *packer) cut(x GPVirtual, limit Mem) {
	most := GP64()
	MOVQ(limit, most)
	CMPQ(x, most)
	CMOVQHI(most, x)
}

// enter reads a page's entry and fills a slot for the key.
func (p *packer) enter(page, key, slot GPVirtual) (at GPVirtual) {
	entry, code, bits := GP64(), GP64(), GP64()
	at = GP64()
	MOVQ(page, entry)
	SHLQ(Imm(4), entry)
	ADDQ(p.field(packTable), entry)
	MOVQ(Mem{Base: entry, Disp: 8}, code)
	MOVQ(code, at)
	SHRQ(Imm(8), at)
	p.cut(at, p.field(packEnd))
	SHLQ(Imm(3), at)
	ADDQ(p.field(packWords), at)
	MOVQ(at, p.in(slot, slotAt))
	MOVBLZX(code.As8(), bits.As32())
	p.most(bits)
	MOVL(bits.As32(), p.in(slot, slotBits))
	d, flags, none := GP64(), GP64(), GP64()
	XORL(none.As32(), none.As32())
	MOVL(U32(0xffff<<16), flags.As32()) // none is below, any may be equal
	MOVQ(key, d)
	SUBQ(Mem{Base: entry}, d)
	CMOVQCS(none, d)
	CMOVLCS(none.As32(), flags.As32())
	MOVQ(d, p.in(slot, slotD))
	if p.w == 64 {
		// A difference that needs more bits than the page has is above all
		// others. The shift takes the width modulo 64: with width 64, none
		// does.
		beyond, all := GP64(), GP64()
		MOVL(U32(0xffff), all.As32())
		MOVL(bits.As32(), beyond.As32())
		ANDL(U32(63), beyond.As32())
		CMPL(bits.As32(), Imm(64))
		CMOVQEQ(none, d)
		SHRXQ(beyond, d, d)
		TESTQ(d, d)
		CMOVLNE(all.As32(), flags.As32())
	}
	MOVL(flags.As32(), p.in(slot, slotBits).Offset(slotBelow))
	SHLL(Imm(8), bits.As32())
	ADDQ(p.field(packRows), bits)
	MOVQ(bits, p.in(slot, slotRow))
	return at
}

// most replaces invalid widths by the greatest that keys may have.
func (p *packer) most(bits GPVirtual) {
	most := GP64()
	MOVL(U32(uint32(p.w)), most.As32())
	CMPL(bits.As32(), Imm(32))
	CMOVLHI(most.As32(), bits.As32())
}

// compare returns a bit for each of the 16 differences at a slot's address
// that is below the query's and, if equal is set, a bit for each equal one.
func (p *packer) compare(slot, at, bits GPVirtual, group, equal bool) (below, same GPVirtual) {
	below, same = GP64(), GP64()
	if p.w == 32 {
		p.narrow(slot, at, bits, below, same, group, equal)
	} else {
		broad, done := p.label("wide"), p.label("compared")
		CMPL(bits.As32(), Imm(32))
		JHI(LabelRef(broad))
		p.narrow(slot, at, bits, below, same, group, equal)
		JMP(LabelRef(done))
		Label(broad)
		p.broad(slot, at, below, same, equal)
		Label(done)
		ORL(p.in(slot, slotBits).Offset(slotBelow), below.As32())
	}
	if equal {
		ANDW(p.in(slot, slotBits).Offset(slotSame), same.As16())
	}
	return below, same
}

// toGroup replaces the number of a page by that of the group in it that holds
// the query's lower bound, counted over all pages, and prefetches it.
func (p *packer) toGroup(x, slot GPVirtual, fetch bool) {
	at, bits := p.slot(slot)
	below, _ := p.compare(slot, at, bits, false, false)
	n := GP64()
	ANDL(U32(0x7fff), below.As32()) // a query above all is in the last group
	POPCNTL(below.As32(), n.As32())
	SHLQ(Imm(4), x)
	ORQ(n, x)
	INCL(n.As32())
	IMULL(bits.As32(), n.As32())
	LEAQ(Mem{Base: at, Index: n, Scale: 2}, at)
	MOVQ(at, p.in(slot, slotAt))
	if fetch {
		PREFETCHT1(Mem{Base: at})
		PREFETCHT1(Mem{Base: at, Index: bits, Scale: 2, Disp: -1})
	}
}

// slot reads a slot's address and width.
func (p *packer) slot(slot GPVirtual) (at, bits GPVirtual) {
	at, bits = GP64(), GP64()
	MOVQ(p.in(slot, slotAt), at)
	MOVL(p.in(slot, slotBits), bits.As32())
	return at, bits
}

// fromGroup replaces the number of a group by the rank of the query's lower
// bound, and returns bits for differences that equal the query's.
func (p *packer) fromGroup(x, slot GPVirtual, equal bool) (same GPVirtual) {
	at, bits := p.slot(slot)
	below, same := p.compare(slot, at, bits, true, equal)
	MOVWLZX(below.As16(), below.As32())
	POPCNTL(below.As32(), below.As32())
	SHLQ(Imm(4), x)
	ADDQ(below, x)
	return same
}

// miss replaces a rank by -1 if the query is not there.
func (p *packer) miss(x, same GPVirtual) {
	none := GP64()
	MOVQ(I32(-1), none)
	CMPQ(x, p.field(packLen))
	CMOVQCC(none, x)
	TESTW(same.As16(), same.As16())
	CMOVQEQ(none, x)
}

// staircase emits the loop over a batch. The oldest query is in its group, the
// next one in its page, the next waits for its page, and the newest for the
// entry of its page.
func (p *packer) staircase(atGroup func(x, slot GPVirtual)) {
	keys := Load(Param("keys"), GP64()).(GPVirtual)
	n := Load(Param("n"), GP64()).(GPVirtual)
	out := Load(Param("out"), GP64()).(GPVirtual)
	room := Load(Param("room"), GP64()).(GPVirtual)
	place := func(i Register) Mem { return Mem{Base: out, Index: i, Scale: 8} }
	load := func(i GPVirtual) (x, slot GPVirtual) {
		x, slot = GP64(), GP64()
		MOVQ(place(i), x)
		MOVL(i.As32(), slot.As32())
		ANDL(U32(slotCount-1), slot.As32())
		LEAQ(Mem{Base: room, Index: slot, Scale: 8}, slot)
		return x, slot
	}
	distance, end, count := AllocLocal(8), AllocLocal(8), AllocLocal(8)
	MOVQ(n, count)
	d, steps := GP64(), GP64()
	MOVQ(p.field(packDistance), d)
	CMPQ(d, n) // a short batch needs no long staircase
	CMOVQHI(n, d)
	MOVQ(d, distance)
	LEAQ(Mem{Base: d, Index: d, Scale: 2}, steps)
	ADDQ(n, steps)
	MOVQ(steps, end)
	t, i := GP64(), GP64()
	XORL(t.As32(), t.As32())
	stage := func(name string, do func()) {
		CMPQ(i, count) // unsigned: not yet started, or already done
		JAE(LabelRef(name))
		do()
		Label(name)
		SUBQ(distance, i)
	}

	Label("next")
	MOVQ(t, i)
	stage("waits", func() {
		x, shift, at := GP64(), GP64(), GP64()
		MOVQ(place(i), x)
		MOVQ(p.field(packShift), shift)
		SHRXQ(shift, x, x)
		p.cut(x, p.field(packLast))
		MOVQ(x, place(i))
		MOVQ(x, at)
		SHLQ(Imm(4), at)
		ADDQ(p.field(packTable), at)
		PREFETCHT1(Mem{Base: at})
	})
	stage("comes", func() {
		x, slot := load(i)
		key := GP64()
		if p.w == 32 {
			MOVL(Mem{Base: keys, Index: i, Scale: 4}, key.As32())
		} else {
			MOVQ(Mem{Base: keys, Index: i, Scale: 8}, key)
		}
		at := p.enter(x, key, slot)
		PREFETCHT1(Mem{Base: at})
	})
	stage("enters", func() {
		x, slot := load(i)
		p.toGroup(x, slot, true)
		MOVQ(x, place(i))
	})
	stage("ends", func() {
		x, slot := load(i)
		atGroup(x, slot)
		MOVQ(x, place(i))
	})
	INCQ(t)
	CMPQ(t, end)
	JB(LabelRef("next"))
}

const packedSignature = "func(t *byte, keys *byte, n int, out *int, room *byte)"

// loop emits the loop over a batch and calls atGroup for a query in its group.
type loop func(p *packer, atGroup func(x, slot GPVirtual))

func packedRank(isa vectors, w width, how string, all loop) {
	p := beginPacked(isa, w, "packedRank"+how, packedSignature, "Does what PackedRank does in Go; n must be at least 1"+multiple(how)+".")
	all(p, func(x, slot GPVirtual) {
		p.fromGroup(x, slot, false)
		p.cut(x, p.field(packLen))
	})
	finish()
}

func multiple(how string) string {
	if how == "" {
		return ""
	}
	return " and a multiple of 8"
}

func packedFind(isa vectors, w width, how string, all loop) {
	p := beginPacked(isa, w, "packedFind"+how, packedSignature, "Does what PackedFind does in Go; n must be at least 1"+multiple(how)+".")
	all(p, func(x, slot GPVirtual) {
		same := p.fromGroup(x, slot, true)
		p.miss(x, same)
		at := GP64()
		MOVQ(p.field(packValSize), at)
		IMULQ(x, at)
		ADDQ(p.field(packVals), at)
		TESTQ(x, x)
		CMOVQMI(slot, at) // a miss has no value to fetch: take a line that exists
		PREFETCHT1(Mem{Base: at})
	})
	finish()
}

func packedSeek(isa vectors, w width) {
	p := beginPacked(isa, w, "packedSeek", "func(t *byte, page uint64, key uint64) (rank int, equal bool)", "Does what inPage does; page must be at most Last.")
	x := Load(Param("page"), GP64()).(GPVirtual)
	key := Load(Param("key"), GP64()).(GPVirtual)
	p.stride = 8
	slot := GP64()
	LEAQ(AllocLocal(8*slots), slot)
	p.enter(x, key, slot)
	p.toGroup(x, slot, false)
	same := p.fromGroup(x, slot, true)
	rank := GP64()
	MOVQ(x, rank)
	p.cut(rank, p.field(packLen))
	Store(rank, ReturnIndex(0))
	p.miss(x, same)
	NOTQ(x)
	SHRQ(Imm(63), x)
	Store(x.As8(), ReturnIndex(1))
	finish()
}
