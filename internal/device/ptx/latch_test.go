package ptx

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/tool"
)

// TestLatchesAreFresh compiles the kernels again, if clang is installed, and
// compares with the committed text.
func TestLatchesAreFresh(t *testing.T) {
	clang := tool.Path(t, "clang-19", "clang-19")
	for _, read := range []string{"latch.cu", "../../kernel/ordered.h"} {
		testdata(t, read) // so that go test knows that the result depends on it
	}
	out := filepath.Join(t.TempDir(), "out.ptx")
	cmd := exec.Command(clang, "-x", "cuda", "--cuda-gpu-arch=sm_70", "--cuda-device-only", "-nocudainc",
		"-nocudalib", "--cuda-feature=+ptx70", "-O3", "-S", "latch.cu", "-o", out)
	cmd.Dir = "testdata"
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	fresh, err := os.ReadFile(out)
	if err != nil || string(fresh) != testdata(t, "latch.ptx") {
		t.Error("testdata/latch.ptx is not what clang makes of latch.cu")
	}
}

// TestOrderedAtomics tests that the text that clang makes of the ordered atomics
// (kernel/ordered.h) has their orders, each once and in the order of the source.
func TestOrderedAtomics(t *testing.T) {
	_, body, ok := strings.Cut(testdata(t, "latch.ptx"), ".entry ordered(")
	if !ok {
		t.Fatal("no kernel ordered")
	}
	var got, want []string
	for _, line := range strings.Split(body, "\n") {
		op, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch head, rest, _ := strings.Cut(strings.TrimSuffix(op, ";"), "."); head {
		case "ld", "st", "atom", "red", "fence", "bar", "membar":
			if !strings.HasPrefix(rest, "param") {
				got = append(got, head+"."+rest)
			}
		}
	}
	for _, n := range []string{"32", "64"} {
		for _, op := range strings.Fields(`ld.relaxed.u ld.acquire.u st.relaxed.u st.release.u
			atom.relaxed.cas.b atom.acquire.cas.b atom.release.cas.b atom.acq_rel.cas.b
			atom.acquire.exch.b atom.release.exch.b atom.acq_rel.exch.b
			atom.relaxed.add.u atom.acquire.add.u atom.release.add.u atom.acq_rel.add.u
			red.relaxed.add.u red.release.add.u`) {
			part := strings.SplitN(op, ".", 3)
			want = append(want, fmt.Sprintf("%s.%s.gpu.global.%s%s", part[0], part[1], part[2], n))
		}
	}
	want = append(want, "fence.acq_rel.gpu", "fence.sc.gpu", "bar.warp.sync")
	if !slices.Equal(got, want) {
		t.Errorf("the text has\n%v, want\n%v", got, want)
	}
}

// schedules are the modes that kernels with latches are tried under.
var schedules = map[string][]Option{
	"random":           {Weak(true), Strict(true)},
	"PCT 3":            {Weak(true), Strict(true), PCT(3)},
	"PCT 12":           {Strict(true), PCT(12)},
	"holders freeze":   {Weak(true), Strict(true), FreezeHolders(true)},
	"freeze, not weak": {Strict(true), FreezeHolders(true)},
}

// list is the memory of the kernels inserts_*.
type list struct {
	nodes []uint32 // 8 a node
	keys  []uint32
}

const (
	listNodes = 64
	listEach  = 3
)

// latched is a device with the kernels of latch.ptx, to be used with many seeds.
type latched struct {
	*rig
	kernel func(string) device.Kernel
	mem    []device.Ptr
}

func newLatched(t testing.TB, opts ...Option) *latched {
	t.Helper()
	r := newRig(t, append([]Option{Steps(1 << 21)}, opts...)...)
	l := &latched{rig: r, kernel: r.load(testdata(t, "latch.ptx"))}
	for range 3 {
		l.mem = append(l.mem, r.alloc(make([]byte, 32*listNodes)))
	}
	return l
}

// reseed starts over with another seed.
func (l *latched) reseed(s uint64) { Seed(s)(l.dev) }

// set copies words to one of the pieces of memory, and returns it.
func (l *latched) set(i int, words []uint32) device.Ptr {
	l.must(l.s.CopyIn(l.mem[i], bytes32(words)))
	return l.mem[i]
}

// inserts runs a kernel of inserts and returns its error, or that of the list
// that it leaves behind.
func (l *latched) inserts(variant string, s uint64) error {
	l.reseed(s)
	g := device.Grid{Blocks: 2, Threads: 4}
	got := list{nodes: make([]uint32, 8*listNodes), keys: make([]uint32, g.Blocks*g.Threads*listEach)}
	for i := range got.keys {
		got.keys[i] = uint32(mix(s^uint64(i))%1000)<<8 | uint32(i)
	}
	got.nodes[2] = 1<<32 - 1
	nodes, used, keys := l.set(0, got.nodes), l.set(1, []uint32{1}), l.set(2, got.keys)
	if err := l.launch(l.kernel("inserts_"+variant), g, nodes, used, keys, uint32(listEach)); err != nil {
		return err
	}
	got.nodes = l.read32(nodes, len(got.nodes))
	return got.check()
}

// counts runs a kernel that lets 9 threads count to 9.
func (l *latched) counts(variant string, s uint64) error {
	l.reseed(s)
	latch, counter := l.set(0, []uint32{0}), l.set(1, []uint32{0})
	if err := l.launch(l.kernel("count_"+variant), device.Grid{Blocks: 3, Threads: 3}, latch, counter); err != nil {
		return err
	}
	if got := l.read32(counter, 1)[0]; got != 9 {
		return fmt.Errorf("counted %d", got)
	}
	return nil
}

// tiles runs a kernel that lets 4 tiles of 8 lanes count to 4.
func (l *latched) tiles(variant string, s uint64) error {
	l.reseed(s)
	latch, counters := l.set(0, []uint32{0}), l.set(1, make([]uint32, 8))
	if err := l.launch(l.kernel("tile_"+variant), device.Grid{Blocks: 2, Threads: 16}, latch, counters); err != nil {
		return err
	}
	for i, got := range l.read32(counters, 8) {
		if got != 4 {
			return fmt.Errorf("lane %d counted %d", i, got)
		}
	}
	return nil
}

// check tests that every key is in the list once, in the right node, and that no
// latch is taken.
func (l *list) check() error {
	var found []uint32
	low := uint32(0)
	for at, steps := uint32(0), 0; ; steps++ {
		n := l.nodes[8*at : 8*at+8]
		latch, count, high := n[0], n[1], n[2]
		if latch != 0 || count > 4 || steps > listNodes {
			return fmt.Errorf("node %d: latch %d, count %d", at, latch, count)
		}
		for _, k := range n[4 : 4+count] {
			if k <= low && low != 0 || k > high {
				return fmt.Errorf("node %d: key %d is not between %d and %d", at, k, low, high)
			}
			found = append(found, k)
		}
		if low = high; high == 1<<32-1 {
			break
		}
		at = n[3]
	}
	slices.Sort(found)
	want := slices.Sorted(slices.Values(l.keys))
	if !slices.Equal(found, want) {
		return fmt.Errorf("the list has %v, want %v", found, want)
	}
	return nil
}

// TestLatches tests that what is right passes under every schedule.
func TestLatches(t *testing.T) {
	start := seed.Of(t)
	for name, opts := range schedules {
		t.Run(name, func(t *testing.T) {
			l := newLatched(t, opts...)
			for i := range uint64(seed.Count(200)) {
				s := start + i
				for _, err := range []error{l.inserts("right", s), l.counts("right", s), l.tiles("right", s)} {
					if err != nil {
						t.Fatalf("seed %d: %v", s, err)
					}
				}
				err := l.tiles("kept", s)
				if !isKind(err, Deadlock) || !strings.Contains(err.Error(), "spins on 0x") || !strings.Contains(err.Error(), "which has exited") {
					t.Fatalf("a latch that is never given back, seed %d: %v", s, err)
				}
			}
		})
	}
}

// harm is the kind of an error that is no fault.
const harm = FaultKind(-1)

// TestWrongLatches tests that each part left out of a protocol is found by some
// seed, and as what. Without the check for races, only the harm tells.
func TestWrongLatches(t *testing.T) {
	type try = func(l *latched, variant string, s uint64) error
	inserts, counts, tiles := (*latched).inserts, (*latched).counts, (*latched).tiles
	cases := []struct {
		run     try
		variant string
		kind    FaultKind
		opts    []Option
	}{
		{inserts, "no_acquire", Race, []Option{Weak(true)}},
		{inserts, "no_release", Race, []Option{Weak(true)}},
		{inserts, "no_check", harm, []Option{Weak(true), Strict(true)}},
		{inserts, "no_latch", Race, []Option{Strict(true)}},
		{inserts, "no_latch", Deadlock, []Option{RaceCheck(false), FreezeHolders(true)}},
		{inserts, "no_latch", Deadlock, []Option{RaceCheck(false), PCT(4)}},
		{inserts, "plain_read", Race, []Option{Strict(true)}},
		{inserts, "no_acquire", harm, []Option{Weak(true), RaceCheck(false)}},
		{inserts, "no_release", harm, []Option{Weak(true), RaceCheck(false)}},
		{counts, "no_acquire", Race, []Option{Weak(true)}},
		{counts, "no_release", Race, []Option{Weak(true)}},
		{counts, "no_acquire", harm, []Option{Weak(true), RaceCheck(false)}},
		{counts, "no_release", harm, []Option{Weak(true), RaceCheck(false)}},
		{tiles, "no_sync", Race, []Option{Weak(true)}},
	}
	start := seed.Of(t)
	for _, c := range cases {
		l := newLatched(t, c.opts...)
		found := false
		for s := uint64(0); s < 8000 && !found; s++ {
			err := c.run(l, c.variant, start+s)
			var f *Fault
			if found = err != nil && c.kind == harm && !errors.As(err, &f) || isKind(err, c.kind); found {
				t.Logf("%s: seed %d, after %d others: %v", c.variant, start+s, s, err)
			}
		}
		if !found {
			t.Errorf("%s: no seed shows it (kind %d)", c.variant, c.kind)
		}
	}
}

// TestCrossedLatches tests the report of two threads that each hold what the
// other waits for.
func TestCrossedLatches(t *testing.T) {
	start := seed.Of(t)
	l := newLatched(t, FreezeHolders(true), Strict(true))
	for s := range uint64(500) {
		l.reseed(start + s)
		err := l.launch(l.kernel("crossed"), one(2), l.set(0, []uint32{0, 0}))
		if err == nil {
			continue
		}
		if !isKind(err, Deadlock) {
			t.Fatalf("seed %d: %v", start+s, err)
		}
		for _, part := range []string{"thread 0 spins on 0x", "thread 1 spins on 0x", "which is 1, last written by block 0, thread 0 at line", "which is 1, last written by block 0, thread 1 at line", "which spins itself", "atom.acquire.gpu.global.cas.b32"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
		return
	}
	t.Error("no seed shows the deadlock")
}

// BenchmarkLatches reports instructions per second under each mode.
func BenchmarkLatches(b *testing.B) {
	modes := map[string][]Option{"ordinary": nil, "weak, no races": {Weak(true), RaceCheck(false)}}
	maps.Copy(modes, schedules)
	for name, opts := range modes {
		b.Run(name, func(b *testing.B) {
			l := newLatched(b, opts...)
			for s := range uint64(b.N) {
				l.must(l.inserts("right", s))
			}
			b.ReportMetric(float64(l.dev.Instructions())/1e6/b.Elapsed().Seconds(), "Minstr/s")
		})
	}
}
