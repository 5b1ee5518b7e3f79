package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The fields of simd.MergeRoom, for codes of each width.
func (w width) roomVals() int  { return w.bytes() * mergeRow }
func (w width) roomFlags() int { return 2 * w.roomVals() }
func (w width) roomPivots() int {
	return w.roomFlags() + mergeFlags
}
func (w width) roomSpare() int { return w.roomPivots() + mergePivots*w.bytes() }

const (
	mergeRow    = 512 + 16       // codes in a row of simd.MergeRoom
	mergeFlags  = 512 + 512      // a leaf's entries and those that are put
	mergePivots = 256 / (64 / 8) // lines of 64 bytes that a leaf's keys fill
)

// regularMerge emits the merge of a leaf's entries with pairs in key order. A pair's
// place among the entries is counted, first among the last keys of each line of 64
// bytes, then in one line: nothing there waits for the pair before. A flag for each
// place of the result says which side it comes from, and both sides are spread over
// a line at a time.
func regularMerge(w width) {
	lanes := w.keys()
	size := uint8(w.bytes())
	TEXT(fmt.Sprintf("mergeRegular%dAVX512", w), NOSPLIT, "func(keys, vals, have, haveVals *byte, n int, put, putVals *byte, m int, room *byte) int")
	Pragma("noescape")
	Doc("Does what mergeRegularGo does; behind the entries there must be room for 64 bytes, and m must be from 1 to 512.")
	have, haveVals := Load(Param("have"), GP64()).(GPVirtual), Load(Param("haveVals"), GP64()).(GPVirtual)
	n, m := Load(Param("n"), GP64()).(GPVirtual), Load(Param("m"), GP64()).(GPVirtual)
	put, putVals := Load(Param("put"), GP64()).(GPVirtual), Load(Param("putVals"), GP64()).(GPVirtual)
	room := Load(Param("room"), GP64()).(GPVirtual)

	Comment("Keys behind the entries, and pivots of lines that there are not, are below nothing.")
	ones, zeros := ZMM(), ZMM()
	VPTERNLOGD(Imm(0xff), ones, ones, ones)
	VPXORQ(zeros, zeros, zeros)
	VMOVDQU64(ones, Mem{Base: have, Index: n, Scale: size})
	i, v := GP64(), GP64()
	for at := 0; at < mergePivots*w.bytes(); at += 64 {
		VMOVDQU64(ones, Mem{Base: room, Disp: w.roomPivots() + at})
	}
	MOVQ(U32(uint32(lanes-1)), i)
	pivot := GP64()
	LEAQ(Mem{Base: room, Disp: w.roomPivots()}, pivot)
	JMP(LabelRef("pivots"))
	Label("pivot")
	w.load(Mem{Base: have, Index: i, Scale: size}, v)
	w.store(v, Mem{Base: pivot})
	ADDQ(Imm(uint64(size)), pivot)
	ADDQ(Imm(uint64(lanes)), i)
	Label("pivots")
	CMPQ(i, n)
	JB(LabelRef("pivot"))
	var pivots []VecVirtual
	for at := 0; at < mergePivots*w.bytes(); at += 64 {
		p := ZMM()
		VMOVDQU64(Mem{Base: room, Disp: w.roomPivots() + at}, p)
		pivots = append(pivots, p)
	}

	all := GP64()
	LEAQ(Mem{Base: n, Index: m, Scale: 1}, all)
	XORL(i.As32(), i.As32())
	Label("clear")
	VMOVDQU64(zeros, Mem{Base: room, Index: i, Scale: 1, Disp: w.roomFlags()})
	ADDQ(Imm(64), i)
	CMPQ(i, all)
	JB(LabelRef("clear"))

	Comment("The place of each pair.")
	spare, new, mask := GP64(), GP64(), K()
	LEAQ(Mem{Base: room, Disp: w.roomSpare()}, spare)
	XORL(i.As32(), i.As32())
	XORL(new.As32(), new.As32())
	Label("pair")
	q := ZMM()
	lane(w, func(o ...Op) { VPBROADCASTD(o...) }, func(o ...Op) { VPBROADCASTQ(o...) })(Mem{Base: put, Index: i, Scale: size}, q)
	above := func(node Op, dst GPVirtual) {
		lane(w, func(o ...Op) { VPCMPUD(o...) }, func(o ...Op) { VPCMPUQ(o...) })(Imm(notLessOrEqual), node, q, mask)
		mask16(w, mask, dst)
		POPCNTL(dst.As32(), dst.As32())
	}
	rank, c, equal, key := GP64(), GP64(), GP64(), GP64()
	for j, p := range pivots {
		if j == 0 {
			above(p, rank)
			continue
		}
		above(p, c)
		ADDQ(c, rank)
	}
	SHLQ(Imm(uint64(map[width]int{32: 4, 64: 3}[w])), rank)
	line := Mem{Base: have, Index: rank, Scale: size}
	above(line, c)
	lane(w, func(o ...Op) { VPCMPEQD(o...) }, func(o ...Op) { VPCMPEQQ(o...) })(line, q, mask)
	mask16(w, mask, equal)
	ADDQ(c, rank)
	NEGL(equal.As32()) // carry: some key of the line is equal
	SBBL(equal.As32(), equal.As32())
	CMPQ(rank, n)
	SBBL(c.As32(), c.As32()) // it is not one behind the entries
	ANDL(c.As32(), equal.As32())
	to := GP64()
	LEAQ(Mem{Base: haveVals, Index: rank, Scale: size}, to)
	TESTL(equal.As32(), equal.As32())
	CMOVQEQ(spare, to)
	w.load(Mem{Base: putVals, Index: i, Scale: size}, v)
	w.load(Mem{Base: put, Index: i, Scale: size}, key)
	w.store(v, Mem{Base: to}) // the value is exchanged
	w.store(key, Mem{Base: room, Index: new, Scale: size})
	w.store(v, Mem{Base: room, Index: new, Scale: size, Disp: w.roomVals()})
	INCL(equal.As32()) // 1 if the pair is new
	ADDQ(new, rank)
	MOVB(equal.As8(), Mem{Base: room, Index: rank, Scale: 1, Disp: w.roomFlags()})
	ADDQ(equal, new)
	INCQ(i)
	CMPQ(i, m)
	JB(LabelRef("pair"))

	Comment("Both sides, a line at a time.")
	keys, vals := Load(Param("keys"), GP64()).(GPVirtual), Load(Param("vals"), GP64()).(GPVirtual)
	total, at, from, mine, bits, some := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: n, Index: new, Scale: 1}, total)
	Store(total, ReturnIndex(0))
	XORL(at.As32(), at.As32())
	XORL(from.As32(), from.As32())
	XORL(mine.As32(), mine.As32())
	flags, news, olds := ZMM(), K(), K()
	expand := func(src Mem, mask Register, dst VecVirtual, rest bool) {
		if rest {
			lane(w, func(o ...Op) { VPEXPANDD(o...) }, func(o ...Op) { VPEXPANDQ(o...) })(src, mask, dst)
		} else {
			lane(w, func(o ...Op) { VPEXPANDD_Z(o[0], o[1], o[2]) }, func(o ...Op) { VPEXPANDQ_Z(o[0], o[1], o[2]) })(src, mask, dst)
		}
	}
	Label("flags")
	VMOVDQU64(Mem{Base: room, Index: at, Scale: 1, Disp: w.roomFlags()}, flags)
	VPTESTMB(flags, flags, news)
	KMOVQ(news, bits)
	for range 64 / lanes {
		if w == 32 {
			MOVWLZX(bits.As16(), some.As32())
			KMOVW(some.As32(), news)
			KNOTW(news, olds)
		} else {
			MOVBLZX(bits.As8(), some.As32())
			KMOVB(some.As32(), news)
			KNOTB(news, olds)
		}
		ks, vs := ZMM(), ZMM()
		expand(Mem{Base: room, Index: mine, Scale: size}, news, ks, false)
		expand(Mem{Base: room, Index: mine, Scale: size, Disp: w.roomVals()}, news, vs, false)
		expand(Mem{Base: have, Index: from, Scale: size}, olds, ks, true)
		expand(Mem{Base: haveVals, Index: from, Scale: size}, olds, vs, true)
		VMOVDQU64(ks, Mem{Base: keys, Index: at, Scale: size})
		VMOVDQU64(vs, Mem{Base: vals, Index: at, Scale: size})
		POPCNTL(some.As32(), some.As32())
		ADDQ(some, mine)
		SUBQ(some, from)
		ADDQ(Imm(uint64(lanes)), from)
		ADDQ(Imm(uint64(lanes)), at)
		SHRQ(Imm(uint64(lanes)), bits)
		CMPQ(at, total)
		JAE(LabelRef("end"))
	}
	JMP(LabelRef("flags"))
	Label("end")
	finish()
}
