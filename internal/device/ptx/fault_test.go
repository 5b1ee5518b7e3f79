package ptx

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// TestMemoryFaults tests that every stray access is caught and described. p0
// is 64 bytes of live memory, p1 was freed.
func TestMemoryFaults(t *testing.T) {
	cases := map[string]struct {
		body string
		kind FaultKind
		size int
	}{
		"past the end":         {"ld.global.u32 %r1, [%d0+64];", OutOfBounds, 4},
		"over the end":         {"add.u64 %d0, %d0, 60;\nst.global.u8 [%d0+4], %r1;", OutOfBounds, 1},
		"before the start":     {"ld.global.u64 %d2, [%d0+-8];", OutOfBounds, 8},
		"vector over the end":  {"ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d0+64];", OutOfBounds, 16},
		"null":                 {"mov.u64 %d0, 0;\nst.global.u32 [%d0], %r1;", OutOfBounds, 4},
		"generic null":         {"mov.u64 %d0, 0;\nld.u32 %r1, [%d0];", OutOfBounds, 4},
		"wild":                 {"mov.u64 %d0, -8;\nld.u64 %d2, [%d0];", OutOfBounds, 8},
		"atomic outside":       {"atom.global.add.u32 %r1, [%d0+400], 1;", OutOfBounds, 4},
		"freed":                {"ld.global.u32 %r1, [%d1+4];", Freed, 4},
		"freed, written":       {"st.u8 [%d1], %r1;", Freed, 1},
		"misaligned 2":         {"ld.global.u16 %h1, [%d0+1];", Misaligned, 2},
		"misaligned 4":         {"ld.global.u32 %r1, [%d0+2];", Misaligned, 4},
		"misaligned 8":         {"st.global.u64 [%d0+4], %d1;", Misaligned, 8},
		"misaligned vector":    {"ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d0+8];", Misaligned, 16},
		"misaligned pair":      {"st.global.v2.u8 [%d0+1], {%h1,%h2};", Misaligned, 2},
		"misaligned atomic":    {"red.global.add.u64 [%d0+4], 1;", Misaligned, 8},
		"shared past the end":  {"ld.shared.u32 %r1, [room+16];", OutOfBounds, 4},
		"shared null":          {"mov.u32 %r1, 0;\nld.shared.u32 %r1, [%r1];", OutOfBounds, 4},
		"shared by global":     {"cvta.shared.u64 %d2, %d3;\nld.global.u32 %r1, [%d2];", OutOfBounds, 4},
		"global by shared":     {"ld.shared.u32 %r1, [%d0];", OutOfBounds, 4},
		"local past the end":   {"ld.local.u32 %r1, [own+8];", OutOfBounds, 4},
		"generic local beyond": {"mov.u64 %d2, own;\ncvta.local.u64 %d2, %d2;\nst.u32 [%d2+8], %r1;", OutOfBounds, 4},
		"atomic on local":      {"mov.u64 %d2, own;\ncvta.local.u64 %d2, %d2;\natom.add.u32 %r1, [%d2], 1;", OutOfBounds, 4},
		"const past the end":   {"mov.u64 %d2, table;\nld.const.u32 %r1, [%d2+8];", OutOfBounds, 4},
		"const written":        {"mov.u64 %d2, table;\ncvta.const.u64 %d2, %d2;\nst.u32 [%d2], %r1;", ReadOnly, 4},
		"param written":        {"mov.u64 %d2, p0;\ncvta.param.u64 %d2, %d2;\nst.u32 [%d2], %r1;", ReadOnly, 4},
		"param past the end":   {"mov.u64 %d2, p1;\nld.param.u64 %d2, [%d2+8];", OutOfBounds, 8},
		"copy from outside":    {"cp.async.ca.shared.global [room], [%d0+64], 4;\ncp.async.wait_all;", OutOfBounds, 1},
		"copy to outside":      {"cp.async.ca.shared.global [room+16], [%d0], 4;\ncp.async.wait_all;", OutOfBounds, 4},
		"copy misaligned":      {"cp.async.ca.shared.global [room], [%d0+2], 4;\ncp.async.wait_all;", Misaligned, 4},
	}
	for name, c := range cases {
		body := ".local .align 8 .b8 own[8];\n.shared .align 16 .b8 room[16];\nld.param.u64 %d0, [p0];\nld.param.u64 %d1, [p1];\nmov.u64 %d3, room;\n" +
			"mov.u32 %r0, %tid.x;\nsetp.ne.u32 %p1, %r0, 5;\n@%p1 exit;\n" + c.body
		source := strings.Replace(program(2, body), ".visible", ".const .align 4 .b32 table[2] = {1, 2};\n.visible", 1)
		r := newRig(t)
		live, gone := r.alloc(make([]byte, 64)), r.alloc(make([]byte, 64))
		r.must(r.s.Synchronize())
		r.must(r.dev.Free(gone))
		err := r.launch(r.load(source)("k"), one(8), live, gone)
		if !isKind(err, c.kind) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		last := c.body[strings.LastIndex(strings.TrimSuffix(c.body, "\ncp.async.wait_all;"), "\n")+1:]
		last = strings.TrimSuffix(strings.Split(last, "\n")[0], ";")
		says := []string{"kernel k", fmt.Sprintf("line %d", 1+strings.Count(source[:strings.LastIndex(source, last)], "\n")),
			last, "block 0, thread 5", fmt.Sprintf("%d bytes at 0x", c.size)}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v does not say %q", name, err, s)
			}
		}
	}
}

// TestWindows tests that isspacep recognizes where a generic address points,
// and that cvta.to undoes cvta.
func TestWindows(t *testing.T) {
	body := `.local .align 8 .b8 own[8]; .shared .align 8 .b8 room[8];
ld.param.u64 %d0, [p0];
mov.u64 %d1, %d0; cvta.global.u64 %d1, %d1;
mov.u64 %d2, room; cvta.shared.u64 %d2, %d2;
mov.u64 %d3, own; cvta.local.u64 %d3, %d3;
mov.u64 %d4, table; cvta.const.u64 %d4, %d4;
mov.u64 %d5, p0; cvta.param.u64 %d5, %d5;
mov.u32 %r5, 0;
`
	spaces := []string{"global", "shared", "local", "const", "param"}
	for i, s := range spaces {
		for j := range spaces {
			body += fmt.Sprintf("isspacep.%s %%p1, %%d%d;\n@%%p1 or.b32 %%r5, %%r5, %d;\n", s, 1+j, 1<<(5*i+j))
		}
		body += fmt.Sprintf("cvta.to.%s.u64 %%d%d, %%d%d;\n", s, 10+i, 1+i)
	}
	body += "mov.u64 %d20, room;\nsub.u64 %d11, %d11, %d20;\nmov.u64 %d20, own;\nsub.u64 %d12, %d12, %d20;\nsub.u64 %d10, %d10, %d0;\n" +
		"mov.u64 %d20, table;\nsub.u64 %d13, %d13, %d20;\nmov.u64 %d20, p0;\nsub.u64 %d14, %d14, %d20;\n" +
		"or.b64 %d10, %d10, %d11;\nor.b64 %d10, %d10, %d12;\nor.b64 %d10, %d10, %d13;\nor.b64 %d10, %d10, %d14;\n" +
		"st.global.u32 [%d0], %r5;\nst.global.u32 [%d0+4], %d10;\n"
	r := newRig(t)
	p := r.alloc(make([]byte, 8))
	source := strings.Replace(program(1, body), ".visible", ".const .align 4 .b32 table[2];\n.visible", 1)
	r.must(r.launch(r.load(source)("k"), one(1), p))
	if got := r.read32(p, 2); got[0] != 1|1<<6|1<<12|1<<18|1<<24 || got[1] != 0 {
		t.Errorf("%b, differences %#x", got[0], got[1])
	}
}

// TestFreshMemoryIsNoise tests that undefined content differs from seed to
// seed.
func TestFreshMemoryIsNoise(t *testing.T) {
	body := `.local .align 8 .b8 own[8]; .shared .align 8 .b8 room[8];
ld.param.u64 %d0, [p0];
ld.local.u64 %d1, [own];
ld.shared.u64 %d2, [room];
st.global.v2.u64 [%d0], {%d1, %d2};
st.global.u64 [%d0+16], %d30;
`
	seen := map[string]bool{}
	for seed := range uint64(8) {
		r := newRig(t, Seed(seed))
		p, err := r.dev.Alloc(32)
		r.must(err)
		r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
		b := r.read(p, 32)
		for i := 0; i < 32; i += 8 {
			seen[string(b[i:i+8])] = true
		}
	}
	if len(seen) != 32 {
		t.Errorf("32 undefined words, %d different", len(seen))
	}
}

// TestSameSeedSameRun tests that a kernel whose result depends on the schedule
// has the same result with the same seed, and not always the same with others.
func TestSameSeedSameRun(t *testing.T) {
	body := perThread + "ld.param.u64 %d5, [p1];\natom.global.add.u32 %r5, [%d5], 1;\nbar.sync 0;\natom.global.add.u32 %r6, [%d5], 1;\nst.global.v2.u32 [%d0], {%r5, %r6};"
	run := func(seed uint64) string {
		r := newRig(t, Seed(seed))
		p, c := r.alloc(make([]byte, 16*40)), r.alloc32([]uint32{0})
		r.must(r.launch(r.load(program(2, body))("k"), one(40), p, c))
		return fmt.Sprint(r.read32(p, 160), r.dev.Instructions())
	}
	seen := map[string]bool{}
	for seed := range uint64(50) {
		first := run(seed)
		if again := run(seed); again != first {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		seen[first] = true
	}
	if len(seen) < 40 {
		t.Errorf("50 seeds gave only %d schedules", len(seen))
	}
}

// TestLaunchLimits tests the limits of grids and parameter blocks.
func TestLaunchLimits(t *testing.T) {
	source := program(1, "ld.param.u64 %d0, [p0];")
	limited := strings.Replace(source, ")\n{", ")\n.maxntid 64, 1, 1\n{", 1)
	exact := strings.Replace(source, ")\n{", ")\n.reqntid 32, 2\n{", 1)
	odd := strings.Replace(source, ".param .u64 p0", ".param .u64 p0, .param .u32 last", 1)
	r := newRig(t)
	for _, c := range []struct {
		source string
		g      device.Grid
		params int
		ok     bool
	}{
		{source, device.Grid{Blocks: 1, Threads: 1024}, 8, true},
		{source, device.Grid{Blocks: 1, Threads: 1025}, 8, false},
		{source, device.Grid{Blocks: 0, Threads: 1}, 8, false},
		{source, device.Grid{Blocks: 1, Threads: 0}, 8, false},
		{source, device.Grid{Blocks: 1, Threads: 1, Shared: maxShared}, 8, true},
		{source, device.Grid{Blocks: 1, Threads: 1, Shared: maxShared + 1}, 8, false},
		{source, device.Grid{Blocks: 1<<31 - 1, Threads: 1024}, 8, false},
		{source, device.Grid{Blocks: 1, Threads: 1}, 4, false},
		{source, device.Grid{Blocks: 1, Threads: 1}, 16, false},
		{odd, device.Grid{Blocks: 1, Threads: 1}, 12, true},
		{odd, device.Grid{Blocks: 1, Threads: 1}, 16, false}, // padding, which CUDA refuses
		{limited, device.Grid{Blocks: 1, Threads: 64}, 8, true},
		{limited, device.Grid{Blocks: 1, Threads: 65}, 8, false},
		{exact, device.Grid{Blocks: 1, Threads: 64}, 8, true},
		{exact, device.Grid{Blocks: 1, Threads: 32}, 8, false},
	} {
		err := r.s.Launch(r.load(c.source)("k"), c.g, make([]byte, c.params))
		if c.ok && err != nil || !c.ok && !errors.Is(err, device.ErrLaunchFailed) {
			t.Errorf("%+v, %d bytes: %v", c.g, c.params, err)
		}
	}
	r.must(r.s.Synchronize())
}
