package main

import (
	"strconv"

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
	if emits("busy") {
		TESTL(U32(wordBusy), u.word.As32())
		JNE(LabelRef("slow"))
	}
	u.stall()
	part := u.part(q, u.pilot)
	u.line = u.inLine(q, u.pilot, part)
	SHRL(Imm(2), part.As32())
	ADDQ(part, u.line)
	if emits("high key") {
		CMPQ(u.line, Imm(64))
		JAE(LabelRef("slow"))
	}
	u.la = x // from here on
	SHLQ(Imm(6), x)
	ADDQ(u.line, x)
	SHLQ(Imm(6), x)
	ADDQ(u.blocks, x)
	if emits("leaf's epoch") {
		epoch := GP64()
		MOVQ(Mem{Base: u.pilot, Disp: infoEpoch}, epoch)
		CMPQ(epoch, u.field(putEpochIs))
		JNE(LabelRef("slow"))
	}
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
	u.lock(wordNext)
	w.store(val, pair)
	u.stall()
	if emits("value's sequence") {
		ADDQ(U32(wordNext), u.word)
	}
	MOVQ(u.word, Mem{Base: u.pilot, Disp: offWord})
	JMP(LabelRef("done"))
	Label("same")
	if emits("word of what stays") {
		CMPQ(u.word, Mem{Base: u.pilot, Disp: offWord})
		JNE(LabelRef("slow"))
	}
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
	u.stall()
	u.carry(q)

	Label("added")
	INCQ(u.field(putAdded))
	if emits("list") {
		u.dirty()
	}
	u.stall()
	if emits("sequence") {
		ADDQ(U32(wordNext), u.word)
	}
	ADDQ(U32(wordMore), u.word)
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
// still what it was. Without "word last" the word is stored here, with what is added to it.
func (u *put) lock(added uint32) {
	v := GP64()
	if emits("lock") {
		MOVQ(u.word, RAX)
		MOVQ(u.word, v)
		ORQ(Imm(wordLocked), v)
		compareAndSwap(Mem{Base: u.pilot, Disp: offWord}, v)
	} else {
		CMPQ(u.word, Mem{Base: u.pilot, Disp: offWord})
	}
	JNE(LabelRef("slow"))
	u.stall()
	if emits("epoch") {
		MOVQ(u.field(putControl), v)
		MOVQ(Mem{Base: v}, v)
		CMPQ(v, u.field(putEpochIs))
		JNE(LabelRef("unlock"))
	}
	u.current("unlock")
	if !emits("word last") {
		LEAQ(Mem{Base: u.word, Disp: int(added)}, v)
		MOVQ(v, Mem{Base: u.pilot, Disp: offWord})
	}
}

// current sees whether no memory has been made free for reuse that was in use
// when the change began.
func (u *put) current(otherwise string) {
	if !emits("generation") {
		return
	}
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
	return name + strconv.Itoa(u.labels)
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
	u.lock(wordNext + wordMore)
	u.write(u.la, keys, vals)
	u.filled(m, u.line)
	JMP(LabelRef("added"))
}

// filled notes that a line, which had m entries, is full with one more.
func (u *put) filled(m, line GPVirtual) {
	if !emits("full lines") {
		return
	}
	full, not := GP64(), u.label("filled")
	CMPL(m.As32(), Imm(uint64(u.w.half()-1)))
	JNE(LabelRef(not))
	MOVQ(Mem{Base: u.pilot, Disp: infoFull}, full)
	BTSQ(line, full)
	MOVQ(full, Mem{Base: u.pilot, Disp: infoFull})
	Label(not)
}
