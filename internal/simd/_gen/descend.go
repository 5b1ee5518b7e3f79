package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Tree.
const (
	offBase      = 0
	offNext      = 8
	offLevels    = 136
	offTop       = 144
	offFanout    = 152
	offLeaves    = 160
	offLastLeaf  = 168
	offLeafMask  = 176
	offLeafShift = 184
	offLen       = 192
	offDistance  = 200
	offVals      = 208
	offValSize   = 216
	offFrom      = 224
)

// routine is the state that all steps of one routine share.
type routine struct {
	isa    vectors
	w      width
	how    method
	c      consts
	way    way
	tree   Register
	base   Register
	labels int
}

// way is how the inner levels of a tree are laid out: the row of their table
// for each level, where a node is, and how it leads to its children.
type way interface {
	name() string
	table() int  // offset of the table
	stride() int // size of an entry: 8 times a power of two
	// node returns the line of x, a node that is ahead levels below that of
	// entry.
	node(r *routine, entry Register, ahead int, x GPVirtual) Mem
	// child replaces x by its child n.
	child(r *routine, entry Register, x, n GPVirtual)
	// near emits the setup for, and returns, the code that takes x down the
	// levels that have a shorter way, if any, and advances entry past them.
	near(r *routine) func(q query, entry Register, x GPVirtual)
	// leaf replaces x, which has reached the leaves, by the place of a leaf.
	leaf(r *routine, x GPVirtual)
}

// places is the way of a simd.Tree: nodes are identified by their place.
type places struct{}

func (places) name() string { return "" }
func (places) table() int   { return offNext }
func (places) stride() int  { return 8 }

func (places) node(r *routine, _ Register, _ int, x GPVirtual) Mem { return r.node(x) }

func (places) child(r *routine, entry Register, x, n GPVirtual) {
	IMULQ(r.field(offFanout), x)
	ADDQ(Mem{Base: entry}, x)
	LEAQ(Mem{Base: x, Index: n, Scale: 8}, x)
}

func (places) near(*routine) func(query, Register, GPVirtual) {
	return func(query, Register, GPVirtual) {}
}

func (places) leaf(r *routine, x GPVirtual) { r.clamp(x) }

// clamp keeps x from lying past the last leaf: a tree closed by another
// goroutine reads as zeros and can lead anywhere.
func (r *routine) clamp(x GPVirtual) {
	last := GP64()
	MOVQ(r.field(offLastLeaf), last)
	CMPQ(x, last)
	CMOVQHI(last, x)
}

// entryOf sets dst to the address of a level's entry; level is a field.
func (r *routine) entryOf(level int, dst GPVirtual) {
	MOVQ(r.field(level), dst)
	if r.way.stride() > 8 {
		SHLQ(Imm(uint64(bits.TrailingZeros(uint(r.way.stride()/8)))), dst)
	}
	LEAQ(Mem{Base: r.tree, Disp: r.way.table(), Index: dst, Scale: 8}, dst)
}

func (r *routine) label(name string) string {
	r.labels++
	return fmt.Sprintf("%s%d", name, r.labels)
}

// node returns the node at place x.
func (r *routine) node(x Register) Mem { return Mem{Base: r.base, Index: x, Scale: 8} }

func (r *routine) field(offset int) Mem { return Mem{Base: r.tree, Disp: offset} }

func begin(in way, isa vectors, w width, how method, name, signature, doc string) *routine {
	TEXT(fmt.Sprintf("%s%s%d%s%s", name, in.name(), w, how, isa.name()), NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
	r := &routine{isa: isa, w: w, how: how, way: in}
	r.tree = Load(Param("t"), GP64())
	r.base = GP64()
	MOVQ(r.field(offBase), r.base)
	r.c = isa.prepare(w)
	return r
}

// count sets dst to the number of keys of a node that are below the key.
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

// countParts compares the last keys of all parts but the last, which select
// the part, then the keys of that part.
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

// step replaces a node by the child to continue with. entry is the address of
// the level's entry in the table.
func (r *routine) step(q query, scalar Op, entry Register, x GPVirtual) {
	n := GP64()
	r.count(q, scalar, r.way.node(r, entry, 0, x), n)
	r.way.child(r, entry, x, n)
}

// entry replaces the place of a leaf by the rank of its entry in slot n.
func (r *routine) entry(x, n GPVirtual) {
	shift := GP64()
	SUBQ(r.field(offLeaves), x)
	MOVQ(r.field(offLeafShift), shift)
	SHLXQ(shift, x, x)
	SHRQ(Imm(3), x)
	ADDQ(n, x)
}

// lowerBound replaces the place of a leaf by the rank of the key.
func (r *routine) lowerBound(q query, x GPVirtual) {
	n := GP64()
	r.isa.below(r.w, r.c, q, r.node(x), n)
	ANDL(r.field(offLeafMask), n.As32())
	POPCNTL(n.As32(), n.As32())
	r.entry(x, n)
	end := GP64()
	MOVQ(r.field(offLen), end)
	CMPQ(x, end)
	CMOVQHI(end, x)
}

// firstEqual returns the first slot that holds the key in the leaf at x. If
// there is none, the carry flag is set and the slot is 32.
func (r *routine) firstEqual(q query, x GPVirtual) (slot GPVirtual) {
	slot = GP64()
	r.isa.equal(r.w, r.c, q, r.node(x), slot)
	ANDL(r.field(offLeafMask), slot.As32())
	TZCNTL(slot.As32(), slot.As32())
	return slot
}

// staircase emits the loop over a batch: see the package comment of simd.
// Between two steps of a query, the place of its node is kept where its result
// will be stored, in outBytes bytes.
func (r *routine) staircase(outBytes int, atLeaf func(out, i Register, q query, x GPVirtual)) {
	keys := Load(Param("keys"), GP64()).(GPVirtual)
	n := Load(Param("n"), GP64()).(GPVirtual)
	out := Load(Param("out"), GP64()).(GPVirtual)
	key := func(i Register) Mem { return Mem{Base: keys, Index: i, Scale: uint8(r.w.bytes())} }
	place := func(i Register) Mem { return Mem{Base: out, Index: i, Scale: uint8(outBytes)} }
	save := func(x GPVirtual, i, entry Register, ahead int) {
		if outBytes == 4 {
			MOVL(x.As32(), place(i))
		} else {
			MOVQ(x, place(i))
		}
		PREFETCHT1(r.way.node(r, entry, ahead, x))
	}
	restore := func(i Register) GPVirtual {
		x := GP64()
		if outBytes == 4 {
			MOVL(place(i), x.As32())
		} else {
			MOVQ(place(i), x)
		}
		return x
	}

	distance := GP64()
	MOVQ(r.field(offDistance), distance)
	CMPQ(distance, n) // a short batch needs no long staircase
	CMOVQHI(n, distance)
	// The first query is at the leaves after Levels-Top+1 times the distance;
	// the last one as many steps after it has started.
	end, steps := AllocLocal(8), GP64()
	MOVQ(r.field(offLevels), steps)
	SUBQ(r.field(offTop), steps)
	INCQ(steps)
	IMULQ(distance, steps)
	ADDQ(n, steps)
	MOVQ(steps, end)
	near := r.way.near(r)
	first, top, bottom := AllocLocal(8), AllocLocal(8), GP64() // addresses in the table
	r.entryOf(offFrom, bottom)
	MOVQ(bottom, first)
	r.entryOf(offTop, bottom)
	MOVQ(bottom, top)
	r.entryOf(offLevels, bottom)
	t := GP64()
	XORL(t.As32(), t.As32())

	Label("next")
	level := GP64()
	Comment("A new query walks through the top levels, which are in the nearest caches.")
	CMPQ(t, n)
	JAE(LabelRef("older"))
	{
		q := r.isa.key(r.w, r.c, key(t))
		x := GP64()
		XORL(x.As32(), x.As32())
		CMPQ(r.field(offFrom), Imm(0))
		JE(LabelRef("root"))
		if outBytes == 4 {
			MOVL(place(t), x.As32())
		} else {
			MOVQ(place(t), x)
		}
		Label("root")
		MOVQ(first, level)
		near(q, level, x)
		CMPQ(level, top)
		JE(LabelRef("walked"))
		Label("walk")
		r.step(q, key(t), level, x)
		ADDQ(Imm(uint64(r.way.stride())), level)
		CMPQ(level, top)
		JNE(LabelRef("walk"))
		Label("walked")
		save(x, t, level, 0)
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
		x := restore(i)
		r.step(q, key(i), level, x)
		save(x, i, level, 1)
	}
	Label("staged")
	ADDQ(Imm(uint64(r.way.stride())), level)
	SUBQ(distance, i)
	CMPQ(level, bottom)
	JNE(LabelRef("stage"))

	Label("leaf")
	Comment("The oldest is at its leaf.")
	CMPQ(i, n)
	JAE(LabelRef("done"))
	{
		q := r.isa.key(r.w, r.c, key(i))
		x := restore(i)
		r.way.leaf(r, x)
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

func rank(in way, isa vectors, w width, how method) {
	r := begin(in, isa, w, how, "rank", batchSignature, "Does what rankGo does; n must be at least 1.")
	r.staircase(8, func(out, i Register, q query, x GPVirtual) {
		r.lowerBound(q, x)
		MOVQ(x, Mem{Base: out, Index: i, Scale: 8})
	})
	finish()
}

func down(in way, isa vectors, w width) {
	r := begin(in, isa, w, linear, "down", batchSignature, "Does what downGo does; n must be at least 1.")
	r.staircase(8, func(out, i Register, q query, x GPVirtual) {
		MOVQ(x, Mem{Base: out, Index: i, Scale: 8})
	})
	finish()
}

func find(in way, isa vectors, w width) {
	r := begin(in, isa, w, linear, "find", batchSignature, "Does what findGo does; n must be at least 1.")
	r.staircase(8, func(out, i Register, q query, x GPVirtual) {
		leaf := GP64()
		LEAQ(r.node(x), leaf)
		slot, none := r.firstEqual(q, x), GP64()
		MOVQ(I32(-1), none)
		CMOVQCC(slot, none) // slot or -1
		r.entry(x, slot)
		at := GP64()
		MOVQ(r.field(offValSize), at)
		IMULQ(x, at)
		ADDQ(r.field(offVals), at)
		TESTQ(none, none)
		CMOVQMI(none, x)
		CMOVQMI(leaf, at) // a miss has no value to fetch: take a line that exists
		PREFETCHT1(Mem{Base: at})
		MOVQ(x, Mem{Base: out, Index: i, Scale: 8})
	})
	finish()
}

func get(in way, isa vectors, w width) {
	r := begin(in, isa, w, linear, "get", "func(t *byte, keys *byte, n int, out *byte, found *bool) int", "Does what getGo does; n must be at least 1, and found may be nil.")
	hits := GP64()
	XORL(hits.As32(), hits.As32())
	r.staircase(w.bytes(), func(out, i Register, q query, x GPVirtual) {
		val, yes := GP64(), GP64()
		LEAQ(r.node(x).Offset(32), val)
		slot := r.firstEqual(q, x)
		SETCC(yes.As8())
		MOVBLZX(yes.As8(), yes.As32())
		// If there is none, any slot of the leaf will do: the mask clears the
		// value read.
		ANDL(Imm(uint64(w.keys()/2-1)), slot.As32())
		mask := GP64()
		MOVQ(yes, mask)
		NEGQ(mask)
		if w == 32 {
			MOVL(Mem{Base: val, Index: slot, Scale: 4}, val.As32())
		} else {
			MOVQ(Mem{Base: val, Index: slot, Scale: 8}, val)
		}
		ANDQ(mask, val)
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
	r := begin(places{}, isa, w, linear, "seek", "func(t *byte, key uint64) (rank int, equal bool)", "Does what seekGo does.")
	key := Load(Param("key"), GP64()).(GPVirtual)
	var from Op = key
	if _, any := isa.(avx512); any && w == 32 {
		from = key.As32()
	}
	q := isa.key(w, r.c, from)
	x, level, bottom := GP64(), GP64(), GP64()
	XORL(x.As32(), x.As32())
	LEAQ(r.field(offNext), level)
	MOVQ(r.field(offLevels), bottom)
	LEAQ(Mem{Base: r.tree, Disp: offNext, Index: bottom, Scale: 8}, bottom)
	CMPQ(level, bottom)
	JE(LabelRef("leaf"))
	Label("walk")
	r.step(q, nil, level, x)
	ADDQ(Imm(8), level)
	CMPQ(level, bottom)
	JNE(LabelRef("walk"))
	Label("leaf")
	r.way.leaf(r, x)
	r.firstEqual(q, x)
	yes := GP64()
	SETCC(yes.As8())
	Store(yes.As8(), ReturnIndex(1))
	r.lowerBound(q, x)
	Store(x, ReturnIndex(0))
	finish()
}

// prefetch emits a routine that prefetches lines: Go has no such instruction.
func prefetch() {
	TEXT("prefetchLines", NOSPLIT, "func(at *byte, lines int)")
	Pragma("noescape")
	Doc("Prefetches lines from address at on; lines must be at least 1.")
	at, lines := Load(Param("at"), GP64()), Load(Param("lines"), GP64())
	Label("line")
	PREFETCHT0(Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(lines)
	JNE(LabelRef("line"))
	RET()
}

// stream emits a copy that bypasses the caches.
func stream() {
	TEXT("streamLines", NOSPLIT, "func(dst, src *byte, lines int)")
	Pragma("noescape")
	Doc("Copies lines of 64 bytes; dst must be a multiple of 64, and lines must be at least 1.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	lines := Load(Param("lines"), GP64())
	a, b := YMM(), YMM()
	Label("line")
	VMOVDQU(Mem{Base: src}, a)
	VMOVDQU(Mem{Base: src, Disp: 32}, b)
	VMOVNTDQ(a, Mem{Base: dst})
	VMOVNTDQ(b, Mem{Base: dst, Disp: 32})
	ADDQ(Imm(64), src)
	ADDQ(Imm(64), dst)
	DECQ(lines)
	JNE(LabelRef("line"))
	SFENCE()
	finish()
}

// pause emits a wait that leaves the core to the other thread on it.
func pause() {
	TEXT("pauseTimes", NOSPLIT, "func(times int)")
	Doc("Pauses the given number of times, at least 1, for some ten nanoseconds or more each.")
	times := Load(Param("times"), GP64())
	Label("again")
	PAUSE()
	DECQ(times)
	JNE(LabelRef("again"))
	RET()
}
