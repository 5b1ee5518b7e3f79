package ptx

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// TestEveryComputation runs every instruction of the registry on edge values
// and random ones, one thread per case, and compares with a reference written
// for readability: big numbers and loops over bits.
func TestEveryComputation(t *testing.T) {
	rng := numbers(t, 7, 8)
	names := make([]string, 0, len(registry()))
	for name := range registry() {
		names = append(names, name)
	}
	slices.Sort(names)
	for start := 0; start < len(names); start += 200 { // one module for many: loading dominates the cost
		testComputations(t, rng, names[start:min(start+200, len(names))])
	}
}

func testComputations(t *testing.T, rng *rand.Rand, names []string) {
	source := ".version 8.0\n.target sm_90\n.address_size 64\n"
	for i, name := range names {
		source += computation(fmt.Sprintf("k%d", i), name, registry()[name])
	}
	r := newRig(t)
	kernels := r.load(source)
	for i, name := range names {
		cases := casesFor(rng, name, registry()[name])
		got := r.compute(kernels(fmt.Sprintf("k%d", i)), cases)
		for j, c := range cases {
			want, exact := reference(name, c)
			if want == nil {
				t.Fatalf("%s has no reference", name)
			}
			if !agree(name, got[j], want, exact) {
				t.Errorf("%s of %#x: %#x, want %#x", name, c, got[j], want)
				break
			}
		}
	}
}

// agree compares results: bit for bit, or within a few units in the last place
// for what PTX calls approximate.
func agree(name string, got [2]uint64, want []uint64, exact bool) bool {
	if exact {
		return got[0] == want[0] && (len(want) < 2 || got[1] == want[1])
	}
	d := int64(got[0]) - int64(want[0])
	return d >= -2 && d <= 2
}

// computation returns a kernel that loads four 64-bit sources per thread,
// executes one instruction, and stores both its results.
func computation(kernel, name string, sp spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry %s(.param .u64 in, .param .u64 out)\n{\n", kernel)
	b.WriteString(`.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b32 %t<4>; .reg .b64 %a<4>;
mov.u32 %t0, %tid.x;
mul.wide.u32 %a1, %t0, 32;
ld.param.u64 %a2, [in];
add.u64 %a1, %a1, %a2;
mul.wide.u32 %a2, %t0, 16;
ld.param.u64 %a3, [out];
add.u64 %a2, %a2, %a3;
`)
	args := []string{register0(sp.dst, 0)}
	for i, k := range sp.src {
		if k == kImm {
			args = append(args, fmt.Sprint(lutOf(name)))
			continue
		}
		reg := register0(k, i+1)
		args = append(args, reg)
		if k == kPred {
			fmt.Fprintf(&b, "ld.global.u32 %%t1, [%%a1+%d];\nsetp.ne.u32 %s, %%t1, 0;\n", 8*i, reg)
		} else if k == k8 {
			fmt.Fprintf(&b, "ld.global.u8 %s, [%%a1+%d];\n", reg, 8*i)
		} else {
			fmt.Fprintf(&b, "ld.global.b%d %s, [%%a1+%d];\n", k.bits(), reg, 8*i)
		}
	}
	if sp.negatable { // the fourth number tells whether c is negated
		b.WriteString("ld.global.u32 %t1, [%a1+24];\nsetp.ne.u32 %p7, %t1, 0;\n")
	}
	if carries(name) { // the fourth number is the carry in
		b.WriteString("ld.global.u32 %t1, [%a1+24];\nadd.cc.u32 %t1, %t1, 0xffffffff;\n")
	}
	b.WriteString("mov.b32 %t2, 0;\n")
	emitComputation(&b, name, sp, args)
	if carries(name) {
		b.WriteString("addc.u32 %t2, 0, 0;\n")
	}
	switch k := sp.dst; k {
	case kPred:
		fmt.Fprintf(&b, "selp.u64 %%a3, 1, 0, %s;\nst.global.u64 [%%a2], %%a3;\n", args[0])
	case k8, k16:
		fmt.Fprintf(&b, "cvt.u64.u16 %%a3, %s;\nst.global.u64 [%%a2], %%a3;\n", args[0])
	case k32:
		fmt.Fprintf(&b, "cvt.u64.u32 %%a3, %s;\nst.global.u64 [%%a2], %%a3;\n", args[0])
	default:
		fmt.Fprintf(&b, "st.global.u64 [%%a2], %s;\n", args[0])
	}
	b.WriteString("cvt.u64.u32 %a3, %t2;\nst.global.u64 [%a2+8], %a3;\nret;\n}\n")
	return b.String()
}

// emitComputation writes the instruction, with p|q if it has that form and
// with c and !c if it may be negated.
func emitComputation(b *strings.Builder, name string, sp spec, args []string) {
	first := args[0]
	if sp.full != nil {
		first += "|%p6"
	}
	rest := strings.Join(args[1:], ", ")
	if sp.negatable {
		fmt.Fprintf(b, "@%%p7 %s %s, %s;\n", name, first, strings.Replace(rest, "%p3", "!%p3", 1))
		fmt.Fprintf(b, "@!%%p7 %s %s, %s;\n", name, first, rest)
	} else {
		fmt.Fprintf(b, "%s %s, %s;\n", name, first, rest)
	}
	if sp.full == nil {
		return
	}
	b.WriteString("selp.u32 %t2, 1, 0, %p6;\n")
	if !sp.negatable { // and the form without q, which must result in the same p: otherwise the second result is off
		fmt.Fprintf(b, "%s %%p5, %s;\nxor.pred %%p5, %%p5, %s;\n@%%p5 add.u32 %%t2, %%t2, 2;\n", name, rest, args[0])
	}
}

func register0(k kind, i int) string {
	stem := map[kind]string{kPred: "%p", k8: "%h", k16: "%h", k32: "%r", k64: "%d"}[k]
	return fmt.Sprint(stem, i)
}

func carries(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	return strings.Contains(name, ".cc.") || head == "addc" || head == "subc" || head == "madc"
}

// lutOf returns the truth table that lop3 is tested with: it has no symmetry.
func lutOf(string) int { return 0xca ^ 0x11 }

// compute runs a kernel on all cases, in blocks of one.
func (r *rig) compute(k device.Kernel, cases [][4]uint64) [][2]uint64 {
	in := make([]byte, 0, 32*len(cases))
	for _, c := range cases {
		for _, v := range c {
			in = binary.LittleEndian.AppendUint64(in, v)
		}
	}
	src, dst := r.alloc(in), r.alloc(make([]byte, 16*len(cases)))
	r.must(r.launch(k, device.Grid{Blocks: 1, Threads: len(cases)}, src, dst))
	b := r.read(dst, 16*len(cases))
	r.must(r.dev.Free(src))
	r.must(r.dev.Free(dst))
	out := make([][2]uint64, len(cases))
	for i := range out {
		out[i] = [2]uint64{binary.LittleEndian.Uint64(b[16*i:]), binary.LittleEndian.Uint64(b[16*i+8:])}
	}
	return out
}

// casesFor returns all pairs of edge values for the first two sources, and
// random choices for the rest, cut to what a block can hold.
func casesFor(rng *rand.Rand, name string, sp spec) [][4]uint64 {
	edges := make([][]uint64, 4)
	for i := range edges {
		edges[i] = []uint64{0, 1}
		if i < len(sp.src) {
			edges[i] = edgesOf(name, sp.src[i], i)
		}
	}
	var out [][4]uint64
	for _, a := range edges[0] {
		for _, b := range edges[1] {
			out = append(out, [4]uint64{a, b, choose(rng, edges[2]), choose(rng, edges[3])})
		}
	}
	for range seed.Times(40, 200) {
		var c [4]uint64
		for i := range c {
			c[i] = choose(rng, edges[i])
			if i < len(sp.src) && sp.src[i] != kPred && rng.IntN(2) == 0 {
				c[i] = rng.Uint64() >> rng.UintN(64) & maskOf(sp.src[i].bits())
			}
		}
		out = append(out, c)
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), seed.Size(250, 512))]
}

func choose(rng *rand.Rand, v []uint64) uint64 { return v[rng.IntN(len(v))] }

// edgesOf returns the values at which operations of a width go wrong.
func edgesOf(name string, k kind, i int) []uint64 {
	ty := name[strings.LastIndex(name, ".")+1:]
	float := ty == "f32" || ty == "f64"
	if strings.HasPrefix(name, "slct") {
		float = i == 2 && ty == "f32"
	}
	switch {
	case k == kPred || k == kImm:
		return []uint64{0, 1}
	case float && k == k32:
		return []uint64{0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x3f800001,
			0x40490fdb, 0x4b800001, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x5f800000, 0x3effffff,
			0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345}
	case float:
		return []uint64{0, 1 << 63, 1, 1<<63 | 1, 0x000fffffffffffff, 0x0010000000000000, 0x3ff0000000000000, 0xbff0000000000000,
			0x3ff0000000000001, 0x3fe0000000000000, 0xbfe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0x41dfffffffc00000,
			0x41e0000000000000, 0xc1e0000000000000, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000, 0x36a0000000000000,
			0x380fffffffffffff, 0x47efffffe0000000, 0x47efffffffffffff, 0x7fefffffffffffff, 0xffefffffffffffff,
			0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000001234}
	}
	w := uint(k.bits())
	top := uint64(1) << (w - 1)
	out := []uint64{0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256}
	out = append(out, top, top-1, top+1, maskOf(int(w)), maskOf(int(w))-1, 0x5555555555555555, 0xf00f00f00f00f00f)
	for i := range out {
		out[i] &= maskOf(int(w))
	}
	return out
}
