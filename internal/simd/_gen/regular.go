package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Regular, and in its nodes.
const (
	offUppers  = 0
	offPilots  = 8
	offBlocks  = 16
	offTheRoot = 24
	offHeight  = 32

	offWord = 56
	offSeps = 128
)

// The bits of a leaf's word that the searches know.
const (
	wordLocked = 1
	wordUnread = wordLocked | 4 // locked or dead
)

// regulars emits the searches of a regular tree, and the change of a leaf.
func regulars(isa vectors) {
	for _, w := range []width{32, 64} {
		regularSeek(isa, w)
		regularPlace(isa, w)
		regularGet(isa, w)
		regularPut(isa, w)
		if isa.name() == "AVX2" {
			regularPack(w)
		} else {
			regularMerge(w)
		}
	}
	commit(isa)
}

// regular is the state that all steps of one routine share.
type regular struct {
	isa    vectors
	w      width
	c      consts
	uppers Mem // the tree's fields, in the frame
	pilots Mem
	blocks Mem
	root   Mem
	height Mem
	writes bool // the leaf will be changed
}

func (w width) pilot() int { return offSeps + 64*w.bytes() }         // bytes of a pilot; offset of an upper node's references
func (w width) upper() int { return w.pilot() + 64*(4+8) }           // bytes of an upper node
func (w width) log() int   { return map[width]int{32: 6, 64: 5}[w] } // of the bytes of the references that belong to a line of separators

func beginRegular(isa vectors, w width, name string, attributes attr.Attribute, signature, doc string) *regular {
	TEXT(fmt.Sprintf("%sRegular%d%s", name, w, isa.name()), attributes, signature)
	Pragma("noescape")
	Doc(doc)
	r := &regular{isa: isa, w: w}
	tree := Load(Param("r"), GP64())
	for _, f := range []struct {
		to   *Mem
		from int
	}{{&r.uppers, offUppers}, {&r.pilots, offPilots}, {&r.blocks, offBlocks}, {&r.root, offTheRoot}, {&r.height, offHeight}} {
		*f.to = AllocLocal(8)
		v := GP64()
		MOVQ(Mem{Base: tree, Disp: f.from}, v)
		MOVQ(v, *f.to)
	}
	r.c = isa.prepareIndex(w)
	return r
}

// part counts the separators of a node's index line that are below the key. It
// returns the line of separators that this number picks, as 4 times the number
// of its first separator, the scale of separators and references.
func (r *regular) part(q query, node Register) GPVirtual {
	s := GP64()
	r.isa.belowIndex(r.w, r.c, q, Mem{Base: node}, s)
	POPCNTL(s.As32(), s.As32())
	SHLL(Imm(uint64(r.w.log())), s.As32())
	return s
}

// seps returns the line of separators that part returned.
func (r *regular) seps(node, part Register) Mem {
	return Mem{Base: node, Index: part, Scale: uint8(r.w.bytes() / 4), Disp: offSeps}
}

// refs returns the references that belong to the line that part returned.
func (r *regular) refs(node, part Register) Mem {
	return Mem{Base: node, Index: part, Scale: 1, Disp: r.w.pilot()}
}

// child returns the number of the child that the key belongs to. The last
// separator of the line is not looked at: only in the last line can it be
// below the key, which belongs to the last child all the same.
func (r *regular) child(q query, node, part Register) GPVirtual {
	c, at, x := GP64(), GP64(), GP64()
	r.isa.belowMost(r.w, r.c, q, r.seps(node, part), c)
	LEAQ(r.refs(node, part), at)
	POPCNTL(c.As32(), c.As32())
	MOVL(Mem{Base: at, Index: c, Scale: 4}, x.As32())
	return x
}

// inLine counts the separators of a pilot's line below the key.
func (r *regular) inLine(q query, pilot, part Register) GPVirtual {
	c := GP64()
	r.isa.below(r.w, r.c, q, r.seps(pilot, part), c)
	POPCNTL(c.As32(), c.As32())
	return c
}

// upper returns the address of an upper node.
func (r *regular) upper(x GPVirtual) GPVirtual { return r.node(x, r.w.upper(), r.uppers) }

// pilot returns the address of a leaf's pilot.
func (r *regular) pilot(x GPVirtual) GPVirtual { return r.node(x, r.w.pilot(), r.pilots) }

func (r *regular) node(x GPVirtual, size int, base Mem) GPVirtual {
	at := GP64()
	IMUL3Q(U32(size), x, at)
	ADDQ(base, at)
	return at
}

// regularSeek emits a single search. Its latency counts: the lines that it may
// need next are fetched as soon as they are known.
func regularSeek(isa vectors, w width) {
	r := beginRegular(isa, w, "seek", NOSPLIT, "func(r *byte, key uint64) (leaf uint32, line int, word uint64)", "Does what seekRegularGo does.")
	key := Load(Param("key"), GP64()).(GPVirtual)
	var from Op = key
	if _, any := isa.(avx512); any && w == 32 {
		from = key.As32()
	}
	q := isa.key(w, r.c, from)
	x := GP64()
	r.walkDown(q, x)
	Store(x.As32(), ReturnIndex(0))
	pilot, word := r.pilot(x), GP64()
	fetchLines(pilot, 64, w.pilot())
	MOVQ(Mem{Base: pilot, Disp: offWord}, word)
	Store(word, ReturnIndex(2))
	part := r.part(q, pilot)
	line := r.inLine(q, pilot, part)
	SHRL(Imm(2), part.As32())
	ADDQ(part, line)
	Store(line, ReturnIndex(1))
	SHLQ(Imm(6), x)
	ADDQ(line, x)
	SHLQ(Imm(6), x)
	ADDQ(r.blocks, x)
	PREFETCHT0(Mem{Base: x})
	finish()
}

// walkDown sets x to the leaf that the key belongs to.
func (r *regular) walkDown(q query, x GPVirtual) {
	levels := GP64()
	MOVQ(r.root, x)
	MOVQ(r.height, levels)
	TESTQ(levels, levels)
	JE(LabelRef("down"))
	Label("walk")
	node := r.upper(x)
	CMPQ(levels, Imm(1))
	JNE(LabelRef("near"))
	Comment("The last level is the largest: fetch all that may be needed of the node.")
	fetchLines(node, offSeps, r.w.pilot()+4*64)
	Label("near")
	part := r.part(q, node)
	PREFETCHT0(r.refs(node, part))
	MOVQ(r.child(q, node, part), x)
	DECQ(levels)
	JNE(LabelRef("walk"))
	Label("down")
}

// fetchLines prefetches the lines of a node between two offsets.
func fetchLines(node Register, from, to int) {
	for line := from; line < to; line += 64 {
		PREFETCHT0(Mem{Base: node, Disp: line})
	}
}

// Offsets of the fields of simd.Change; Word is the first.
const (
	offWas     = 8
	offWill    = 16
	offEpoch   = 24
	offEpochIs = 32
	offGen     = 40
	offGenIs   = 48
	offDst     = 56
	offSrc     = 80
	offLines   = 104
)

// commit emits the change of a leaf.
func commit(isa vectors) {
	TEXT("commit"+isa.name(), NOSPLIT, "func(c *byte) bool")
	Pragma("noescape")
	Doc("Does what commitGo does; the destinations must be multiples of 64.")
	c := Load(Param("c"), GP64())
	field := func(o int) Mem { return Mem{Base: c, Disp: o} }
	word, locked, v := GP64(), GP64(), GP64()
	MOVQ(field(0), word)
	MOVQ(field(offWas), RAX)
	MOVQ(RAX, locked)
	ORQ(Imm(wordLocked), locked)
	compareAndSwap(Mem{Base: word}, locked)
	JNE(LabelRef("other"))

	Comment("The leaf is locked. Is the tree still what it was?")
	MOVQ(field(offEpoch), v)
	MOVQ(Mem{Base: v}, v)
	CMPQ(v, field(offEpochIs))
	JNE(LabelRef("unlock"))
	MOVQ(field(offGen), v)
	MOVQ(Mem{Base: v}, v)
	SUBQ(field(offGenIs), v)
	CMPQ(v, Imm(1))
	JHI(LabelRef("unlock"))

	for i := range 3 {
		copyLines(isa, fmt.Sprint(i), field(offDst+8*i), field(offSrc+8*i), field(offLines+8*i))
	}
	Comment("Stores are seen in their order: whoever reads this word reads the new lines.")
	MOVQ(field(offWill), v)
	MOVQ(v, Mem{Base: word})
	VZEROUPPER()
	answer := func(yes uint64) {
		b := GP8()
		MOVB(U8(yes), b)
		Store(b, ReturnIndex(0))
		RET()
	}
	answer(1)

	Label("unlock")
	was := GP64()
	MOVQ(field(offWas), was)
	MOVQ(locked, RAX)
	compareAndSwap(Mem{Base: word}, was)
	Label("other")
	answer(0)
}

// copyLines copies lines of 64 bytes, if there are any.
func copyLines(isa vectors, name string, to, from, count Mem) {
	dst, src, lines := GP64(), GP64(), GP64()
	MOVQ(count, lines)
	TESTQ(lines, lines)
	JLE(LabelRef("copied" + name))
	MOVQ(to, dst)
	MOVQ(from, src)
	Label("line" + name)
	isa.copyLine(Mem{Base: dst}, Mem{Base: src})
	ADDQ(Imm(64), src)
	ADDQ(Imm(64), dst)
	DECQ(lines)
	JNE(LabelRef("line" + name))
	Label("copied" + name)
}

// compareAndSwap sets at, if it is RAX, to a value, and the zero flag to
// whether it was. avo does not know LOCK, nor that RAX is part of it.
func compareAndSwap(at Mem, to Register) {
	Instruction(&ir.Instruction{Opcode: "LOCK"})
	Instruction(&ir.Instruction{Opcode: "CMPXCHGQ", Operands: []Op{to, at}, Inputs: []Op{to, at, RAX}, Outputs: []Op{at, RAX}})
}
