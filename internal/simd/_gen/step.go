package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.flatStep.
const (
	offHere     = 0
	offNextLine = 40
	offFan      = 80
	offLast     = 88

	offLineAt    = 0
	offLinePage  = 8
	offLineMask  = 16
	offLineShift = 24
	offLineSub   = 32
)

// steps emits the routines that take a group of queries down one level.
func steps(isa vectors) {
	for _, w := range []width{32, 64} {
		for _, inRow := range []bool{true, false} {
			step(isa, w, inRow)
		}
	}
	if isa.name() == "AVX2" {
		fetch()
	}
}

// lines tells where the nodes of a level are: a simd.flatLines.
type lines struct {
	inRow      bool
	page, mask Mem
	shift, sub Register
	at         Register
}

func loadLines(s Register, offset int, inRow bool) lines {
	field := func(o int) Mem { return Mem{Base: s, Disp: offset + o} }
	l := lines{inRow: inRow, page: field(offLinePage), mask: field(offLineMask), shift: GP64(), at: GP64()}
	MOVQ(field(offLineShift), l.shift)
	MOVQ(field(offLineAt), l.at)
	if !inRow {
		l.sub = GP64()
		MOVQ(field(offLineSub), l.sub)
	}
	return l
}

// node returns the line of node x, as defined by simd.Lines.
func (l lines) node(x Register) Mem {
	line := GP64()
	SHRXQ(l.shift, x, line)
	IMULQ(l.page, line)
	if l.inRow {
		ADDQ(x, line)
	} else {
		inside := GP64()
		SHRXQ(l.sub, x, inside)
		ANDQ(l.mask, inside)
		ADDQ(inside, line)
	}
	SHLQ(Imm(6), line)
	return Mem{Base: l.at, Index: line, Scale: 1}
}

func step(isa vectors, w width, inRow bool) {
	name := fmt.Sprintf("step%d", w)
	if inRow {
		name = fmt.Sprintf("stepRow%d", w)
	}
	TEXT(name+isa.name(), NOSPLIT, "func(s *byte, keys *byte, n int, nodes *int)")
	Pragma("noescape")
	Doc("Does what stepGo does; n must be at least 1.")
	s := Load(Param("s"), GP64())
	here, next := loadLines(s, offHere, inRow), loadLines(s, offNextLine, inRow)
	fan := GP64()
	MOVQ(Mem{Base: s, Disp: offFan}, fan)
	c := isa.prepare(w)
	// The index runs from -n to 0, so that it also marks the end.
	keys, i, nodes := Load(Param("keys"), GP64()), Load(Param("n"), GP64()), Load(Param("nodes"), GP64())
	LEAQ(Mem{Base: keys, Index: i, Scale: uint8(w.bytes())}, keys)
	LEAQ(Mem{Base: nodes, Index: i, Scale: 8}, nodes)
	NEGQ(i)

	Label("query")
	q := isa.key(w, c, Mem{Base: keys, Index: i, Scale: uint8(w.bytes())})
	x, n := GP64(), GP64()
	MOVQ(Mem{Base: nodes, Index: i, Scale: 8}, x)
	isa.below(w, c, q, here.node(x), n)
	POPCNTL(n.As32(), n.As32())
	SHLXQ(fan, x, x)
	ADDQ(n, x)
	CMPQ(x, Mem{Base: s, Disp: offLast})
	CMOVQGT(Mem{Base: s, Disp: offLast}, x)
	MOVQ(x, Mem{Base: nodes, Index: i, Scale: 8})
	PREFETCHT1(next.node(x))
	INCQ(i)
	JNE(LabelRef("query"))
	finish()
}

// fetch emits a loop of prefetches: Go has no such instruction.
func fetch() {
	TEXT("fetchEach", NOSPLIT, "func(base *byte, at *int, n int, size int)")
	Pragma("noescape")
	Doc("Prefetches the line at base + at[i]·size for each i; n must be at least 1.")
	base, at := Load(Param("base"), GP64()), Load(Param("at"), GP64())
	i, size := Load(Param("n"), GP64()), Load(Param("size"), GP64())
	LEAQ(Mem{Base: at, Index: i, Scale: 8}, at)
	NEGQ(i)
	Label("line")
	x := GP64()
	MOVQ(Mem{Base: at, Index: i, Scale: 8}, x)
	IMULQ(size, x)
	PREFETCHT1(Mem{Base: base, Index: x, Scale: 1})
	INCQ(i)
	JNE(LabelRef("line"))
	RET()
}
