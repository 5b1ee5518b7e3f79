package ptx

import "math"

// Any NaN that an instruction produces is the one that the hardware produces.
const (
	nan32 = 0x7fffffff
	nan64 = 0xfff8000000000000
)

func f32(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func f64(v uint64) float64 { return math.Float64frombits(v) }

func bits32(v float32) uint64 {
	if v != v {
		return nan32
	}
	return uint64(math.Float32bits(v))
}

func bits64(v float64) uint64 {
	if v != v {
		return nan64
	}
	return math.Float64bits(v)
}

// flush32 turns a subnormal into zero of the same sign: .ftz.
func flush32(v float32) float32 {
	if b := math.Float32bits(v); b&0x7f800000 == 0 {
		return math.Float32frombits(b & (1 << 31))
	}
	return v
}

// saturate clamps to 0..1, NaN to 0: .sat.
func saturate(v float32) float32 {
	switch {
	case v >= 1:
		return 1
	case v > 0:
		return v
	}
	return 0
}

// style tells how the result of a float instruction is finished.
type style struct {
	mode     rounding
	ftz, sat bool
}

// styles32 returns the modifiers that f32 arithmetic can have, by their text.
// modes has the allowed rounding modes, with "" among them if the mode may be
// omitted.
func styles32(modes []string, sats ...string) map[string]style {
	out := map[string]style{}
	for _, mode := range modes {
		for _, ftz := range []string{"", ".ftz"} {
			for _, sat := range sats {
				out[mode+ftz+sat] = style{roundings[mode], ftz != "", sat != ""}
			}
		}
	}
	return out
}

var (
	anyMode   = []string{"", ".rn", ".rz", ".rm", ".rp"}
	someMode  = []string{".rn", ".rz", ".rm", ".rp"}
	roundings = map[string]rounding{"": nearest, ".rn": nearest, ".rz": toZero, ".rm": down, ".rp": up,
		".approx": nearest, ".full": nearest}
)

// floats registers arithmetic on f32 and f64. The .approx forms return the
// correctly rounded result, which is within the error that the hardware is
// allowed, but not always equal to the hardware's.
func (t table) floats() {
	for name, o := range map[string]arith{"add": sum, "sub": difference, "mul": product} {
		t.arith32(name, o, 2, styles32(anyMode, "", ".sat"))
		t.arith64(name, o, 2, anyMode)
	}
	for _, name := range []string{"fma", "mad"} {
		t.arith32(name, fused, 3, styles32(someMode, "", ".sat"))
		t.arith64(name, fused, 3, someMode)
	}
	t.arith32("div", quotient, 2, styles32([]string{".approx", ".full", ".rn", ".rz", ".rm", ".rp"}, ""))
	t.arith64("div", quotient, 2, someMode)
	for name, o := range map[string]arith{"rcp": reciprocal, "sqrt": root} {
		t.arith32(name, o, 1, styles32([]string{".approx", ".rn", ".rz", ".rm", ".rp"}, ""))
		t.arith64(name, o, 1, someMode)
	}
	t.functions()
	t.signs()
	t.extremes()
	t.tests()
}

func (t table) arith32(name string, o arith, n int, styles map[string]style) {
	for mods, st := range styles {
		t.put(name+mods+".f32", func(r []uint64, in *inst) {
			a, b, c := f32(r[in.a]), f32(r[in.b]), f32(r[in.c])
			if st.ftz {
				a, b, c = flush32(a), flush32(b), flush32(c)
			}
			v := round32(o, st.mode, a, b, c)
			if st.ftz {
				v = flush32(v)
			}
			if st.sat {
				v = saturate(v)
			}
			r[in.d] = bits32(v)
		}, k32, []kind{k32, k32, k32}[:n]...)
	}
}

func (t table) arith64(name string, o arith, n int, modes []string) {
	for _, mode := range modes {
		m := roundings[mode]
		t.put(name+mode+".f64", func(r []uint64, in *inst) {
			r[in.d] = bits64(round64(o, m, f64(r[in.a]), f64(r[in.b]), f64(r[in.c])))
		}, k64, []kind{k64, k64, k64}[:n]...)
	}
}

// functions registers the approximations of transcendental functions.
func (t table) functions() {
	for name, f := range map[string]func(float64) float64{
		"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
		"sin":   math.Sin, "cos": math.Cos, "ex2": math.Exp2, "lg2": math.Log2,
	} {
		t.unary32(name+".approx", func(x float32) float32 { return float32(f(float64(x))) })
	}
	t.put("rsqrt.approx.f64", func(r []uint64, in *inst) {
		r[in.d] = bits64(1 / math.Sqrt(f64(r[in.a])))
	}, k64, k64)
}

// unary32 registers a function of one float, alone and with .ftz.
func (t table) unary32(name string, f func(float32) float32) {
	t.put(name+".f32", func(r []uint64, in *inst) { r[in.d] = bits32(f(f32(r[in.a]))) }, k32, k32)
	t.put(name+".ftz.f32", func(r []uint64, in *inst) {
		r[in.d] = bits32(flush32(f(flush32(f32(r[in.a])))))
	}, k32, k32)
}

// signs registers the instructions that only change the sign bit; NaN passes
// through unchanged.
func (t table) signs() {
	for name, f := range map[string]func(v, top uint64) uint64{
		"neg": func(v, top uint64) uint64 { return v ^ top },
		"abs": func(v, top uint64) uint64 { return v &^ top },
	} {
		t.put(name+".f32", func(r []uint64, in *inst) { r[in.d] = f(r[in.a], 1<<31) }, k32, k32)
		t.put(name+".ftz.f32", func(r []uint64, in *inst) {
			r[in.d] = f(uint64(math.Float32bits(flush32(f32(r[in.a])))), 1<<31)
		}, k32, k32)
		t.put(name+".f64", func(r []uint64, in *inst) { r[in.d] = f(r[in.a], 1<<63) }, k64, k64)
	}
	for ty, top := range map[string]uint64{"f32": 1 << 31, "f64": 1 << 63} {
		k := kindOf(types[ty].bits)
		t.put("copysign."+ty, func(r []uint64, in *inst) { r[in.d] = r[in.a]&top | r[in.b]&^top }, k, k, k)
	}
}

// extremes registers min and max: a number wins over NaN, and +0 is above -0.
// With .NaN, NaN wins.
func (t table) extremes() {
	for name, f := range map[string]func(a, b float64) float64{"min": math.Min, "max": math.Max} {
		choose := func(a, b float64) float64 {
			switch {
			case a != a:
				return b
			case b != b:
				return a
			}
			return f(a, b)
		}
		t.put(name+".f64", func(r []uint64, in *inst) { r[in.d] = bits64(choose(f64(r[in.a]), f64(r[in.b]))) }, k64, k64, k64)
		for nan, pick := range map[string]func(a, b float64) float64{"": choose, ".NaN": nanWins(f)} {
			for _, ftz := range []string{"", ".ftz"} {
				full := name + ftz + nan + ".f32"
				flush := ftz != ""
				t.put(full, func(r []uint64, in *inst) {
					a, b := f32(r[in.a]), f32(r[in.b])
					if flush {
						a, b = flush32(a), flush32(b)
					}
					r[in.d] = bits32(float32(pick(float64(a), float64(b))))
				}, k32, k32, k32)
				if nan != "" {
					sp := t[full]
					sp.version, sp.target = 70, 80
					t[full] = sp
				}
			}
		}
	}
}

// nanWins is needed because math.Min lets an infinity win over NaN.
func nanWins(f func(a, b float64) float64) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		if a != a || b != b {
			return math.NaN()
		}
		return f(a, b)
	}
}

// tests registers testp.
func (t table) tests() {
	for name, f := range map[string]func(v float64, least float64) bool{
		"finite":     func(v, _ float64) bool { return !math.IsInf(v, 0) && v == v },
		"infinite":   func(v, _ float64) bool { return math.IsInf(v, 0) },
		"number":     func(v, _ float64) bool { return v == v },
		"notanumber": func(v, _ float64) bool { return v != v },
		"normal":     func(v, least float64) bool { return math.Abs(v) >= least && !math.IsInf(v, 0) },
		"subnormal":  func(v, least float64) bool { return math.Abs(v) < least && v != 0 },
	} {
		t.put("testp."+name+".f32", func(r []uint64, in *inst) {
			r[in.d] = bit(f(float64(f32(r[in.a])), 0x1p-126))
		}, kPred, k32)
		t.put("testp."+name+".f64", func(r []uint64, in *inst) {
			r[in.d] = bit(f(f64(r[in.a]), 0x1p-1022))
		}, kPred, k64)
	}
}
