package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ringSize is the greatest number of queries under way: simd.regularRing.
const ringSize = 256

// ring is the state of the queries under way, by their number modulo ringSize.
//
//	node   address of its upper node or pilot
//	place  in an upper node: what part returned
//	       in a leaf: the leaf times 256, from the pilot's index line on plus what part returned
//	       at the pair line: its address
//	word   the leaf's word when the pilot's index line was read
type ring struct {
	node, place, word Mem
}

func makeRing() ring {
	slots := func() Mem { return AllocLocal(8*ringSize + 64) } // not 4096 apart, or the CPU takes one for the other
	return ring{slots(), slots(), slots()}
}

// of returns the ring's entry of a query.
func (r ring) of(i GPVirtual) ring {
	at := GP64()
	MOVL(i.As32(), at.As32())
	ANDL(U32(ringSize-1), at.As32())
	return ring{r.node.Idx(at, 8), r.place.Idx(at, 8), r.word.Idx(at, 8)}
}

// stage is a step of a query at a leaf.
type stage func(i GPVirtual, q query, at ring)

// staircase emits the loop over a batch: see the package comment of simd. A
// query takes two steps per level, one at the index line and one at a line of
// separators, then the stages given.
func (r *regular) staircase(stages ...stage) {
	keys := Load(Param("keys"), GP64()).(GPVirtual)
	n := Load(Param("n"), GP64()).(GPVirtual)
	distance := Load(Param("distance"), GP64()).(GPVirtual)
	states := makeRing()
	top, staged, end := AllocLocal(8), AllocLocal(8), AllocLocal(8)
	r.plan(n, distance, len(stages), top, staged, end)
	t, i := GP64(), GP64()
	XORL(t.As32(), t.As32())
	each := func(name string, do stage) {
		Label(name)
		CMPQ(i, n) // unsigned: not yet started, or already done
		JAE(LabelRef(name + "Done"))
		q := r.isa.key(r.w, r.c, Mem{Base: keys, Index: i, Scale: uint8(r.w.bytes())})
		do(i, q, states.of(i))
		Label(name + "Done")
		SUBQ(distance, i)
	}

	Label("next")
	Comment("A new query walks through the top levels, which are in the nearest caches.")
	CMPQ(t, n)
	JAE(LabelRef("older"))
	r.walk(r.isa.key(r.w, r.c, Mem{Base: keys, Index: t, Scale: uint8(r.w.bytes())}), top, staged, states.of(t))

	Label("older")
	Comment("Older queries take one step each.")
	MOVQ(t, i)
	SUBQ(distance, i)
	level := GP64()
	MOVQ(staged, level)
	TESTQ(level, level)
	JE(LabelRef("leaf0"))
	each("index", func(_ GPVirtual, q query, at ring) { r.atIndex(q, at) })
	each("seps", func(_ GPVirtual, q query, at ring) { r.atSeps(q, level, at) })
	DECQ(level)
	JNE(LabelRef("index"))

	for s, do := range stages {
		each([]string{"leaf0", "leaf1", "leaf2"}[s], do)
	}
	INCQ(t)
	CMPQ(t, end)
	JB(LabelRef("next"))
}

// plan divides the levels into those walked at once and those taken step by
// step, and works out the number of steps until the last query is done.
func (r *regular) plan(n, distance GPVirtual, stages int, top, staged, end Mem) {
	levels, walked := GP64(), GP64()
	MOVQ(r.height, levels)
	Load(Param("top"), walked)
	MOVQ(walked, top)
	SUBQ(walked, levels)
	MOVQ(levels, staged)
	LEAQ(Mem{Base: levels, Index: levels, Scale: 1, Disp: stages}, levels)
	IMULQ(distance, levels)
	ADDQ(n, levels)
	MOVQ(levels, end)
}

// walk takes a new query down the top levels.
func (r *regular) walk(q query, top, staged Mem, at ring) {
	x, level := GP64(), GP64()
	MOVQ(r.root, x)
	MOVQ(top, level)
	TESTQ(level, level)
	JE(LabelRef("walked"))
	Label("walk")
	node := r.upper(x)
	MOVQ(r.child(q, node, r.part(q, node)), x)
	DECQ(level)
	JNE(LabelRef("walk"))
	Label("walked")
	CMPQ(staged, Imm(0))
	JE(LabelRef("walkedToLeaf"))
	r.toUpper(x, at)
	JMP(LabelRef("older"))
	Label("walkedToLeaf")
	r.toLeaf(x, at)
}

// toUpper makes x, an upper node, the query's.
func (r *regular) toUpper(x GPVirtual, at ring) {
	node := r.upper(x)
	MOVQ(node, at.node)
	PREFETCHT1(Mem{Base: node})
}

// toLeaf makes x, a leaf, the query's.
func (r *regular) toLeaf(x GPVirtual, at ring) {
	pilot := r.pilot(x)
	MOVQ(pilot, at.node)
	PREFETCHT1(Mem{Base: pilot})
	if r.writes {
		PREFETCHT1(Mem{Base: pilot, Disp: 64})
	}
	SHLQ(Imm(8), x)
	MOVQ(x, at.place)
}

// atIndex is the step at the index line of an upper node.
func (r *regular) atIndex(q query, at ring) {
	node := GP64()
	MOVQ(at.node, node)
	part := r.part(q, node)
	MOVQ(part, at.place)
	PREFETCHT1(r.seps(node, part))
	PREFETCHT1(r.refs(node, part))
}

// atSeps is the step at the separators of an upper node; level is the number
// of levels above the leaves.
func (r *regular) atSeps(q query, level GPVirtual, at ring) {
	node, part := GP64(), GP64()
	MOVQ(at.node, node)
	MOVQ(at.place, part)
	x := r.child(q, node, part)
	CMPQ(level, Imm(1))
	JE(LabelRef("sepsToLeaf"))
	r.toUpper(x, at)
	JMP(LabelRef("sepsDone"))
	Label("sepsToLeaf")
	r.toLeaf(x, at)
}

// atPilot is the step at the index line of a pilot. The word is read before
// anything else of the leaf.
func (r *regular) atPilot(_ GPVirtual, q query, at ring) {
	pilot := GP64()
	MOVQ(at.node, pilot)
	word := GP64()
	MOVQ(Mem{Base: pilot, Disp: offWord}, word)
	MOVQ(word, at.word)
	part := r.part(q, pilot)
	ORQ(part, at.place)
	PREFETCHT1(r.seps(pilot, part))
}

// atPilotSeps is the step at the separators of a pilot. It returns the place
// as it was, the part of it that part returned, and the count; and prefetches
// the pair line, whose address it returns, too.
func (r *regular) atPilotSeps(q query, at ring) (place, part, c, line GPVirtual) {
	pilot := GP64()
	place, part, line = GP64(), GP64(), GP64()
	MOVQ(at.node, pilot)
	MOVQ(at.place, place)
	MOVBLZX(place.As8(), part.As32())
	c = r.inLine(q, pilot, part)
	LEAQ(Mem{Base: place, Index: c, Scale: 4}, line) // 256 times the leaf and 4 times the line
	SHLQ(Imm(4), line)
	ADDQ(r.blocks, line)
	PREFETCHT1(Mem{Base: line})
	return place, part, c, line
}

func regularPlace(isa vectors, w width) {
	r := beginRegular(isa, w, "place", 0, "func(r *byte, keys *byte, n int, places *uint64, top, distance int)", "Does what placeRegularGo does; n must be at least 1, and the distance fit the ring.")
	r.writes = true
	r.staircase(r.atPilot, func(i GPVirtual, q query, at ring) {
		place, part, c, _ := r.atPilotSeps(q, at)
		SUBQ(part, place)
		SHRL(Imm(2), part.As32())
		ADDQ(part, place)
		ADDQ(c, place)
		places := Load(Param("places"), GP64())
		MOVQ(place, Mem{Base: places, Index: i, Scale: 8})
	})
	finish()
}

// regularGet emits the search of a batch.
func regularGet(isa vectors, w width) {
	r := beginRegular(isa, w, "get", 0,
		"func(r *byte, keys *byte, n int, vals *byte, found *bool, again *int32, top, distance int) (hits, repeat int)",
		"Does what getRegularGo does; n must be at least 1, found may be nil, and distance must fit the ring.")
	hits, repeat := GP64(), AllocLocal(8)
	XORL(hits.As32(), hits.As32())
	MOVQ(hits, repeat)
	r.staircase(r.atPilot, func(_ GPVirtual, q query, at ring) {
		_, part, c, line := r.atPilotSeps(q, at)
		MOVQ(line, at.place)
		LEAQ(Mem{Base: part, Index: c, Scale: 4}, part)
		SHRL(Imm(8), part.As32()) // 1 if the key is above the leaf: as if it were locked
		ORQ(part, at.word)
	}, func(i GPVirtual, q query, at ring) {
		r.atPairs(i, q, at, hits, repeat)
	})
	Store(hits, ReturnIndex(0))
	v := GP64()
	MOVQ(repeat, v)
	Store(v, ReturnIndex(1))
	finish()
}

// atPairs is the step at the pair line. The word is read again after
// everything else of the leaf.
func (r *regular) atPairs(i GPVirtual, q query, at ring, hits GPVirtual, repeat Mem) {
	word, line, pilot := GP64(), GP64(), GP64()
	MOVQ(at.word, word)
	TESTL(U32(wordUnread), word.As32())
	JNE(LabelRef("again"))
	MOVQ(at.place, line)
	slot, yes, val := GP64(), GP64(), GP64()
	r.isa.equalHalf(r.w, r.c, q, Mem{Base: line}, slot)
	TZCNTL(slot.As32(), slot.As32())
	SETCC(yes.As8())
	MOVBLZX(yes.As8(), yes.As32())
	// If there is none, any slot will do: the mask clears the value read.
	ANDL(Imm(uint64(r.w.keys()/2-1)), slot.As32())
	pair := Mem{Base: line, Index: slot, Scale: uint8(r.w.bytes()), Disp: 32}
	if r.w == 32 {
		MOVL(pair, val.As32())
	} else {
		MOVQ(pair, val)
	}
	MOVQ(at.node, pilot)
	CMPQ(word, Mem{Base: pilot, Disp: offWord})
	JNE(LabelRef("again"))
	mask := GP64()
	MOVQ(yes, mask)
	NEGQ(mask)
	ANDQ(mask, val)
	vals := Load(Param("vals"), GP64())
	if r.w == 32 {
		MOVL(val.As32(), Mem{Base: vals, Index: i, Scale: 4})
	} else {
		MOVQ(val, Mem{Base: vals, Index: i, Scale: 8})
	}
	ADDQ(yes, hits)
	found := Load(Param("found"), GP64())
	TESTQ(found, found)
	JE(LabelRef("leaf2Done"))
	MOVB(yes.As8(), Mem{Base: found, Index: i, Scale: 1})
	JMP(LabelRef("leaf2Done"))

	Label("again")
	Comment("The leaf is being changed, is dead, or lies left of the key.")
	again, k := Load(Param("again"), GP64()), GP64()
	MOVQ(repeat, k)
	MOVL(i.As32(), Mem{Base: again, Index: k, Scale: 4})
	INCQ(k)
	MOVQ(k, repeat)
}
