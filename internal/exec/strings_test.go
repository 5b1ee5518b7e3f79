package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/words"
)

// lists are strings that partial keys tell apart at once, with nodes, only by
// full keys, or not at all.
var lists = map[string]func(rng *rand.Rand, i int) string{
	"uuids": func(rng *rand.Rand, _ int) string {
		return fmt.Sprintf("%08x-%04x-%012x", rng.Uint32(), rng.IntN(1<<16), rng.Uint64()>>16)
	},
	"urls": func(rng *rand.Rand, _ int) string {
		return fmt.Sprintf("https://%s.example/%s/%d", names[rng.IntN(8)], names[rng.IntN(8)], rng.IntN(500))
	},
	"prefixes": func(_ *rand.Rand, i int) string { return strings.Repeat("a", i%1200) },
	"nul":      func(_ *rand.Rand, i int) string { return strings.Repeat("\x00", i%300) },
	"short": func(rng *rand.Rand, _ int) string {
		return string([]byte{byte(rng.IntN(3)), byte(rng.IntN(256))}[:rng.IntN(3)])
	},
	"far": func(rng *rand.Rand, _ int) string { return strings.Repeat("x", 1500) + fmt.Sprint(rng.IntN(3000)) },
}

var names = strings.Fields("news newspaper newspapers shop shopping a static images")

// newList builds a list of n strings, and what to ask it.
func newList(t *testing.T, rng *rand.Rand, kind string, n, asked int) (x *words.Tree, keys, questions []string) {
	t.Helper()
	keys = make([]string, n)
	for i := range keys {
		keys[i] = lists[kind](rng, i)
	}
	slices.Sort(keys)
	x, err := words.Build(keys, nil, words.Config{Pages: arena.Small, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	questions = []string{"", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("x", packing.Longest+1)}
	for n > 0 && len(questions) < asked {
		b := []byte(keys[rng.IntN(n)])
		if rng.IntN(3) == 0 {
			b = append(b, byte(rng.Uint32()))
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		questions = append(questions, string(b))
	}
	return x, keys, questions
}

// packedAs makes a batch of strings one behind the other, with something in
// front of the first and behind the last.
func packedAs(keys []string) StringBatch {
	b := StringBatch{Data: []byte("in front"), Offsets: []int32{8}}
	for _, k := range keys {
		b.Data = append(b.Data, k...)
		b.Offsets = append(b.Offsets, int32(len(b.Data)))
	}
	b.Data = append(b.Data, "behind"...)
	return b
}

// stringAsker is a schedule of either kind.
type stringAsker interface {
	Rank(keys StringBatch, ranks []int)
	RankAfter(keys StringBatch, ranks []int)
	FindEach(keys StringBatch, sink Sink) (hits int)
}

// compareStrings asks every question, of Go strings and of packed ones, and
// compares with a sorted slice.
func compareStrings(e stringAsker, keys, asked []string) error {
	for form, batch := range map[string]StringBatch{"strings": {Keys: asked}, "packed": packedAs(asked)} {
		n := len(asked)
		ranks, after, found := dirtyInts(n), dirtyInts(n), newPlaces(n)
		e.Rank(batch, ranks)
		e.RankAfter(batch, after)
		hits := e.FindEach(batch, found)
		for i, k := range asked {
			rank := sort.SearchStrings(keys, k)
			up := sort.Search(len(keys), func(j int) bool { return keys[j] > k })
			at := -1
			if up > rank {
				at = rank
				hits--
			}
			if ranks[i] != rank || after[i] != up || found.at[i] != at || found.times[i] != 1 {
				return fmt.Errorf("%s, %.60q: rank %d, after %d, found at %d, told %d times; want %d, %d, %d, once",
					form, k, ranks[i], after[i], found.at[i], found.times[i], rank, up, at)
			}
		}
		if hits != 0 {
			return fmt.Errorf("%s: %d hits too many", form, hits)
		}
	}
	return nil
}

func TestStringsOnCPU(t *testing.T) {
	rng := seed.Rand(t)
	for kind := range lists {
		for _, n := range []int{0, 1, 3000} {
			x, keys, asked := newList(t, rng, kind, n, 1+rng.IntN(3*stringPiece))
			if err := compareStrings(NewStrings(x, 1+rng.IntN(3)), keys, asked); err != nil {
				t.Fatalf("%s, %d strings: %v", kind, n, err)
			}
		}
	}
}

func TestStringsOnGPU(t *testing.T) {
	rng := seed.Rand(t)
	open := map[string]func() (device.Device, error){
		"interpreter": func() (device.Device, error) { return ptx.New(ptx.Seed(rng.Uint64()), ptx.Memory(128<<20)), nil },
		"CUDA":        func() (device.Device, error) { return cuda.Open(0) },
	}
	for where, open := range open {
		for kind := range lists {
			t.Run(where+", "+kind, func(t *testing.T) {
				sizes := []int{0, 1, 255, 256, 257, 3000}
				if !seed.Long() {
					sizes = []int{0, 1, 255 + rng.IntN(3), 600}
				}
				for _, n := range sizes {
					x, keys, asked := newList(t, rng, kind, n, seed.Size(150, 400))
					image, err := x.StringImage()
					if err != nil {
						t.Fatal(err)
					}
					for _, free := range []int64{1 << 40, StringsNeed(&image, false)} {
						d, err := open()
						if err != nil {
							t.Skip(err)
						}
						g, err := NewStringsGPU(NewStrings(x, 2), d, free, false)
						if err != nil {
							t.Fatal(err)
						}
						if _, there := g.Held(); there != (StringsNeed(&image, true) <= free) {
							t.Errorf("strings on the device: %v, with %d bytes free", there, free)
						}
						if err := compareStrings(g, keys, asked); err != nil {
							t.Fatalf("%d strings: %v", n, err)
						}
						if err := g.Down(); err != nil {
							t.Fatal(err)
						}
						if err := g.Close(); err != nil {
							t.Fatal(err)
						}
						if err := compareStrings(g, keys, asked[:min(50, len(asked))]); err != nil {
							t.Fatalf("closed, %d strings: %v", n, err)
						}
					}
				}
			})
		}
	}
}

// A batch of strings allocates nothing, in whatever form, on CPU and GPU.
func TestBatchesOfStringsAllocateNothing(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	rng := seed.Rand(t)
	x, _, asked := newList(t, rng, "uuids", 5000, 3000)
	cpu := NewStrings(x, 2)
	d := newNative()
	d.idle = true
	g, err := NewStringsGPU(cpu, d, 1<<40, false)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ranks := make([]int, len(asked))
	var sink Sink = still{}
	for name, e := range map[string]stringAsker{"CPU": cpu, "GPU": g} {
		for form, batch := range map[string]StringBatch{"strings": {Keys: asked}, "packed": packedAs(asked)} {
			allocs := testing.AllocsPerRun(50, func() {
				e.Rank(batch, ranks)
				e.RankAfter(batch, ranks)
				e.FindEach(batch, sink)
			})
			if allocs >= 1 {
				t.Errorf("%s, %s: %v allocations", name, form, allocs)
			}
		}
	}
}

func TestEveryFaultOfStrings(t *testing.T) {
	rng := seed.Rand(t)
	x, keys, asked := newList(t, rng, "urls", 700, 60)
	run := func(p faulty.Plan) *faulty.Device {
		d := faulty.New(ptx.New(ptx.Seed(rng.Uint64()), ptx.Memory(64<<20), ptx.RaceCheck(false)), p)
		g, err := NewStringsGPU(NewStrings(x, 2), d, 1<<30, false)
		if err == nil {
			if err := compareStrings(g, keys, asked); err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
			if err := g.Close(); err != nil && !p.Lose {
				t.Fatalf("%+v: %v", p, err)
			}
		} else if p.At == 0 {
			t.Fatal(err)
		}
		if live := d.Live(); live != 0 {
			t.Fatalf("%+v: %d things are left on the device", p, live)
		}
		return d
	}
	step := seed.Step(3)
	all := run(faulty.Plan{}).Count(faulty.Any)
	for at := 1 + rng.IntN(step); at <= all; at += step {
		run(faulty.Plan{At: at})
		run(faulty.Plan{At: at, Lose: true})
	}
}

// A list that points outside of itself does not get to a GPU.
func TestDamagedStringsStayOnCPU(t *testing.T) {
	rng := seed.Rand(t)
	for segment := 2; segment < 4; segment++ { // directory and pages
		x, _, asked := newList(t, rng, "urls", 3000, 100)
		b := x.Segments()[segment]
		for i := range b[64:] { // the first line is read when a file is opened
			b[64+i] = byte(rng.Uint32())
		}
		d := faulty.New(ptx.New(ptx.Memory(64<<20)), faulty.Plan{})
		if _, err := NewStringsGPU(NewStrings(x, 2), d, 1<<30, false); err == nil {
			t.Errorf("garbage in segment %d is copied to a GPU", segment)
		}
		if live := d.Live(); live != 0 {
			t.Errorf("%d things are left on the device", live)
		}
		x.Find(asked, make([]int, len(asked))) // must not fault
	}
}
