package ptx

import (
	"math"
	"math/big"
)

// refFloat implements float arithmetic: exact in big numbers, then rounded
// once.
func refFloat(op string, mods []string, ty valueType, v [4]uint64) ([]uint64, bool) {
	ftz := has(mods, "ftz")
	a, b, c := refFloatValue(v[0], ty, ftz), refFloatValue(v[1], ty, ftz), refFloatValue(v[2], ty, ftz)
	switch op {
	case "neg", "abs", "copysign", "testp", "min", "max":
		return []uint64{refSimple(op, mods, ty, v, a, b)}, true
	case "sin", "cos", "ex2", "lg2", "rsqrt":
		return refApprox(op, ty, a, ftz)
	case "sub":
		op, b = "add", -b
	case "rcp":
		op, a, b = "div", 1, a
	case "mad":
		op = "fma"
	}
	out := refArith(op, ty, refMode(mods), a, b, c)
	if ftz && math.Abs(refFloatValue(out, ty, false)) < 0x1p-126 {
		out &= 1 << 31
	}
	if has(mods, "sat") {
		out = refSaturate(out)
	}
	return []uint64{out}, true
}

func refSaturate(v uint64) uint64 {
	x := math.Float32frombits(uint32(v))
	if !(x > 0) {
		return 0
	}
	return uint64(math.Float32bits(min(x, 1)))
}

func refNaN(ty valueType) uint64 {
	if ty.bits == 32 {
		return 0x7fffffff
	}
	return 0xfff8000000000000
}

// refBitsOf returns the bits of a float64 that the type can hold exactly.
func refBitsOf(x float64, ty valueType) uint64 {
	switch {
	case math.IsNaN(x):
		return refNaN(ty)
	case ty.bits == 32:
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(x)
}

func refArith(op string, ty valueType, mode big.RoundingMode, a, b, c float64) uint64 {
	special := func(xs ...float64) bool {
		for _, x := range xs {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return true
			}
		}
		return false
	}
	switch op {
	case "add":
		if special(a, b) {
			return refBitsOf(a+b, ty)
		}
		return refRound(new(big.Float).SetPrec(refPrec).Add(refExact(a), refExact(b)), ty, mode, refZeroSign(a, b, mode))
	case "mul":
		if special(a, b) {
			return refBitsOf(a*b, ty)
		}
		return refRound(new(big.Float).SetPrec(refPrec).Mul(refExact(a), refExact(b)), ty, mode, math.Signbit(a) != math.Signbit(b))
	case "fma":
		if special(a, b, c) {
			return refBitsOf(refInfinite(a, b, c), ty)
		}
		p := new(big.Float).SetPrec(refPrec).Mul(refExact(a), refExact(b))
		sign := math.Copysign(1, a) * math.Copysign(1, b)
		if p.Sign() == 0 {
			sign = math.Copysign(0, sign)
		}
		return refRound(p.Add(p, refExact(c)), ty, mode, refZeroSign(sign, c, mode))
	case "div":
		if special(a, b) || b == 0 {
			return refBitsOf(a/b, ty)
		}
		return refRound(refNear("div", a, b), ty, mode, math.Signbit(a) != math.Signbit(b))
	}
	if special(a) || a < 0 || a == 0 {
		return refBitsOf(math.Sqrt(a), ty)
	}
	return refRound(refNear("sqrt", a, 1), ty, mode, false)
}

// refInfinite returns a*b+c if one of them is not finite; a finite product
// must not overflow on the way.
func refInfinite(a, b, c float64) float64 {
	if math.IsInf(a, 0) || math.IsInf(b, 0) || math.IsNaN(a) || math.IsNaN(b) {
		return a*b + c
	}
	return c
}

// refZeroSign reports whether a sum that is exactly zero is -0.
func refZeroSign(a, b float64, mode big.RoundingMode) bool {
	if a == 0 && b == 0 && math.Signbit(a) == math.Signbit(b) {
		return math.Signbit(a)
	}
	return mode == big.ToNegativeInf
}

// refSimple implements what rounds nothing.
func refSimple(op string, mods []string, ty valueType, v [4]uint64, a, b float64) uint64 {
	top := uint64(1) << (ty.bits - 1)
	least := map[int]float64{32: 0x1p-126, 64: 0x1p-1022}[ty.bits]
	own := v[0]
	if has(mods, "ftz") && math.Abs(refFloatValue(own, ty, false)) < least {
		own &= top
	}
	switch op {
	case "neg":
		return own ^ top
	case "abs":
		return own &^ top
	case "copysign":
		return v[0]&top | v[1]&^top
	case "testp":
		zero := a == 0
		switch mods[0] {
		case "finite":
			return bit(!math.IsInf(a, 0) && !math.IsNaN(a))
		case "infinite":
			return bit(math.IsInf(a, 0))
		case "number":
			return bit(!math.IsNaN(a))
		case "notanumber":
			return bit(math.IsNaN(a))
		case "normal":
			return bit(!math.IsNaN(a) && !math.IsInf(a, 0) && !zero && math.Abs(a) >= least)
		}
		return bit(!zero && math.Abs(a) < least)
	}
	switch {
	case math.IsNaN(a) && math.IsNaN(b), has(mods, "NaN") && (math.IsNaN(a) || math.IsNaN(b)):
		return refNaN(ty)
	case math.IsNaN(a):
		return refBitsOf(b, ty)
	case math.IsNaN(b):
		return refBitsOf(a, ty)
	}
	first := a < b || a == b && math.Signbit(a)
	if first == (op == "min") {
		return refBitsOf(a, ty)
	}
	return refBitsOf(b, ty)
}

// refApprox is within a few units in the last place of the true function.
func refApprox(op string, ty valueType, a float64, ftz bool) ([]uint64, bool) {
	x := map[string]func(float64) float64{
		"sin": math.Sin, "cos": math.Cos, "ex2": math.Exp2, "lg2": math.Log2,
		"rsqrt": func(v float64) float64 { return 1 / math.Sqrt(v) },
	}[op](a)
	out := refBitsOf(x, ty)
	if ftz && math.Abs(refFloatValue(out, ty, false)) < 0x1p-126 {
		out &= 1 << 31
	}
	return []uint64{out}, false
}

// refConvert implements cvt, into a register as wide as the type, or 16 bits
// for 8.
func refConvert(mods []string, to, from valueType, v uint64) uint64 {
	mods = mods[:len(mods)-1]
	mode := refMode(mods)
	ftz, sat := has(mods, "ftz"), has(mods, "sat")
	width := max(to.bits, 16)
	if from.class != 'f' {
		n := refInt(v, from)
		if to.class != 'f' {
			if sat {
				n = clampBig(n, to)
			}
			return low(refInt(low(n, to.bits), to), width)
		}
		out := refRound(new(big.Float).SetPrec(refPrec).SetInt(n), to, mode, false)
		if sat {
			out = refSaturate(out)
		}
		return out
	}
	x := refFloatValue(v, from, ftz && from.bits == 32)
	if to.class != 'f' {
		return refToInt(x, to, mode, width)
	}
	return refToFloat(mods, x, to, from, mode, v)
}

func refToInt(x float64, to valueType, mode big.RoundingMode, width int) uint64 {
	if math.IsNaN(x) {
		return 0
	}
	if math.IsInf(x, 0) {
		x = math.Copysign(math.MaxFloat64, x)
	}
	return low(clampBig(refWhole(refExact(x), mode), to), width)
}

func refToFloat(mods []string, x float64, to, from valueType, mode big.RoundingMode, v uint64) uint64 {
	whole := has(mods, "rni") || has(mods, "rzi") || has(mods, "rmi") || has(mods, "rpi")
	if to == from && to.bits == 64 && !whole {
		return v
	}
	out := refBitsOf(x, to)
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		exact := refExact(x)
		if whole {
			exact = new(big.Float).SetPrec(refPrec).SetInt(refWhole(exact, mode))
			mode = big.ToNearestEven
		}
		out = refRound(exact, to, mode, math.Signbit(x))
	}
	if has(mods, "ftz") && to.bits == 32 && math.Abs(refFloatValue(out, to, false)) < 0x1p-126 {
		out &= 1 << 31
	}
	if has(mods, "sat") {
		out = refSaturate(out)
	}
	return out
}
