package thesis

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
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
	dev                  *ptx.Device
	st                   device.Stream
	k                    device.Kernel
	tree                 BlinkMemory
	ops, keys, vals, out device.Ptr
}

// partsParams are the kernel's arguments.
type partsParams struct {
	tree              BlinkMemory
	kinds, keys, vals device.Ptr
	n, _              uint32
	outcomes          device.Ptr
	part, _           uint32
}

func newBlinkParts(t testing.TB, opts ...ptx.Option) *blinkParts {
	t.Helper()
	b := &blinkParts{TB: t, dev: ptx.New(append([]ptx.Option{ptx.Steps(1 << 22)}, opts...)...)}
	text, err := os.ReadFile("testdata/blinkparts.ptx")
	must(t, err)
	m, err := b.dev.Load(string(text))
	must(t, err)
	b.k, err = m.Kernel("blinkParts")
	must(t, err)
	b.st, err = b.dev.NewStream()
	must(t, err)
	for _, of := range []struct {
		at    *device.Ptr
		bytes int
	}{{&b.tree.Nodes, partsNodes * partsBytes}, {&b.tree.State, 8}, {&b.ops, partsOps}, {&b.keys, 4 * partsOps}, {&b.vals, 4 * partsOps}, {&b.out, partsOps}} {
		*of.at, err = b.dev.Alloc(of.bytes)
		must(t, err)
	}
	b.tree.Capacity, b.tree.How = partsNodes, BlinkLinks
	t.Cleanup(func() { b.dev.Close() })
	return b
}

// loadedParts returns a tree of n entries that are 3 apart, with fill of them a leaf, and all
// inner nodes full, as the bulk insert makes it, and its state.
func loadedParts(n, fill int) (nodes []byte, state []uint32) {
	nodes = make([]byte, partsNodes*partsBytes)
	for at := 0; at < len(nodes); at += partsBytes { // where nothing was written yet, there are no numbers of nodes
		copy(nodes[at+32+4*partsOrder:at+partsBytes], bytes.Repeat([]byte{0xee}, 4*partsOrder))
	}
	var level []uint32 // the nodes of the level below
	var highs []uint32
	write := func(at, depth int, keys, vals []uint32, low, high uint32, next int) {
		m := nodes[at*partsBytes:]
		binary.LittleEndian.PutUint32(m[24:], low)
		binary.LittleEndian.PutUint64(m, 1<<16|uint64(len(keys))<<6|uint64(depth)<<1)
		binary.LittleEndian.PutUint32(m[8:], high)
		binary.LittleEndian.PutUint32(m[16:], uint32(next))
		copy(m[32:], arena.Bytes(keys))
		copy(m[32+4*partsOrder:], arena.Bytes(append(slices.Clone(vals), make([]uint32, partsOrder-len(vals))...)))
	}
	keys, vals := ascending[uint32](n, 3)
	for used, depth := 1, 0; ; depth++ {
		count := max(1, (len(keys)+fill-1)/fill)
		level, highs = nil, nil
		low := uint32(0)
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
			write(at, depth, part, of, low, high, next)
			low = high + 1
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
func (b *blinkParts) run(part uint32, nodes []byte, state []uint32, batch blinkBatch[uint32]) (*BlinkImage[uint32], []uint32, []BlinkOutcome, error) {
	b.Helper()
	was, outcomes := slices.Clone(batch.vals), make([]BlinkOutcome, len(batch.ops))
	must(b, errors.Join(b.st.CopyIn(b.tree.Nodes, nodes), b.st.CopyIn(b.tree.State, arena.Bytes(state)), b.st.CopyIn(b.ops, arena.Bytes(batch.ops)),
		b.st.CopyIn(b.keys, arena.Bytes(batch.keys)), b.st.CopyIn(b.vals, arena.Bytes(was))))
	p := partsParams{tree: b.tree, kinds: b.ops, keys: b.keys, vals: b.vals, n: uint32(len(batch.ops)), outcomes: b.out, part: part}
	args := arena.Bytes([]partsParams{p})
	must(b, b.st.Launch(b.k, device.Grid{Blocks: 2, Threads: len(batch.ops) / 2}, args[:len(args)-4]))
	if err := b.st.Synchronize(); err != nil {
		return nil, nil, nil, err
	}
	im := &BlinkImage[uint32]{Memory: make([]byte, len(nodes))}
	must(b, errors.Join(b.st.CopyOut(im.Memory, b.tree.Nodes), b.st.CopyOut(arena.Bytes(state), b.tree.State),
		b.st.CopyOut(arena.Bytes(was), b.vals), b.st.CopyOut(arena.Bytes(outcomes), b.out), b.st.Synchronize()))
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
		ops:  []BlinkOp{BlinkDelete, BlinkSet, BlinkGet, BlinkGet},
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

// partCase is a part of enum Part in blink.h, in its order, and what
// shows that it is needed.
type partCase struct {
	name string
	try  func(b *blinkParts, part uint32, s uint64) error
	opts []ptx.Option
	seed uint64 // one that fails; where the kernel has changed, another is looked for
	how  uint32 // beside BlinkLinks
}

var (
	someTiles = (*blinkParts).try
	twoTiles  = (*blinkParts).duel
	byChance  = []ptx.Option{ptx.Weak(true), ptx.RaceCheck(false)}
	byPCT     = []ptx.Option{ptx.Weak(true), ptx.RaceCheck(false), ptx.PCT(4)}
)

var partCases = []partCase{
	{"READ_ACQUIRE", twoTiles, byChance, 1, 0},
	{"READ_LATCH", someTiles, byChance, 0, 0},
	{"READ_FENCE", twoTiles, byPCT, 154, 0},
	{"READ_AGAIN", twoTiles, byPCT, 793, 0},
	{"READ_AGREE", twoTiles, byPCT, 658, 0},
	{"HIGH_KEY", someTiles, byChance, 1, 0},
	{"LEAF_LATCH", someTiles, byChance, 1, 0},
	{"CHILD_LATCH", someTiles, byChance, 1, 0},
	{"PARENT_LATCH", someTiles, byChance, 10, 0},
	{"PARENT_LOOK", someTiles, byChance, 1, 0},
	{"WRITE_MEET", twoTiles, byPCT, 36022, 0},
	{"WRITE_FENCE", twoTiles, byPCT, 25743, 0},
	{"GIVE_MEET", someTiles, byChance, 1, 0},
	{"GIVE_RELEASE", someTiles, byChance, 1, 0},
	{"GIVE_VERSION", someTiles, byChance, 3, 0},
	{"LOW_KEY", someTiles, byChance, 30, BlinkPeeks},
	{"PEEK_ACQUIRE", someTiles, byChance, 20, BlinkPeeks},
	{"PEEK_MEET", someTiles, byChance, 30, BlinkPeeks},
	{"NEW_MEET", someTiles, byChance, 77, BlinkPeeks},
	{"NEW_FENCE", someTiles, byChance, 30, BlinkPeeks},
	{"NEW_CLEAR", someTiles, byChance, 20, BlinkPeeks},
}

// TestBlinkParts tests that each part of the protocol is needed: left out, a
// seed fails. The rare ones take thousands of seeds, so one that fails is kept.
func TestBlinkParts(t *testing.T) {
	for i, c := range partCases {
		b := newBlinkParts(t, c.opts...)
		b.tree.How |= c.how
		s, err := c.seed, error(nil)
		for range 100_000 {
			if err = c.try(b, uint32(i+1), s); err != nil {
				break
			}
			s++
		}
		switch {
		case err == nil:
			t.Errorf("%s: no seed shows that it is needed", c.name)
		case s != c.seed:
			t.Logf("%s: another seed fails now: %d", c.name, s)
		}
		t.Logf("%s: %.300v", c.name, err)
	}
}

// TestBlinkWhole tests that with all parts no seed fails, under every schedule.
func TestBlinkWhole(t *testing.T) {
	start := seed.Of(t)
	for _, m := range latchSchedules {
		b := newBlinkParts(t, m.opts...)
		for i := range uint64(seed.Count(20)) {
			b.tree.How ^= BlinkPeeks
			for _, try := range []func(*blinkParts, uint32, uint64) error{someTiles, twoTiles} {
				if err := try(b, 0, start+i); err != nil {
					t.Fatalf("%s, seed %d: %v", m.name, start+i, err)
				}
			}
		}
	}
}

// TestBlinkBadProtocol tests that a split without the latch, as MVGpuBTree may do
// it in its open deadlock, is reported as one by the interpreter: a latch word
// that nobody will give back.
func TestBlinkBadProtocol(t *testing.T) {
	part := slices.IndexFunc(partCases, func(c partCase) bool { return c.name == "CHILD_LATCH" })
	b := newBlinkParts(t, partCases[part].opts...)
	for s := partCases[part].seed; s < 2000; s++ {
		err := b.try(uint32(part+1), s)
		var f *ptx.Fault
		if !errors.As(err, &f) || f.Kind != ptx.Deadlock {
			continue
		}
		if text := err.Error(); strings.Contains(text, "nothing changes memory") && strings.Contains(text, "spins on 0x") && strings.Contains(text, "last written by") {
			t.Logf("seed %d: %.300v", s, err)
			return
		}
	}
	t.Error("no seed shows the deadlock")
}

// TestBlinkText tests that the text that clang made of the mixed kernel has the
// orders that the protocol needs: clang-19 drops those of its own atomics.
func TestBlinkText(t *testing.T) {
	for _, shape := range []string{"32x16", "32x32", "64x16", "64x32"} {
		_, body, ok := strings.Cut(blinkPTX, ".entry blinkMixed"+shape+"(")
		if !ok {
			t.Fatalf("no kernel blinkMixed%s", shape)
		}
		body, _, _ = strings.Cut(body, "\n}")
		for _, op := range []string{"ld.acquire.gpu.global.u64", "fence.acq_rel.gpu", "atom.relaxed.gpu.global.cas.b64", "st.release.gpu.global.u64", "bar.warp.sync"} {
			if !strings.Contains(body, op) {
				t.Errorf("%s: no %s", shape, op)
			}
		}
		if strings.Contains(body, "atom.global") {
			t.Errorf("%s: an atomic without an order", shape)
		}
	}
}
