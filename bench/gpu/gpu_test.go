package gpu

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/tool"
)

// onEach runs a test on the interpreter under several seeds, and on a GPU if
// there is one.
func onEach(t *testing.T, seeds int, test func(t *testing.T, d device.Device, rng *rand.Rand)) {
	first := seed.Of(t)
	for i := range uint64(seeds) {
		d := ptx.New(ptx.Seed(first + i))
		test(t, d, rand.New(rand.NewPCG(first+i, 0)))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := cuda.Open(0)
	if err != nil {
		t.Logf("no GPU: %v", err)
		return
	}
	defer d.Close()
	test(t, d, rand.New(rand.NewPCG(first, 1)))
}

// wantWords adds up what the reads must find, word by word.
func wantWords(lines int, seed uint32, n int) (sum uint32) {
	for i := range n {
		line := uint32(uint64(scramble(uint32(i)+seed)) * uint64(lines) >> 32)
		for w := range uint32(lineWords) {
			sum += (line*lineWords + w) * 0x9e3779b1
		}
	}
	return sum
}

// Every depth reads every line it should exactly once, for any number of reads
// and lines.
func TestLimitReadsWhatItSays(t *testing.T) {
	onEach(t, 20, func(t *testing.T, d device.Device, rng *rand.Rand) {
		st, err := d.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		lines, n, seed := 1+rng.IntN(500), 1+rng.IntN(3000), rng.Uint64()
		l, err := NewLimit(d, st, int64(lines)*lineBytes+rng.Int64N(lineBytes), seed)
		if err != nil {
			t.Fatal(err)
		}
		want := wantWords(lines, uint32(seed), n)
		cut := rng.IntN(n + 1)
		if got := l.WantSum(0, cut) + l.WantSum(cut, n); got != want {
			t.Errorf("%d lines, %d reads: WantSum gives %#x, not %#x", lines, n, got, want)
		}
		for _, depth := range Depths {
			if got := readAll(t, l, st, depth, n); got != want {
				t.Errorf("%s: %d lines, %d reads, depth %d: sum %#x, not %#x", d.Info().Name, lines, n, depth, got, want)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func readAll(t *testing.T, l *Limit, st device.Stream, depth, n int) uint32 {
	t.Helper()
	if err := l.Read(st, depth, n); err != nil {
		t.Fatal(err)
	}
	if err := l.Wipe(st); err != nil {
		t.Fatal(err)
	}
	if err := l.Read(st, depth, n); err != nil {
		t.Fatal(err)
	}
	sum, err := l.Sum(st)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// The scrambled numbers must hit all parts of the block equally: a limit over
// less memory than it claims would be too fast.
func TestReadsAreSpreadOut(t *testing.T) {
	const lines, reads = 64, 64 << 10
	start := uint32(seed.Of(t))
	var hits [lines]int
	for i := range uint32(reads) {
		hits[uint64(scramble(i+start))*lines>>32]++
	}
	for line, n := range hits {
		if n < 800 || n > 1248 { // 1024, give or take 7 standard deviations
			t.Errorf("line %d is read %d times", line, n)
		}
	}
}

// The block is freed when something fails along the way.
func TestLimitWithoutRoom(t *testing.T) {
	for _, room := range []int64{1 << 10, 1 << 16} {
		d := ptx.New(ptx.Memory(room))
		st, err := d.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewLimit(d, st, 1<<16, 1); err == nil {
			t.Errorf("a block fits into %d bytes", room)
		}
		if free, err := d.FreeBytes(); err != nil || free != room {
			t.Errorf("of %d bytes %d are free: %v", room, free, err)
		}
	}
	if _, err := NewLimit(ptx.New(), nil, 1<<40, 1); err == nil {
		t.Error("a block of a terabyte has its lines numbered with 32 bits")
	}
}

// The committed PTX is what its generator makes from the source.
func TestPTXIsFresh(t *testing.T) {
	clang := tool.Path(t, "clang-19", "clang-19")
	if _, err := os.Stat("limit.cu"); err != nil {
		t.Skip("no sources here")
	}
	out := filepath.Join(t.TempDir(), "limit.ptx")
	cmd := exec.Command(clang, "-x", "cuda", "--cuda-gpu-arch=sm_70", "--cuda-device-only", "-nocudainc", "-nocudalib",
		"--cuda-feature=+ptx70", "-O3", "-S", "limit.cu", "-o", out)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	made, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, []byte(limitPTX)) {
		t.Error("limit.ptx is not what clang makes of limit.cu: run go generate ./...")
	}
}
