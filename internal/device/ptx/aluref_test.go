package ptx

import (
	"math"
	"math/big"
	"strings"
)

// reference returns the expected results of an instruction of the registry:
// the result, and the second one (q of p|q, or the carry) if there is one.
// exact is false for approximations. want is nil for an unknown name.
func reference(name string, c [4]uint64) (want []uint64, exact bool) {
	parts := strings.Split(name, ".")
	ty, known := types[parts[len(parts)-1]]
	if parts[0] == "prmt" {
		ty, known = types["b32"], true
	}
	if !known {
		return nil, false
	}
	mods := parts[1 : len(parts)-1]
	switch {
	case parts[0] == "cvt":
		return []uint64{refConvert(mods, types[parts[len(parts)-2]], ty, c[0])}, true
	case parts[0] == "setp" || parts[0] == "set":
		return refCompare(parts[0], mods, ty, c), true
	case parts[0] == "slct":
		var keep bool
		if ty.class == 'f' {
			v := math.Float32frombits(uint32(c[2]))
			keep = v >= 0 || has(mods, "ftz") && math.Abs(float64(v)) < 0x1p-126
		} else {
			keep = refInt(c[2], ty).Sign() >= 0
		}
		return []uint64{map[bool]uint64{true: c[0], false: c[1]}[keep]}, true
	case parts[0] == "selp":
		return []uint64{map[bool]uint64{true: c[0], false: c[1]}[c[2] != 0]}, true
	case ty.class == 'f':
		return refFloat(parts[0], mods, ty, c)
	}
	if v := refBits(parts, ty, c); v != nil {
		return v, true
	}
	return refInteger(parts[0], mods, ty, c), true
}

func has(mods []string, m string) bool {
	for _, x := range mods {
		if x == m {
			return true
		}
	}
	return false
}

// refInt reads the low bits of v as a number of type ty.
func refInt(v uint64, ty valueType) *big.Int {
	n := new(big.Int).SetUint64(v & maskOf(ty.bits))
	if ty.class == 's' && n.Bit(ty.bits-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(ty.bits)))
	}
	return n
}

// low returns n modulo 2^w.
func low(n *big.Int, w int) uint64 {
	m := new(big.Int).Lsh(big.NewInt(1), uint(w))
	return new(big.Int).Mod(n, m).Uint64()
}

func clampBig(n *big.Int, ty valueType) *big.Int {
	lo, hi := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(ty.bits))
	if ty.class == 's' {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	if n.Cmp(lo) < 0 {
		return lo
	}
	if n.Cmp(hi) > 0 {
		return hi
	}
	return n
}

// refInteger computes with big numbers.
func refInteger(op string, mods []string, ty valueType, v [4]uint64) []uint64 {
	a, b, c := refInt(v[0], ty), refInt(v[1], ty), refInt(v[2], ty)
	w := ty.bits
	n := new(big.Int)
	carryIn := new(big.Int).SetUint64(v[3])
	switch op {
	case "add", "addc":
		n.Add(a, b)
	case "sub", "subc":
		n.Sub(a, b)
	case "mul", "mad", "madc", "mul24", "mad24":
		return refMultiply(op, mods, ty, v)
	case "div", "rem":
		if b.Sign() == 0 {
			return []uint64{maskOf(w)}
		}
		q, r := new(big.Int).QuoRem(a, b, new(big.Int))
		n = map[string]*big.Int{"div": q, "rem": r}[op]
	case "min":
		n = a
		if b.Cmp(a) < 0 {
			n = b
		}
	case "max":
		n = a
		if b.Cmp(a) > 0 {
			n = b
		}
	case "abs":
		n.Abs(a)
	case "neg":
		n.Neg(a)
	case "sad":
		n.Add(n.Abs(n.Sub(a, b)), c)
	default:
		return nil
	}
	if has(mods, "sat") {
		n = clampBig(n, ty)
	}
	if !has(mods, "cc") && !strings.HasSuffix(op, "c") {
		return []uint64{low(n, w)}
	}
	ua, ub := new(big.Int).SetUint64(v[0]), new(big.Int).SetUint64(v[1])
	in := new(big.Int)
	if strings.HasSuffix(op, "c") {
		in = carryIn
	}
	sum := new(big.Int).Add(new(big.Int).Add(ua, ub), in)
	carry := new(big.Int).Rsh(sum, uint(w)).Uint64()
	if strings.HasPrefix(op, "sub") {
		sum.Sub(new(big.Int).Sub(ua, ub), in)
		carry = uint64(-sum.Sign()+1) / 2
	}
	if !has(mods, "cc") {
		carry = v[3] // it is unchanged
	}
	return []uint64{low(sum, w), carry}
}

func refMultiply(op string, mods []string, ty valueType, v [4]uint64) []uint64 {
	w := ty.bits
	in := ty
	shift := uint(w)
	if strings.HasSuffix(op, "24") {
		in.bits, shift = 24, 16
	}
	n := new(big.Int).Mul(refInt(v[0], in), refInt(v[1], in))
	out := w
	if has(mods, "hi") {
		n.Rsh(n, shift)
	}
	add := refInt(v[2], ty)
	if has(mods, "wide") {
		out = 2 * w
		add = refInt(v[2], valueType{2 * w, ty.class})
	}
	carry := op == "madc" || has(mods, "cc")
	if op == "mul" || op == "mul24" {
		return []uint64{low(n, out)}
	}
	if !carry {
		n.Add(n, add)
		if has(mods, "sat") {
			n = clampBig(n, ty)
		}
		return []uint64{low(n, out)}
	}
	sum := new(big.Int).SetUint64(low(n, w))
	sum.Add(sum, new(big.Int).SetUint64(v[2]))
	if op == "madc" {
		sum.Add(sum, new(big.Int).SetUint64(v[3]))
	}
	c := new(big.Int).Rsh(sum, uint(w)).Uint64()
	if !has(mods, "cc") {
		c = v[3]
	}
	return []uint64{low(sum, w), c}
}

// refCompare implements setp and set.
func refCompare(op string, mods []string, ty valueType, v [4]uint64) []uint64 {
	cmp, join, to := mods[0], "", ""
	for _, m := range mods[1:] {
		switch m {
		case "and", "or", "xor":
			join = m
		case "u32", "s32", "f32":
			to = m
		}
	}
	yes := refRelation(cmp, has(mods, "ftz"), ty, v[0], v[1])
	other := v[2] != 0
	if v[3] != 0 {
		other = !other
	}
	combine := func(x bool) bool {
		switch join {
		case "and":
			return x && other
		case "or":
			return x || other
		case "xor":
			return x != other
		}
		return x
	}
	if op == "setp" {
		return []uint64{bit(combine(yes)), bit(combine(!yes))}
	}
	one := map[string]uint64{"u32": maskOf(32), "s32": maskOf(32), "f32": 0x3f800000}[to]
	return []uint64{bit(combine(yes)) * one}
}

func refRelation(cmp string, ftz bool, ty valueType, a, b uint64) bool {
	var order int
	nan := false
	if ty.class == 'f' {
		x, y := refFloatValue(a, ty, ftz), refFloatValue(b, ty, ftz)
		nan = math.IsNaN(x) || math.IsNaN(y)
		if !nan {
			order = big.NewFloat(x).Cmp(big.NewFloat(y))
		}
	} else {
		order = refInt(a, ty).Cmp(refInt(b, ty))
	}
	switch cmp {
	case "num":
		return !nan
	case "nan":
		return nan
	}
	unordered := ty.class == 'f' && strings.HasSuffix(cmp, "u")
	if nan {
		return unordered
	}
	switch strings.TrimSuffix(cmp, "u") {
	case "eq":
		return order == 0
	case "ne":
		return order != 0
	case "lt", "lo":
		return order < 0
	case "le", "ls":
		return order <= 0
	case "gt", "hi":
		return order > 0
	}
	return order >= 0 // ge, hs
}

// refFloatValue reads bits as a float; with ftz, subnormal f32 values are
// zero.
func refFloatValue(v uint64, ty valueType, ftz bool) float64 {
	if ty.bits == 64 {
		return math.Float64frombits(v)
	}
	x := float64(math.Float32frombits(uint32(v)))
	if ftz && math.Abs(x) < 0x1p-126 {
		x = math.Copysign(0, x)
	}
	return x
}

// refRound rounds an exact value to f32 or f64 in a mode of big.Float, and
// returns its bits. A zero gets the given sign.
func refRound(x *big.Float, ty valueType, mode big.RoundingMode, negativeZero bool) uint64 {
	mant, least, most := 53, -1074, 1024
	if ty.bits == 32 {
		mant, least, most = 24, -149, 128
	}
	sign := uint64(0)
	if x.Signbit() || x.Sign() == 0 && negativeZero {
		sign = 1 << (ty.bits - 1)
	}
	if x.Sign() == 0 {
		return sign
	}
	// The unit in the last place of the result, at its exponent.
	unit := max(x.MantExp(nil)-mant, least)
	scaled := new(big.Float).SetMantExp(x, -unit)
	n := refWhole(scaled, mode)
	n.Abs(n)
	if n.BitLen() > mant { // rounded up to the next exponent
		n.Rsh(n, 1)
		unit++
	}
	if n.BitLen()+unit > most {
		return sign | refOverflow(ty, mode, sign != 0)
	}
	if n.BitLen() < mant {
		return sign | n.Uint64() // subnormal or zero
	}
	exponent := uint64(unit - least + 1)
	return sign | exponent<<(mant-1) | n.Uint64()&(1<<(mant-1)-1)
}

func refOverflow(ty valueType, mode big.RoundingMode, negative bool) uint64 {
	inf := uint64(0x7f800000)
	if ty.bits == 64 {
		inf = 0x7ff0000000000000
	}
	toward := mode == big.ToZero || mode == big.ToNegativeInf && !negative || mode == big.ToPositiveInf && negative
	if toward {
		return inf - 1 // the greatest finite number
	}
	return inf
}

// refWhole rounds to a whole number.
func refWhole(x *big.Float, mode big.RoundingMode) *big.Int {
	floor, _ := x.Int(nil) // toward zero
	rest := new(big.Float).SetPrec(refPrec).Sub(x, new(big.Float).SetPrec(refPrec).SetInt(floor))
	if rest.Sign() < 0 {
		floor.Sub(floor, big.NewInt(1))
		rest.Add(rest, big.NewFloat(1))
	}
	up := false
	switch mode {
	case big.ToNearestEven:
		half := rest.Cmp(big.NewFloat(0.5))
		up = half > 0 || half == 0 && floor.Bit(0) == 1
	case big.ToZero:
		up = x.Sign() < 0 && rest.Sign() != 0
	case big.ToPositiveInf:
		up = rest.Sign() != 0
	}
	if up {
		floor.Add(floor, big.NewInt(1))
	}
	return floor
}

const refPrec = 9000

func refExact(v float64) *big.Float { return new(big.Float).SetPrec(refPrec).SetFloat64(v) }

// refNear returns n/d or its root with enough precision, and a last bit that
// marks it inexact, that rounding it is the same as rounding the true value.
func refNear(op string, a, b float64) *big.Float {
	num, num2 := new(big.Rat).SetFloat64(math.Abs(a)), new(big.Rat).SetFloat64(math.Abs(b))
	if op == "div" {
		num.Quo(num, num2)
	}
	const shift = 2400 // even
	n := new(big.Int).Lsh(num.Num(), shift)
	q, r := new(big.Int).QuoRem(n, num.Denom(), new(big.Int))
	inexact := r.Sign() != 0
	scale := -shift
	if op == "sqrt" {
		root := new(big.Int).Sqrt(q)
		inexact = inexact || new(big.Int).Mul(root, root).Cmp(q) != 0
		q, scale = root, -shift/2
	}
	q.Lsh(q, 1)
	if inexact {
		q.SetBit(q, 0, 1)
	}
	x := new(big.Float).SetPrec(refPrec).SetInt(q)
	if op == "div" && math.Signbit(a) != math.Signbit(b) {
		x.Neg(x)
	}
	return x.SetMantExp(x, scale-1)
}

var refModes = map[string]big.RoundingMode{
	"rn": big.ToNearestEven, "rz": big.ToZero, "rm": big.ToNegativeInf, "rp": big.ToPositiveInf,
	"rni": big.ToNearestEven, "rzi": big.ToZero, "rmi": big.ToNegativeInf, "rpi": big.ToPositiveInf,
}

func refMode(mods []string) big.RoundingMode {
	for _, m := range mods {
		if mode, ok := refModes[m]; ok {
			return mode
		}
	}
	return big.ToNearestEven
}
