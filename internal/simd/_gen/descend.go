package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Tree.
const (
	offLevel     = 0
	offLevels    = 128
	offTop       = 136
	offFanout    = 144
	offLeafMask  = 152
	offLeafShift = 160
	offLastLeaf  = 168
	offLen       = 176
	offDistance  = 184
	offVals      = 192
	offValSize   = 200
)

// routine is what all steps of one routine share.
type routine struct {
	isa    vectors
	w      width
	how    method
	c      consts
	tree   Register
	labels int
}

func (r *routine) label(name string) string {
	r.labels++
	return fmt.Sprintf("%s%d", name, r.labels)
}

func (r *routine) field(offset int) Mem { return Mem{Base: r.tree, Disp: offset} }

func begin(isa vectors, w width, how method, name, signature, doc string) *routine {
	TEXT(fmt.Sprintf("%s%d%s%s", name, w, how, isa.name()), NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
	r := &routine{isa: isa, w: w, how: how}
	r.tree = Load(Param("t"), GP64())
	r.c = isa.prepare(w)
	return r
}

// count leaves in dst the number of keys of a node that are below the key.
func (r *routine) count(q query, scalar Op, node Mem, dst GPVirtual) {
	switch r.how {
	case linear:
		r.isa.below(r.w, r.c, q, node, dst)
		POPCNTL(dst.As32(), dst.As32())
	case hierarchical:
		r.countParts(q, node, dst)
	case sequential:
		r.countOne(scalar, node, dst)
	}
}

// countParts compares the last keys of all parts but the last, which tell the
// part, then the keys of that part.
func (r *routine) countParts(q query, node Mem, dst GPVirtual) {
	bounds := XMM()
	if r.w == 64 { // parts of 3, 3, 2
		VMOVQ(node.Offset(2*8), bounds)
		VPINSRQ(Imm(1), node.Offset(5*8), bounds, bounds)
	} else { // four parts of 4
		VMOVD(node.Offset(3*4), bounds)
		VPINSRD(Imm(1), node.Offset(7*4), bounds, bounds)
		VPINSRD(Imm(2), node.Offset(11*4), bounds, bounds)
	}
	part := GP64()
	r.isa.belowPart(r.w, r.c, q, bounds, part)
	if r.w == 32 {
		ANDL(Imm(7), part.As32()) // the fourth lane holds no key
	}
	POPCNTL(part.As32(), part.As32())
	if r.w == 64 {
		LEAQ(Mem{Base: part, Index: part, Scale: 2}, part)
	} else {
		SHLL(Imm(2), part.As32())
	}
	inside := GP64()
	LEAQ(node, inside)
	r.isa.belowPart(r.w, r.c, q, Mem{Base: inside, Index: part, Scale: uint8(r.w.bytes())}, dst)
	POPCNTL(dst.As32(), dst.As32())
	ADDL(part.As32(), dst.As32())
}

// countOne compares key by key and stops at the first that is not below.
func (r *routine) countOne(scalar Op, node Mem, dst GPVirtual) {
	again, done := r.label("key"), r.label("counted")
	at := GP64()
	LEAQ(node, at)
	XORL(dst.As32(), dst.As32())
	key := GP64()
	if r.w == 64 {
		MOVQ(scalar, key)
	} else {
		MOVL(scalar, key.As32())
	}
	Label(again)
	if r.w == 64 {
		CMPQ(key, Mem{Base: at, Index: dst, Scale: 8})
	} else {
		CMPL(key.As32(), Mem{Base: at, Index: dst, Scale: 4})
	}
	JBE(LabelRef(done))
	INCL(dst.As32())
	CMPL(dst.As32(), Imm(uint64(r.w.keys())))
	JNE(LabelRef(again))
	Label(done)
}

// step replaces a node's number by that of the child to go on to.
func (r *routine) step(q query, scalar Op, level Register, x GPVirtual) {
	at, n := GP64(), GP64()
	MOVQ(x, at)
	SHLQ(Imm(6), at)
	r.count(q, scalar, Mem{Base: level, Index: at, Scale: 1}, n)
	IMULQ(r.field(offFanout), x)
	ADDQ(n, x)
}

// leaf loads the address of leaf x, after a look at the last leaf's number:
// a tree closed by another goroutine reads as zeros and can lead anywhere.
func (r *routine) leaf(x GPVirtual) Mem {
	last, at := GP64(), GP64()
	MOVQ(r.field(offLastLeaf), last)
	CMPQ(x, last)
	CMOVQHI(last, x)
	MOVQ(r.field(offLevels), at)
	MOVQ(Mem{Base: r.tree, Index: at, Scale: 8}, at)
	offset := GP64()
	MOVQ(x, offset)
	SHLQ(Imm(6), offset)
	return Mem{Base: at, Index: offset, Scale: 1}
}

// rankOf leaves in x the rank of the place n in leaf x.
func (r *routine) rankOf(x, n GPVirtual) {
	shift := GP64()
	MOVQ(r.field(offLeafShift), shift)
	SHLXQ(shift, x, x)
	ADDQ(n, x)
}

// belowLeaf leaves in x the rank of the key searched for in leaf x.
func (r *routine) belowLeaf(q query, leaf Mem, x GPVirtual) {
	n := GP64()
	r.isa.below(r.w, r.c, q, leaf, n)
	ANDL(r.field(offLeafMask), n.As32())
	POPCNTL(n.As32(), n.As32())
	r.rankOf(x, n)
	end := GP64()
	MOVQ(r.field(offLen), end)
	CMPQ(x, end)
	CMOVQHI(end, x)
}

// equalLeaf leaves in places a bit for each place of the leaf with the key.
func (r *routine) equalLeaf(q query, leaf Mem) (places GPVirtual) {
	places = GP64()
	r.isa.equal(r.w, r.c, q, leaf, places)
	ANDL(r.field(offLeafMask), places.As32())
	return places
}

// staircase emits the loop over a batch: see the package comment of simd.
// Between two steps of a query, the number of its node waits in its place of
// the output, as 32 bits.
func (r *routine) staircase(outBytes int, atLeaf func(out, i Register, q query, x GPVirtual)) {
	keys := Load(Param("keys"), GP64()).(GPVirtual)
	n := Load(Param("n"), GP64()).(GPVirtual)
	out := Load(Param("out"), GP64()).(GPVirtual)
	key := func(i Register) Mem { return Mem{Base: keys, Index: i, Scale: uint8(r.w.bytes())} }
	node := func(i Register) Mem { return Mem{Base: out, Index: i, Scale: uint8(outBytes)} }
	prefetch := func(level Mem, x GPVirtual) {
		at := GP64()
		MOVQ(level, at)
		SHLQ(Imm(6), x)
		PREFETCHT1(Mem{Base: at, Index: x, Scale: 1})
	}

	distance := GP64()
	MOVQ(r.field(offDistance), distance)
	CMPQ(distance, n) // a short batch needs no long staircase
	CMOVQHI(n, distance)
	// The first query is at the leaves after Levels-Top+1 times the distance;
	// the last one as many steps after it has started.
	end := AllocLocal(8)
	steps := GP64()
	MOVQ(r.field(offLevels), steps)
	SUBQ(r.field(offTop), steps)
	INCQ(steps)
	IMULQ(distance, steps)
	ADDQ(n, steps)
	MOVQ(steps, end)
	top, bottom := AllocLocal(8), GP64() // addresses in Tree.Level
	MOVQ(r.field(offTop), bottom)
	LEAQ(Mem{Base: r.tree, Index: bottom, Scale: 8}, bottom)
	MOVQ(bottom, top)
	MOVQ(r.field(offLevels), bottom)
	LEAQ(Mem{Base: r.tree, Index: bottom, Scale: 8}, bottom)
	t := GP64()
	XORL(t.As32(), t.As32())

	Label("next")
	level := GP64()
	Comment("A new query goes through the top levels, which are in the nearest caches.")
	CMPQ(t, n)
	JAE(LabelRef("older"))
	{
		q := r.isa.key(r.w, r.c, key(t))
		x := GP64()
		XORL(x.As32(), x.As32())
		MOVQ(r.tree, level)
		CMPQ(level, top)
		JE(LabelRef("walked"))
		Label("walk")
		nodes := GP64()
		MOVQ(Mem{Base: level}, nodes)
		r.step(q, key(t), nodes, x)
		ADDQ(Imm(8), level)
		CMPQ(level, top)
		JNE(LabelRef("walk"))
		Label("walked")
		MOVL(x.As32(), node(t))
		prefetch(Mem{Base: level}, x)
	}

	Label("older")
	Comment("Older queries take one level each.")
	i := GP64()
	MOVQ(t, i)
	SUBQ(distance, i)
	MOVQ(top, level)
	CMPQ(level, bottom)
	JE(LabelRef("leaf"))
	Label("stage")
	CMPQ(i, n) // unsigned: not yet started, or already done
	JAE(LabelRef("staged"))
	{
		q := r.isa.key(r.w, r.c, key(i))
		x, nodes := GP64(), GP64()
		MOVL(node(i), x.As32())
		MOVQ(Mem{Base: level}, nodes)
		r.step(q, key(i), nodes, x)
		MOVL(x.As32(), node(i))
		prefetch(Mem{Base: level, Disp: 8}, x)
	}
	Label("staged")
	ADDQ(Imm(8), level)
	SUBQ(distance, i)
	CMPQ(level, bottom)
	JNE(LabelRef("stage"))

	Label("leaf")
	Comment("The oldest is at its leaf.")
	CMPQ(i, n)
	JAE(LabelRef("done"))
	{
		q := r.isa.key(r.w, r.c, key(i))
		x := GP64()
		MOVL(node(i), x.As32())
		atLeaf(out, i, q, x)
	}
	Label("done")
	INCQ(t)
	CMPQ(t, end)
	JB(LabelRef("next"))
}

func finish() {
	VZEROUPPER()
	RET()
}

const batchSignature = "func(t *byte, keys *byte, n int, out *int)"

func rank(isa vectors, w width, how method) {
	r := begin(isa, w, how, "rank", batchSignature, "Equals rankGo; n is at least 1.")
	r.staircase(8, func(out, i Register, q query, x GPVirtual) {
		r.belowLeaf(q, r.leaf(x), x)
		MOVQ(x, Mem{Base: out, Index: i, Scale: 8})
	})
	finish()
}

func find(isa vectors, w width) {
	r := begin(isa, w, linear, "find", batchSignature, "Equals findGo; n is at least 1.")
	r.staircase(8, func(out, i Register, q query, x GPVirtual) {
		places := r.equalLeaf(q, r.leaf(x))
		n := GP64()
		MOVL(places.As32(), n.As32())
		ORL(U32(1<<31), n.As32()) // some place in any case
		TZCNTL(n.As32(), n.As32())
		r.rankOf(x, n)
		at := GP64()
		MOVQ(r.field(offValSize), at)
		IMULQ(x, at)
		ADDQ(r.field(offVals), at)
		PREFETCHT1(Mem{Base: at})
		none := GP64()
		MOVQ(I32(-1), none)
		TESTL(places.As32(), places.As32())
		CMOVQEQ(none, x)
		MOVQ(x, Mem{Base: out, Index: i, Scale: 8})
	})
	finish()
}

func get(isa vectors, w width) {
	r := begin(isa, w, linear, "get", "func(t *byte, keys *byte, n int, out *byte, found *bool) int", "Equals getGo; n is at least 1, found may be nil.")
	hits := GP64()
	XORL(hits.As32(), hits.As32())
	r.staircase(w.bytes(), func(out, i Register, q query, x GPVirtual) {
		leaf := r.leaf(x)
		places := r.equalLeaf(q, leaf)
		n, val := GP64(), GP64()
		MOVL(places.As32(), n.As32())
		ORL(Imm(1<<(uint(w.keys())/2-1)), n.As32()) // some place in any case
		TZCNTL(n.As32(), n.As32())
		LEAQ(leaf.Offset(32), val)
		yes, none := GP64(), GP64()
		XORL(yes.As32(), yes.As32())
		XORL(none.As32(), none.As32())
		if w == 32 {
			MOVL(Mem{Base: val, Index: n, Scale: 4}, val.As32())
		} else {
			MOVQ(Mem{Base: val, Index: n, Scale: 8}, val)
		}
		TESTL(places.As32(), places.As32())
		CMOVQEQ(none, val)
		SETNE(yes.As8())
		if w == 32 {
			MOVL(val.As32(), Mem{Base: out, Index: i, Scale: 4})
		} else {
			MOVQ(val, Mem{Base: out, Index: i, Scale: 8})
		}
		ADDQ(yes, hits)
		found := Load(Param("found"), GP64())
		TESTQ(found, found)
		JE(LabelRef("done"))
		MOVB(yes.As8(), Mem{Base: found, Index: i, Scale: 1})
	})
	Store(hits, ReturnIndex(0))
	finish()
}

func seek(isa vectors, w width) {
	r := begin(isa, w, linear, "seek", "func(t *byte, key uint64) (rank int, equal bool)", "Equals seekGo.")
	key := Load(Param("key"), GP64()).(GPVirtual)
	var from Op = key
	if w == 32 {
		from = key.As32()
	}
	if _, narrow := isa.(avx2); narrow {
		from = key
	}
	q := isa.key(w, r.c, from)
	x, level, bottom := GP64(), GP64(), GP64()
	XORL(x.As32(), x.As32())
	MOVQ(r.tree, level)
	MOVQ(r.field(offLevels), bottom)
	LEAQ(Mem{Base: r.tree, Index: bottom, Scale: 8}, bottom)
	CMPQ(level, bottom)
	JE(LabelRef("leaf"))
	Label("walk")
	nodes := GP64()
	MOVQ(Mem{Base: level}, nodes)
	r.step(q, nil, nodes, x)
	ADDQ(Imm(8), level)
	CMPQ(level, bottom)
	JNE(LabelRef("walk"))
	Label("leaf")
	leaf := r.leaf(x)
	places := r.equalLeaf(q, leaf)
	yes := GP64()
	XORL(yes.As32(), yes.As32())
	TESTL(places.As32(), places.As32())
	SETNE(yes.As8())
	r.belowLeaf(q, leaf, x)
	Store(x, ReturnIndex(0))
	Store(yes.As8(), ReturnIndex(1))
	finish()
}
