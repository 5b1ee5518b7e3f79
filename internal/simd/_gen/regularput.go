package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Puts.
const (
	putControl = 0
	putEpochIs = 8
	putGenIs   = 16
	putRoot    = 24
	putHeight  = 32
	putKeys    = 40
	putVals    = 48
	putPlaces  = 56
	putN       = 64
	putDirty   = 72
	putDone    = 80
	putAdded   = 88
	putDirtied = 96
	putOld     = 104
	putHad     = 112
	putLeaf    = 120
)

// Offsets of what is behind a pilot's index line: bplus.info.
const (
	infoEpoch = 64
	infoLow   = 80
	infoFirst = 100
	infoDirty = 108
	infoFull  = 112
)

const (
	wordBusy  = 7              // locked, sealed or dead
	wordCount = 3              // shift of the number of entries
	wordNext  = 1 << 13        // added to a word without these bits: the next sequence number
	wordMore  = 1 << wordCount // and one entry more
	countMask = 1<<10 - 1
)

// Bounds of what is done here, as package bplus has them.
const (
	carryReach = 8 // lines to the nearest one with room
	roomAhead  = 8 // operations before its turn that lines beside its own are fetched
)

func (w width) half() int     { return w.keys() / 2 } // pairs of a line
func (w width) capacity() int { return 64 * w.half() }

// load loads a key or value.
func (w width) load(from Mem, to GPVirtual) {
	if w == 32 {
		MOVL(from, to.As32())
	} else {
		MOVQ(from, to)
	}
}

func (w width) store(from GPVirtual, to Mem) {
	if w == 32 {
		MOVL(from.As32(), to)
	} else {
		MOVQ(from, to)
	}
}

// compare compares two keys or values.
func (w width) compare(a GPVirtual, b Op) {
	if w == 32 {
		if r, ok := b.(GPVirtual); ok {
			b = r.As32()
		}
		CMPL(a.As32(), b)
	} else {
		CMPQ(a, b)
	}
}

// put is the state of a routine that puts pairs into leaves.
type put struct {
	*regular
	p                 GPVirtual // the Puts
	slide, iota, turn Mem
	labels            int

	// Of the operation under way.
	pilot, word, line, la GPVirtual // la is the address of the line
	key, val              Mem
}

func (u *put) field(at int) Mem { return Mem{Base: u.p, Disp: at} }

// regularPut emits the changes of leaves that need no Go: a value is exchanged, a
// pair is put into its line, or into a line whose entries are carried to one with
// room nearby. Lines are changed in place while the leaf is locked, and nothing
// can fail from then on.
func regularPut(isa vectors, w width) {
	u := &put{}
	u.tables(isa, w)
	u.regular = beginRegular(isa, w, "put", attr.NOSPLIT, "func(r *byte, p *byte)", "Does operations until one takes more than a change of a few lines of its leaf.")
	u.p = Load(Param("p"), GP64()).(GPVirtual)
	u.root, u.height = u.field(putRoot), u.field(putHeight)
	u.key, u.val = AllocLocal(8), AllocLocal(8)

	Label("next")
	i, keys, key, v := GP64(), GP64(), GP64(), GP64()
	MOVQ(u.field(putDone), i)
	CMPQ(i, u.field(putN))
	JAE(LabelRef("slow"))
	MOVQ(u.field(putKeys), keys)
	at := Mem{Base: keys, Index: i, Scale: uint8(w.bytes())}
	q := isa.key(w, u.c, at)
	w.load(at, key)
	LEAQ(Mem{Base: i, Disp: 1}, v)
	CMPQ(v, u.field(putN))
	JAE(LabelRef("last"))
	w.compare(key, at.Offset(w.bytes()))
	JE(LabelRef("overwritten"))
	Label("last")
	MOVQ(key, u.key)
	vals := GP64()
	MOVQ(u.field(putVals), vals)
	w.load(Mem{Base: vals, Index: i, Scale: uint8(w.bytes())}, v)
	MOVQ(v, u.val)

	u.find(q, i)
	u.change(q)

	Label("overwritten")
	Comment("The next operation has the same key.")
	Label("done")
	INCQ(u.field(putDone))
	JMP(LabelRef("next"))

	Label("unlock")
	was := GP64()
	MOVQ(u.word, was)
	MOVQ(u.word, RAX)
	ORQ(Imm(wordLocked), RAX)
	compareAndSwap(Mem{Base: u.pilot, Disp: offWord}, was)
	Label("slow")
	finish()
}

// tables makes the constants: a window of 32 bytes into slide has its first
// lanes clear and the others set.
func (u *put) tables(isa vectors, w width) {
	name := isa.name() + map[width]string{32: "32", 64: "64"}[w]
	table := func(what string) Mem {
		GLOBL(what+name, attr.RODATA|attr.NOPTR)
		return NewDataAddr(Symbol{Name: what + name, Static: true}, 0)
	}
	u.slide = table("slide")
	for i := range 8 {
		v := uint64(0)
		if i >= 4 {
			v = 1<<64 - 1
		}
		DATA(8*i, U64(v))
	}
	u.iota = table("iota")
	for i := range 8 {
		DATA(4*i, U32(uint32(i)))
	}
	u.turn = table("turn")
	for i := range 8 {
		DATA(4*i, U32(uint32((i+1)%8)))
	}
}

// find finds the leaf and the line of the key.
func (u *put) find(q query, i GPVirtual) {
	x, places := GP64(), GP64()
	MOVQ(u.field(putPlaces), places)
	TESTQ(places, places)
	JE(LabelRef("root"))
	u.fetchSoon(places, i)
	MOVQ(Mem{Base: places, Index: i, Scale: 8}, x)
	SHRQ(Imm(8), x)
	JMP(LabelRef("leaf"))

	Label("root")
	u.walkDown(q, x)
	fetchLines(u.regular.pilot(x), 64, u.w.pilot())

	Label("leaf")
	MOVQ(x, u.field(putLeaf))
	u.pilot, u.word = u.regular.pilot(x), GP64()
	MOVQ(Mem{Base: u.pilot, Disp: offWord}, u.word)
	TESTL(U32(wordBusy), u.word.As32())
	JNE(LabelRef("slow"))
	part := u.part(q, u.pilot)
	u.line = u.inLine(q, u.pilot, part)
	SHRL(Imm(2), part.As32())
	ADDQ(part, u.line)
	CMPQ(u.line, Imm(64))
	JAE(LabelRef("slow"))
	u.la = x // from here on
	SHLQ(Imm(6), x)
	ADDQ(u.line, x)
	SHLQ(Imm(6), x)
	ADDQ(u.blocks, x)
	epoch := GP64()
	MOVQ(Mem{Base: u.pilot, Disp: infoEpoch}, epoch)
	CMPQ(epoch, u.field(putEpochIs))
	JNE(LabelRef("slow"))
}

// fetchSoon prefetches the lines beside that of an operation that comes soon,
// if its line is full.
func (u *put) fetchSoon(places, i GPVirtual) {
	soon, full, line := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: i, Disp: roomAhead}, soon)
	CMPQ(soon, u.field(putN))
	JAE(LabelRef("fetched"))
	MOVQ(Mem{Base: places, Index: soon, Scale: 8}, soon)
	MOVQ(soon, line)
	SHRQ(Imm(8), soon)
	MOVQ(Mem{Base: u.regular.pilot(soon), Disp: infoFull}, full)
	BTQ(line, full) // the line's number modulo 64
	JCC(LabelRef("fetched"))
	SHLQ(Imm(6), soon)
	MOVBLZX(line.As8(), line.As32())
	ADDQ(line, soon)
	SHLQ(Imm(6), soon)
	ADDQ(u.blocks, soon)
	PREFETCHT0(Mem{Base: soon, Disp: -64})
	PREFETCHT0(Mem{Base: soon, Disp: 64})
	Label("fetched")
}

// change makes the change.
func (u *put) change(q query) {
	w := u.w
	slot := GP64()
	u.isa.equalHalf(w, u.c, q, Mem{Base: u.la}, slot)
	TESTL(slot.As32(), slot.As32())
	JE(LabelRef("absent"))

	Comment("The key is there: its value is exchanged.")
	TZCNTL(slot.As32(), slot.As32())
	pair := Mem{Base: u.la, Index: slot, Scale: uint8(w.bytes()), Disp: 32}
	old, val := GP64(), GP64()
	w.load(pair, old)
	MOVQ(old, u.field(putOld))
	MOVQ(U32(1), u.field(putHad))
	MOVQ(u.val, val)
	w.compare(old, val)
	JE(LabelRef("same"))
	u.lock()
	w.store(val, pair)
	ADDQ(U32(wordNext), u.word)
	MOVQ(u.word, Mem{Base: u.pilot, Disp: offWord})
	JMP(LabelRef("done"))
	Label("same")
	CMPQ(u.word, Mem{Base: u.pilot, Disp: offWord})
	JNE(LabelRef("slow"))
	u.current("slow")
	JMP(LabelRef("done"))

	Label("absent")
	MOVQ(U32(0), u.field(putHad))
	full := GP64()
	MOVQ(Mem{Base: u.pilot, Disp: infoFull}, full)
	BTQ(u.line, full)
	JCS(LabelRef("carry"))
	u.within(q)

	Label("carry")
	u.carry(q)

	Label("added")
	INCQ(u.field(putAdded))
	u.dirty()
	ADDQ(U32(wordNext+wordMore), u.word)
	MOVQ(u.word, Mem{Base: u.pilot, Disp: offWord})
}

// dirty notes that the leaf's entries are to be counted, unless that is known.
func (u *put) dirty() {
	list, n, leaf := GP64(), GP64(), GP64()
	CMPL(Mem{Base: u.pilot, Disp: infoDirty}, Imm(0))
	JNE(LabelRef("dirty"))
	MOVL(U32(1), Mem{Base: u.pilot, Disp: infoDirty})
	MOVQ(u.field(putDirty), list)
	MOVQ(u.field(putDirtied), n)
	MOVQ(u.field(putLeaf), leaf)
	MOVL(leaf.As32(), Mem{Base: list, Index: n, Scale: 4})
	INCQ(u.field(putDirtied))
	Label("dirty")
}

// lock locks the leaf if its word is the same, and sees whether the tree is
// still what it was.
func (u *put) lock() {
	locked, v := GP64(), GP64()
	MOVQ(u.word, RAX)
	MOVQ(u.word, locked)
	ORQ(Imm(wordLocked), locked)
	compareAndSwap(Mem{Base: u.pilot, Disp: offWord}, locked)
	JNE(LabelRef("slow"))
	MOVQ(u.field(putControl), v)
	MOVQ(Mem{Base: v}, v)
	CMPQ(v, u.field(putEpochIs))
	JNE(LabelRef("unlock"))
	u.current("unlock")
}

// current sees whether no memory has been made free for reuse that was in use
// when the change began.
func (u *put) current(otherwise string) {
	gen := GP64()
	MOVQ(u.field(putControl), gen)
	MOVQ(Mem{Base: gen, Disp: 8}, gen)
	SUBQ(u.field(putGenIs), gen)
	CMPQ(gen, Imm(1))
	JHI(LabelRef(otherwise))
}

// label returns a label that no other is named.
func (u *put) label(name string) string {
	u.labels++
	return name + string(rune('A'+u.labels-1))
}

// entries returns the number of entries in a line at an address.
func (u *put) entries(line, at GPVirtual) (m GPVirtual) {
	w := u.w
	m = GP64()
	first, lo := GP64(), GP64()
	empty, bounded, some, end := u.label("empty"), u.label("bounded"), u.label("some"), u.label("end")
	w.load(Mem{Base: at}, first)
	seps := Mem{Base: u.pilot, Index: line, Scale: uint8(w.bytes()), Disp: offSeps}
	w.compare(first, seps)
	JHI(LabelRef(empty))
	TESTQ(line, line)
	JNE(LabelRef(bounded))
	CMPL(Mem{Base: u.pilot, Disp: infoFirst}, Imm(0))
	JNE(LabelRef(some))
	w.load(Mem{Base: u.pilot, Disp: infoLow}, lo)
	w.compare(first, lo)
	JHI(LabelRef(some))
	JMP(LabelRef(empty))
	Label(bounded)
	w.compare(first, seps.Offset(-w.bytes()))
	JHI(LabelRef(some))
	Label(empty)
	XORL(m.As32(), m.As32())
	JMP(LabelRef(end))
	Label(some)
	Comment("Places that are equal to the one before them are none.")
	k, next := YMM(), YMM()
	VMOVDQU(Mem{Base: at}, k)
	if w == 32 {
		VMOVDQU(u.turn, next)
		VPERMD(k, next, next)
		VPCMPEQD(next, k, k)
		VMOVMSKPS(k, first.As32())
	} else {
		VPERMQ(Imm(0b00_11_10_01), k, next)
		VPCMPEQQ(next, k, k)
		VMOVMSKPD(k, first.As32())
	}
	ANDL(U32(1<<(w.half()-1)-1), first.As32())
	POPCNTL(first.As32(), first.As32())
	MOVL(U32(w.half()), m.As32())
	SUBL(first.As32(), m.As32())
	Label(end)
	return m
}

// window loads lanes from number at on set, the others clear.
func (u *put) window(table, at GPVirtual) VecVirtual {
	v, from := YMM(), GP64()
	MOVQ(U32(u.w.half()), from)
	SUBQ(at, from)
	VMOVDQU(Mem{Base: table, Index: from, Scale: uint8(u.w.bytes())}, v)
	return v
}

// moved loads a half of a line, its lanes taken from others, and the pair's in
// those that chosen has.
func (u *put) moved(half Mem, from, chosen VecVirtual, pair Op) VecVirtual {
	v, all := YMM(), YMM()
	if u.w == 32 {
		VPBROADCASTD(pair, all)
	} else {
		VPBROADCASTQ(pair, all)
	}
	VPERMD(half, from, v)
	VPBLENDVB(chosen, all, v, v)
	return v
}

// insert puts a pair into a line at place at: entries from there on go to the
// right, and the last place is lost. Places up to but without end get the pair.
func (u *put) insert(la, at, end GPVirtual, key, val Mem) (keys, vals VecVirtual) {
	table, from, chosen := GP64(), YMM(), YMM()
	LEAQ(u.slide, table)
	behind, rest := u.window(table, at), u.window(table, end)
	VPADDD(u.iota, behind, from)
	if u.w == 64 {
		VPADDD(behind, from, from)
	}
	VPANDN(behind, rest, chosen)
	return u.moved(Mem{Base: la}, from, chosen, key), u.moved(Mem{Base: la, Disp: 32}, from, chosen, val)
}

// push puts a pair into a full line at place at: entries up to there go to the
// left, and the first is lost.
func (u *put) push(la, at GPVirtual, key, val Mem) {
	table, next, from, chosen := GP64(), GP64(), YMM(), YMM()
	LEAQ(u.slide, table)
	LEAQ(Mem{Base: at, Disp: 1}, next)
	behind, rest := u.window(table, at), u.window(table, next)
	before := YMM()
	VPCMPEQD(before, before, before)
	VPANDN(before, behind, before)
	VMOVDQU(u.iota, from)
	VPSUBD(before, from, from)
	if u.w == 64 {
		VPSUBD(before, from, from)
	}
	VPANDN(behind, rest, chosen)
	u.write(la, u.moved(Mem{Base: la}, from, chosen, key), u.moved(Mem{Base: la, Disp: 32}, from, chosen, val))
}

func (u *put) write(la GPVirtual, keys, vals VecVirtual) {
	VMOVDQA(keys, Mem{Base: la})
	VMOVDQA(vals, Mem{Base: la, Disp: 32})
}

// within puts the pair into its line, which has room.
func (u *put) within(q query) {
	w := u.w
	m := u.entries(u.line, u.la)
	at, end, half := GP64(), GP64(), GP64()
	XORL(at.As32(), at.As32())
	MOVL(U32(w.half()), end.As32())
	TESTL(m.As32(), m.As32())
	JE(LabelRef("placed"))
	CMPL(m.As32(), Imm(uint64(w.half())))
	JE(LabelRef("slow")) // full since
	u.isa.belowHalf(w, u.c, q, Mem{Base: u.la}, at)
	POPCNTL(at.As32(), at.As32())
	MOVL(U32(w.half()), half.As32())
	LEAQ(Mem{Base: at, Disp: 1}, end)
	CMPL(at.As32(), half.As32())
	CMOVQEQ(m, at) // above all: behind the last, and in all places from there on
	CMOVQEQ(half, end)
	Label("placed")
	keys, vals := u.insert(u.la, at, end, u.key, u.val)
	u.lock()
	u.write(u.la, keys, vals)
	u.filled(m, u.line)
	JMP(LabelRef("added"))
}

// filled notes that a line, which had m entries, is full with one more.
func (u *put) filled(m, line GPVirtual) {
	full, not := GP64(), u.label("filled")
	CMPL(m.As32(), Imm(uint64(u.w.half()-1)))
	JNE(LabelRef(not))
	MOVQ(Mem{Base: u.pilot, Disp: infoFull}, full)
	BTSQ(line, full)
	MOVQ(full, Mem{Base: u.pilot, Disp: infoFull})
	Label(not)
}

// setSep sets the separator of a line to a key, and what the index line has of it.
func (u *put) setSep(line, key GPVirtual) {
	w := u.w
	part, not := GP64(), u.label("sep")
	w.store(key, Mem{Base: u.pilot, Index: line, Scale: uint8(w.bytes()), Disp: offSeps})
	LEAQ(Mem{Base: line, Disp: 1}, part)
	TESTL(U32(w.keys()-1), part.As32())
	JNE(LabelRef(not))
	SHRQ(Imm(uint64(map[width]int{32: 4, 64: 3}[w])), part)
	w.store(key, Mem{Base: u.pilot, Index: part, Scale: uint8(w.bytes()), Disp: -w.bytes()})
	Label(not)
}

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
	TESTQ(right, right) // the line had no room when it was asked first: the leaf is being changed
	JE(LabelRef("slow"))
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

func (u *put) carryRight(q query, goal Mem) {
	w, last := u.w, u.w.half()-1
	line, la, k, v, at, end := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(goal, line)
	MOVQ(u.address(line), la)
	u.touch(la, -64)
	MOVQ(u.address(line), la)
	m, had := u.entries(line, la), AllocLocal(8)
	MOVQ(m, had)
	u.lock()

	MOVQ(u.line, line)
	MOVQ(u.la, la)
	u.isa.belowHalf(w, u.c, q, Mem{Base: la}, at)
	POPCNTL(at.As32(), at.As32())
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
	line, la, k, v, at, end := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(goal, line)
	MOVQ(u.address(line), la)
	u.touch(la, 64)
	MOVQ(u.address(line), la)
	m, had := u.entries(line, la), AllocLocal(8)
	MOVQ(m, had)
	u.lock()

	MOVQ(u.line, line)
	MOVQ(u.la, la)
	u.isa.belowHalf(w, u.c, q, Mem{Base: la}, at)
	POPCNTL(at.As32(), at.As32())
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
