package ptx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
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

// The texts that clang made from testdata/kernels.cu: target and PTX version.
var builds = [][2]string{{"70", "70"}, {"90", "80"}}

// TestKernelsAreFresh compiles the kernels again, if clang is installed, and
// compares with the committed text.
func TestKernelsAreFresh(t *testing.T) {
	clang := tool.Path(t, "clang-19", "clang-19")
	for _, read := range []string{"kernels.cu", "builtins.h"} {
		testdata(t, read) // so that go test knows that the result depends on it
	}
	for _, b := range builds {
		out := filepath.Join(t.TempDir(), "out.ptx")
		cmd := exec.Command(clang, "-x", "cuda", "--cuda-gpu-arch=sm_"+b[0], "--cuda-device-only", "-nocudainc",
			"-nocudalib", "--cuda-feature=+ptx"+b[1], "-O3", "-S", "kernels.cu", "-o", out)
		cmd.Dir = "testdata"
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		fresh, err := os.ReadFile(out)
		if err != nil || string(fresh) != testdata(t, "kernels_"+b[0]+".ptx") {
			t.Errorf("testdata/kernels_%s.ptx is not what clang makes of kernels.cu", b[0])
		}
	}
}

// tree lays out sorted keys as the search kernel expects them.
type tree struct {
	nodes  []uint32
	levels int
	keys   []uint32
}

func makeTree(rng *rand.Rand, levels int) tree {
	leaves := 1
	for range levels {
		leaves *= 17
	}
	t := tree{levels: levels, keys: make([]uint32, leaves-1)}
	for i := range t.keys {
		t.keys[i] = rng.Uint32() >> rng.UintN(20)
	}
	slices.Sort(t.keys)
	for level, step := 0, leaves/17; level < levels; level, step = level+1, step/17 {
		for at := 0; at < leaves; at += 17 * step {
			for i := 1; i <= 16; i++ {
				t.nodes = append(t.nodes, t.keys[at+i*step-1])
			}
		}
	}
	return t
}

func (t *tree) rank(q uint32) uint32 {
	i, _ := slices.BinarySearch(t.keys, q)
	return uint32(i)
}

func (t *tree) queries(rng *rand.Rand, n int) []uint32 {
	q := make([]uint32, n)
	for i := range q {
		q[i] = t.keys[rng.IntN(len(t.keys))] + uint32(rng.IntN(3)) - 1
	}
	q[0], q[n-1] = 0, 1<<32-1
	return q
}

// TestSearchAgrees runs the tree search under many schedules.
func TestSearchAgrees(t *testing.T) {
	rng := numbers(t, 1, 2)
	tr := makeTree(rng, 3)
	q := tr.queries(rng, 150)
	for _, b := range builds {
		source := testdata(t, "kernels_"+b[0]+".ptx")
		for seed := range uint64(seed.Times(50, 150)) {
			r := newRig(t, Seed(seed))
			search := r.load(source)("search")
			nodes, queries := r.alloc32(tr.nodes), r.alloc32(q)
			ranks := r.alloc32(make([]uint32, len(q)))
			g := device.Grid{Blocks: 1 + int(seed%3), Threads: 32 << (seed % 4)}
			if err := r.launch(search, g, nodes, queries, ranks, uint32(len(q)), uint32(tr.levels)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i, got := range r.read32(ranks, len(q)) {
				if want := tr.rank(q[i]); got != want {
					t.Fatalf("seed %d: rank of %d is %d, want %d", seed, q[i], got, want)
				}
			}
		}
	}
}

// TestTotalAgrees runs the reduction under many schedules.
func TestTotalAgrees(t *testing.T) {
	rng := numbers(t, 3, 4)
	in := make([]uint32, 1500)
	var want uint32
	for i := range in {
		in[i] = rng.Uint32()
		want += in[i]
	}
	source := testdata(t, "kernels_70.ptx")
	for seed := range uint64(seed.Times(100, 300)) {
		r := newRig(t, Seed(seed))
		data, out := r.alloc32(in), r.alloc32([]uint32{0})
		g := device.Grid{Blocks: 1 + int(seed%4), Threads: 32 << (seed % 4)}
		if err := r.launch(r.load(source)("total"), g, data, out, uint32(len(in))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := r.read32(out, 1)[0]; got != want {
			t.Fatalf("seed %d: sum %d, want %d", seed, got, want)
		}
	}
}

// TestLastBlock tests that accesses ordered by a fence and an atomic do not
// race; without the fence they do, and some schedule shows it.
func TestLastBlock(t *testing.T) {
	in := make([]uint32, 600)
	for i := range in {
		in[i] = uint32(i)
	}
	source := testdata(t, "kernels_70.ptx")
	races, seeds := 0, seed.Times(60, 200)
	for seed := range uint64(seeds) {
		for _, name := range []string{"lastBlock", "lastBlockRacy"} {
			r := newRig(t, Seed(seed))
			g := device.Grid{Blocks: 5, Threads: 64, Shared: 4 * 64}
			data, partial := r.alloc32(in), r.alloc32(make([]uint32, g.Blocks))
			arrived, out := r.alloc32([]uint32{0}), r.alloc32([]uint32{0})
			err := r.launch(r.load(source)(name), g, data, partial, arrived, out, uint32(len(in)))
			if name == "lastBlockRacy" {
				if isKind(err, Race) {
					races++
				}
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := r.read32(out, 1)[0]; got != 600*599/2 {
				t.Fatalf("seed %d: sum %d", seed, got)
			}
		}
	}
	if races != seeds {
		t.Errorf("the missing fence was found in %d of %d runs", races, seeds)
	}
}

func isKind(err error, k FaultKind) bool {
	var f *Fault
	return errors.As(err, &f) && f.Kind == k && errors.Is(err, device.ErrLaunchFailed)
}

// TestMixedAgrees compares the kernel that uses everything else with Go.
func TestMixedAgrees(t *testing.T) {
	weights := [4]uint64{3, 5, 7, 1<<64 - 1}
	primes := [8]uint32{2, 3, 5, 7, 11, 13, 17, 19}
	width, scale, factor := uint32(6), [3]uint64{1 << 40, 99, 1 << 63}, float32(1.25)
	shape := pack(width, scale[0], scale[1], scale[2])
	for seed := range uint64(100) {
		r := newRig(t, Seed(seed))
		g := device.Grid{Blocks: 2, Threads: 48}
		n := g.Blocks * g.Threads
		old := make([]byte, n)
		for i := range old {
			old[i] = byte(i * 37)
		}
		out, data := r.alloc(make([]byte, 8*n)), r.alloc(old)
		r.must(r.launch(r.load(testdata(t, "kernels_90.ptx"))("mixed"), g, out, data, shape, factor))
		got, gotBytes := r.read(out, 8*n), r.read(data, n)
		for i := range n {
			a := uint64(uint32(i)*uint32(i&7+1)) + weights[i&3]
			p := primes[i&7]
			v := a*uint64(p) + scale[p%3]/uint64(width+1) + 5
			v ^= uint64(bits.OnesCount64(v))<<56 | uint64(bits.LeadingZeros32(uint32(i)|1))<<48
			v += uint64(float32(i)*factor) + uint64(int64(int32(-1.5*float32(i&3))))
			if w := binary.LittleEndian.Uint64(got[8*i:]); w != v%1000000007 {
				t.Fatalf("seed %d, thread %d: %d, want %d", seed, i, w, v%1000000007)
			}
			if want := old[i]/3 + byte(v); gotBytes[i] != want {
				t.Fatalf("seed %d, thread %d: byte %d, want %d", seed, i, gotBytes[i], want)
			}
		}
	}
}

// BenchmarkSearch reports instructions per second over several schedules.
func BenchmarkSearch(b *testing.B) {
	rng := numbers(b, 5, 6)
	tr := makeTree(rng, 4)
	q := tr.queries(rng, 4096)
	for _, check := range []bool{false, true} {
		b.Run(fmt.Sprintf("races=%v", check), func(b *testing.B) {
			r := newRig(b, RaceCheck(check))
			search := r.load(testdata(b, "kernels_70.ptx"))("search")
			nodes, queries, ranks := r.alloc32(tr.nodes), r.alloc32(q), r.alloc32(q)
			r.must(r.s.Synchronize())
			before := r.dev.Instructions()
			for b.Loop() {
				r.must(r.launch(search, device.Grid{Blocks: 16, Threads: 128}, nodes, queries, ranks, uint32(len(q)), uint32(tr.levels)))
			}
			b.ReportMetric(float64(r.dev.Instructions()-before)/1e6/b.Elapsed().Seconds(), "Minstr/s")
		})
	}
}

// BenchmarkTotal is BenchmarkSearch for loops, shared memory and barriers.
func BenchmarkTotal(b *testing.B) {
	in := make([]uint32, 1<<16)
	for _, check := range []bool{false, true} {
		b.Run(fmt.Sprintf("races=%v", check), func(b *testing.B) {
			r := newRig(b, RaceCheck(check))
			total := r.load(testdata(b, "kernels_70.ptx"))("total")
			data, out := r.alloc32(in), r.alloc32([]uint32{0})
			r.must(r.s.Synchronize())
			before := r.dev.Instructions()
			for b.Loop() {
				r.must(r.launch(total, device.Grid{Blocks: 8, Threads: 256}, data, out, uint32(len(in))))
			}
			b.ReportMetric(float64(r.dev.Instructions()-before)/1e6/b.Elapsed().Seconds(), "Minstr/s")
		})
	}
}

// TestLoadNamesLine tests that anything unknown is an error at load, with line
// and text.
func TestLoadNamesLine(t *testing.T) {
	source := testdata(t, "kernels_70.ptx")
	for _, line := range []string{"frobnicate.u32 %r1, %r2;", "add.u33 %r1, %r2, %r1;", "add.sat.u32 %r1, %r1, %r1;", "tex.2d.v4.f32.f32 {%f1,%f1,%f1,%f1}, [x];"} {
		broken := strings.Replace(source, "bar.sync \t0;", line, 1)
		at := 1 + strings.Count(broken[:strings.Index(broken, line)], "\n")
		err := Check(broken)
		if !errors.Is(err, device.ErrBadKernel) {
			t.Fatalf("%s: %v", line, err)
		}
		if want := fmt.Sprintf("line %d (%s", at, line); !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
