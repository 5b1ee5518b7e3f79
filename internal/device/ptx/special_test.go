package ptx

import (
	"fmt"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// TestSpecials checks what a thread can ask about itself.
func TestSpecials(t *testing.T) {
	const threads, blocks, dynamic = 70, 3, 128
	want := map[string]func(b, i int) int{
		"%tid.x": func(_, i int) int { return i }, "%tid.y": zero, "%tid.z": zero,
		"%ntid.x": always(threads), "%ntid.y": always(1), "%ntid.z": always(1),
		"%ctaid.x": func(b, _ int) int { return b }, "%ctaid.y": zero, "%ctaid.z": zero,
		"%nctaid.x": always(blocks), "%nctaid.y": always(1), "%nctaid.z": always(1),
		"%laneid": func(_, i int) int { return i % 32 }, "%warpid": func(_, i int) int { return i / 32 }, "%nwarpid": always(3),
		"%dynamic_smem_size": always(dynamic), "%nsmid": always(processors),
		"%lanemask_eq": func(_, i int) int { return 1 << (i % 32) },
		"%lanemask_lt": func(_, i int) int { return 1<<(i%32) - 1 },
		"%lanemask_le": func(_, i int) int { return 1<<(i%32+1) - 1 },
		"%lanemask_gt": func(_, i int) int { return -1 << (i%32 + 1) },
		"%lanemask_ge": func(_, i int) int { return -1 << (i % 32) },
	}
	for name, f := range want {
		body := fmt.Sprintf("ld.param.u64 %%d0, [p0];\nmov.u32 %%r0, %s;\nmov.u32 %%r1, %%ctaid.x;\nmov.u32 %%r2, %%tid.x;\nmad.lo.u32 %%r1, %%r1, %d, %%r2;\nmad.wide.u32 %%d0, %%r1, 4, %%d0;\nst.global.u32 [%%d0], %%r0;", name, threads)
		r := newRig(t)
		p := r.alloc(make([]byte, 4*threads*blocks))
		r.must(r.launch(r.load(program(1, body))("k"), device.Grid{Blocks: blocks, Threads: threads, Shared: dynamic}, p))
		for j, got := range r.read32(p, threads*blocks) {
			if w := f(j/threads, j%threads); got != uint32(w) {
				t.Fatalf("%s of block %d, thread %d: %d, want %d", name, j/threads, j%threads, got, w)
			}
		}
	}
}

func zero(_, _ int) int { return 0 }

func always(n int) func(_, _ int) int { return func(_, _ int) int { return n } }

// TestClocks tests that counters move forward, and that the halves of one fit
// together.
func TestClocks(t *testing.T) {
	body := `ld.param.u64 %d0, [p0];
mov.u64 %d1, %clock64;
mov.u32 %r1, %clock;
mov.u32 %r2, %clock_hi;
mov.u64 %d2, %globaltimer;
mov.u32 %r3, %globaltimer_lo;
mov.u32 %r4, %globaltimer_hi;
mov.u64 %d3, %clock64;
mov.u64 %d4, %gridid;
mov.u32 %r5, %smid;
mov.u32 %r6, %total_smem_size;
setp.lt.u64 %p1, %d1, %d3;
setp.lt.u64 %p2, %d2, %d3;
and.pred %p1, %p1, %p2;
selp.u32 %r1, 1, 0, %p1;
add.u32 %r1, %r1, %r2;
add.u32 %r1, %r1, %r4;
st.global.u32 [%d0], %r1;
`
	r := newRig(t)
	p := r.alloc32([]uint32{0})
	r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
	if got := r.read32(p, 1)[0]; got != 1 {
		t.Errorf("clocks go backwards")
	}
}
