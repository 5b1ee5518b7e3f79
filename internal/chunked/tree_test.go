package chunked

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is a tree, and what it should have.
type rig[C order.Code] struct {
	t     *testing.T
	dev   device.Device
	tree  *Tree[C]
	model map[C]C
}

func newRig[C order.Code](t *testing.T, dev device.Device, opts Options) *rig[C] {
	t.Helper()
	tree, err := New[C](dev, opts)
	must(t, err)
	return &rig[C]{t, dev, tree, map[C]C{}}
}

func (r *rig[C]) put(b []byte) device.Ptr {
	r.t.Helper()
	at, err := r.dev.Alloc(max(len(b), 4))
	must(r.t, err)
	if len(b) > 0 {
		must(r.t, r.tree.run.Stream.CopyIn(at, b))
		must(r.t, r.tree.run.Stream.Synchronize())
	}
	return at
}

// apply applies a batch, and compares what it answers with the model.
func (r *rig[C]) apply(keys, vals []C, kinds []op.Kind) {
	r.t.Helper()
	n := len(keys)
	ops := &Ops{N: n, Keys: r.put(arena.Bytes(keys)), Vals: r.put(arena.Bytes(vals))}
	same := !slices.ContainsFunc(kinds, func(k op.Kind) bool { return k != kinds[0] })
	if n > 0 && same && kinds[0] != op.Get {
		ops.Kind = kinds[0]
	} else {
		ops.Kinds = r.put(arena.Bytes(kinds))
	}
	old, had := make([]C, n), make([]uint8, n)
	ops.Old, ops.Had = r.put(arena.Bytes(old)), r.put(had)
	e := &Effects{Keys: r.put(arena.Bytes(keys)), Vals: r.put(arena.Bytes(vals)), Kinds: r.put(arena.Bytes(kinds))}
	ops.Effects = e
	must(r.t, r.tree.Apply(ops))
	before := maps.Clone(r.model)
	must(r.t, r.tree.copyOut(arena.Bytes(old), ops.Old))
	must(r.t, r.tree.copyOut(had, ops.Had))
	for i, k := range keys {
		want, ok := r.model[k]
		if old[i] != want || had[i] == 1 != ok {
			r.t.Fatalf("operation %d of %d on key %d finds %d, %d, want %d, %t", i, n, k, old[i], had[i], want, ok)
		}
		switch kinds[i] {
		case op.Set:
			r.model[k] = vals[i]
		case op.Delete:
			delete(r.model, k)
		}
	}
	r.effects(e, before)
	for _, p := range []device.Ptr{ops.Keys, ops.Vals, ops.Kinds, ops.Old, ops.Had, e.Keys, e.Vals, e.Kinds} {
		if p != 0 {
			must(r.t, r.dev.Free(p))
		}
	}
	r.check()
}

// effects makes of what was there before, by what the batch comes to, what is
// there now.
func (r *rig[C]) effects(e *Effects, before map[C]C) {
	r.t.Helper()
	keys, vals, kinds := make([]C, e.N), make([]C, e.N), make([]op.Kind, e.N)
	must(r.t, r.tree.copyOut(arena.Bytes(keys), e.Keys))
	must(r.t, r.tree.copyOut(arena.Bytes(vals), e.Vals))
	must(r.t, r.tree.copyOut(arena.Bytes(kinds), e.Kinds))
	for i, k := range keys {
		if i > 0 && k <= keys[i-1] {
			r.t.Fatalf("effect %d is on key %d, after %d", i, k, keys[i-1])
		}
		if kinds[i] == op.Set {
			before[k] = vals[i]
		} else {
			delete(before, k)
		}
	}
	if !maps.Equal(before, r.model) {
		r.t.Fatal("the effects of a batch are not what it does")
	}
}

// check compares the tree with the model.
func (r *rig[C]) check() {
	r.t.Helper()
	checkVersion(r.t, r.tree, r.tree.now, r.model)
	if r.tree.Len() != len(r.model) {
		r.t.Fatalf("Len %d, want %d", r.tree.Len(), len(r.model))
	}
}

func checkVersion[C order.Code](t *testing.T, tree *Tree[C], b *table, model map[C]C) {
	t.Helper()
	keys, vals, err := tree.read(b)
	must(t, err)
	if len(keys) != len(model) {
		t.Fatalf("%d entries, want %d", len(keys), len(model))
	}
	for i, k := range keys {
		if want, ok := model[k]; !ok || vals[i] != want {
			t.Fatalf("key %d has %d, want %d, %t", k, vals[i], want, ok)
		}
	}
}

// look looks keys up that are there and others, by value, by rank and by range.
func (r *rig[C]) look(rng *rand.Rand) {
	r.t.Helper()
	all := slices.Sorted(maps.Keys(r.model))
	n := 1 + rng.IntN(300)
	keys := make([]C, n)
	for i := range keys {
		keys[i] = C(rng.Uint64())
		if len(all) > 0 && rng.IntN(2) == 0 {
			keys[i] = all[rng.IntN(len(all))] + C(rng.IntN(3)) - 1
		}
	}
	vals, found, ranks := make([]C, n), make([]uint32, (n+31)/32), [2][]uint32{make([]uint32, n), make([]uint32, n)}
	ks, vs, fs, rs := r.put(arena.Bytes(keys)), r.put(arena.Bytes(vals)), r.put(arena.Bytes(found)), r.put(arena.Bytes(ranks[0]))
	must(r.t, r.tree.Find(ks, n, vs, fs))
	must(r.t, r.tree.copyOut(arena.Bytes(vals), vs))
	must(r.t, r.tree.copyOut(arena.Bytes(found), fs))
	for after := range 2 {
		must(r.t, r.tree.Rank(ks, n, after == 1, rs))
		must(r.t, r.tree.copyOut(arena.Bytes(ranks[after]), rs))
	}
	for i, k := range keys {
		want, ok := r.model[k]
		at, _ := slices.BinarySearch(all, k)
		after := at
		if ok {
			after++
		}
		if vals[i] != want || found[i/32]>>(i%32)&1 == 1 != ok || int(ranks[0][i]) != at || int(ranks[1][i]) != after {
			r.t.Fatalf("key %d is %d, %b, ranks %d and %d, want %d, %t, %d, %d", k, vals[i], found[i/32], ranks[0][i], ranks[1][i], want, ok, at, after)
		}
	}
	r.lookRanges(rng, all)
	for _, p := range []device.Ptr{ks, vs, fs, rs} {
		must(r.t, r.dev.Free(p))
	}
}

// lookRanges copies runs of entries out.
func (r *rig[C]) lookRanges(rng *rand.Rand, all []C) {
	r.t.Helper()
	if len(all) == 0 {
		return
	}
	var first, offsets []uint32
	var want []C
	for range 1 + rng.IntN(5) {
		lo := rng.IntN(len(all))
		hi := min(lo+rng.IntN(200), len(all))
		first, offsets, want = append(first, uint32(lo)), append(offsets, uint32(len(want))), append(want, all[lo:hi]...)
	}
	if len(want) == 0 {
		return
	}
	keys, vals := make([]C, len(want)), make([]C, len(want))
	fs, os, ks, vs := r.put(arena.Bytes(first)), r.put(arena.Bytes(offsets)), r.put(arena.Bytes(keys)), r.put(arena.Bytes(vals))
	must(r.t, r.tree.Entries(fs, os, len(first), len(want), ks, vs))
	must(r.t, r.tree.copyOut(arena.Bytes(keys), ks))
	must(r.t, r.tree.copyOut(arena.Bytes(vals), vs))
	for i, k := range want {
		if keys[i] != k || vals[i] != r.model[k] {
			r.t.Fatalf("entry %d of runs %d is %d → %d, want %d → %d", i, first, keys[i], vals[i], k, r.model[k])
		}
	}
	for _, p := range []device.Ptr{fs, os, ks, vs} {
		must(r.t, r.dev.Free(p))
	}
}

// shape draws a batch of n operations.
type shape struct {
	name string
	draw func(rng *rand.Rand, n int) (keys []uint64, kinds []op.Kind)
}

func random(n int, key func(i int) uint64, kind func(i int) op.Kind) (keys []uint64, kinds []op.Kind) {
	for i := range n {
		keys, kinds = append(keys, key(i)), append(kinds, kind(i))
	}
	return keys, kinds
}

func sets(int) op.Kind { return op.Set }

var shapes = []shape{
	{"random sets", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		return random(n, func(int) uint64 { return rng.Uint64() }, sets)
	}},
	{"few keys, all kinds", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		return random(n, func(int) uint64 { return rng.Uint64N(uint64(n)) * 0x100000001 }, func(int) op.Kind { return op.Kind(rng.IntN(3)) })
	}},
	{"all equal", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		k := rng.Uint64()
		return random(n, func(int) uint64 { return k }, sets)
	}},
	{"equal, kinds take turns", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		k := rng.Uint64N(4)
		return random(n, func(int) uint64 { return k }, func(i int) op.Kind { return op.Kind(i % 3) })
	}},
	{"ascending", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		k := rng.Uint64N(1 << 30)
		return random(n, func(i int) uint64 { return k + uint64(i) }, sets)
	}},
	{"descending", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		k := rng.Uint64N(1<<30) + 1<<30
		return random(n, func(i int) uint64 { return k - uint64(i) }, sets)
	}},
	{"almost sorted", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		return random(n, func(i int) uint64 { return (uint64(i) + rng.Uint64N(4)) * 0x1000001 }, sets)
	}},
	{"into one leaf", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		k := rng.Uint64N(100) * 0x1000001
		return random(n, func(int) uint64 { return k + rng.Uint64N(uint64(2*n)) }, sets)
	}},
	{"into one chunk", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		k := rng.Uint64N(4000) * 0x1000001
		return random(n, func(int) uint64 { return k + rng.Uint64N(0x1000001*3000) }, func(int) op.Kind { return op.Kind(rng.IntN(3)) })
	}},
	{"into the last leaf", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		return random(n, func(int) uint64 { return ^uint64(0) - rng.Uint64N(uint64(2*n)) }, func(int) op.Kind { return op.Kind(1 + rng.IntN(8)/7) })
	}},
	{"the ends", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		return random(n, func(i int) uint64 { return uint64(i%5) - 2 }, func(int) op.Kind { return op.Kind(rng.IntN(3)) })
	}},
	{"deletes", func(rng *rand.Rand, n int) ([]uint64, []op.Kind) {
		return random(n, func(int) uint64 { return rng.Uint64N(1<<20) * 0x100000001 }, func(int) op.Kind { return op.Delete })
	}},
}

func testModel[C order.Code](t *testing.T, opts Options, rounds int) {
	first := seed.Of(t)
	dev := ptx.New(ptx.Seed(first), ptx.Memory(256<<20))
	testModelOn[C](t, dev, first, opts, rounds)
	must(t, dev.Failed())
}

// testModelOn changes a tree on a device, and compares it with a map.
func testModelOn[C order.Code](t *testing.T, dev device.Device, first uint64, opts Options, rounds int) {
	opts.Room = 16 << 20
	r := newRig[C](t, dev, opts)
	rng := rand.New(rand.NewPCG(first, 1))
	var snap *Snapshot[C]
	var was map[C]C
	sizes := []int{1, 2, 31, 32, 33, 100, 300, 1000, 3000}
	if rounds > 8 {
		sizes = append(sizes, 8191, 8192, 8193, 20_000)
	}
	for i := range rounds {
		s := shapes[rng.IntN(len(shapes))]
		n := sizes[rng.IntN(len(sizes))]
		if i == 0 {
			n = seed.Size(4000, 8193) // so that there are several chunks
		}
		wide, kinds := s.draw(rng, n)
		keys, vals := make([]C, n), make([]C, n)
		for j := range keys {
			keys[j], vals[j] = C(wide[j]), C(rng.Uint64())
		}
		if rng.IntN(12) == 0 { // delete all that is there
			keys, vals, kinds = keys[:0], nil, nil
			for k := range r.model {
				keys, kinds = append(keys, k), append(kinds, op.Delete)
			}
			vals = make([]C, len(keys))
			s.name, n = "delete all", len(keys)
		}
		if testing.Verbose() {
			fmt.Println(i, s.name, n, "on", len(r.model)) // long runs show where they are
		}
		r.tree.shortcut, r.tree.crowded = 1+rng.IntN(2)*4*shortcutFrom, 64+rng.IntN(2)*crowdedFrom
		r.tree.careful = rng.IntN(3) == 0
		r.tree.few = rng.IntN(2) * kernel.FewOps
		r.apply(keys, vals, kinds)
		r.look(rng)
		if snap == nil && rng.IntN(4) == 0 {
			snap, was = r.tree.Snapshot(), maps.Clone(r.model)
		}
		if snap != nil {
			checkVersion(t, r.tree, snap.b, was)
			if rng.IntN(3) == 0 {
				must(t, snap.Release())
				snap = nil
				r.check()
			}
		}
	}
	must(t, r.tree.Close())
}

// rounds returns how many batches a test applies: more with PANDO_SEEDS.
func rounds(t *testing.T) int {
	if n, ok := seed.Asked(); ok {
		return max(n, 8)
	}
	return seed.Times(2, 8)
}

func TestModel(t *testing.T) {
	for name, flat := range map[string]int{"leaf by leaf": -1, "flat": 1, "by size": 0} {
		t.Run(name+", 64 bits", func(t *testing.T) { testModel[uint64](t, Options{Flat: flat}, rounds(t)) })
		t.Run(name+", 32 bits", func(t *testing.T) { testModel[uint32](t, Options{Flat: flat}, rounds(t)) })
	}
}
