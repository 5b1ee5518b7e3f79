package ptx

import (
	"math/bits"
	"strconv"
)

// bitwise registers logic and shifts.
func (t table) bitwise() {
	logic := map[string]func(a, b uint64) uint64{
		"and": func(a, b uint64) uint64 { return a & b },
		"or":  func(a, b uint64) uint64 { return a | b },
		"xor": func(a, b uint64) uint64 { return a ^ b },
	}
	for _, ty := range []string{"pred", "b16", "b32", "b64"} {
		w := types[ty].bits
		k, mask := kindOf(w), maskOf(w)
		for name, f := range logic {
			t.put(name+"."+ty, func(r []uint64, in *inst) { r[in.d] = f(r[in.a], r[in.b]) }, k, k, k)
		}
		t.put("not."+ty, func(r []uint64, in *inst) { r[in.d] = ^r[in.a] & mask }, k, k)
		if w > 1 {
			t.put("cnot."+ty, func(r []uint64, in *inst) { r[in.d] = bit(r[in.a] == 0) }, k, k)
		}
	}
	shiftsOf[uint16, int16](t, "16", k16)
	shiftsOf[uint32, int32](t, "32", k32)
	shiftsOf[uint64, int64](t, "64", k64)
	t.put("lop3.b32", lookup3, k32, k32, k32, k32, kImm)
	t.funnels()
}

func shiftsOf[U unsigned, S signed](t table, bits string, k kind) {
	// Go's shifts by the width or more do what PTX requires: they result in 0,
	// or in the sign.
	t.put("shl.b"+bits, func(r []uint64, in *inst) { r[in.d] = uint64(U(r[in.a]) << uint32(r[in.b])) }, k, k, k32)
	for _, ty := range []string{"b", "u"} {
		t.put("shr."+ty+bits, func(r []uint64, in *inst) { r[in.d] = uint64(U(r[in.a]) >> uint32(r[in.b])) }, k, k, k32)
	}
	t.put("shr.s"+bits, func(r []uint64, in *inst) { r[in.d] = uint64(U(S(r[in.a]) >> uint32(r[in.b]))) }, k, k, k32)
}

// lookup3 applies a truth table of 8 bits to each bit of three words.
func lookup3(r []uint64, in *inst) {
	a, b, c := r[in.a], r[in.b], r[in.c]
	var v uint64
	for i := range uint(8) {
		if in.imm>>i&1 == 0 {
			continue
		}
		v |= pick(a, i&4) & pick(b, i&2) & pick(c, i&1)
	}
	r[in.d] = v & maskOf(32)
}

func pick(v uint64, positive uint) uint64 {
	if positive != 0 {
		return v
	}
	return ^v
}

// funnels registers shf: 32 bits out of a 64-bit pair, b high.
func (t table) funnels() {
	for mode, amount := range map[string]func(uint64) uint64{
		"clamp": func(c uint64) uint64 { return min(c, 32) },
		"wrap":  func(c uint64) uint64 { return c & 31 },
	} {
		t.put("shf.l."+mode+".b32", func(r []uint64, in *inst) {
			r[in.d] = (r[in.b]<<32 | r[in.a]) << amount(r[in.c]) >> 32
		}, k32, k32, k32, k32)
		t.put("shf.r."+mode+".b32", func(r []uint64, in *inst) {
			r[in.d] = (r[in.b]<<32 | r[in.a]) >> amount(r[in.c]) & maskOf(32)
		}, k32, k32, k32, k32)
	}
}

// bitFields registers counting, finding, extracting and permuting bits.
func (t table) bitFields() {
	for _, w := range []int{32, 64} {
		n, k := strconv.Itoa(w), kindOf(w)
		t.put("popc.b"+n, func(r []uint64, in *inst) { r[in.d] = uint64(bits.OnesCount64(r[in.a])) }, k32, k)
		t.put("clz.b"+n, func(r []uint64, in *inst) { r[in.d] = uint64(bits.LeadingZeros64(r[in.a]) - 64 + w) }, k32, k)
		t.put("brev.b"+n, func(r []uint64, in *inst) { r[in.d] = bits.Reverse64(r[in.a]) >> (64 - w) }, k, k)
		t.put("bfi.b"+n, func(r []uint64, in *inst) {
			r[in.d] = insertField(r[in.a], r[in.b], r[in.c], r[in.f], w)
		}, k, k, k, k32, k32)
		for _, sign := range []string{"u", "s"} {
			isSigned := sign == "s"
			t.put("bfe."+sign+n, func(r []uint64, in *inst) {
				r[in.d] = extractField(r[in.a], r[in.b], r[in.c], w, isSigned)
			}, k, k, k32, k32)
			for _, amount := range []string{"", ".shiftamt"} {
				asShift := amount != ""
				t.put("bfind"+amount+"."+sign+n, func(r []uint64, in *inst) {
					r[in.d] = findTop(r[in.a], w, isSigned, asShift)
				}, k32, k)
			}
		}
	}
	t.put("fns.b32", findNth, k32, k32, k32, k32)
	t.permutes()
	t.dots()
}

func extractField(a, pos, n uint64, w int, isSigned bool) uint64 {
	pos, n = pos&0xff, n&0xff
	top := uint64(w - 1)
	var fill uint64
	if isSigned && n != 0 && a>>min(pos+n-1, top)&1 != 0 {
		fill = ^uint64(0)
	}
	field := min(n, uint64(w)-min(pos, uint64(w))) // bits that exist
	low := a >> pos & (1<<field - 1)
	return (low | fill<<field) & maskOf(w)
}

func insertField(a, b, pos, n uint64, w int) uint64 {
	pos, n = pos&0xff, n&0xff
	mask := uint64(1)<<n - 1 // all ones where n is 64 or more
	return (b&^(mask<<pos) | a&mask<<pos) & maskOf(w)
}

// findTop returns the position of the highest bit that is not a copy of the
// sign, or its distance from the top; all ones if there is none.
func findTop(a uint64, w int, isSigned, asShift bool) uint64 {
	if isSigned && a>>(w-1)&1 != 0 {
		a = ^a & maskOf(w)
	}
	if a == 0 {
		return maskOf(32)
	}
	at := bits.Len64(a) - 1
	if asShift {
		at = w - 1 - at
	}
	return uint64(at)
}

// findNth implements fns: it finds the |c|-th set bit of a from position b,
// upwards for a positive c, downwards for a negative one, b itself for 0.
func findNth(r []uint64, in *inst) {
	mask, pos, n := r[in.a], r[in.b], s32(r[in.c])
	r[in.d] = maskOf(32)
	step := uint64(1)
	switch {
	case n == 0:
		if pos < 32 && mask>>pos&1 != 0 {
			r[in.d] = pos
		}
		return
	case n < 0:
		step, n = ^uint64(0), -n
	}
	for ; pos < 32; pos += step {
		if mask>>pos&1 == 0 {
			continue
		}
		if n--; n == 0 {
			r[in.d] = pos
			return
		}
	}
}

// Byte selectors of prmt's modes, most significant first, by the low bits of c.
var permuteModes = map[string][4]uint64{
	"f4e":  {0x3210, 0x4321, 0x5432, 0x6543},
	"b4e":  {0x5670, 0x6701, 0x7012, 0x0123},
	"rc8":  {0x0000, 0x1111, 0x2222, 0x3333},
	"ecl":  {0x3210, 0x3211, 0x3222, 0x3333},
	"ecr":  {0x0000, 0x1110, 0x2210, 0x3210},
	"rc16": {0x1010, 0x3232, 0x1010, 0x3232},
}

func (t table) permutes() {
	t.put("prmt.b32", func(r []uint64, in *inst) { r[in.d] = permute(r[in.a], r[in.b], r[in.c]) }, k32, k32, k32, k32)
	for name, selectors := range permuteModes {
		t.put("prmt.b32."+name, func(r []uint64, in *inst) {
			r[in.d] = permute(r[in.a], r[in.b], selectors[r[in.c]&3])
		}, k32, k32, k32, k32)
	}
}

// permute picks each byte of the result out of eight; if bit 3 of a selector
// is set, it replicates the sign of the byte instead.
func permute(a, b, selectors uint64) uint64 {
	bytes := b<<32 | a
	var v uint64
	for i := range uint(4) {
		sel := selectors >> (4 * i)
		c := bytes >> (8 * (sel & 7)) & 0xff
		if sel&8 != 0 {
			c = uint64(uint8(int8(c) >> 7))
		}
		v |= c << (8 * i)
	}
	return v
}

// dots registers dp4a: a sum of four products of bytes.
func (t table) dots() {
	byteOf := map[string]func(uint64) int64{
		"u32": func(v uint64) int64 { return int64(uint8(v)) },
		"s32": func(v uint64) int64 { return int64(int8(v)) },
	}
	for at, a := range byteOf {
		for bt, b := range byteOf {
			t.put("dp4a."+at+"."+bt, func(r []uint64, in *inst) {
				sum := int64(r[in.c])
				for i := range uint(4) {
					sum += a(r[in.a]>>(8*i)) * b(r[in.b]>>(8*i))
				}
				r[in.d] = uint64(uint32(sum))
			}, k32, k32, k32, k32)
		}
	}
}
