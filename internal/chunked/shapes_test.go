package chunked

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// What kernels do with a leaf or a chunk depends on how full it is, so these
// cases know where each leaf of a tree that was merged flat begins: leaf i has
// entries i*LeafFill and on, and entry i has key (i+1)*gap.
const gap = 1000

func keyOf(entry int) uint64 { return uint64(entry+1) * gap }

// shapeCase is a batch, or several, onto a tree of that many entries.
type shapeCase struct {
	name    string
	entries int
	batches func(rng *rand.Rand, n int) [][]uint64 // keys to be set; in the end all of them are deleted
	// leaves and chunks are the numbers after each batch that is taken leaf by
	// leaf; nil where they do not matter.
	leaves, chunks []int
}

// twoChunks is the number of entries of a tree with a full chunk and another.
const twoChunks = kernel.ChunkFill*kernel.LeafFill + 3*kernel.LeafFill

// inLeaf returns n keys that belong into one leaf of a tree.
func inLeaf(leaf, n int) (keys []uint64) {
	first := keyOf(leaf*kernel.LeafFill) + 1
	for i := range n {
		keys = append(keys, first+uint64(i*7%(5*gap)))
	}
	return keys
}

// shuffled returns the same keys in another order.
func shuffled(rng *rand.Rand, keys []uint64) []uint64 {
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// between returns a key for each entry of [lo, hi), behind it.
func between(lo, hi, behind int) (keys []uint64) {
	for i := lo; i < hi; i++ {
		keys = append(keys, keyOf(i)+uint64(behind))
	}
	return keys
}

var shapeCases = []shapeCase{
	{"almost sorted", 600, func(rng *rand.Rand, n int) [][]uint64 {
		keys := between(0, n, 1)
		for i := 0; i+1 < n; i += 2 + rng.IntN(9) {
			keys[i], keys[i+1] = keys[i+1], keys[i]
		}
		keys[0], keys[n-1] = keys[n-1], keys[0]
		return [][]uint64{keys}
	}, nil, nil},
	{"a burst into one leaf", 600, func(rng *rand.Rand, n int) [][]uint64 {
		return [][]uint64{shuffled(rng, inLeaf(7, 700))}
	}, nil, nil},
	{"a burst into the first leaf", 600, func(rng *rand.Rand, n int) [][]uint64 {
		keys := []uint64{}
		for k := range uint64(300) {
			keys = append(keys, k)
		}
		return [][]uint64{shuffled(rng, keys)}
	}, nil, nil},
	{"a burst into the last leaf", 600, func(rng *rand.Rand, n int) [][]uint64 {
		keys := []uint64{^uint64(0), 1<<32 - 1}
		for i := range 400 {
			keys = append(keys, keyOf(n-1)+uint64(i))
		}
		return [][]uint64{shuffled(rng, keys)}
	}, nil, nil},
	{"a burst into one chunk", twoChunks, func(rng *rand.Rand, n int) [][]uint64 {
		return [][]uint64{shuffled(rng, between(0, kernel.ChunkFill*kernel.LeafFill, 1)[:seed.Size(1500, 3000)])}
	}, nil, nil},
	{"a burst into the last chunk", twoChunks, func(rng *rand.Rand, n int) [][]uint64 {
		return [][]uint64{shuffled(rng, append(between(n-60, n, 1), inLeaf(n/kernel.LeafFill-1, 500)...))}
	}, nil, nil},
	{"full leaves and one more", 40 * kernel.LeafFill, func(_ *rand.Rand, n int) [][]uint64 {
		var full, more []uint64
		for leaf := range n / kernel.LeafFill {
			first := leaf * kernel.LeafFill
			full = append(full, between(first, first+kernel.LeafEntries-kernel.LeafFill, 1)...)
			more = append(more, keyOf(first)+2)
		}
		return [][]uint64{full, more[:1], more[1:2], more[2:]}
	}, []int{40, 41, 42, 80}, nil},
	{"a full chunk and one more leaf", kernel.ChunkFill * kernel.LeafFill, func(rng *rand.Rand, n int) [][]uint64 {
		var batches [][]uint64
		left := kernel.ChunkLeaves - kernel.ChunkFill // so many leaves are split, and then one more
		for _, leaves := range [][2]int{{0, left}, {left, left + 1}} {
			var keys []uint64
			for leaf := leaves[0]; leaf < leaves[1]; leaf++ {
				keys = append(keys, inLeaf(leaf, kernel.LeafEntries-kernel.LeafFill+1)...)
			}
			batches = append(batches, keys)
		}
		return batches
	}, []int{256, 257}, []int{1, 2}},
	{"larger than the tree", 100, func(rng *rand.Rand, n int) [][]uint64 {
		return [][]uint64{shuffled(rng, between(0, 20*n, 1))}
	}, nil, nil},
	{"onto an empty tree", 0, func(rng *rand.Rand, n int) [][]uint64 {
		return [][]uint64{shuffled(rng, between(0, 40, 0)), {}, {0}, {^uint64(0)}}
	}, nil, nil},
}

// ways are the two ways to take a batch, forced.
var ways = map[string]int{"leaf by leaf": -1, "flat": 0}

// loaded returns a tree with entries at equal distances.
func loaded[C order.Code](t *testing.T, dev device.Device, entries int) *rig[C] {
	r := newRig[C](t, dev, Options{Room: 32 << 20})
	r.tree.SetFlat(0)
	r.all(between(0, entries, 0), op.Set)
	return r
}

// all applies a batch of one kind, and checks everything.
func (r *rig[C]) all(keys []uint64, kind op.Kind) {
	r.t.Helper()
	ks, vs, kinds := make([]C, len(keys)), make([]C, len(keys)), make([]op.Kind, len(keys))
	for i, k := range keys {
		ks[i], vs[i], kinds[i] = C(k), C(k)*3+C(i), kind
	}
	r.apply(ks, vs, kinds)
}

func testShape[C order.Code](t *testing.T, dev device.Device, rng *rand.Rand, c *shapeCase, way int) {
	r := loaded[C](t, dev, c.entries)
	batches := c.batches(rng, c.entries)
	for i, keys := range batches {
		r.tree.SetFlat(way)
		r.all(keys, op.Set)
		if got := r.tree.now.leaves; way < 0 && c.leaves != nil && got != c.leaves[i] {
			t.Errorf("%d leaves after batch %d, want %d", got, i, c.leaves[i])
		}
		if got := int(r.tree.now.version.Count); way < 0 && c.chunks != nil && got != c.chunks[i] {
			t.Errorf("%d chunks after batch %d, want %d", got, i, c.chunks[i])
		}
	}
	r.look(rng)
	r.all(slices.Concat(batches...), op.Delete)
	r.look(rng)
	must(t, r.tree.Close())
}

// testShapes tries all cases on devices; narrow keys too, if asked.
func testShapes(t *testing.T, narrow bool, open func(seed uint64) device.Device) {
	first := seed.Of(t)
	for i := range shapeCases {
		c := &shapeCases[i]
		for name, way := range ways {
			if !seed.Long() && (way >= 0) != (c.entries <= 2000 && c.leaves == nil && first>>i&1 > 0) {
				continue // one of them
			}
			t.Run(c.name+", "+name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(first, 8))
				testShape[uint64](t, open(first), rng, c, way)
				if narrow {
					testShape[uint32](t, open(first), rng, c, way)
				}
			})
		}
	}
}

// interpreter returns a device with a little memory.
func interpreter(seed uint64) device.Device {
	return ptx.New(ptx.Seed(seed), ptx.Memory(256<<20))
}

// Each shape of a batch that has ends, alone, onto a tree whose leaves are known.
// PANDO_SEEDS adds narrow keys.
func TestShapes(t *testing.T) {
	_, narrow := seed.Asked()
	testShapes(t, narrow, interpreter)
}

func TestShapesOnGPU(t *testing.T) {
	dev := onGPU(t)
	testShapes(t, true, func(uint64) device.Device { return dev })
}

// testSizes applies batches of sizes around a warp, and around what a block
// sorts.
func testSizes(t *testing.T, sizes []int, open func(seed uint64) device.Device) {
	first := seed.Of(t)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(first, 9))
			r := loaded[uint64](t, open(first), 300)
			for _, n := range sizes {
				keys, kinds := make([]uint64, n), make([]op.Kind, n)
				for i := range keys {
					keys[i], kinds[i] = rng.Uint64N(20*gap)*50, op.Kind(rng.IntN(3))
				}
				r.tree.SetFlat(way)
				r.apply(keys, make([]uint64, n), kinds)
			}
			must(t, r.tree.Close())
		})
	}
}

func TestBatchSizes(t *testing.T) {
	sizes := []int{0, 1, 31, 32, 33}
	if seed.Long() {
		sizes = append(sizes, 8191, 8192, 8193)
	}
	testSizes(t, sizes, interpreter)
}

func TestBatchSizesOnGPU(t *testing.T) {
	dev := onGPU(t)
	testSizes(t, []int{0, 1, 31, 32, 33, 255, 256, 257, 8191, 8192, 8193, 65535, 65536, 65537, 1_000_003}, func(uint64) device.Device { return dev })
}

// Leaves and chunks that have become thin are written anew, so that a tree takes
// memory for what it has, not for what it had.
func TestThinLeavesAreMerged(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64](t, ptx.New(ptx.Seed(rng.Uint64()), ptx.Memory(64<<20)), Options{Room: 16 << 20})
	keys := make([]uint64, seed.Size(7_000, 40_000))
	for i := range keys {
		keys[i] = rng.Uint64()
	}
	r.apply(keys, keys, repeated(op.Set, len(keys)))
	gone := keys[:len(keys)*9/10]
	for len(gone) > 0 {
		n := min(1000, len(gone))
		r.apply(gone[:n], gone[:n], repeated(op.Delete, n))
		gone = gone[n:]
	}
	r.check()
	if most := 4*r.tree.entries/kernel.LeafEntries + thinLeaves; r.tree.now.leaves > most {
		t.Errorf("%d entries have %d leaves, want at most %d", r.tree.entries, r.tree.now.leaves, most)
	}
	must(t, r.tree.Close())
}

func repeated(kind op.Kind, n int) []op.Kind { return slices.Repeat([]op.Kind{kind}, n) }

// testManyOnFew merges batches with trees that are small beside them: several blocks then do
// the operations on a chunk, and several warps those on a leaf.
func testManyOnFew[C order.Code](t *testing.T, dev device.Device, n int) {
	rng := seed.Rand(t)
	for _, entries := range []int{0, 1, 40, 3 * kernel.LeafFill, seed.Size(400, twoChunks)} {
		r := newRig[C](t, dev, Options{Room: 64 << 20})
		r.tree.SetFlat(0)
		r.tree.crowded = 64
		r.all(between(0, entries, 0), op.Set)
		leaf := entries / kernel.LeafFill / 2
		few := inLeaf(leaf, 5*gap)
		keys, vals, kinds := make([]C, n), make([]C, n), make([]op.Kind, n)
		for i := range keys {
			switch rng.IntN(4) {
			case 0: // there is such a key, if there is one at all
				keys[i] = C(keyOf(rng.IntN(entries + 1)))
			case 1: // in that leaf
				keys[i] = C(keyOf(leaf*kernel.LeafFill + rng.IntN(kernel.LeafFill)))
			default: // or between its keys
				keys[i] = C(few[rng.IntN(len(few))])
			}
			vals[i], kinds[i] = C(rng.Uint64()), op.Kind(rng.IntN(3))
		}
		r.apply(keys, vals, kinds)
		r.check()
		must(t, r.tree.Close())
	}
}

func TestManyOnFew(t *testing.T) {
	first := seed.Of(t)
	n := seed.Size(800, 20_000)
	if seed.Long() || first%2 == 0 {
		testManyOnFew[uint32](t, ptx.New(ptx.Seed(first), ptx.Memory(256<<20)), n)
	}
	if seed.Long() || first%2 == 1 {
		testManyOnFew[uint64](t, ptx.New(ptx.Seed(first), ptx.Memory(256<<20)), n)
	}
}

func TestManyOnFewOnGPU(t *testing.T) {
	dev := onGPU(t)
	t.Run("32 bits", func(t *testing.T) { testManyOnFew[uint32](t, dev, 300_000) })
	t.Run("64 bits", func(t *testing.T) { testManyOnFew[uint64](t, dev, 300_000) })
}

// eachWay takes a batch in each way that there is, once: NVIDIA's compute-sanitizer
// takes a minute for what a GPU does in a millisecond.
func eachWay[C order.Code](t *testing.T, dev device.Device) {
	r := newRig[C](t, dev, Options{Room: 16 << 20, Flat: -1})
	rng := seed.Rand(t)
	batch := func(n int) {
		keys, vals, kinds := make([]C, n), make([]C, n), make([]op.Kind, n)
		for i := range keys {
			keys[i], vals[i], kinds[i] = C(rng.Uint64()), C(rng.Uint64()), op.Kind(rng.IntN(3))
		}
		r.apply(keys, vals, kinds)
	}
	batch(kernel.FewOps + 1000) // leaf by leaf, sorted by a part of the key
	batch(1500)                 // the same in few launches
	snap := r.tree.Snapshot()
	batch(500) // with copies
	must(t, snap.Release())
	r.tree.SetFlat(0)
	batch(2000) // merged with everything
	r.tree.crowded = 0
	batch(200) // that cannot be
	must(t, r.tree.Close())
}

func TestWays(t *testing.T) {
	first := seed.Of(t)
	if seed.Long() || first%2 == 0 {
		eachWay[uint32](t, ptx.New(ptx.Seed(first)))
	}
	if seed.Long() || first%2 == 1 {
		eachWay[uint64](t, ptx.New(ptx.Seed(first)))
	}
}

func TestWaysOnGPU(t *testing.T) { eachWay[uint64](t, onGPU(t)) }
