package ptx

import "math/bits"

type unsigned interface{ uint16 | uint32 | uint64 }
type signed interface{ int16 | int32 | int64 }

// integers registers arithmetic on 16, 32 and 64 bits.
func (t table) integers() {
	integersOf[uint16, int16](t, "16", k16)
	integersOf[uint32, int32](t, "32", k32)
	integersOf[uint64, int64](t, "64", k64)
	widening(t)
	for _, ty := range []string{"u64", "s64"} {
		high := mulHighU64
		if ty == "s64" {
			high = mulHighS64
		}
		t.put("mul.hi."+ty, func(r []uint64, in *inst) { r[in.d] = high(r[in.a], r[in.b]) }, k64, k64, k64)
		t.put("mad.hi."+ty, func(r []uint64, in *inst) { r[in.d] = high(r[in.a], r[in.b]) + r[in.c] }, k64, k64, k64, k64)
	}
	t.put("add.sat.s32", func(r []uint64, in *inst) { r[in.d] = clamp32(s32(r[in.a]) + s32(r[in.b])) }, k32, k32, k32)
	t.put("sub.sat.s32", func(r []uint64, in *inst) { r[in.d] = clamp32(s32(r[in.a]) - s32(r[in.b])) }, k32, k32, k32)
	t.put("mad.hi.sat.s32", func(r []uint64, in *inst) {
		r[in.d] = clamp32(s32(r[in.a])*s32(r[in.b])>>32 + s32(r[in.c]))
	}, k32, k32, k32, k32)
	multiply24(t)
}

func integersOf[U unsigned, S signed](t table, bits string, k kind) {
	for _, ty := range []string{"u" + bits, "s" + bits} {
		t.put("add."+ty, addTo[U], k, k, k)
		t.put("sub."+ty, subFrom[U], k, k, k)
		t.put("mul.lo."+ty, mulLow[U], k, k, k)
		t.put("mad.lo."+ty, madLow[U], k, k, k, k)
	}
	t.put("div.u"+bits, divide[U, U], k, k, k)
	t.put("div.s"+bits, divide[U, S], k, k, k)
	t.put("rem.u"+bits, remainder[U, U], k, k, k)
	t.put("rem.s"+bits, remainder[U, S], k, k, k)
	t.put("min.u"+bits, least[U, U], k, k, k)
	t.put("min.s"+bits, least[U, S], k, k, k)
	t.put("max.u"+bits, greatest[U, U], k, k, k)
	t.put("max.s"+bits, greatest[U, S], k, k, k)
	t.put("sad.u"+bits, sumOfDifference[U, U], k, k, k, k)
	t.put("sad.s"+bits, sumOfDifference[U, S], k, k, k, k)
	t.put("abs.s"+bits, absolute[U, S], k, k)
	t.put("neg.s"+bits, negative[U], k, k)
}

// The functions below are instantiated with U as the register's width and T as
// the type that decides the sign: U itself, or the signed type of its size.

func addTo[U unsigned](r []uint64, in *inst)   { r[in.d] = uint64(U(r[in.a]) + U(r[in.b])) }
func subFrom[U unsigned](r []uint64, in *inst) { r[in.d] = uint64(U(r[in.a]) - U(r[in.b])) }
func mulLow[U unsigned](r []uint64, in *inst)  { r[in.d] = uint64(U(r[in.a]) * U(r[in.b])) }
func madLow[U unsigned](r []uint64, in *inst) {
	r[in.d] = uint64(U(r[in.a])*U(r[in.b]) + U(r[in.c]))
}
func negative[U unsigned](r []uint64, in *inst) { r[in.d] = uint64(-U(r[in.a])) }

// divide returns all ones for a divisor of 0, as the hardware does.
func divide[U unsigned, T unsigned | signed](r []uint64, in *inst) {
	if U(r[in.b]) == 0 {
		r[in.d] = uint64(^U(0))
		return
	}
	r[in.d] = uint64(U(T(r[in.a]) / T(r[in.b])))
}

// remainder returns all ones for a divisor of 0, as the hardware does.
func remainder[U unsigned, T unsigned | signed](r []uint64, in *inst) {
	if U(r[in.b]) == 0 {
		r[in.d] = uint64(^U(0))
		return
	}
	r[in.d] = uint64(U(T(r[in.a]) % T(r[in.b])))
}

func least[U unsigned, T unsigned | signed](r []uint64, in *inst) {
	r[in.d] = uint64(U(min(T(r[in.a]), T(r[in.b]))))
}

func greatest[U unsigned, T unsigned | signed](r []uint64, in *inst) {
	r[in.d] = uint64(U(max(T(r[in.a]), T(r[in.b]))))
}

func sumOfDifference[U unsigned, T unsigned | signed](r []uint64, in *inst) {
	a, b := T(r[in.a]), T(r[in.b])
	r[in.d] = uint64(U(r[in.c]) + U(max(a, b)) - U(min(a, b)))
}

func absolute[U unsigned, S signed](r []uint64, in *inst) {
	v := S(r[in.a])
	if v < 0 {
		v = -v // the least number stays as it is
	}
	r[in.d] = uint64(U(v))
}

func s16(v uint64) int64 { return int64(int16(v)) }
func s32(v uint64) int64 { return int64(int32(v)) }

func clamp32(v int64) uint64 {
	return uint64(uint32(max(-1<<31, min(v, 1<<31-1))))
}

// widening registers mul and mad .wide and .hi of 16 and 32 bits, which fit in
// 64.
func widening(t table) {
	product := map[string]func(a, b uint64) uint64{
		"u16": func(a, b uint64) uint64 { return a * b },
		"s16": func(a, b uint64) uint64 { return uint64(s16(a) * s16(b)) },
		"u32": func(a, b uint64) uint64 { return a * b },
		"s32": func(a, b uint64) uint64 { return uint64(s32(a) * s32(b)) },
	}
	for ty, mul := range product {
		w := types[ty].bits
		k, k2 := kindOf(w), kindOf(2*w)
		mask, mask2 := maskOf(w), maskOf(2*w)
		t.put("mul.hi."+ty, func(r []uint64, in *inst) { r[in.d] = mul(r[in.a], r[in.b]) >> w & mask }, k, k, k)
		t.put("mad.hi."+ty, func(r []uint64, in *inst) { r[in.d] = (mul(r[in.a], r[in.b])>>w + r[in.c]) & mask }, k, k, k, k)
		if ty != "u32" && ty != "s32" {
			t.put("mul.wide."+ty, func(r []uint64, in *inst) { r[in.d] = mul(r[in.a], r[in.b]) & mask2 }, k2, k, k)
		}
		t.put("mad.wide."+ty, func(r []uint64, in *inst) { r[in.d] = (mul(r[in.a], r[in.b]) + r[in.c]) & mask2 }, k2, k, k, k2)
	}
	// The two that index arithmetic uses most.
	t.put("mul.wide.u32", func(r []uint64, in *inst) { r[in.d] = r[in.a] * r[in.b] }, k64, k32, k32)
	t.put("mul.wide.s32", func(r []uint64, in *inst) { r[in.d] = uint64(s32(r[in.a]) * s32(r[in.b])) }, k64, k32, k32)
}

func mulHighU64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

func mulHighS64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi - uint64(int64(a)>>63)&b - uint64(int64(b)>>63)&a
}

// multiply24 registers products of the low 24 bits: .lo returns the low and
// .hi the high 32 bits of the 48-bit product.
func multiply24(t table) {
	product := map[string]func(a, b uint64) int64{
		"u32": func(a, b uint64) int64 { return int64(a & 0xffffff * (b & 0xffffff)) },
		"s32": func(a, b uint64) int64 { return int64(int32(a<<8)) >> 8 * (int64(int32(b<<8)) >> 8) },
	}
	for ty, mul := range product {
		for half, shift := range map[string]uint{"lo": 0, "hi": 16} {
			t.put("mul24."+half+"."+ty, func(r []uint64, in *inst) {
				r[in.d] = uint64(uint32(mul(r[in.a], r[in.b]) >> shift))
			}, k32, k32, k32)
			t.put("mad24."+half+"."+ty, func(r []uint64, in *inst) {
				r[in.d] = uint64(uint32(mul(r[in.a], r[in.b])>>shift) + uint32(r[in.c]))
			}, k32, k32, k32, k32)
		}
	}
	t.put("mad24.hi.sat.s32", func(r []uint64, in *inst) {
		r[in.d] = clamp32(product["s32"](r[in.a], r[in.b])>>16 + s32(r[in.c]))
	}, k32, k32, k32, k32)
}

// carries registers addition and subtraction with the carry in and out of
// CC.CF.
func (t table) carries() {
	for ty, w := range map[string]uint{"u32": 32, "s32": 32, "u64": 64, "s64": 64} {
		k := kindOf(int(w))
		for _, in := range []string{"", "c"} {
			carryIn := in == "c"
			for _, out := range []string{"", ".cc"} {
				carryOut := out == ".cc"
				if !carryIn && !carryOut {
					continue
				}
				t.put("add"+in+out+"."+ty, func(r []uint64, in *inst) {
					addCarry(r, in.d, r[in.a], r[in.b], w, carryIn, carryOut)
				}, k, k, k)
				t.put("sub"+in+out+"."+ty, func(r []uint64, in *inst) {
					subBorrow(r, in.d, r[in.a], r[in.b], w, carryIn, carryOut)
				}, k, k, k)
				for half, mul := range halves(ty) {
					t.put("mad"+in+"."+half+out+"."+ty, func(r []uint64, in *inst) {
						addCarry(r, in.d, mul(r[in.a], r[in.b]), r[in.c], w, carryIn, carryOut)
					}, k, k, k, k)
				}
			}
		}
	}
}

// halves returns the low and the high half of a product.
func halves(ty string) map[string]func(a, b uint64) uint64 {
	switch ty {
	case "u32":
		return map[string]func(a, b uint64) uint64{
			"lo": func(a, b uint64) uint64 { return uint64(uint32(a * b)) },
			"hi": func(a, b uint64) uint64 { return a * b >> 32 },
		}
	case "s32":
		return map[string]func(a, b uint64) uint64{
			"lo": func(a, b uint64) uint64 { return uint64(uint32(a * b)) },
			"hi": func(a, b uint64) uint64 { return uint64(s32(a)*s32(b)) >> 32 },
		}
	case "u64":
		return map[string]func(a, b uint64) uint64{
			"lo": func(a, b uint64) uint64 { return a * b }, "hi": mulHighU64,
		}
	}
	return map[string]func(a, b uint64) uint64{
		"lo": func(a, b uint64) uint64 { return a * b }, "hi": mulHighS64,
	}
}

func addCarry(r []uint64, d int32, a, b uint64, w uint, in, out bool) {
	var c uint64
	if in {
		c = r[slotCarry]
	}
	sum, carry := bits.Add64(a, b, c)
	if w == 32 {
		carry = sum >> 32
		sum &= maskOf(32)
	}
	r[d] = sum
	if out {
		r[slotCarry] = carry
	}
}

func subBorrow(r []uint64, d int32, a, b uint64, w uint, in, out bool) {
	var c uint64
	if in {
		c = r[slotCarry]
	}
	diff, borrow := bits.Sub64(a, b, c) // 32-bit operands borrow exactly when these do
	r[d] = diff & maskOf(int(w))
	if out {
		r[slotCarry] = borrow
	}
}
