package experiments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
)

// The shape of the trees of testdata/blinkparts.cu.
const (
	partsTile  = 2
	partsOrder = 4
	partsNodes = 64
	partsBytes = 32 + 2*4*partsOrder
	partsOps   = 32
)

// blinkParts runs the kernel that leaves out a part of the protocol.
type blinkParts struct {
	testing.TB
	dev  *ptx.Device
	st   device.Stream
	k    device.Kernel
	tree kernel.Blink
	mem  map[string]device.Ptr
}

// partsParams are the kernel's arguments.
type partsParams struct {
	tree              kernel.Blink
	kinds, keys, vals device.Ptr
	n, _              uint32
	outcomes          device.Ptr
	part, _           uint32
}

func newBlinkParts(t testing.TB, opts ...ptx.Option) *blinkParts {
	t.Helper()
	b := &blinkParts{TB: t, dev: ptx.New(append([]ptx.Option{ptx.Steps(1 << 22)}, opts...)...), mem: map[string]device.Ptr{}}
	text, err := os.ReadFile("testdata/blinkparts.ptx")
	must(t, err)
	m, err := b.dev.Load(string(text))
	must(t, err)
	b.k, err = m.Kernel("blinkParts")
	must(t, err)
	b.st, err = b.dev.NewStream()
	must(t, err)
	for name, size := range map[string]int{"nodes": partsNodes * partsBytes, "state": 8, "ops": partsOps, "keys": 4 * partsOps, "vals": 4 * partsOps, "out": partsOps} {
		b.mem[name], err = b.dev.Alloc(size)
		must(t, err)
	}
	b.tree = kernel.Blink{Nodes: b.mem["nodes"], State: b.mem["state"], Capacity: partsNodes, Links: 1}
	t.Cleanup(func() { b.dev.Close() })
	return b
}

// loaded returns a tree of n entries that are 3 apart, with fill of them a leaf, and all
// inner nodes full, as the bulk insert makes it, and its state.
func loadedParts(n, fill int) (nodes []byte, state []uint32) {
	nodes = make([]byte, partsNodes*partsBytes)
	var level []uint32 // the nodes of the level below
	var highs []uint32
	write := func(at, depth int, keys, vals []uint32, high uint32, next int) {
		m := nodes[at*partsBytes:]
		binary.LittleEndian.PutUint64(m, 1<<16|uint64(len(keys))<<6|uint64(depth)<<1)
		binary.LittleEndian.PutUint32(m[8:], high)
		binary.LittleEndian.PutUint32(m[16:], uint32(next))
		copy(m[32:], arena.Bytes(keys))
		copy(m[32+4*partsOrder:], arena.Bytes(vals))
	}
	keys, vals := ascending[uint32](n, 3)
	for used, depth := 1, 0; ; depth++ {
		count := max(1, (len(keys)+fill-1)/fill)
		level, highs = nil, nil
		for i := range count {
			part, of := keys[min(len(keys), i*fill):min(len(keys), (i+1)*fill)], vals[min(len(keys), i*fill):min(len(keys), (i+1)*fill)]
			at, next, high := used, used+1, uint32(1<<32-1)
			if i == count-1 {
				next = 0
			} else {
				high = part[len(part)-1]
			}
			if count == 1 {
				at = 0
			} else {
				used++
			}
			write(at, depth, part, of, high, next)
			level, highs = append(level, uint32(at)), append(highs, high)
		}
		if count == 1 {
			return nodes, []uint32{uint32(used), 0}
		}
		keys, vals, fill = highs, level, partsOrder
	}
}

// run applies a batch to a tree, leaves out a part, and returns the tree after
// it, its answers, and the number of nodes it has.
func (b *blinkParts) run(part uint32, nodes []byte, state []uint32, batch blinkBatch[uint32]) (*BlinkImage[uint32], []uint32, []kernel.BlinkOutcome, error) {
	b.Helper()
	was, outcomes := slices.Clone(batch.vals), make([]kernel.BlinkOutcome, len(batch.ops))
	for name, bytes := range map[string][]byte{"nodes": nodes, "state": arena.Bytes(state), "ops": arena.Bytes(batch.ops), "keys": arena.Bytes(batch.keys), "vals": arena.Bytes(was)} {
		must(b, b.st.CopyIn(b.mem[name], bytes))
	}
	p := partsParams{tree: b.tree, kinds: b.mem["ops"], keys: b.mem["keys"], vals: b.mem["vals"], n: uint32(len(batch.ops)), outcomes: b.mem["out"], part: part}
	args := arena.Bytes([]partsParams{p})
	must(b, b.st.Launch(b.k, device.Grid{Blocks: 2, Threads: len(batch.ops) / 2}, args[:len(args)-4]))
	if err := b.st.Synchronize(); err != nil {
		return nil, nil, nil, err
	}
	im := &BlinkImage[uint32]{Memory: make([]byte, len(nodes))}
	for name, bytes := range map[string][]byte{"nodes": im.Memory, "state": arena.Bytes(state), "vals": arena.Bytes(was), "out": arena.Bytes(outcomes)} {
		must(b, b.st.CopyOut(bytes, b.mem[name]))
	}
	must(b, b.st.Synchronize())
	got := newBlinkImage[uint32](partsOrder, state, b.tree.Capacity)
	got.Memory = im.Memory
	return got, was, outcomes, nil
}

// try runs a batch that the seed draws on a tree of some entries, and checks all
// answers and the tree.
func (b *blinkParts) try(part uint32, s uint64) error {
	rng := rand.New(rand.NewPCG(s, 3))
	n := []int{0, 4, 12, 16, 40}[rng.IntN(5)]
	nodes, state := loadedParts(n, 3+rng.IntN(2))
	b.tree.Capacity = partsNodes
	if rng.IntN(4) == 0 {
		b.tree.Capacity = state[0] + uint32(rng.IntN(4))
	}
	before := map[uint32]uint32{}
	for i, k := range keysOf(n) {
		before[k] = uint32(i)<<1 | 1
	}
	ptx.Seed(s)(b.dev)
	batch := drawBlink[uint32](rng, partsOps, []uint64{12, 40, 120}[rng.IntN(3)], []int{0, 0, 30, 60}[rng.IntN(4)])
	return b.judge(part, before, nodes, state, batch)
}

// judge runs a batch and checks all answers and the tree.
func (b *blinkParts) judge(part uint32, before map[uint32]uint32, nodes []byte, state []uint32, batch blinkBatch[uint32]) error {
	b.Helper()
	im, was, outcomes, err := b.run(part, nodes, state, batch)
	if err != nil {
		return err
	}
	keys, vals, err := im.Check()
	if err != nil {
		return err
	}
	after := map[uint32]uint32{}
	for i, k := range keys {
		after[k] = vals[i]
	}
	return explainAll(before, after, batch.ops, batch.keys, batch.vals, was, outcomes, partsTile)
}

// duel lets one tile change a leaf while another one reads it: three keys that
// all move when a smaller one comes or goes. What a reader may see of a change
// that it must not see at all is decided by few instructions here, so that many
// seeds can be tried.
func (b *blinkParts) duel(part uint32, s uint64) error {
	rng := rand.New(rand.NewPCG(s, 4))
	nodes, state := loadedParts(3, 4)
	b.tree.Capacity = partsNodes
	before := map[uint32]uint32{0: 1, 3: 3, 6: 5}
	batch := blinkBatch[uint32]{
		ops:  []kernel.BlinkOp{kernel.BlinkDelete, kernel.BlinkSet, kernel.BlinkGet, kernel.BlinkGet},
		keys: []uint32{0, 0, uint32(3 + 3*rng.IntN(2)), uint32(3 + 3*rng.IntN(2))},
		vals: []uint32{0, 100, 0, 0},
	}
	ptx.Seed(s)(b.dev)
	return b.judge(part, before, nodes, state, batch)
}

func keysOf(n int) []uint32 {
	keys, _ := ascending[uint32](n, 3)
	return keys
}

// blinkPart are the parts of enum Part in kernel/blink.h, from 1 on.
var blinkPart = []string{"all parts", "READ_ACQUIRE", "READ_LATCH", "READ_FENCE", "READ_AGAIN", "READ_AGREE", "HIGH_KEY", "LEAF_LATCH", "CHILD_LATCH",
	"PARENT_LATCH", "PARENT_LOOK", "WRITE_MEET", "WRITE_FENCE", "GIVE_MEET", "GIVE_RELEASE", "GIVE_VERSION"}

func TestExplore(t *testing.T) {
	start := seed.Of(t)
	for _, m := range []struct {
		name string
		opts []ptx.Option
	}{
		{"random", []ptx.Option{ptx.Weak(true), ptx.RaceCheck(false)}},
		{"pct2", []ptx.Option{ptx.Weak(true), ptx.RaceCheck(false), ptx.PCT(2)}},
		{"pct4", []ptx.Option{ptx.Weak(true), ptx.RaceCheck(false), ptx.PCT(4)}},
	} {
		b := newBlinkParts(t, m.opts...)
		for part, name := range blinkPart {
			kinds := map[string]int{}
			first := -1
			if os.Getenv("PART") != "" && !strings.Contains(os.Getenv("PART"), name) {
				continue
			}
			for s := range uint64(latchSeeds(100)) {
				if err := b.duel(uint32(part), start+s); err != nil {
					var f *ptx.Fault
					kind := "harm"
					if errors.As(err, &f) {
						kind = fmt.Sprint(f.Kind)
					}
					kinds[kind]++
					if first < 0 {
						first = int(s)
						t.Logf("   %s: %.200v", name, err)
					}
				}
			}
			t.Log(m.name, name, first, kinds)
		}
	}
}
