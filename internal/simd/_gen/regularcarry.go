package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A pair whose line is full: see put.

// carry puts the pair into its line, which is full: an entry of each line from
// there on moves to the next, up to the nearest line with room.
func (u *put) carry(q query) {
	w := u.w
	goal, n := AllocLocal(8), GP64()
	MOVQ(u.word, n)
	SHRQ(Imm(wordCount), n)
	ANDL(U32(countMask), n.As32())
	CMPL(n.As32(), U32(w.capacity()))
	JAE(LabelRef("slow"))

	left, right, g := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: u.pilot, Disp: infoFull}, right)
	NOTQ(right)
	BZHIQ(u.line, right, left)
	XORQ(left, right)
	// Bits of lines with room: left has those before, right those behind.
	BSRQ(left, left)
	JE(LabelRef("noneBefore"))
	MOVQ(u.line, g)
	SUBQ(left, g) // lines away
	TZCNTQ(right, right)
	JCS(LabelRef("leftward"))
	SUBQ(u.line, right)
	CMPQ(g, right)
	JLE(LabelRef("leftward"))
	JMP(LabelRef("rightward"))
	Label("noneBefore")
	TZCNTQ(right, right)
	JCS(LabelRef("slow"))
	SUBQ(u.line, right)

	Label("rightward")
	if emits("room twice") {
		TESTQ(right, right) // the line had no room when it was asked first: the leaf is being changed
		JE(LabelRef("slow"))
	}
	u.far(right, n)
	ADDQ(u.line, right)
	MOVQ(right, goal)
	u.carryRight(q, goal)

	Label("leftward")
	u.far(g, n)
	MOVQ(left, goal)
	u.carryLeft(q, goal)
}

// far gives up if the line with room is too far away and packing the leaf anew
// would make room everywhere.
func (u *put) far(away, n GPVirtual) {
	near := u.label("near")
	CMPQ(away, Imm(carryReach))
	JB(LabelRef(near))
	CMPL(n.As32(), U32(u.w.capacity()*3/4))
	JLE(LabelRef("slow"))
	Label(near)
}

// address returns the address of a line.
func (u *put) address(line GPVirtual) GPVirtual {
	at := GP64()
	MOVQ(line, at)
	SUBQ(u.line, at)
	SHLQ(Imm(6), at)
	ADDQ(u.la, at)
	return at
}

// touch reads a word of each line between the pair's and the goal, so that they
// are near when the leaf is locked.
func (u *put) touch(at GPVirtual, step int) {
	loop, v := u.label("touch"), GP64()
	Label(loop)
	MOVQ(Mem{Base: at}, v)
	ADDQ(I32(int32(step)), at)
	CMPQ(at, u.la)
	JNE(LabelRef(loop))
}

// overflow keeps the pair at place at of a line, to be put elsewhere.
func (u *put) overflow(la GPVirtual, at int, key, val GPVirtual) {
	u.w.load(Mem{Base: la, Disp: at * u.w.bytes()}, key)
	u.w.load(Mem{Base: la, Disp: 32 + at*u.w.bytes()}, val)
}

// now makes the overflow the pair that is put next.
func (u *put) now(key, val GPVirtual) {
	MOVQ(key, u.key)
	MOVQ(val, u.val)
}

// reach locks the leaf when the lines to be changed are in the cache. It returns the
// pair's line with its address and the place in it, and the number of entries in the
// goal's line.
func (u *put) reach(q query, goal Mem, step int) (line, la, at GPVirtual, had Mem) {
	line, la, at, had = GP64(), GP64(), GP64(), AllocLocal(8)
	MOVQ(goal, line)
	MOVQ(u.address(line), la)
	u.touch(la, step)
	MOVQ(u.address(line), la)
	m := u.entries(line, la)
	MOVQ(m, had)
	u.lock(wordNext + wordMore)

	MOVQ(u.line, line)
	MOVQ(u.la, la)
	u.isa.belowHalf(u.w, u.c, q, Mem{Base: la}, at)
	POPCNTL(at.As32(), at.As32())
	return line, la, at, had
}

func (u *put) carryRight(q query, goal Mem) {
	w, last := u.w, u.w.half()-1
	k, v, end := GP64(), GP64(), GP64()
	line, la, at, had := u.reach(q, goal, -64)
	CMPL(at.As32(), Imm(uint64(w.half())))
	JE(LabelRef("rightSelf"))
	u.overflow(la, last, k, v)
	LEAQ(Mem{Base: at, Disp: 1}, end)
	u.writeInserted(la, at, end)
	u.now(k, v)
	Label("rightSelf")
	w.load(Mem{Base: la, Disp: last * w.bytes()}, k)
	u.setSep(line, k)

	Label("rightNext")
	INCQ(line)
	ADDQ(Imm(64), la)
	XORL(at.As32(), at.As32())
	CMPQ(line, goal)
	JE(LabelRef("rightGoal"))
	u.overflow(la, last, k, v)
	MOVL(U32(1), end.As32())
	u.writeInserted(la, at, end)
	u.now(k, v)
	w.load(Mem{Base: la, Disp: last * w.bytes()}, k)
	u.setSep(line, k)
	JMP(LabelRef("rightNext"))

	Label("rightGoal")
	MOVL(U32(1), end.As32())
	MOVQ(had, k)
	TESTL(k.As32(), k.As32())
	JNE(LabelRef("rightSome"))
	MOVL(U32(w.half()), end.As32())
	Label("rightSome")
	u.writeInserted(la, at, end)
	u.filled(k, line)
	JMP(LabelRef("added"))
}

// writeInserted inserts the pair that is put next.
func (u *put) writeInserted(la, at, end GPVirtual) {
	keys, vals := u.insert(la, at, end, u.key, u.val)
	u.write(la, keys, vals)
}

func (u *put) carryLeft(q query, goal Mem) {
	w := u.w
	k, v, end := GP64(), GP64(), GP64()
	line, la, at, had := u.reach(q, goal, 64)
	DECQ(at)
	JMI(LabelRef("leftNext"))
	u.overflow(la, 0, k, v)
	u.push(la, at, u.key, u.val)
	u.now(k, v)

	Label("leftNext")
	DECQ(line)
	SUBQ(Imm(64), la)
	MOVQ(u.key, k)
	u.setSep(line, k)
	CMPQ(line, goal)
	JE(LabelRef("leftGoal"))
	u.overflow(la, 0, k, v)
	MOVL(U32(w.half()-1), at.As32())
	u.push(la, at, u.key, u.val)
	u.now(k, v)
	JMP(LabelRef("leftNext"))

	Label("leftGoal")
	MOVQ(had, at)
	MOVL(U32(w.half()), end.As32())
	u.writeInserted(la, at, end)
	u.filled(at, line)
}

// setSep sets the separator of a line to a key, and its copy in the index line, if it
// has one.
func (u *put) setSep(line, key GPVirtual) {
	w := u.w
	part, not := GP64(), u.label("sep")
	w.store(key, Mem{Base: u.pilot, Index: line, Scale: uint8(w.bytes()), Disp: offSeps})
	u.stall()
	if !emits("index line") {
		return
	}
	LEAQ(Mem{Base: line, Disp: 1}, part)
	TESTL(U32(w.keys()-1), part.As32())
	JNE(LabelRef(not))
	SHRQ(Imm(uint64(map[width]int{32: 4, 64: 3}[w])), part)
	w.store(key, Mem{Base: u.pilot, Index: part, Scale: uint8(w.bytes()), Disp: -w.bytes()})
	Label(not)
}
