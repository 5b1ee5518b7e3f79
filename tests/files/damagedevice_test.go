package files_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// Files of every layout, damaged behind checksums that are right, are asked on
// every device. Any answer will do, and so will an error for the file; a kernel
// that faults will not, though the CPU would answer in its place.
func TestDamagedFilesOnEveryDevice(t *testing.T) {
	indextest.Quiet(t)
	indextest.Hasty(t, 64)
	rounds := 12
	if !seed.Long() {
		rounds = 2
	}
	for i, kind := range fuzzFiles {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := seed.Rand(t)
			path := filepath.Join(t.TempDir(), "index")
			held := 0
			for range rounds {
				// Of 5000 entries inner nodes fill more than a page, and the last of
				// some level has few children: there is something to miss.
				n := []int{1, 90, 700, 5000, 5000, 5000}[rng.IntN(6)]
				data := kind.make(t, n)
				what := damagedFile(t, path, data, rng)
				for _, on := range []pando.Device{pando.GPU(0), pando.Hybrid(0)} {
					held += askedOn(t, kind, path, on, rng, fmt.Sprintf("%d entries, %s, on %v", n, what, on))
				}
			}
			t.Logf("%d of %d on the device", held, 2*rounds)
		})
	}
}

// askedOn opens a file on a device and asks it. It returns 1 if the device held
// a part of it.
func askedOn(t *testing.T, kind fuzzFile, path string, on pando.Device, rng *rand.Rand, what string) (held int) {
	t.Helper()
	var opened []*ptx.Device
	indextest.UseGPU(t, func(int) (device.Device, error) {
		d := ptx.New(ptx.Seed(rng.Uint64()), ptx.Steps(50_000_000), ptx.RaceCheck(false))
		opened = append(opened, d)
		return d, nil
	})
	ran, err := kind.ask(path, on, rng)
	if err != nil && !errors.Is(err, pando.ErrFile) && !errors.Is(err, pando.ErrLayout) {
		t.Fatalf("%s: %v", what, err)
	}
	for _, d := range opened {
		if err := d.Failed(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if err == nil && ran != pando.CPU {
		held = 1
	}
	return held
}

// batched asks an index whose file may be damaged in batches, and closes it. Any
// answer will do, and so will the panic over a value that cannot be decoded. It
// returns where the batches ran.
func batched[K pando.Key, V any](ix *pando.Frozen[K, V], d facetest.Domain[K], rng *rand.Rand) (pando.Device, error) {
	defer ix.Close()
	asked := append([]K(nil), d.Ends...)
	for len(asked) < 70 {
		asked = append(asked, d.Bits(rng.Uint64()), d.Num(rng.IntN(6000)))
	}
	n := len(asked)
	after := append(asked[1:n:n], asked[0])
	for _, c := range []facetest.Call{
		{Name: "GetBatch", Do: func() { ix.GetBatch(asked, make([]V, n), make([]bool, n)) }},
		{Name: "RankBatch", Do: func() { ix.RankBatch(asked, make([]int, n)) }},
		{Name: "RangeBatch", Do: func() { ix.RangeBatch(asked, after, 5) }},
		{Name: "CountBatch", Do: func() { ix.CountBatch(asked, after, make([]int, n)) }},
	} {
		if text := facetest.PanicOf(c.Do); text != "" && !strings.Contains(text, "cannot be decoded") {
			return pando.CPU, fmt.Errorf("%s: %s", c.Name, text)
		}
	}
	return ix.Stats().Device, nil
}

// damagedFile writes a file with one of its sections damaged, or a number of its
// header changed, with checksums that are right. It returns what was done.
func damagedFile(t *testing.T, path string, data []byte, rng *rand.Rand) (what string) {
	t.Helper()
	if rng.IntN(5) == 0 {
		return damagedHeader(t, path, data, rng)
	}
	ways := []struct {
		name  string
		spoil func(b []byte)
	}{
		{"zeros", func(b []byte) { clear(b) }},
		{"ones", func(b []byte) { fill(b, func() byte { return 0xff }) }},
		{"random bytes", func(b []byte) { fill(b, func() byte { return byte(rng.Uint32()) }) }},
		{"a random first word", func(b []byte) { fill(b[:min(8, len(b))], func() byte { return byte(rng.Uint32()) }) }},
		{"zeros from somewhere on", func(b []byte) { clear(b[rng.IntN(len(b)+1):]) }},
		{"one bit", func(b []byte) {
			if len(b) > 0 {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		}},
		{"a random word", func(b []byte) {
			if len(b) >= 8 {
				at := rng.IntN(len(b)/8) * 8
				fill(b[at:at+8], func() byte { return byte(rng.Uint32()) })
			}
		}},
	}
	way := ways[rng.IntN(len(ways))]
	rewritten(t, path, data, func(kinds []files.SectionKind, sections [][]byte) {
		i := rng.IntN(2) * rng.IntN(len(kinds)) // the first leads to all others
		way.spoil(sections[i])
		what = fmt.Sprintf("%s in section %s", way.name, kinds[i].Name)
	})
	return what
}

func fill(b []byte, with func() byte) {
	for i := range b {
		b[i] = with()
	}
}

// damagedHeader changes a number of the header by a little.
func damagedHeader(t *testing.T, path string, data []byte, rng *rand.Rand) (what string) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at, by := 32+4*rng.IntN(7), byte(1+rng.IntN(255))
	forged(t, f, data, func(page []byte) { page[at] += by })
	return fmt.Sprintf("byte %d of the header is greater by %d", at, by)
}
