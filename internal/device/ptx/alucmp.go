package ptx

import (
	"math"
	"strings"
)

// comparisons registers setp and set, for every comparison and type, alone and
// combined with a predicate.
func (t table) comparisons() {
	compareInt[uint16, uint16](t, "u16")
	compareInt[uint32, uint32](t, "u32")
	compareInt[uint64, uint64](t, "u64")
	compareInt[uint16, int16](t, "s16")
	compareInt[uint32, int32](t, "s32")
	compareInt[uint64, int64](t, "s64")
	for _, ty := range []string{"b16", "b32", "b64"} {
		t.compare("eq."+ty, ty, func(a, b uint64) bool { return a == b })
		t.compare("ne."+ty, ty, func(a, b uint64) bool { return a != b })
	}
	// The two comparisons that almost every loop ends with.
	for _, ty := range []string{"u32", "s32", "b32", "u64", "s64", "b64", "u16", "s16", "b16"} {
		t.quick("setp.eq."+ty, func(r []uint64, in *inst) { r[in.d] = bit(r[in.a] == r[in.b]) })
		t.quick("setp.ne."+ty, func(r []uint64, in *inst) { r[in.d] = bit(r[in.a] != r[in.b]) })
	}
	for name, f := range floatComparisons() {
		t.compare(name+".f32", "f32", func(a, b uint64) bool { return f(float64(f32(a)), float64(f32(b))) })
		t.compare(name+".ftz.f32", "f32", func(a, b uint64) bool {
			return f(float64(flush32(f32(a))), float64(flush32(f32(b))))
		})
		t.compare(name+".f64", "f64", func(a, b uint64) bool { return f(f64(a), f64(b)) })
	}
}

// quick replaces the plain form of a registered comparison by a faster
// equivalent.
func (t table) quick(name string, fn compute) {
	sp := t[name]
	sp.fn = fn
	t[name] = sp
}

func compareInt[U unsigned, T unsigned | signed](t table, ty string) {
	t.compare("eq."+ty, ty, func(a, b uint64) bool { return U(a) == U(b) })
	t.compare("ne."+ty, ty, func(a, b uint64) bool { return U(a) != U(b) })
	less := func(a, b uint64) bool { return T(a) < T(b) }
	atMost := func(a, b uint64) bool { return T(a) <= T(b) }
	more := func(a, b uint64) bool { return T(a) > T(b) }
	atLeast := func(a, b uint64) bool { return T(a) >= T(b) }
	t.compare("lt."+ty, ty, less)
	t.compare("le."+ty, ty, atMost)
	t.compare("gt."+ty, ty, more)
	t.compare("ge."+ty, ty, atLeast)
	t.quick("setp.lt."+ty, func(r []uint64, in *inst) { r[in.d] = bit(T(r[in.a]) < T(r[in.b])) })
	t.quick("setp.le."+ty, func(r []uint64, in *inst) { r[in.d] = bit(T(r[in.a]) <= T(r[in.b])) })
	t.quick("setp.gt."+ty, func(r []uint64, in *inst) { r[in.d] = bit(T(r[in.a]) > T(r[in.b])) })
	t.quick("setp.ge."+ty, func(r []uint64, in *inst) { r[in.d] = bit(T(r[in.a]) >= T(r[in.b])) })
	if ty[0] == 'u' {
		t.compare("lo."+ty, ty, less)
		t.compare("ls."+ty, ty, atMost)
		t.compare("hi."+ty, ty, more)
		t.compare("hs."+ty, ty, atLeast)
	}
}

// floatComparisons returns the ordered forms, which are false for NaN, the
// unordered ones (u), which are true, and the tests for NaN itself.
func floatComparisons() map[string]func(a, b float64) bool {
	nan := func(a, b float64) bool { return a != a || b != b }
	out := map[string]func(a, b float64) bool{
		"eq":  func(a, b float64) bool { return a == b },
		"ne":  func(a, b float64) bool { return a < b || a > b },
		"lt":  func(a, b float64) bool { return a < b },
		"le":  func(a, b float64) bool { return a <= b },
		"gt":  func(a, b float64) bool { return a > b },
		"ge":  func(a, b float64) bool { return a >= b },
		"num": func(a, b float64) bool { return !nan(a, b) },
		"nan": nan,
	}
	for _, name := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		ordered := out[name]
		out[name+"u"] = func(a, b float64) bool { return nan(a, b) || ordered(a, b) }
	}
	return out
}

// compare registers one comparison in all its forms. name ends in the type.
func (t table) compare(name, ty string, f func(a, b uint64) bool) {
	cmp := name[:len(name)-len(ty)-1] // "lt", "lt.ftz"
	op, ftz := cmp, ""
	if len(cmp) > 4 && cmp[len(cmp)-4:] == ".ftz" {
		op, ftz = cmp[:len(cmp)-4], ".ftz"
	}
	k := kindOf(types[ty].bits)
	t.put("setp."+name, func(r []uint64, in *inst) { r[in.d] = bit(f(r[in.a], r[in.b])) }, kPred, k, k)
	t.full("setp."+name, func(r []uint64, in *inst) {
		v := bit(f(r[in.a], r[in.b]))
		r[in.d], r[in.e] = v, v^1
	})
	t.set(cmp+"%s."+ty, f, nil, k)
	for name, join := range joins {
		full := func(r []uint64, in *inst) {
			v, c := f(r[in.a], r[in.b]), r[in.c] != 0 != (in.neg&4 != 0)
			r[in.d], r[in.e] = bit(join(v, c)), bit(join(!v, c))
		}
		t.put("setp."+op+"."+name+ftz+"."+ty, full, kPred, k, k, kPred)
		t.full("setp."+op+"."+name+ftz+"."+ty, full)
		t.negatable("setp." + op + "." + name + ftz + "." + ty)
		t.set(op+"."+name+ftz+"%s."+ty, f, join, k)
	}
}

var joins = map[string]func(a, b bool) bool{
	"and": func(a, b bool) bool { return a && b },
	"or":  func(a, b bool) bool { return a || b },
	"xor": func(a, b bool) bool { return a != b },
}

func (t table) full(name string, fn compute) {
	sp := t[name]
	sp.full = fn
	t[name] = sp
}

// set registers set.cmp.dtype.stype: all ones, or 1.0, for true. The %s in
// name is where the destination's type goes.
func (t table) set(name string, f func(a, b uint64) bool, join func(a, b bool) bool, k kind) {
	yes := map[string]uint64{".u32": maskOf(32), ".s32": maskOf(32), ".f32": uint64(math.Float32bits(1))}
	for ty, one := range yes {
		full := "set." + strings.Replace(name, "%s", ty, 1)
		if join == nil {
			t.put(full, func(r []uint64, in *inst) { r[in.d] = bit(f(r[in.a], r[in.b])) * one }, k32, k, k)
			continue
		}
		t.put(full, func(r []uint64, in *inst) {
			v := join(f(r[in.a], r[in.b]), r[in.c] != 0 != (in.neg&4 != 0))
			r[in.d] = bit(v) * one
		}, k32, k, k, kPred)
		t.negatable(full)
	}
}

// negatable allows the third source to be !p.
func (t table) negatable(name string) {
	sp := t[name]
	sp.negatable = true
	t[name] = sp
}

// selections registers selp and slct.
func (t table) selections() {
	for _, ty := range []string{"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"} {
		k := kindOf(types[ty].bits)
		t.put("selp."+ty, func(r []uint64, in *inst) {
			if r[in.c] != 0 {
				r[in.d] = r[in.a]
			} else {
				r[in.d] = r[in.b]
			}
		}, k, k, k, kPred)
		for by, keep := range map[string]func(uint64) bool{
			ty + ".s32": func(c uint64) bool { return int32(c) >= 0 },
			ty + ".f32": func(c uint64) bool { return f32(c) >= 0 },
		} {
			fn := func(r []uint64, in *inst) {
				if keep(r[in.c]) {
					r[in.d] = r[in.a]
				} else {
					r[in.d] = r[in.b]
				}
			}
			t.put("slct."+by, fn, k, k, k, k32)
		}
		// A flushed subnormal compares as zero: not negative.
		t.put("slct.ftz."+ty+".f32", func(r []uint64, in *inst) {
			if flush32(f32(r[in.c])) >= 0 {
				r[in.d] = r[in.a]
			} else {
				r[in.d] = r[in.b]
			}
		}, k, k, k, k32)
	}
}
