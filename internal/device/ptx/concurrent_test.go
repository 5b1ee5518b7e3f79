package ptx

import (
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// The two kernels of a handshake: each raises its flag, waits for the other's,
// and reads what the other has written before.
const handshake = `ld.param.u64 %d0, [p0];
ld.param.u64 %d1, [p1];
mov.u32 %r1, 7;
st.global.u32 [%d0+4], %r1;
st.release.gpu.global.u32 [%d0], %r1;
AGAIN:
ld.acquire.gpu.global.u32 %r2, [%d1];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra AGAIN;
ld.global.u32 %r3, [%d1+4];
st.global.u32 [%d0+8], %r3;
`

// pairOfStreams launches the same text on two streams, each with its own memory
// first, and returns the error and the last word of each.
func pairOfStreams(t *testing.T, text string, opts ...Option) ([2]error, [2]uint32) {
	t.Helper()
	r := newRig(t, opts...)
	k := r.load(program(2, text))("k")
	a, b := r.alloc32(make([]uint32, 64)), r.alloc32(make([]uint32, 64))
	r.must(r.s.Synchronize())
	other, err := r.dev.NewStream()
	r.must(err)
	r.must(r.s.Launch(k, one(1), pack(a, b)))
	r.must(other.Launch(k, one(1), pack(b, a)))
	errs := [2]error{r.s.Synchronize(), other.Synchronize()}
	return errs, [2]uint32{r.read32(a, 3)[2], r.read32(b, 3)[2]}
}

// TestLaunchesAtOnce tests that two kernels that wait for each other get on if
// they run at once, and are a deadlock if they do not.
func TestLaunchesAtOnce(t *testing.T) {
	start := seed.Of(t)
	for s := range uint64(200) {
		errs, got := pairOfStreams(t, handshake, Seed(start+s), Concurrent(true), Weak(true), Strict(true))
		if errs[0] != nil || errs[1] != nil || got != [2]uint32{7, 7} {
			t.Fatalf("seed %d: %v, %v", start+s, errs, got)
		}
		errs, _ = pairOfStreams(t, handshake, Seed(start+s), Weak(true))
		if !isKind(errs[0], Deadlock) && !isKind(errs[1], Deadlock) {
			t.Fatalf("seed %d: one after the other: %v", start+s, errs)
		}
	}
}

// TestLaunchesAtOnceRace tests that kernels of different streams have nothing
// that orders them but atomics, of a scope that reaches the other kernel.
func TestLaunchesAtOnceRace(t *testing.T) {
	start := seed.Of(t)
	found := 0
	for s := range uint64(100) {
		text := strings.NewReplacer(".release.gpu", ".release.cta", ".acquire.gpu", ".acquire.cta").Replace(handshake)
		errs, _ := pairOfStreams(t, text, Seed(start+s), Concurrent(true), Strict(true))
		for _, err := range errs {
			if isKind(err, Race) {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("a scope of the block was enough for another kernel")
	}
}

// TestStreamsStayInOrder tests that the work of a stream, and what waits for an
// event or is queued after the host waited, knows of what it follows, while
// another kernel runs beside it.
func TestStreamsStayInOrder(t *testing.T) {
	start := seed.Of(t)
	busy := "ld.param.u64 %d0, [p0];\nmov.u32 %r1, 0;\nAGAIN:\nadd.u32 %r1, %r1, 1;\nst.relaxed.gpu.global.u32 [%d0], %r1;\nsetp.lt.u32 %p1, %r1, 300;\n@%p1 bra AGAIN;"
	for s := range uint64(100) {
		r := newRig(t, Seed(start+s), Concurrent(true), Weak(true), Strict(true))
		add, spin := r.load(program(2, addBody))("k"), r.load(program(1, busy))("k")
		p, q, z := r.alloc32([]uint32{1}), r.alloc32([]uint32{0}), r.alloc32([]uint32{0})
		r.must(r.s.Synchronize())
		streams := [3]device.Stream{}
		for i := range streams {
			var err error
			streams[i], err = r.dev.NewStream()
			r.must(err)
		}
		ev, err := r.dev.NewEvent()
		r.must(err)
		r.must(streams[2].Launch(spin, one(1), pack(z)))
		r.must(streams[0].Launch(add, one(1), pack(p, uint64(1))))
		r.must(streams[0].Launch(add, one(1), pack(p, uint64(10))))
		r.must(streams[0].CopyDevice(q, p, 4))
		r.must(streams[0].Record(ev))
		r.must(streams[1].Wait(ev))
		r.must(streams[1].Launch(add, one(1), pack(p, uint64(100))))
		r.must(streams[1].Launch(add, one(1), pack(q, uint64(1000))))
		r.must(streams[1].Synchronize())
		r.must(r.s.Launch(add, one(1), pack(p, uint64(10000))))
		r.must(r.s.Synchronize())
		r.must(streams[2].Synchronize())
		if got := [3]uint32{r.read32(p, 1)[0], r.read32(q, 1)[0], r.read32(z, 1)[0]}; got != [3]uint32{10112, 1012, 300} {
			t.Fatalf("seed %d: %v", start+s, got)
		}
	}
}

// TestCopyBesideKernel tests that a kernel that waits for a word sees what a copy
// of another stream brings, in the end.
func TestCopyBesideKernel(t *testing.T) {
	start := seed.Of(t)
	text := "ld.param.u64 %d0, [p0];\nAGAIN:\nld.relaxed.sys.global.u32 %r1, [%d0];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\nst.global.u32 [%d0+4], %r1;"
	for s := range uint64(100) {
		r := newRig(t, Seed(start+s), Concurrent(true), Weak(true))
		k := r.load(program(1, text))("k")
		p := r.alloc32([]uint32{0, 0})
		r.must(r.s.Synchronize())
		other, err := r.dev.NewStream()
		r.must(err)
		r.must(r.s.Launch(k, one(1), pack(p)))
		r.must(other.CopyIn(p, []byte{9, 0, 0, 0}))
		r.must(r.s.Synchronize())
		if got := r.read32(p, 2)[1]; got != 9 {
			t.Fatalf("seed %d: %d", start+s, got)
		}
	}
}

// TestFreeBesideKernel tests that memory freed under a running kernel is a fault,
// though the kernel has just used it.
func TestFreeBesideKernel(t *testing.T) {
	start := seed.Of(t)
	found := 0
	for s := range uint64(100) {
		r := newRig(t, Seed(start+s), Concurrent(true), Steps(1<<22))
		busy := "ld.param.u64 %d0, [p0];\nmov.u32 %r1, 0;\nAGAIN:\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%d0], %r1;\nbra AGAIN;"
		p := r.alloc32([]uint32{0})
		r.must(r.s.Launch(r.load(program(1, busy))("k"), one(1), pack(p)))
		other, err := r.dev.NewStream()
		r.must(err)
		for range 20 { // so that the device runs ahead
			r.must(other.Fill(r.alloc32([]uint32{0}), 0, 4))
		}
		running := r.s.(*stream).flight != nil
		r.must(r.dev.Free(p))
		if err := r.s.Synchronize(); running && !isKind(err, Freed) {
			t.Fatalf("seed %d: %v", start+s, err)
		}
		if running {
			found++
		}
	}
	if found == 0 {
		t.Error("no seed frees under a running kernel")
	}
}
