package ptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// raceCase is a kernel of two warps or blocks; room is shared, p0 global.
type raceCase struct {
	body   string
	grid   device.Grid
	race   bool
	always bool // every schedule shows it
}

// Threads write their own cell (%r9), and read that of the next thread (%r8).
const neighbours = `.shared .align 16 .b32 room[80];
ld.param.u64 %d0, [p0];
mov.u32 %r0, %tid.x;
mov.u32 %r1, room;
mad.lo.u32 %r9, %r0, 4, %r1;
add.u32 %r8, %r9, 4;
mov.u32 %r7, %ctaid.x;
mul.wide.u32 %d1, %r0, 4;
add.u64 %d1, %d1, %d0;
setp.eq.u32 %p1, %r0, 0;
setp.eq.u32 %p2, %r7, 0;
setp.lt.u32 %p3, %r0, 32;
and.b32 %r6, %r0, 28;
shl.b32 %r6, 15, %r6;
`

func raceCases() map[string]raceCase {
	warp, block := one(32), one(64)
	two := device.Grid{Blocks: 2, Threads: 32}
	return map[string]raceCase{
		"nothing between":                        {"st.shared.u32 [%r9], %r0;\nld.shared.u32 %r2, [%r8];", warp, true, true},
		"bar.warp.sync between":                  {"st.shared.u32 [%r9], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r2, [%r8];", warp, false, false},
		"shuffle between":                        {"st.shared.u32 [%r9], %r0;\nshfl.sync.idx.b32 %r3, %r0, 0, 31, -1;\nld.shared.u32 %r2, [%r8];", warp, false, false},
		"warp sync for two warps":                {"st.shared.u32 [%r9], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r2, [%r8];", block, true, true},
		"barrier between":                        {"st.shared.u32 [%r9], %r0;\nbar.sync 0;\nld.shared.u32 %r2, [%r8];", block, false, false},
		"barrier, then written again":            {"st.shared.u32 [%r9], %r0;\nbar.sync 0;\nld.shared.u32 %r2, [%r8];\nst.shared.u32 [%r9], %r2;", block, true, true},
		"two barriers":                           {"st.shared.u32 [%r9], %r0;\nbar.sync 0;\nld.shared.u32 %r2, [%r8];\nbar.sync 0;\nst.shared.u32 [%r9], %r2;", block, false, false},
		"all write one word":                     {"st.shared.u32 [room], %r0;", warp, true, true},
		"all write one word atomically":          {"atom.shared.add.u32 %r2, [room], %r0;", block, false, false},
		"volatile writes":                        {"st.volatile.shared.u32 [room], %r0;\nld.volatile.shared.u32 %r2, [room];", block, false, false},
		"atomic against plain write":             {"@%p1 st.shared.u32 [room], %r0;\n@!%p1 atom.shared.add.u32 %r2, [room], 1;", block, true, true},
		"atomic against plain read":              {"@%p1 ld.shared.u32 %r2, [room];\n@!%p1 atom.shared.add.u32 %r2, [room], 1;", block, false, false},
		"only reads":                             {"ld.shared.u32 %r2, [room];\nld.global.u32 %r3, [%d0];", block, false, false},
		"read by all, written by one":            {"ld.shared.u32 %r2, [room];\n@%p1 st.shared.u32 [room], %r2;", block, true, true},
		"read by all, a barrier, written by one": {"ld.shared.u32 %r2, [room];\nbar.sync 0;\n@%p1 st.shared.u32 [room], %r2;", block, false, false},
		"bytes of one word":                      {"add.u32 %r2, %r1, %r0;\nst.shared.u8 [%r2], %r0;", block, false, false},
		"halves against words":                   {"@%p1 st.shared.u32 [room], %r0;\n@!%p1 ld.shared.u16 %h1, [room+2];", block, true, true},
		"vectors that overlap":                   {"and.b32 %r2, %r9, -16;\nadd.u32 %r2, %r2, 16;\nst.shared.u32 [%r9], %r0;\nld.shared.v4.u32 {%r20,%r21,%r22,%r23}, [%r2];", warp, true, true},
		"tiles of four":                          {"st.shared.u32 [%r9], %r0;\nbar.warp.sync %r6;\nxor.b32 %r2, %r0, 3;\nmad.lo.u32 %r2, %r2, 4, %r1;\nld.shared.u32 %r3, [%r2];", block, false, false},
		"across tiles of four":                   {"st.shared.u32 [%r9], %r0;\nbar.warp.sync %r6;\nxor.b32 %r2, %r0, 4;\nmad.lo.u32 %r2, %r2, 4, %r1;\nld.shared.u32 %r3, [%r2];", block, true, true},
		"tiles, then the warp":                   {"st.shared.u32 [%r9], %r0;\nbar.warp.sync %r6;\nbar.warp.sync -1;\nxor.b32 %r2, %r0, 4;\nmad.lo.u32 %r2, %r2, 4, %r1;\nld.shared.u32 %r3, [%r2];", warp, false, false},
		"tiles, then one of two warps":           {"st.shared.u32 [%r9], %r0;\nbar.warp.sync %r6;\nbar.warp.sync -1;\nxor.b32 %r2, %r0, 4;\nmad.lo.u32 %r2, %r2, 4, %r1;\nld.shared.u32 %r3, [%r2];", block, false, false},
		"pairs in two steps":                     {pairs(3), block, false, false},
		"pairs, one step short":                  {pairs(7), block, true, true},
		"counted barrier of both warps":          {"st.shared.u32 [%r9], %r0;\nbar.sync 1, 64;\nld.shared.u32 %r2, [%r8];", block, false, false},
		"counted barrier of one warp each":       {"st.shared.u32 [%r9], %r0;\n@%p3 bar.sync 1, 32;\n@!%p3 bar.sync 2, 32;\nld.shared.u32 %r2, [%r8];", block, true, true},
		"two blocks write one word":              {"@%p1 st.global.u32 [%d0], %r0;", two, true, true},
		"two blocks write their own":             {"mad.wide.u32 %d1, %r7, 128, %d1;\nst.global.u32 [%d1], %r0;", two, false, false},
		"two blocks, barriers of their own":      {"@%p2 st.global.u32 [%d1], %r0;\nbar.sync 0;\n@!%p2 ld.global.u32 %r2, [%d1];", two, true, true},
		"message without a fence":                {message("", ""), two, true, false},
		"message with a fence on one side":       {message("", "membar.gl;"), two, true, false},
		"message with fences":                    {message("membar.gl;", "fence.acq_rel.gpu;"), two, false, false},
		"message by release and acquire":         {strings.NewReplacer("st.volatile", "st.release.gpu", "ld.volatile", "ld.acquire.gpu").Replace(message("", "")), two, false, false},
		"message through a barrier":              {"st.global.u32 [%d1+4], %r0;\nbar.sync 0;\n" + message("membar.gl;", "membar.gl;"), two, true, true},
		"a warp's message":                       {warpMessage("bar.warp.sync -1;"), device.Grid{Blocks: 2, Threads: 64}, false, false},
		"a warp's message, nothing to gather it": {warpMessage(""), device.Grid{Blocks: 2, Threads: 64}, true, false},
		"a relay":                                {relay("membar.gl;"), device.Grid{Blocks: 3, Threads: 1}, false, false},
		"a relay without fences":                 {relay(""), device.Grid{Blocks: 3, Threads: 1}, true, false},
		"a message in shared memory":             {sharedMessage("membar.cta;"), block, false, false},
		"the same without a fence":               {sharedMessage(""), block, true, false},
		"copy read too early":                    {"cp.async.ca.shared.global [%r9], [%d1], 4;\nld.shared.u32 %r2, [%r9];\ncp.async.wait_all;\nld.shared.u32 %r2, [%r8];", warp, true, true},
		"copy, wait, barrier":                    {"cp.async.ca.shared.global [%r9], [%d1], 4;\ncp.async.wait_all;\nbar.sync 0;\nld.shared.u32 %r2, [%r8];", warp, false, false},
	}
}

// message is a kernel in which block 0's thread 0 writes a word and raises a
// flag, and block 1's thread 0 reads the word if it sees the flag up.
func message(before, after string) string {
	return `@!%p1 exit;
@!%p2 bra READER;
mov.u32 %r2, 1;
st.global.u32 [%d0+512], %r2;
` + before + `
st.volatile.global.u32 [%d0+516], %r2;
exit;
READER:
ld.volatile.global.u32 %r2, [%d0+516];
` + after + `
setp.eq.u32 %p4, %r2, 0;
@%p4 exit;
ld.global.u32 %r3, [%d0+512];
`
}

// pairs has each lane meet its neighbor at distance 1, then at 2, and read
// what the lane at the given distance wrote before.
func pairs(distance int) string {
	body := "st.shared.u32 [%r9], %r0;\nand.b32 %r20, %r0, 31;\n"
	for _, d := range []int{1, 2} {
		body += fmt.Sprintf("xor.b32 %%r21, %%r20, %d;\nshl.b32 %%r22, 1, %%r20;\nshl.b32 %%r23, 1, %%r21;\nor.b32 %%r22, %%r22, %%r23;\nbar.warp.sync %%r22;\n", d)
	}
	return body + fmt.Sprintf("xor.b32 %%r2, %%r0, %d;\nmad.lo.u32 %%r2, %%r2, 4, %%r1;\nld.shared.u32 %%r3, [%%r2];", distance)
}

// warpMessage is message by a whole warp: its lanes write, gather, and lane 0
// raises the flag; on the other side lane 0 looks and tells the others.
func warpMessage(gather string) string {
	return `@!%p3 exit;
@!%p2 bra READER;
st.global.u32 [%d1], %r0;
` + gather + `
membar.gl;
mov.u32 %r2, 1;
@%p1 st.volatile.global.u32 [%d0+516], %r2;
exit;
READER:
@%p1 ld.volatile.global.u32 %r2, [%d0+516];
membar.gl;
shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;
setp.eq.u32 %p4, %r2, 0;
@%p4 exit;
ld.global.u32 %r3, [%d1];
`
}

// relay is a message that goes from block 0 through block 1 to block 2.
func relay(fence string) string {
	return `mov.u32 %r2, 1;
setp.eq.u32 %p5, %r7, 1;
@%p5 bra MIDDLE;
@!%p2 bra READER;
st.global.u32 [%d0+512], %r2;
` + fence + `
atom.global.exch.b32 %r3, [%d0+516], %r2;
exit;
MIDDLE:
atom.global.or.b32 %r3, [%d0+516], 0;
` + fence + `
st.relaxed.gpu.global.u32 [%d0+520], %r3;
exit;
READER:
ld.relaxed.gpu.global.u32 %r2, [%d0+520];
` + fence + `
setp.eq.u32 %p4, %r2, 0;
@%p4 exit;
ld.global.u32 %r3, [%d0+512];
`
}

// sharedMessage is a message between the warps of a block, after the block has
// set the flag to 0.
func sharedMessage(fence string) string {
	return `mov.u32 %r2, 0;
@%p1 st.shared.u32 [room], %r2;
bar.sync 0;
mov.u32 %r2, 1;
setp.eq.u32 %p5, %r0, 32;
@%p5 bra READER;
@!%p1 exit;
st.shared.u32 [room+4], %r2;
` + fence + `
st.volatile.shared.u32 [room], %r2;
exit;
READER:
mov.u64 %d5, room;
cvta.shared.u64 %d5, %d5;
ld.volatile.u32 %r2, [%d5];
` + fence + `
setp.eq.u32 %p4, %r2, 0;
@%p4 exit;
ld.shared.u32 %r3, [room+4];
`
}

// TestRaces tests that races are found, in all schedules if they do not depend
// on the schedule, otherwise in some, and that nothing else is ever reported.
func TestRaces(t *testing.T) {
	for name, c := range raceCases() {
		found := 0
		const seeds = 60
		for seed := range uint64(seeds) {
			r := newRig(t, Seed(seed))
			p := r.alloc(make([]byte, 1024))
			err := r.launch(r.load(program(1, neighbours+c.body))("k"), c.grid, p)
			if err == nil {
				continue
			}
			if !isKind(err, Race) {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			found++
			if !strings.Contains(err.Error(), "at line ") || !strings.Contains(err.Error(), "block ") {
				t.Errorf("%s: %v names one access only", name, err)
			}
		}
		switch {
		case !c.race && found > 0:
			t.Errorf("%s: reported as a race in %d of %d schedules", name, found, seeds)
		case c.race && found == 0, c.always && found < seeds:
			t.Errorf("%s: found in %d of %d schedules", name, found, seeds)
		}
	}
}

// TestRaceCheckOff tests that nothing is reported if the check is off.
func TestRaceCheckOff(t *testing.T) {
	for name, c := range raceCases() {
		r := newRig(t, RaceCheck(false))
		p := r.alloc(make([]byte, 1024))
		if err := r.launch(r.load(program(1, neighbours+c.body))("k"), c.grid, p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLaunchesAreOrdered tests that a launch may write what any thread of the
// previous one read or wrote.
func TestLaunchesAreOrdered(t *testing.T) {
	r := newRig(t)
	k := r.load(program(1, neighbours+"sub.u32 %r2, 31, %r0;\nst.global.u32 [%d1], %r2;"))("k")
	back := r.load(program(1, neighbours+"sub.u32 %r2, 31, %r0;\nmul.wide.u32 %d2, %r2, 4;\nadd.u64 %d2, %d2, %d0;\nld.global.u32 %r3, [%d2];\nst.global.u32 [%d2], %r0;"))("k")
	p := r.alloc(make([]byte, 128))
	for range 5 {
		r.must(r.launch(k, one(32), p))
		r.must(r.launch(back, one(32), p))
	}
}
