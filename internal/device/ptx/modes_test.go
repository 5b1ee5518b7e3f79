package ptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// faults runs a litmus test with a number of seeds, and returns how often it
// failed as a kind, and an error of another kind.
func (l *litmus) faults(t *testing.T, kind FaultKind, opts ...Option) (int, error) {
	t.Helper()
	start := seed.Of(t)
	text, _ := l.text()
	r := newRig(t, append([]Option{Steps(1 << 20)}, opts...)...)
	k := r.load(text)("k")
	memory, out := r.alloc(make([]byte, 256)), r.alloc(make([]byte, 64))
	near := max(l.near, 1)
	n := 0
	for s := range uint64(100) {
		Seed(start + s)(r.dev)
		r.must(r.s.Fill(memory, 0, 256))
		err := r.launch(k, device.Grid{Blocks: len(l.threads) / near, Threads: near}, memory, out)
		if isKind(err, kind) {
			n++
		} else if err != nil {
			return n, fmt.Errorf("seed %d: %w", start+s, err)
		}
	}
	return n, nil
}

// TestStrict tests what races by the letter, and that less is reported without.
func TestStrict(t *testing.T) {
	guarded := "ld.acquire.gpu $0, [y]; setp.eq.u32 %p1, $0, 1; @%p1 ld.weak $1, [x]"
	cases := map[string]struct {
		litmus
		strict, other bool // reported as a race
	}{
		"plain read, strong write": {litmus{threads: []string{relaxedX, "ld.weak $0, [x]"}}, true, false},
		"plain read, atomic":       {litmus{threads: []string{"red.relaxed.gpu.global.add.u32 [x], 1", "ld.weak $0, [x]"}}, true, false},
		"strong read, plain write": {litmus{threads: []string{"st.weak [x], 1", "ld.relaxed.gpu $0, [x]"}}, true, true},
		"both strong":              {litmus{threads: []string{relaxedX, "ld.relaxed.gpu $0, [x]"}}, false, false},
		"volatile, relaxed":        {litmus{threads: []string{"st.volatile.global.u32 [x], 1", "ld.relaxed.gpu $0, [x]"}}, false, false},
		"narrow scope":             {litmus{threads: []string{"st.relaxed.cta [x], 1", "ld.relaxed.gpu $0, [x]"}}, true, false},
		"narrow scope, near":       {litmus{near: 2, threads: []string{"st.relaxed.cta [x], 1", "ld.relaxed.gpu $0, [x]"}}, false, false},
		"atomics of narrow scope":  {litmus{threads: []string{"atom.cta.global.add.u32 $0, [x], 1", "atom.gpu.global.add.u32 $1, [x], 1"}}, true, false},
		"sizes that differ":        {litmus{threads: []string{"mov.b64 %d5, 1; st.relaxed.gpu.global.u64 [x], %d5", "ld.relaxed.gpu $0, [x]"}}, true, false},
		"neighbours":               {litmus{threads: []string{relaxedX, "ld.weak $0, [x+4]"}}, false, false},
		"a message":                {litmus{threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", guarded}}, false, false},
		"a message without order":  {litmus{threads: []string{"st.weak [x], 1; st.relaxed.gpu [y], 1", guarded}}, true, true},
		"a message, narrow scope":  {litmus{threads: []string{"st.weak [x], 1; st.release.cta [y], 1", guarded}}, true, true},
		"a barrier":                {litmus{near: 2, threads: []string{relaxedX + "; barrier.sync 0", "barrier.sync 0; ld.weak $0, [x]"}}, false, false},
		"a vote":                   {litmus{near: 2, threads: []string{"st.weak [x], 1; vote.sync.any.pred %p1, %p2, 3", "vote.sync.any.pred %p1, %p2, 3; ld.weak $0, [x]"}}, true, true},
	}
	for name, c := range cases {
		for strict, want := range map[bool]bool{true: c.strict, false: c.other} {
			n, err := c.litmus.faults(t, Race, Weak(true), Strict(strict))
			if err != nil || n > 0 != want {
				t.Errorf("%s, strict %v: a race in %d of 100 runs, %v", name, strict, n, err)
			}
		}
	}
}

// TestReadOnlyCache tests that ld.global.nc of a word that is written in the same
// launch is a fault in every schedule, ordered or not.
func TestReadOnlyCache(t *testing.T) {
	cases := map[string]struct {
		litmus
		want int // of 100
	}{
		"other thread":     {litmus{threads: []string{"st.weak [x], 1", "ld.global.nc.u32 $0, [x]"}}, 100},
		"after a barrier":  {litmus{near: 2, threads: []string{"st.weak [x], 1; barrier.sync 0", "barrier.sync 0; ld.global.nc.u32 $0, [x]"}}, 100},
		"before a barrier": {litmus{near: 2, threads: []string{"barrier.sync 0; st.weak [x], 1", "ld.global.nc.u32 $0, [x]; barrier.sync 0"}}, 100},
		"same thread":      {litmus{threads: []string{"st.weak [x], 1; ld.global.nc.u32 $0, [x]"}}, 100},
		"atomic":           {litmus{threads: []string{"red.relaxed.gpu.global.add.u32 [x], 1", "ld.global.nc.u32 $0, [x]"}}, 100},
		"vector":           {litmus{threads: []string{"st.weak.global.u8 [x+4], %h1", "ld.global.nc.v2.u32 {$0, $1}, [x]"}}, 100},
		"other word":       {litmus{threads: []string{"st.weak [x+4], 1", "ld.global.nc.u32 $0, [x]"}}, 0},
		"plain load":       {litmus{near: 2, threads: []string{"st.weak [x], 1; barrier.sync 0", "barrier.sync 0; ld.weak $0, [x]"}}, 0},
	}
	for name, c := range cases {
		for _, opts := range [][]Option{{Weak(true), RaceCheck(false)}, {PCT(2), RaceCheck(false)}, {FreezeHolders(true), Concurrent(true), RaceCheck(false)}} {
			if n, err := c.litmus.faults(t, NonCoherent, opts...); err != nil || n != c.want {
				t.Errorf("%s: a fault in %d of 100 runs, %v", name, n, err)
			}
		}
	}
}

// TestReadOnlyCacheOfLaterLaunch tests that a launch may read by ld.global.nc
// what an earlier one has written.
func TestReadOnlyCacheOfLaterLaunch(t *testing.T) {
	for _, both := range []bool{false, true} {
		r := newRig(t, Weak(true), Strict(true), Concurrent(both))
		p := r.alloc32([]uint32{1, 0})
		write := r.load(program(1, "ld.param.u64 %d0, [p0];\nst.global.u32 [%d0], 5;"))("k")
		read := r.load(program(1, "ld.param.u64 %d0, [p0];\nld.global.nc.u32 %r1, [%d0];\nst.global.u32 [%d0+4], %r1;"))("k")
		r.must(r.s.Launch(write, one(1), pack(p)))
		r.must(r.s.Launch(read, one(1), pack(p)))
		if got := r.read32(p, 2)[1]; got != 5 {
			t.Errorf("both %v: read %d", both, got)
		}
	}
}

// TestOnlyWeakIsWeak tests that the other modes leave memory sequentially
// consistent.
func TestOnlyWeakIsWeak(t *testing.T) {
	for _, l := range []litmus{
		{threads: with("", storeFirst, storeSecond), allowed: all(2, 2, "00")},
		{threads: with("", messageOut, messageIn), allowed: all(2, 2, "10")},
		{threads: with("", loadFirst, loadSecond), allowed: all(2, 2, "11")},
	} {
		l.check(t, Weak(false), Strict(true))
	}
}

// TestSchedulesDrawAll tests that PCT, too, reaches every outcome.
func TestSchedulesDrawAll(t *testing.T) {
	for _, name := range []string{"MP", "SB fence.sc", "LB", "2+2W", "LB data in one thread"} {
		l := twoThreads[name]
		l.check(t, PCT(3))
		l.check(t, FreezeHolders(true))
	}
}

// TestModesRepeat tests that a seed repeats a run, instruction by instruction.
func TestModesRepeat(t *testing.T) {
	start := seed.Of(t)
	for name, opts := range schedules {
		for s := range uint64(5) {
			var runs [2]string
			for i := range runs {
				l := newLatched(t, append([]Option{RaceCheck(false)}, opts...)...)
				err := l.inserts("no_latch", start+s)
				runs[i] = fmt.Sprint(err, l.dev.Instructions(), l.read32(l.mem[0], 8*listNodes))
			}
			if runs[0] != runs[1] {
				t.Fatalf("%s, seed %d: %s, then %s", name, start+s, runs[0], runs[1])
			}
		}
	}
}

// TestBackoff tests that a spin that never has the same registers again is
// stopped by Steps, and one that does, after a while, is a deadlock.
func TestBackoff(t *testing.T) {
	loop := "ld.param.u64 %d0, [p0];\nmov.u32 %r1, 1;\nAGAIN:\nnanosleep.u32 %r1;\nadd.u32 %r1, %r1, 3;\nLIMITld.relaxed.gpu.global.u32 %r2, [%d0];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra AGAIN;"
	for limit, kind := range map[string]FaultKind{"": Runaway, "min.u32 %r1, %r1, 64;\n": Deadlock} {
		for _, opts := range [][]Option{{Weak(true)}, {PCT(2)}, {FreezeHolders(true)}} {
			r := newRig(t, append(opts, Steps(50000))...)
			k := r.load(program(1, strings.Replace(loop, "LIMIT", limit, 1)))("k")
			if err := r.launch(k, device.Grid{Blocks: 2, Threads: 3}, r.alloc32([]uint32{0})); !isKind(err, kind) {
				t.Errorf("%s: %v", limit, err)
			}
		}
	}
}

// TestLastBlockNeedsAcquire tests that the model finds what the ordinary check
// does not: the block that comes last has a fence before its atomic, but none
// after it, and only most of the time the order of the fences makes up for that.
func TestLastBlockNeedsAcquire(t *testing.T) {
	start := seed.Of(t)
	r := newRig(t, Weak(true), Steps(1<<22))
	k := r.load(testdata(t, "kernels_70.ptx"))("lastBlock")
	g := device.Grid{Blocks: 5, Threads: 2, Shared: 8}
	data, partial := r.alloc32(make([]uint32, 20)), r.alloc32(make([]uint32, g.Blocks))
	arrived, out := r.alloc32([]uint32{0}), r.alloc32([]uint32{0})
	for s := range uint64(3000) {
		Seed(start + s)(r.dev)
		r.must(r.s.Fill(arrived, 0, 4))
		if err := r.launch(k, g, data, partial, arrived, out, uint32(20)); isKind(err, Race) {
			t.Logf("seed %d, after %d others: %v", start+s, s, err)
			return
		}
	}
	t.Error("no seed shows the race")
}

// TestLoopsThatMeet tests that a thread whose own registers do not change is not
// taken to spin while another one, which it asks in each round, gets on; and
// that both are if that one does not, either.
func TestLoopsThatMeet(t *testing.T) {
	body := `mov.u32 %r0, %tid.x;
setp.eq.u32 %p3, %r0, 1;
mov.u32 %r1, 0;
@%p3 mov.u32 %r1, 3000;
AGAIN:
setp.ne.u32 %p1, %r1, 0;
@%p1 sub.u32 %r1, %r1, STEP;
MEET;
@%p2 bra AGAIN;
`
	meets := []string{"vote.sync.any.pred %p2, %p1, 3", "barrier.red.or.pred %p2, 0, %p1"}
	for _, meet := range meets {
		for step, kind := range map[string]FaultKind{"1": harm, "0": Deadlock} {
			for s := range uint64(20) {
				r := newRig(t, Seed(s), Strict(true), Steps(1<<20))
				k := r.load(program(0, strings.NewReplacer("MEET", meet, "STEP", step).Replace(body)))("k")
				if err := r.launch(k, one(2)); kind == harm && err != nil || kind == Deadlock && !isKind(err, Deadlock) {
					t.Fatalf("%s, step %s, seed %d: %v", meet, step, s, err)
				}
			}
		}
	}
}
