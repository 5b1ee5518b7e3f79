package ptx

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

const header = ".version 8.0\n.target sm_90\n.address_size 64\n"

// TestRejected tests that errors in a text are found when it is loaded, even
// in a function that nobody calls.
func TestRejected(t *testing.T) {
	bodies := []string{
		"add.u32 %r1, %r2;", "add.u32 %r1, %r2, %r3, %r4;", "add.u32 %d1, %r2, %r3;", "add.u32 %r1, %d2, %r3;", "add.u32 %r1, %r2, %zz;",
		"add.u32 %r1, %r2, %r40;", "add.u32 5, %r2, %r3;", "add %r1, %r2, %r3;", "add.u32.u32 %r1, %r2, %r3;", "add.f16 %h1, %h2, %h3;",
		"add.u32 %r1|%p1, %r2, %r3;", "mov.u32 %r1, %d1;", "mov.u8 %h1, %h2;", "mov.u64 %d1, %clock;", "mov.u64 %d1, %tid.x;", "mov.u32 %r1, %envreg0;",
		"mov.b64 {%r1, %r2}, {%r3, %r4};", "mov.b64 %d1, {%r1, %r2, %r3};", "mov.u64 {%r1, %r2}, %d1;", "mov.pred %p1, !%p2;",
		"bra NOWHERE;", "bra;", "L: L: add.u32 %r1, %r1, %r1;", "@%r1 bra L; L:", "@%p1;", "call nobody;", "call (%r1), nobody, (%r2);",
		"selp.u32 %r1, %r2, %r3, !%p1;", "setp.lt.b32 %p1, %r1, %r2;", "setp.lo.s32 %p1, %r1, %r2;", "setp.equ.u32 %p1, %r1, %r2;",
		"setp.lt.nand.u32 %p1, %r1, %r2, %p2;", "lop3.b32 %r1, %r2, %r3, %r4, %r5;", "cvt.u32.f32 %r1, %f1;", "cvt.rni.u32.u64 %r1, %d1;",
		"cvt.f32.f64 %f1, %g1;", "cvt.rn.f16.f32 %h1, %f1;", "cvt.u64.u32 %r1, %r2;", "cvt.u32.u64 %r1, %r2;", "cvt.rn.f32.u32 %d1, %r1;",
		"cvta.u64 %d1, %d2;", "cvta.global.u32 %r1, %r2;", "isspacep.global %r1, %d1;", "shfl.idx.b32 %r1, %r2, 0, 31;",
		"shfl.sync.idx.b64 %d1, %d2, 0, 31, -1;", "vote.sync.ballot.pred %p1, %p2, -1;", "vote.all.pred %p1, %p2;", "match.any.sync.b16 %r1, %h1, -1;",
		"redux.sync.and.u32 %r1, %r2, -1;", "bar.sync;", "bar.arrive 1;", "bar.red.popc.pred %p1, 0, %p2;", "barrier.cluster.arrive;", "bar.sync 0, 1, 2;",
		"membar;", "fence.proxy.async;", "elect.sync %r1, -1;", "brx.idx %r1, NOLIST;", "cp.async.ca.shared.global [%r1], [%d1], 5;",
		"cp.async.cg.shared.global [%r1], [%d1], 8;", "cp.async.bulk.wait_group 0;", "prefetch.global.L3 [%d1];", "discard.global.L2 [%d1], 64;",
		"nanosleep 5;", "exit.uni;", "trap.x;", "activemask.u32 %r1;", "ld.param.u64 %d1, [q];", "st.shared.u32 [p0], %r1;",
		".reg .b32 %r<5>;", ".reg .b128 %q<5>;", ".reg .f16 %q;", ".local .b32 x = 5;", ".global .b32 x;", ".shared .b32;", ".local .align 3 .b8 x[4];",
		".local .b8 x[99999999];", "mul.lo.f32 %f1, %f1, %f1;", "fma.f32 %f1, %f1, %f1, %f1;", "tanh.approx.f32 %f1, %f1;", "add.s32 %r1, %r2, 0x;", "wmma.load;",
		"add.u32 %r1, %r2, [%r3];", "ld.global.u32 {%r1}, [%d1];", "{ add.u32 %r1, %r2, %r3;", "}", "add.u32 %r1, %r2, 99999999999999999999;", "\x01",
	}
	for _, b := range bodies {
		if err := Check(program(1, b)); !errors.Is(err, device.ErrBadKernel) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", b, err)
		}
	}
	texts := []string{"", ".version 8.0\n", header + "nonsense", header + ".visible .entry k(.reg .u32 x) { ret; }", header + ".tex .u64 t;",
		strings.Replace(header, "64", "32", 1), strings.Replace(header, "sm_90", "sm_xx", 1), strings.Replace(header, "sm_90", "texmode_independent", 1),
		strings.Replace(header, "8.0", "8.x", 1), header + ".extern .global .u32 x;", header + ".global .u32 x[2] = {1, 2, 3};", header + ".global .u32 x = nobody;",
		header + ".global .u64 x = nobody;", header + ".shared .u32 x = 5;", header + ".const .b8 x[70000];", header + ".visible .entry k() { ret; ",
		header + ".func f() { frob; }", header + ".func f() { call f; ret; }", header + ".extern .func g();\n.func f() { call g; ret; }",
		header + ".func f(.param .b32 a) { ret; }\n.entry k() { call f; }", header + ".func f(.param .b32 a) { ret; }\n.entry k() { .reg .b32 %r<2>; call f, (%r1); }",
		header + ".entry k(.param .b8 p[5000]) { ret; }", header + ".visible .entry k() .cluster { ret; }", header + ".global .f16 x;",
		header + ".section .debug_info {", header + ".pragma \"x\"", header + "/* never closed", header + ".alias a, b;", header + ".entry k() { .pragma \"x }"}
	for _, s := range texts {
		if err := Check(s); !errors.Is(err, device.ErrBadKernel) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestBrokenTextsDoNotPanic cuts, doubles and changes bytes of real texts: any
// error will do, but there must be no panic.
func TestBrokenTextsDoNotPanic(t *testing.T) {
	rng := numbers(t, 21, 22)
	source := testdata(t, "kernels_70.ptx")
	for range 400 {
		b := []byte(source)
		for range 1 + rng.IntN(4) {
			i, j := rng.IntN(len(b)), rng.IntN(len(b))
			switch rng.IntN(4) {
			case 0:
				b = b[:max(i, 1)]
			case 1:
				b[i] = b[j]
			case 2:
				b = append(b[:i:i], b[min(i+rng.IntN(20), len(b)):]...)
			case 3:
				b[i] = byte(rng.Uint32())
			}
		}
		if err := Check(string(b)); err != nil && !errors.Is(err, device.ErrBadKernel) {
			t.Fatal(err)
		}
	}
}

// TestControl tests guards, nested scopes that hide names, loops, branch
// tables and nested calls.
func TestControl(t *testing.T) {
	source := header + `
// a comment /* with */ another
.func (.param .b32 res) triple(.param .b32 x)
{
	.reg .b32 %r<3>;
	.reg .pred %p;
	.local .align 4 .b8 tmp[8];
	ld.param.b32 %r1, [x];
	setp.eq.s32 %p, %r1, 0;
	@%p bra ZERO;
	st.local.u32 [tmp+4], %r1;
	mul.lo.u32 %r2, %r1, 3;
	ld.local.u32 %r1, [tmp+4];
	st.param.b32 [res], %r2;
	ret;
ZERO:
	mov.u32 %r2, 1000;
	st.param.b32 [res+0], %r2;
	ret.uni;
}
.visible .func (.param .b32 res) nine(.param .b32 x, .param .align 8 .b8 s[16])
{
	.reg .b32 %r<3>; .reg .b64 %d<3>;
	mov.b64 %d1, s;
	ld.param.b32 %r2, [%d1+4];
	{ .param .b32 a; .param .b32 b;
	ld.param.b32 %r1, [x];
	st.param.b32 [a], %r1;
	call.uni (b), triple, (a);
	ld.param.b32 %r1, [b];
	st.param.b32 [a], %r1;
	call.uni (b), triple, (a);
	ld.param.b32 %r1, [b]; }
	add.u32 %r1, %r1, %r2;
	st.param.b32 [res], %r1;
	ret;
}
.visible .entry k(.param .u64 p0)
.minnctapersm 1
{
	.reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .b32 %x;
	.loc 1 2 3
	.pragma "nounroll";
	ld.param.u64 %d0, [p0];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d1, %r0, 16;
	add.u64 %d0, %d0, %d1;
	{ .param .b32 a; .param .align 8 .b8 s[16]; .param .b32 res;
	st.param.b32 [a], %r0;
	st.param.v2.b32 [s], {1, 7};
	call (res), nine, (a, s);
	ld.param.b32 %r1, [res]; }
	mov.u32 %x, 5;
	{ .reg .b32 %x; .reg .b64 %r<3>; mov.u32 %x, 6; mov.u64 %r1, 9; bra INNER; INNER: }
	{ .reg .b32 %y; mov.u32 %y, %x; add.u32 %x, %y, %r1; bra INNER; mov.u32 %x, 0; INNER: }
	mov.u32 %r2, 0;
	mov.u32 %r3, 0;
LOOP:
	setp.ge.u32 %p1, %r3, %r0;
	@%p1 bra END;
	add.u32 %r2, %r2, %r3;
	add.u32 %r3, %r3, 1;
	bra.uni LOOP;
END:
	and.b32 %r4, %r0, 3;
T:	.branchtargets A, B, A, C;
	mov.u32 %r5, 0;
	brx.idx %r4, T;
A:	add.u32 %r5, %r5, 1;
B:	add.u32 %r5, %r5, 10;
C:	add.u32 %r5, %r5, 100;
	setp.lt.u32 %p2, %r0, 16;
	@%p2 add.u32 %r5, %r5, 1000;
	@!%p2 sub.u32 %r5, %r5, 50;
	st.global.v4.u32 [%d0], {%r1, %x, %r2, %r5};
	setp.eq.u32 %p3, %r0, 3;
	@%p3 ret;
	@%p3 st.global.u32 [%d0], %r0;
	bra OUT;
	trap;
OUT:
}
`
	for seed := range uint64(20) {
		for i, got := range newRig(t, Seed(seed)).rows(source, make([][4]uint32, 40)) {
			n := uint32(i)
			nine := 9*n + 7
			if n == 0 {
				nine = 3007
			}
			table := [4]uint32{111, 110, 111, 100}[n%4]
			want := [4]uint32{nine, nine + 5, n * (n - 1) / 2, table + 1000}
			if n >= 16 {
				want[3] = table - 50
			}
			if n == 0 {
				want[2] = 0
			}
			if got != want {
				t.Fatalf("seed %d, thread %d: %v, want %v", seed, i, got, want)
			}
		}
	}
}

// TestLoadedBefore tests that a text which another device has loaded, too, has variables,
// addresses and messages of its own on each, whether they are in constant memory, which is
// decoded once, or in global memory.
func TestLoadedBefore(t *testing.T) {
	for _, space := range []string{"const", "global"} {
		source := strings.Replace(program(1, `ld.param.u64 %d0, [p0];
ld.`+space+`.u32 %r1, [table+4];
st.global.u32 [%d0], %r1;
st.global.u32 [%d0+4], %r1;`), ".visible", "."+space+" .align 4 .b32 table[2] = {1, 2};\n.visible", 1)
		for i := range 3 {
			r := newRig(t)
			for range i { // so that addresses differ
				r.alloc(make([]byte, 5000))
			}
			k, p := r.load(source)("k"), r.alloc(make([]byte, 8))
			for range 2 {
				r.must(r.launch(k, one(1), p))
			}
			if got := r.read32(p, 2); got[0] != 2 || got[1] != 2 {
				t.Errorf("%s, device %d: %d", space, i, got)
			}
			var f *Fault
			if err := r.launch(k, one(1), p+4); !errors.As(err, &f) || f.Line != 11 || !strings.Contains(f.Text, "[%d0+4]") {
				t.Errorf("%s, device %d: %v", space, i, err)
			}
		}
	}
}

// TestVariables tests initializers, addresses of other variables, alignment,
// constants, shared memory declared outside, and dynamic shared memory.
func TestVariables(t *testing.T) {
	source := header + `
.visible .global .align 4 .b8 bytes[6] = {1, 2, 3};
.global .align 8 .u64 link = generic(bytes)+2;
.global .align 8 .u64 links[3] = {link, generic(numbers)+4, 77};
.const .align 2 .u8 pad = 9;
.const .align 16 .s32 numbers[3] = {-1, 0x10, 5};
.const .f32 half = 0f3F000000;
.global .v2 .u32 two;
.shared .align 64 .b8 first[3];
.shared .align 64 .b8 unused[4096];
.extern .shared .align 16 .b8 more[];
.visible .entry k(.param .u64 .ptr .global .align 16 p0, .param .u8 small, .param .align 8 .b8 whole[9], .param .u16 last)
{
	.reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b16 %h<9>; .reg .f32 %f<3>;
	.shared .align 4 .b32 second;
	ld.param.u64 %d0, [p0];
	ld.global.u64 %d1, [link];
	ld.u8 %r1, [%d1];
	ld.global.u64 %d2, [links];
	ld.global.u64 %d3, [%d2];
	sub.u64 %d3, %d3, %d1;
	ld.global.u64 %d4, [links+8];
	ld.u32 %r2, [%d4];
	ld.const.s32 %d5, [numbers];
	ld.const.f32 %f1, [half];
	ld.global.v2.u32 {%r3, %r4}, [two];
	mov.u64 %d6, second;
	mov.u64 %d7, first;
	mov.u64 %d8, more;
	mov.u64 %d9, more+8;
	sub.u64 %d9, %d9, %d8;
	st.shared.u32 [more+28], %r1;
	ld.shared.u32 %r5, [%d8+28];
	and.b64 %d7, %d7, 63;
	add.u64 %d7, %d7, %d9;
	ld.param.u8 %r6, [small];
	ld.param.u8 %r7, [whole+8];
	ld.param.u16 %r8, [last];
	ld.const.u8 %r9, [pad];
	st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};
	st.global.v4.u32 [%d0+16], {%r5, %r6, %r7, %r8};
	st.global.f32 [%d0+32], %f1;
	st.global.u32 [%d0+36], %r9;
	st.global.u32 [%d0+40], %d3;
	st.global.u32 [%d0+44], %d7;
	st.global.u64 [%d0+48], %d5;
}
`
	r := newRig(t)
	p := r.alloc(make([]byte, 56))
	params := pack(uint64(p), uint8(200), []byte{1, 2, 3, 4, 5, 6, 7, 8, 99}, uint16(60000))
	r.must(r.s.Launch(r.load(source)("k"), device.Grid{Blocks: 1, Threads: 1, Shared: 32}, params))
	got := fmt.Sprint(r.read32(p, 14))
	want := fmt.Sprint([]uint32{3, 16, 0, 0, 3, 200, 99, 60000, 0x3f000000, 9, 0, 8, 1<<32 - 1, 1<<32 - 1})
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRareForms tests notations that clang seldom uses.
func TestRareForms(t *testing.T) {
	source := strings.Replace(program(1, `.loc 1 2 3
ld.param::entry.u64 %d0, [p0];
.shared .align 4 .b32 s;
mov.u32 %r9, s;
mov.u32 %r1, 017;
st.shared::cta.u32 [%r9], %r1;
ld.shared::cta.u32 %r1, [s];
add.u32 %r1, %r1, 0b101;
add.u32 %r1, %r1, 3U;
mov.f64 %g1, -0d3FF8000000000000;
mov.f32 %f1, -0f3F800000;
mov.f64 %g2, -2.5e-1;
add.f64 %g1, %g1, %g2;
cvt.rn.f32.f64 %f2, %g1;
add.f32 %f1, %f1, %f2;
cvt.rzi.s32.f32 %r2, -2.75;
cvt.u32.u8 %r3, 0x1ff;
cvt.u64.u32 _, %r3;
ld.global.v2.u32 {_, %r4}, [%d0];
add.u64 %d1, %d0, 32;
ld.global.u32 %r5, [%d1-4];
atom.global.add.L2::cache_hint.u32 _, [%d0], 5, %d1;
atom.add.u32 %r6, [%d0], 1;
st.global.u32 [%d0+16], 7;
vote.sync.any.pred %p1, 1, 1;
st.global.v4.u32 [%d0+32], {%r1, %r2, %r3, %r4};
st.global.v2.u32 [%d0+48], {%r5, %r6};
st.global.f32 [%d0+56], %f1;
`), "sm_90", "sm_90a, debug", 1)
	source = strings.Replace(source, ".visible", ".file 1 \"a b.cu\"\n.pragma \"x\";\n.weak", 1) + ".section .debug_abbrev\n{\n.b8 1 // x\n.b32 .debug\n}\n"
	r := newRig(t)
	p := r.alloc32([]uint32{10, 11, 0, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0})
	r.must(r.launch(r.load(source)("k"), one(1), p))
	got := fmt.Sprint(r.read32(p, 15))
	want := fmt.Sprint([]uint32{16, 11, 0, 0, 7, 0, 0, 77, 23, 1<<32 - 2, 255, 11, 77, 15, math.Float32bits(-2.75)})
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLookupTables runs lop3 with all 256 tables.
func TestLookupTables(t *testing.T) {
	body := "ld.param.u64 %d0, [p0];\n"
	for lut := range 256 {
		body += fmt.Sprintf("lop3.b32 %%r1, 0xf0, 0xcc, 0xaa, %d;\nand.b32 %%r1, %%r1, 255;\nst.global.u8 [%%d0+%d], %%r1;\n", lut, lut)
	}
	r := newRig(t)
	p := r.alloc(make([]byte, 256))
	r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
	for lut, got := range r.read(p, 256) { // with those operands the result is the table itself
		if int(got) != lut {
			t.Errorf("table %#x: %#x", lut, got)
		}
	}
}

// TestHintsDoNothing tests that prefetches and policies are known and
// harmless, even for addresses that do not exist.
func TestHintsDoNothing(t *testing.T) {
	r := newRig(t)
	r.must(r.launch(r.load(program(0, `mov.u64 %d0, 0;
prefetch.global.L1 [%d0];
prefetch.L2 [%d0];
prefetch.local.L1 [%d0];
prefetch.global.L2::evict_last [%d0];
prefetch.global.L2::evict_normal [%d0];
prefetchu.L1 [%d0];
applypriority.global.L2::evict_normal [%d0], 128;
discard.global.L2 [%d0], 128;
createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %d1, 0.5;
createpolicy.fractional.L2::evict_last.b64 %d1;
membar.cta; membar.sys; fence.sc.sys; fence.acq_rel.cta; fence.gpu; fence.sc.cluster;
nanosleep.u32 5;
exit;`))("k"), one(33)))
}
