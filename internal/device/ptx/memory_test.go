package ptx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

var memoryTypes = []string{"b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"}

func one(threads int) device.Grid { return device.Grid{Blocks: 1, Threads: threads} }

// registersFor returns n registers that hold a type exactly, or 16 bits for 8.
func registersFor(ty string, n int) string {
	stem := map[int]string{8: "%h", 16: "%h", 32: "%r", 64: "%d"}[types[ty].bits]
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(stem, 10+i))
	}
	if n == 1 {
		return out[0]
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// TestEveryAccess moves bytes through every space, with its own addresses and
// with generic ones, in every type and vector form.
func TestEveryAccess(t *testing.T) {
	spaces := map[string]string{
		"global": "ld.param.u64 %d2, [p2];",
		"shared": "mov.u64 %d2, buffer;",
		"local":  "mov.u64 %d2, own;",
	}
	content := []byte{0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 9, 10, 11, 12, 13, 14, 15, 16}
	for space, take := range spaces {
		for _, ty := range memoryTypes {
			for _, lanes := range []int{1, 2, 4} {
				n := lanes * types[ty].bits / 8
				if n > 16 {
					continue
				}
				form := map[int]string{1: "", 2: ".v2", 4: ".v4"}[lanes] + "." + ty
				regs := registersFor(ty, lanes)
				for _, way := range []string{space, ""} {
					body := ".local .align 16 .b8 own[32];\n.shared .align 16 .b8 buffer[32];\nld.param.u64 %d0, [p0];\nld.param.u64 %d1, [p1];\n" + take
					sp := "." + space
					if way == "" {
						body += "cvta." + space + ".u64 %d2, %d2;\n"
						sp = ""
					}
					body += fmt.Sprintf("ld.global%s %s, [%%d0];\nst%s%s [%%d2+16], %s;\n", form, regs, sp, form, regs)
					body += fmt.Sprintf("ld%s%s %s, [%%d2+16];\nst.global%s [%%d1], %s;\n", sp, form, regs, form, regs)
					r := newRig(t)
					in, out, extra := r.alloc(content), r.alloc(make([]byte, 16)), r.alloc(make([]byte, 32))
					r.must(r.launch(r.load(program(3, body))("k"), one(1), in, out, extra))
					if got := r.read(out, n); !bytes.Equal(got, content[:n]) {
						t.Errorf("ld%s%s: %x, want %x", sp, form, got, content[:n])
					}
				}
			}
		}
	}
}

// TestLoadsExtend tests that a register wider than the type is filled with the
// sign.
func TestLoadsExtend(t *testing.T) {
	for _, ty := range memoryTypes {
		v := types[ty]
		for _, reg := range []string{"%h0", "%r0", "%d5"} {
			w := map[string]int{"%h0": 16, "%r0": 32, "%d5": 64}[reg]
			if w < v.bits || v.class == 'f' && w != v.bits {
				continue
			}
			body := "ld.param.u64 %d0, [p0];\nld.param.u64 %d1, [p1];\nmov.u64 %d2, 0;\nst.global.u64 [%d1], %d2;\n" +
				fmt.Sprintf("ld.global.%s %s, [%%d0];\nst.global.b%d [%%d1], %s;\n", ty, reg, w, reg)
			r := newRig(t)
			in, out := r.alloc(bytes.Repeat([]byte{0x85}, 8)), r.alloc(make([]byte, 8))
			r.must(r.launch(r.load(program(2, body))("k"), one(1), in, out))
			want := low(refInt(0x8585858585858585, v), w)
			if got := binary.LittleEndian.Uint64(r.read(out, 8)); got != want {
				t.Errorf("ld.%s into %d bits: %#x, want %#x", ty, w, got, want)
			}
		}
	}
}

// TestAccessForms tests that the qualifiers that only affect the cache, and
// those for memory order, are known, each alone and in PTX's order; others are
// not.
func TestAccessForms(t *testing.T) {
	loads := `ld.global.u32 ld.global.ca.u32 ld.global.cg.u32 ld.global.cs.u32 ld.global.lu.u32 ld.global.cv.u32
		ld.global.nc.u32 ld.global.nc.L1::no_allocate.u32 ld.global.L1::evict_first.u32 ld.global.L1::evict_last.u32
		ld.global.L1::evict_normal.u32 ld.global.L1::evict_unchanged.u32 ld.global.L2::evict_last.u32 ld.global.L2::64B.u32
		ld.global.L2::evict_first.u32 ld.global.L2::evict_normal.u32
		ld.global.L2::128B.u32 ld.global.L2::256B.u32 ld.global.nc.L1::no_allocate.L2::256B.u32 ld.volatile.global.u32
		ld.relaxed.cta.global.u32 ld.relaxed.gpu.global.u32 ld.relaxed.sys.global.u32 ld.acquire.gpu.global.u32
		ld.acquire.cluster.global.u32 ld.weak.global.u32 ld.u32 ld.volatile.u32 ld.relaxed.gpu.u32 ld.global.L2::cache_hint.u32`
	stores := `st.global.u32 st.global.wb.u32 st.global.cg.u32 st.global.cs.u32 st.global.wt.u32 st.global.L1::no_allocate.u32
		st.volatile.global.u32 st.relaxed.gpu.global.u32 st.release.gpu.global.u32 st.weak.global.u32 st.u32 st.volatile.u32
		st.global.L1::evict_first.L2::cache_hint.u32`
	for _, form := range strings.Fields(loads) {
		for _, store := range strings.Fields(stores) {
			hint := map[bool]string{true: ", %d9"}
			body := "ld.param.u64 %d0, [p0];\ncreatepolicy.fractional.L2::evict_last.b64 %d9, 1.0;\n" +
				form + " %r1, [%d0]" + hint[strings.Contains(form, "hint")] + ";\n" +
				store + " [%d0+4], %r1" + hint[strings.Contains(store, "hint")] + ";\n"
			r := newRig(t)
			p := r.alloc32([]uint32{77, 0})
			r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
			if got := r.read32(p, 2)[1]; got != 77 {
				t.Errorf("%s, %s: %d", form, store, got)
			}
		}
	}
	for _, bad := range []string{"ld.global.u32.ca %r1, [%d0]", "ld.shared.nc.u32 %r1, [%d0]", "ld.global.v3.u32 {%r1,%r2,%r3}, [%d0]",
		"ld.global.v4.u64 {%d1,%d2,%d3,%d4}, [%d0]", "ld.global.pred %p1, [%d0]", "ld.global.u64 %r1, [%d0]", "ld.global.f32 %d1, [%d0]",
		"ld.global.u32 %r1, [%r2]", "ld.global.u32 %r1, %d0", "ld.acquire.global.u32 %r1, [%d0]", "st.global.lu.u32 [%d0], %r1",
		"st.acquire.gpu.global.u32 [%d0], %r1", "st.const.u32 [%d0], %r1", "ld.global.v2.u32 {%r1,%r2,%r3,%r4}, [%d0]",
		"ld.global.u32 %r1, [nowhere]", "ld.shared.u32 %r1, [p0]", "ldu.global.u32 %r1, [%d0]", "ld.global.b128 %d1, [%d0]",
		"ld.mmio.relaxed.sys.global.u32 %r1, [%d0]", "atom.global.add.s64 %d1, [%d0], %d1", "atom.global.inc.s32 %r1, [%d0], 1",
		"red.global.exch.b32 [%d0], 1", "atom.local.add.u32 %r1, [%d0], 1", "atom.global.cas.b32 %r1, [%d0], 1"} {
		if err := Check(program(1, bad+";")); !errors.Is(err, device.ErrBadKernel) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestHintsNeedVersion tests that a text that declares an old version or
// target cannot use later features, as in the driver.
func TestHintsNeedVersion(t *testing.T) {
	for _, form := range []string{"ld.global.L1::no_allocate.u32 %r1, [%d0];", "redux.sync.add.u32 %r1, %r1, -1;",
		"cp.async.wait_all;", "elect.sync %r1|%p1, -1;", "min.NaN.f32 %f1, %f1, %f1;", "ld.global.L2::256B.u32 %r1, [%d0];"} {
		if err := Check(program(1, form)); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		old := strings.Replace(strings.Replace(program(1, form), "8.0", "7.0", 1), "sm_90", "sm_70", 1)
		if err := Check(old); !errors.Is(err, device.ErrBadKernel) || !strings.Contains(err.Error(), "needs .version") {
			t.Errorf("%s in PTX 7.0 for sm_70: %v", form, err)
		}
	}
}

// refAtomic is an independent implementation of each read-modify-write.
func refAtomic(op string, ty valueType, old, b, c uint64) uint64 {
	x, y := refInt(old, ty), refInt(b, ty)
	switch op {
	case "add":
		if ty.class == 'f' {
			return refArith("add", ty, big.ToNearestEven, refFloatValue(old, ty, false), refFloatValue(b, ty, false), 0)
		}
		return low(x.Add(x, y), ty.bits)
	case "min", "max":
		if (x.Cmp(y) < 0) == (op == "min") {
			return old
		}
		return b
	case "and":
		return low(x.And(x, y), ty.bits)
	case "or":
		return low(x.Or(x, y), ty.bits)
	case "xor":
		return low(x.Xor(x, y), ty.bits)
	case "exch":
		return b
	case "cas":
		if old == b {
			return c
		}
		return old
	case "inc":
		if old >= b {
			return 0
		}
		return old + 1
	}
	if old == 0 || old > b { // dec
		return b
	}
	return old - 1
}

// TestEveryAtomic runs each operation as atom and as red, in global, shared and
// generic memory, on edge values.
func TestEveryAtomic(t *testing.T) {
	rng := numbers(t, 9, 10)
	sems := []string{"", ".relaxed.gpu", ".acquire.cta", ".release.sys", ".acq_rel.gpu", ".gpu"}
	for _, a := range atomics {
		op, tyName, _ := strings.Cut(a.name, ".")
		ty := types[tyName]
		edges := edgesOf(a.name, kindOf(a.bits), 0)
		for round := range 60 {
			old, b, c := choose(rng, edges), choose(rng, edges), choose(rng, edges)
			if op == "cas" && round%2 == 0 {
				b = old
			}
			space := []string{".global", ".shared", ""}[round%3]
			red := round%2 == 1 && op != "cas" && op != "exch"
			regs := [2]string{registersFor(tyName, 4)[1:], ""}
			names := strings.Split(strings.Trim(regs[0], "}"), ", ")
			body := ".shared .align 8 .b64 word;\nld.param.u64 %d0, [p0];\nld.param.u64 %d5, [p0];\n"
			body += fmt.Sprintf("ld.global.b%d %s, [%%d0];\nld.global.b%d %s, [%%d0+8];\nld.global.b%d %s, [%%d0+16];\n",
				a.bits, names[0], a.bits, names[1], a.bits, names[2])
			if space == ".shared" {
				body += "mov.u64 %d5, word;\n"
				body += fmt.Sprintf("st.shared.b%d [%%d5], %s;\n", a.bits, names[0])
			}
			last := map[bool]string{true: ", " + names[2]}[op == "cas"]
			if red {
				body += fmt.Sprintf("red%s%s.%s [%%d5], %s%s;\nmov.b%d %s, %s;\n", sems[round%6], space, a.name, names[1], last, a.bits, names[3], names[0])
			} else {
				body += fmt.Sprintf("atom%s%s.%s %s, [%%d5], %s%s;\n", sems[round%6], space, a.name, names[3], names[1], last)
			}
			body += fmt.Sprintf("ld%s.b%d %s, [%%d5];\nst.global.b%d [%%d0+24], %s;\nst.global.b%d [%%d0+32], %s;\n",
				space, a.bits, names[0], a.bits, names[3], a.bits, names[0])
			r := newRig(t)
			p := r.alloc(pack(old, b, c, uint64(0), uint64(0)))
			r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
			out := r.read(p, 40)
			gotOld, gotNew := binary.LittleEndian.Uint64(out[24:])&maskOf(a.bits), binary.LittleEndian.Uint64(out[32:])&maskOf(a.bits)
			if want := refAtomic(op, ty, old, b, c); gotOld != old || gotNew != want {
				t.Fatalf("%s of %#x, %#x, %#x: gave %#x and left %#x, want %#x", a.name, old, b, c, gotOld, gotNew, want)
			}
		}
	}
}

// TestAtomicsCount tests that atomics of many threads and blocks lose nothing.
func TestAtomicsCount(t *testing.T) {
	body := "ld.param.u64 %d0, [p0];\nmov.u32 %r0, %tid.x;\nred.global.add.u32 [%d0], 1;\natom.global.max.u32 %r1, [%d0+4], %r0;\natom.global.add.f32 %f0, [%d0+8], 0f3F000000;\n"
	for seed := range uint64(30) {
		r := newRig(t, Seed(seed))
		p := r.alloc32([]uint32{0, 0, 0})
		r.must(r.launch(r.load(program(1, body))("k"), device.Grid{Blocks: 7, Threads: 50}, p))
		got := r.read32(p, 3)
		if got[0] != 350 || got[1] != 49 || math.Float32frombits(got[2]) != 175 {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
}

// TestMoves tests packing, unpacking, addresses, predicates, and the sink.
func TestMoves(t *testing.T) {
	body := `.shared .align 4 .b32 s0; .shared .align 4 .b32 s1;
ld.param.u64 %d0, [p0];
mov.b64 %d1, {0x11223344, 0x55667788};
mov.b64 {%r1, %r2}, %d1;
mov.b64 {_, %r3}, %d1;
mov.b64 {%h1, %h2, %h3, %h4}, %d1;
mov.b32 %r4, {%h2, %h1};
mov.b32 {%h5, %h6}, %r4;
mov.b64 %d2, {%h4, %h3, %h2, %h1};
mov.pred %p1, 1;
mov.pred %p2, %p1;
selp.u32 %r5, 1, 0, %p2;
mov.u64 %d3, s0;
mov.u64 %d4, s1+8;
sub.u64 %d4, %d4, %d3;
mov.f32 %f0, 1.5;
mov.b32 %r6, %f0;
mov.f64 %g0, 0f3FC00000;
mov.b64 %d5, %g0;
mov.u32 %r7, WARP_SZ;
st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};
st.global.v2.u32 [%d0+16], {%r5, %r6};
st.global.v2.u16 [%d0+24], {%h5, %h6};
st.global.u32 [%d0+28], %r7;
st.global.v2.u64 [%d0+32], {%d2, %d4};
st.global.u64 [%d0+48], %d5;
`
	r := newRig(t)
	p := r.alloc(make([]byte, 56))
	r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
	got := r.read32(p, 14)
	want := []uint32{0x11223344, 0x55667788, 0x55667788, 0x33441122, 1, 0x3fc00000, 0x33441122, 32,
		0x77885566, 0x33441122, 12, 0, 0, 0x3ff80000}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("word %d: %#x, want %#x", i, got[i], want[i])
		}
	}
}
