package ptx

import (
	"math"
	"math/big"
)

// conversions registers cvt between all pairs of integer and float types.
func (t table) conversions() {
	ints := []string{"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"}
	for _, to := range ints {
		for _, from := range ints {
			t.cvt("."+to+"."+from, intToInt(types[to], types[from], false))
			t.cvt(".sat."+to+"."+from, intToInt(types[to], types[from], true))
		}
	}
	for _, i := range ints {
		for _, f := range []string{"f32", "f64"} {
			t.intToFloat(f, i)
			t.floatToInt(i, f)
		}
	}
	t.floatToFloat()
}

// cvt registers "cvt"+mods, where mods ends in .dtype.stype.
func (t table) cvt(mods string, f func(v uint64) uint64) {
	to, from := lastTwo(mods)
	sp := spec{dst: kindOf(to.bits), src: []kind{kindOf(from.bits)}, wide: true}
	sp.dstFloat, sp.srcFloat = to.class == 'f', from.class == 'f'
	// f returns all 64 bits, sign-extended; the register keeps as many as it
	// has.
	sp.fn = func(r []uint64, in *inst) { r[in.d] = f(r[in.a]) & in.imm }
	if _, ok := t["cvt"+mods]; ok {
		panic("ptx: entered twice: cvt" + mods)
	}
	t["cvt"+mods] = sp
}

func lastTwo(mods string) (to, from valueType) {
	n := len(mods)
	for i := n - 1; ; i-- {
		if mods[i] != '.' {
			continue
		}
		if from.bits == 0 {
			from = types[mods[i+1:]]
			n = i
			continue
		}
		return types[mods[i+1:n]], from
	}
}

// extend reads v as a value of type ty: as int64, or uint64 for u64.
func extend(v uint64, ty valueType) uint64 {
	shift := 64 - uint(ty.bits)
	if ty.class == 's' {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

func intToInt(to, from valueType, sat bool) func(uint64) uint64 {
	return func(v uint64) uint64 {
		v = extend(v, from)
		if sat {
			v = clampInt(v, from.class == 's', to)
		}
		return extend(v, to)
	}
}

// clampInt clamps a value to the range of ty.
func clampInt(v uint64, isSigned bool, ty valueType) uint64 {
	if isSigned && int64(v) < 0 {
		if ty.class == 'u' {
			return 0
		}
		return uint64(max(int64(v), -1<<(ty.bits-1)))
	}
	most := maskOf(ty.bits)
	if ty.class == 's' {
		most >>= 1
	}
	return min(v, most)
}

// intToFloat registers one pair of types in all its modes.
func (t table) intToFloat(f, i string) {
	from := types[i]
	for _, mode := range someMode {
		m := roundings[mode]
		if f == "f64" {
			t.cvt(mode+".f64."+i, func(v uint64) uint64 { return bits64(intTo64(extend(v, from), from.class == 's', m)) })
			continue
		}
		for mods, finish := range map[string]func(float32) float32{
			"": keep32, ".ftz": keep32, ".sat": saturate, ".ftz.sat": saturate,
		} {
			t.cvt(mode+mods+".f32."+i, func(v uint64) uint64 {
				return bits32(finish(intTo32(extend(v, from), from.class == 's', m)))
			})
		}
	}
}

func keep32(v float32) float32 { return v }

func intTo32(v uint64, isSigned bool, m rounding) float32 {
	n := nearest32(v, isSigned)
	if m == nearest {
		return n
	}
	return step32(n, exactInt(v, isSigned).Cmp(exactly(float64(n))), m)
}

// nearest32 returns the number nearest to an integer. Go's own conversion rounds
// twice on some machines of 32 bits.
func nearest32(v uint64, isSigned bool) float32 {
	unit := 1.0
	if isSigned && int64(v) < 0 {
		v, unit = -v, -1
	}
	if v >= 1<<53 { // take the bits that a float64 holds, the last of them set if any below was
		below := v & (1<<11 - 1)
		v, unit = v>>11, unit*(1<<11)
		if below != 0 {
			v |= 1
		}
	}
	return float32(unit * float64(v))
}

func intTo64(v uint64, isSigned bool, m rounding) float64 {
	n := float64(v)
	if isSigned {
		n = float64(int64(v))
	}
	if m == nearest {
		return n
	}
	return step64(n, exactInt(v, isSigned).Cmp(exactly(n)), m)
}

func exactInt(v uint64, isSigned bool) *big.Float {
	if isSigned {
		return new(big.Float).SetPrec(exactBits).SetInt64(int64(v))
	}
	return new(big.Float).SetPrec(exactBits).SetUint64(v)
}

var toWhole = map[string]func(float64) float64{
	".rni": math.RoundToEven, ".rzi": math.Trunc, ".rmi": math.Floor, ".rpi": math.Ceil,
}

// floatToInt registers one pair of types in all its modes. The result is
// always clamped, so .sat changes nothing; NaN becomes 0.
func (t table) floatToInt(i, f string) {
	to := types[i]
	for mode, whole := range toWhole {
		for _, sat := range []string{"", ".sat"} {
			if f == "f64" {
				t.cvt(mode+sat+"."+i+".f64", func(v uint64) uint64 { return clampFloat(whole(f64(v)), to) })
				continue
			}
			t.cvt(mode+sat+"."+i+".f32", func(v uint64) uint64 { return clampFloat(whole(float64(f32(v))), to) })
			t.cvt(mode+".ftz"+sat+"."+i+".f32", func(v uint64) uint64 {
				return clampFloat(whole(float64(flush32(f32(v)))), to)
			})
		}
	}
}

// clampFloat returns a whole number as an integer of type ty, sign-extended.
func clampFloat(v float64, ty valueType) uint64 {
	if v != v {
		return 0
	}
	if ty.class == 'u' {
		switch {
		case v <= 0:
			return 0
		case v >= math.Ldexp(1, ty.bits):
			return maskOf(ty.bits)
		}
		return uint64(v)
	}
	top := math.Ldexp(1, ty.bits-1)
	switch {
	case v < -top:
		return ^uint64(0) << (ty.bits - 1)
	case v >= top:
		return maskOf(ty.bits) >> 1
	}
	return uint64(int64(v))
}

// floatToFloat registers changes of format and rounding to whole numbers.
func (t table) floatToFloat() {
	t.cvt(".f64.f32", func(v uint64) uint64 { return bits64(float64(f32(v))) })
	t.cvt(".ftz.f64.f32", func(v uint64) uint64 { return bits64(float64(flush32(f32(v)))) })
	t.cvt(".f64.f64", func(v uint64) uint64 { return v })
	for mode, whole := range toWhole {
		t.cvt(mode+".f64.f64", func(v uint64) uint64 { return bits64(whole(f64(v))) })
	}
	for _, ftz := range []bool{false, true} {
		for _, sat := range []bool{false, true} {
			t.toFloat32(ftz, sat)
		}
	}
}

// toFloat32 registers conversions to f32 with these modifiers.
func (t table) toFloat32(ftz, sat bool) {
	mods := map[bool]string{true: ".ftz"}[ftz] + map[bool]string{true: ".sat"}[sat]
	finish := func(v float32) uint64 {
		if ftz {
			v = flush32(v)
		}
		if sat {
			v = saturate(v)
		}
		return bits32(v)
	}
	for _, mode := range someMode {
		m := roundings[mode]
		t.cvt(mode+mods+".f32.f64", func(v uint64) uint64 {
			x := f64(v)
			n := float32(x)
			if m != nearest && x == x {
				n = step32(n, compareFloat(x, float64(n)), m)
			}
			return finish(n)
		})
	}
	t.cvt(mods+".f32.f32", func(v uint64) uint64 { return finish(f32(v)) })
	for mode, whole := range toWhole {
		t.cvt(mode+mods+".f32.f32", func(v uint64) uint64 {
			x := f32(v)
			if ftz {
				x = flush32(x)
			}
			return finish(float32(whole(float64(x))))
		})
	}
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
