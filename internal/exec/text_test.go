package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
)

// lists are strings that partial keys tell apart at once, with nodes, only by
// full keys, or not at all.
var lists = map[string]func(rng *rand.Rand, i int) string{
	"uuids": func(rng *rand.Rand, _ int) string {
		return fmt.Sprintf("%08x-%04x-%012x", rng.Uint32(), rng.IntN(1<<16), rng.Uint64()>>16)
	},
	"urls": func(rng *rand.Rand, _ int) string {
		return fmt.Sprintf("https://%s.example/%s/%d", words[rng.IntN(8)], words[rng.IntN(8)], rng.IntN(500))
	},
	"prefixes": func(_ *rand.Rand, i int) string { return strings.Repeat("a", i%1200) },
	"nul":      func(_ *rand.Rand, i int) string { return strings.Repeat("\x00", i%300) },
	"short": func(rng *rand.Rand, _ int) string {
		return string([]byte{byte(rng.IntN(3)), byte(rng.IntN(256))}[:rng.IntN(3)])
	},
	"far": func(rng *rand.Rand, _ int) string { return strings.Repeat("x", 1500) + fmt.Sprint(rng.IntN(3000)) },
}

var words = strings.Fields("news newspaper newspapers shop shopping a static images")

// newList builds a list of n strings, and what to ask it.
func newList(t *testing.T, rng *rand.Rand, kind string, n, asked int) (x *blocked.Text, keys, questions []string) {
	t.Helper()
	keys = make([]string, n)
	for i := range keys {
		keys[i] = lists[kind](rng, i)
	}
	slices.Sort(keys)
	x, err := blocked.BuildText(keys, nil, blocked.TextConfig{Pages: arena.Small, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	questions = []string{"", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("x", longestText+1)}
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

// compareLists asks and compares with a sorted slice.
func compareLists(g *Text, keys, asked []string) error {
	ranks, places := make([]int, len(asked)), make([]int, len(asked))
	g.Rank(asked, ranks)
	g.Find(asked, places)
	for i, k := range asked {
		rank := sort.SearchStrings(keys, k)
		place := -1
		if rank < len(keys) && keys[rank] == k {
			place = rank
		}
		if ranks[i] != rank || places[i] != place {
			return fmt.Errorf("%.60q: rank %d, place %d, want %d and %d", k, ranks[i], places[i], rank, place)
		}
	}
	return nil
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
				for _, n := range []int{0, 1, 255, 256, 257, 3000} {
					x, keys, asked := newList(t, rng, kind, n, 400)
					for _, free := range []int64{1 << 40, TextNeed(x, 2, false)} {
						d, err := open()
						if err != nil {
							t.Skip(err)
						}
						g, err := NewText(x, 2, d, free)
						if err != nil {
							t.Fatal(err)
						}
						if _, there := g.Held(); there != (TextNeed(x, 2, true) <= free) {
							t.Errorf("strings on the device: %v, with %d bytes free", there, free)
						}
						if err := compareLists(g, keys, asked); err != nil {
							t.Fatalf("%d strings: %v", n, err)
						}
						if err := g.Down(); err != nil {
							t.Fatal(err)
						}
						if err := g.Close(); err != nil {
							t.Fatal(err)
						}
						if err := compareLists(g, keys, asked[:min(50, len(asked))]); err != nil {
							t.Fatalf("closed, %d strings: %v", n, err)
						}
					}
				}
			})
		}
	}
}

// More strings than a bucket holds, and more bytes.
func TestStringsInBuckets(t *testing.T) {
	s := &textSlot{in: make([]byte, textIn)}
	keys := slices.Repeat([]string{strings.Repeat("k", longestText), "", strings.Repeat("l", longestText+1)}, textBucket)
	for left := keys; len(left) > 0; {
		n := s.fill(left)
		offsets := arena.As[uint32](s.in)[:n+1]
		if n < 1 || n > textBucket || int(offsets[n]) > textBytes {
			t.Fatalf("a bucket of %d strings, %d bytes", n, offsets[n])
		}
		for i, k := range left[:n] {
			want := k
			if len(k) > longestText {
				want = ""
			}
			if got := string(s.in[4*(n+1):][offsets[i]:offsets[i+1]]); got != want {
				t.Fatalf("%.20q is packed as %.20q", k, got)
			}
		}
		left = left[n:]
	}
}

func TestEveryFaultOfStrings(t *testing.T) {
	quiet(t)
	rng := seed.Rand(t)
	x, keys, asked := newList(t, rng, "urls", 700, 60)
	run := func(p faulty.Plan) *faulty.Device {
		d := faulty.New(ptx.New(ptx.Seed(rng.Uint64()), ptx.Memory(64<<20), ptx.RaceCheck(false)), p)
		g, err := NewText(x, 2, d, 1<<30)
		if err == nil {
			if err := compareLists(g, keys, asked); err != nil {
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
	for at := range run(faulty.Plan{}).Count(faulty.Any) {
		run(faulty.Plan{At: at + 1})
		run(faulty.Plan{At: at + 1, Lose: true})
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
		if _, err := NewText(x, 2, d, 1<<30); err == nil {
			t.Errorf("garbage in segment %d is copied to a GPU", segment)
		}
		if live := d.Live(); live != 0 {
			t.Errorf("%d things are left on the device", live)
		}
		x.Find(asked, make([]int, len(asked))) // must not fault
	}
}
