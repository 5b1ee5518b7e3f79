package cuart

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart/cuarttest"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// rig is a tree, and what it should have.
type rig struct {
	t     *testing.T
	dev   device.Device // where the tree is, without faults
	tree  *Tree
	model map[string]uint64
	mem   []device.Ptr
}

func newRig(t *testing.T, dev device.Device, opts Options) *rig {
	t.Helper()
	tree, err := New(dev, opts)
	must(t, err)
	return &rig{t: t, dev: dev, tree: tree, model: map[string]uint64{}}
}

// put returns device memory with some bytes.
func (r *rig) put(b []byte) device.Ptr {
	r.t.Helper()
	at, err := r.dev.Alloc((len(b) + 7) &^ 3)
	must(r.t, err)
	r.mem = append(r.mem, at)
	if len(b) > 0 {
		must(r.t, r.tree.run.Stream.CopyIn(at, b))
		must(r.t, r.tree.run.Stream.Synchronize())
	}
	return at
}

// done frees what was put.
func (r *rig) done() {
	r.t.Helper()
	for _, at := range r.mem {
		must(r.t, r.dev.Free(at))
	}
	r.mem = nil
}

// pack puts keys: from some byte on, so that all alignments come up, and without
// offsets where all are of one length.
func (r *rig) pack(keys []string, first int) kernel.StringKeys {
	r.t.Helper()
	all := make([]byte, first)
	offsets := make([]uint32, 0, len(keys)+1)
	same := first == 0 && len(keys) > 0
	for _, k := range keys {
		offsets = append(offsets, uint32(len(all)))
		all = append(all, k...)
		same = same && len(k) == len(keys[0]) && len(k) > 0
	}
	offsets = append(offsets, uint32(len(all)))
	out := kernel.StringKeys{Bytes: r.put(all), N: uint32(len(keys))}
	if same {
		out.Width = uint32(len(keys[0]))
	} else {
		out.Offsets = r.put(arena.Bytes(offsets))
	}
	return out
}

// column returns values as the tree has them.
func (r *rig) column(vals []uint64) []byte {
	if r.tree.run.Bits == 64 {
		return arena.Bytes(vals)
	}
	narrow := make([]uint32, len(vals))
	for i, v := range vals {
		narrow[i] = uint32(v)
	}
	return arena.Bytes(narrow)
}

func (r *rig) values(column []byte) []uint64 {
	if r.tree.run.Bits == 64 {
		return arena.As[uint64](column)
	}
	var out []uint64
	for _, v := range arena.As[uint32](column) {
		out = append(out, uint64(v))
	}
	return out
}

// value returns any value.
func (r *rig) value(rng *rand.Rand) uint64 { return rng.Uint64() >> (64 - r.tree.run.Bits) }

// load builds the tree on the host.
func (r *rig) load(keys []string, rng *rand.Rand) {
	r.t.Helper()
	vals := make([]uint64, len(keys))
	for i, k := range keys {
		vals[i] = r.value(rng)
		r.model[k] = vals[i]
	}
	must(r.t, r.tree.Load(keys, vals))
	r.check()
}

// look looks keys up that are there and others, in both ways.
func (r *rig) look(rng *rand.Rand) {
	r.t.Helper()
	all := slices.Sorted(maps.Keys(r.model))
	asked := make([]string, 1+rng.IntN(100))
	kind := rng.IntN(9)
	for i := range asked {
		switch {
		case len(all) > 0 && rng.IntN(3) > 0:
			asked[i] = all[rng.IntN(len(all))]
			if rng.IntN(8) == 0 {
				asked[i] += "\x00"
			} else if n := len(asked[i]); n > 0 && rng.IntN(8) == 0 {
				asked[i] = asked[i][:n-1]
			}
		case kind >= 7:
			asked[i] = cuarttest.RandomKey(rng, rng.IntN(7))
		default:
			asked[i] = cuarttest.RandomKey(rng, kind)
		}
	}
	n := len(asked)
	keys := r.pack(asked, rng.IntN(5))
	vals, found := make([]byte, n*r.tree.run.Bits/8), make([]uint32, (n+31)/32)
	vs, fs := r.put(vals), r.put(arena.Bytes(found))
	for _, tile := range []bool{false, true} {
		must(r.t, r.tree.Find(r.tree.Stream(), keys, tile, vs, fs))
		must(r.t, r.tree.copyOut(vals, vs))
		must(r.t, r.tree.copyOut(arena.Bytes(found), fs))
		got := r.values(vals)
		for i, k := range asked {
			want, ok := r.model[k]
			if hit := found[i/32]>>(i%32)&1 == 1; got[i] != want || hit != ok {
				r.t.Fatalf("tile %t: key %d of %d, %q, has %d, %t; want %d, %t", tile, i, n, k, got[i], hit, want, ok)
			}
		}
		if n%32 != 0 && found[n/32]>>(n%32) != 0 {
			r.t.Fatalf("bits behind the last of %d keys are %x", n, found[n/32])
		}
	}
	r.done()
}

// apply applies a batch, and compares what it answers with the model.
func (r *rig) apply(keys []string, vals []uint64, kinds []op.Kind, first int) {
	r.t.Helper()
	must(r.t, r.try(keys, vals, kinds, first))
	r.check()
}

// try is apply, and returns its error; then the model is as it was.
func (r *rig) try(keys []string, vals []uint64, kinds []op.Kind, first int) error {
	r.t.Helper()
	n := len(keys)
	ops := &Ops{Keys: r.pack(keys, first), Vals: r.put(r.column(vals))}
	if same := !slices.ContainsFunc(kinds, func(k op.Kind) bool { return k != kinds[0] }); n > 0 && same {
		ops.Kind = kinds[0]
	} else {
		ops.Kinds = r.put(arena.Bytes(kinds))
	}
	old, had := make([]byte, n*r.tree.run.Bits/8), make([]uint8, n)
	ops.Old, ops.Had = r.put(old), r.put(had)
	if err := r.tree.Apply(ops); err != nil {
		r.done()
		return err
	}
	must(r.t, r.tree.copyOut(old, ops.Old))
	must(r.t, r.tree.copyOut(had, ops.Had))
	r.done()
	got := r.values(old)
	for i, k := range keys {
		want, ok := r.model[k]
		if got[i] != want || had[i] == 1 != ok {
			r.t.Fatalf("operation %d of %d, %d on key %q, finds %d, %d, want %d, %t", i, n, kinds[i], k, got[i], had[i], want, ok)
		}
		switch kinds[i] {
		case op.Set:
			r.model[k] = vals[i]
		case op.Delete:
			delete(r.model, k)
		}
	}
	return nil
}

// check compares the tree with the model.
func (r *rig) check() {
	r.t.Helper()
	all, err := r.tree.read()
	must(r.t, err)
	if len(all) != len(r.model) || r.tree.Len() != len(r.model) {
		r.t.Fatalf("%d entries, Len %d, want %d", len(all), r.tree.Len(), len(r.model))
	}
	for _, e := range all {
		if want, ok := r.model[e.key]; !ok || e.val != want {
			r.t.Fatalf("key %q has %d, want %d, %t", e.key, e.val, want, ok)
		}
	}
}

// onEach runs a test on the interpreter under several seeds.
func onEach(t *testing.T, seeds int, test func(t *testing.T, dev device.Device, rng *rand.Rand)) {
	first := seed.Of(t)
	for i := range uint64(seeds) {
		dev := ptx.New(ptx.Seed(first + i))
		test(t, dev, rand.New(rand.NewPCG(first+i, 0)))
		must(t, dev.Close())
		if t.Failed() {
			t.Fatalf("PANDO_SEED=%d", first+i)
		}
	}
}

func randomOptions(rng *rand.Rand) Options {
	return Options{
		Long: LongHost + Long(rng.IntN(2)), Longest: []int{0, 0, 1, 8, 32, 200, 255, 1000}[rng.IntN(8)], HostRoom: 64 << 20,
		Room: 64 << 20, ValBits: 32 + 32*rng.IntN(2), Skip: []int{0, 0, 8, 90}[rng.IntN(4)], Direct: rng.IntN(3) == 0, Seed: rng.Uint64()}
}

// Searches find what was loaded, and nothing else.
func TestFind(t *testing.T) { onEach(t, seed.Count(60), findOnce) }

func findOnce(t *testing.T, dev device.Device, rng *rand.Rand) {
	r := newRig(t, dev, randomOptions(rng))
	r.tree.place.bits = 1 + rng.IntN(8)
	r.load(randomKeys(rng, []int{0, 1, 2, 17, 49, 300}[rng.IntN(6)]), rng)
	r.look(rng)
	must(t, r.tree.Close())
}

// batch returns random operations: on keys of one kind or several, often the same
// ones.
func (r *rig) batch(rng *rand.Rand, n int) (keys []string, vals []uint64, kinds []op.Kind) {
	kind, only := rng.IntN(10), rng.IntN(6)
	some := randomKeys(rng, 1+n/2)
	for range n {
		k := some[rng.IntN(len(some))]
		if kind < 3 {
			k = cuarttest.RandomKey(rng, rng.IntN(7))
		}
		what := op.Kind(rng.IntN(3))
		switch only {
		case 0:
			what = op.Set
		case 1:
			what = op.Delete
		}
		keys, vals, kinds = append(keys, k), append(vals, r.value(rng)), append(kinds, what)
	}
	return keys, vals, kinds
}

// Batches of any operations answer as the model does, and leave what it has.
func TestApply(t *testing.T) { onEach(t, seed.Count(40), applyOnce) }

func applyOnce(t *testing.T, dev device.Device, rng *rand.Rand) {
	r := newRig(t, dev, randomOptions(rng))
	if rng.IntN(2) == 0 { // few slots, so that owners have much to do
		r.shrinkTable(1 + rng.IntN(3))
	}
	if rng.IntN(2) == 0 {
		r.load(randomKeys(rng, 200), rng)
	}
	r.tree.perSlot, r.tree.portion = 1+rng.IntN(64), 1+rng.IntN(100)
	for range 5 {
		keys, vals, kinds := r.batch(rng, []int{1, 5, 60, 200}[rng.IntN(4)])
		r.apply(keys, vals, kinds, rng.IntN(5))
		if rng.IntN(8) == 0 && !r.tree.leaves.host {
			must(t, r.tree.moveLeaves())
			r.check()
		}
		r.look(rng)
	}
	r.empty()
	must(t, r.tree.Close())
}

// shrinkTable gives an empty tree a table of few slots.
func (r *rig) shrinkTable(bits int) {
	r.t.Helper()
	table, err := r.tree.newTable(bits)
	must(r.t, err)
	must(r.t, r.tree.run.Stream.Synchronize())
	must(r.t, r.dev.Free(r.tree.table))
	r.tree.table, r.tree.place.bits = table, bits
}

// empty deletes all there is.
func (r *rig) empty() {
	r.t.Helper()
	keys := slices.Sorted(maps.Keys(r.model))
	if len(keys) == 0 {
		return
	}
	r.apply(keys, make([]uint64, len(keys)), slices.Repeat([]op.Kind{op.Delete}, len(keys)), 0)
	for kind := range nodeTypes {
		if n := r.tree.live(kind); n != 0 {
			r.t.Errorf("an empty tree has %d nodes of type %d", n, kind)
		}
	}
}

// A node grows and shrinks through all types as its children come and go, one at a
// time and all at once.
func TestNodesGrowAndShrink(t *testing.T) { onEach(t, seed.Count(8), growOnce) }

func growOnce(t *testing.T, dev device.Device, rng *rand.Rand) {
	r := newRig(t, dev, Options{Room: 64 << 20, Direct: true, Seed: 1})
	r.shrinkTable(1)
	key := func(i int) string { return "common" + string([]byte{byte(i)}) + "rest"[:i%3] }
	order := rng.Perm(256)
	add := func(kind op.Kind, some []int) {
		var keys []string
		var vals []uint64
		var kinds []op.Kind
		for _, i := range some {
			keys, vals, kinds = append(keys, key(i)), append(vals, uint64(i)), append(kinds, kind)
		}
		r.apply(keys, vals, kinds, 0)
	}
	steps := []int{1, 2, 4, 5, 6, 16, 17, 18, 48, 49, 50, 256}
	if rng.IntN(2) == 0 {
		r.apply([]string{"common"}, []uint64{7}, []op.Kind{op.Set}, 0)
	}
	done := 0
	for i, n := range steps {
		add(op.Set, order[done:n])
		done = n
		if live := r.tree.live(node256); n == 256 && live != 1 {
			t.Fatalf("step %d: %d nodes 256", i, live)
		}
		r.look(rng)
	}
	down := []int{256, 37, 36, 35, 13, 12, 11, 4, 3, 2, 1, 0}
	for i := 1; i < len(down); i++ {
		add(op.Delete, order[down[i]:down[i-1]])
		r.look(rng)
	}
	must(t, r.tree.Close())
}

// Keys that are too long are refused before anything is done.
func TestTooLong(t *testing.T) {
	dev := ptx.New()
	r := newRig(t, dev, Options{Room: 64 << 20, Seed: 1})
	long := strings.Repeat("x", MaxKey)
	r.apply([]string{"a", long, long[1:]}, []uint64{1, 2, 3}, []op.Kind{op.Set, op.Set, op.Set}, 1)
	err := r.try([]string{"b", long + "y"}, []uint64{1, 2}, []op.Kind{op.Set, op.Set}, 0)
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Fatalf("a key of %d bytes: %v", len(long)+1, err)
	}
	r.check()
	r.apply([]string{long + "y", long, "a"}, []uint64{1, 2, 3}, []op.Kind{op.Delete, op.Delete, op.Get}, 0)
	if err := r.tree.Load([]string{"x"}, []uint64{1}); err == nil {
		t.Error("a tree that is not empty was loaded")
	}
	must(t, r.tree.Close())
	must(t, dev.Close())
}
