package bplus

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

func TestBatchAgainstMap(t *testing.T) {
	alone(t)
	t.Run("32", func(t *testing.T) { batchAgainstMap[uint32](t) })
	t.Run("64", func(t *testing.T) { batchAgainstMap[uint64](t) })
}

func batchAgainstMap[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, workers := range []int{1, 3} {
		for _, space := range []uint64{1, 50, 5000, 1 << 20, 1 << 32} {
			tree, err := New[C](0)
			if err != nil {
				t.Fatal(err)
			}
			model := map[C]C{}
			for _, size := range []int{0, 1, 2, 100, 8191, 8193, 20_000, 1000, 31, 50_000} {
				applyBoth(t, tree, model, rng, size, space, workers)
			}
			keys := []C{}
			for k := range model {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			if err := tree.Apply(&Ops[C]{Keys: keys, Kind: op.Delete}, workers); err != nil {
				t.Fatal(err)
			}
			clear(model)
			checkModel(t, tree, model, rng)
			tree.Close()
		}
	}
}

// applyBoth does a batch on a tree and on a map.
func applyBoth[C Code](t *testing.T, tree *Tree[C], model map[C]C, rng *rand.Rand, size int, space uint64, workers int) {
	t.Helper()
	ops := &Ops[C]{Keys: make([]C, size), Vals: make([]C, size), Kinds: make([]op.Kind, size), Old: make([]C, size), Found: make([]bool, size)}
	base, kinds := C(0), 3
	if rng.IntN(3) == 0 { // a burst into one place
		base, space = C(rng.Uint64()), min(space, uint64(size)+1)
	}
	if rng.IntN(2) == 0 {
		kinds = 2
	}
	for i := range size {
		ops.Keys[i], ops.Vals[i] = base+C(rng.Uint64N(space)), C(rng.Uint64())
		ops.Kinds[i] = op.Kind(rng.IntN(kinds))
	}
	slices.Sort(ops.Keys)
	if err := tree.Apply(ops, workers); err != nil {
		t.Fatal(err)
	}
	for i, k := range ops.Keys {
		old, had := model[k]
		if ops.Old[i] != old || ops.Found[i] != had {
			t.Fatalf("operation %d of %d, key %d: was %d, %t, want %d, %t", i, size, k, ops.Old[i], ops.Found[i], old, had)
		}
		switch ops.Kinds[i] {
		case op.Set:
			model[k] = ops.Vals[i]
		case op.Delete:
			delete(model, k)
		}
	}
	checkModel(t, tree, model, rng)
}

// Pairs that come in parts are set as those of one batch are, beside a snapshot that
// keeps what was.
func TestWriteParts(t *testing.T) {
	alone(t)
	t.Run("32", func(t *testing.T) { writeParts[uint32](t) })
	t.Run("64", func(t *testing.T) { writeParts[uint64](t) })
}

func writeParts[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, workers := range []int{1, 3} {
		tree, err := New[C](0)
		if err != nil {
			t.Fatal(err)
		}
		model := map[C]C{}
		for _, size := range []int{1, 300, 40_000, 10_000, 60_000, 3000} {
			s, err := tree.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			before := maps.Clone(model)
			tree.Rank(0, false) // all leaves are counted
			keys, vals := make([]C, size), make([]C, size)
			for i := range keys {
				keys[i], vals[i] = C(rng.Uint64N(1<<17)), C(rng.Uint64())
			}
			slices.Sort(keys)
			for i, k := range keys {
				model[k] = vals[i]
			}
			ops, cuts := &Ops[C]{Keys: keys}, []int{0}
			for cuts[len(cuts)-1] < size {
				cuts = append(cuts, max(ops.cut(cuts[len(cuts)-1]+1+rng.IntN(9000)), cuts[len(cuts)-1]))
				if n := len(cuts); cuts[n-1] == cuts[n-2] { // all of one key
					cuts[n-1] = ops.same(cuts[n-1])
				}
			}
			err = tree.SetParts(size, len(cuts)-1, func(p int, use func(keys, vals []C)) {
				use(keys[cuts[p]:cuts[p+1]], vals[cuts[p]:cuts[p+1]])
			}, workers)
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, tree, model, rng)
			if known, all := leavesOf(tree); known != all {
				t.Fatalf("upper nodes know of %d leaves, there are %d", known, all)
			}
			checkView(t, s, before, rng)
			s.Close()
		}
		tree.Close()
	}
}

// leavesOf returns how many leaves upper nodes know of, and how many there are.
func leavesOf[C Code](tree *Tree[C]) (known, all int) {
	tree.Inner(func(n Node) {
		if !n.Upper {
			known++
		}
	})
	for x := tree.first; x != nothing; x = tree.leaf(x).info().next {
		all++
	}
	return known, all
}

func TestLoad(t *testing.T) {
	alone(t)
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 63, 64, 65, 252, 253, 256, 1000, 252 * 64, 252*64 + 1, 300_000} {
		model := map[uint64]uint64{}
		keys := make([]uint64, 0, n)
		for len(model) < n {
			k := rng.Uint64()
			if len(model) == 0 {
				k = 0
			}
			if len(model) == 1 {
				k = ^uint64(0)
			}
			if _, ok := model[k]; !ok {
				model[k] = rng.Uint64()
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		tree, err := Load(n, func(lo int, ks, vs []uint64) {
			for i := range ks {
				ks[i], vs[i] = keys[lo+i], model[keys[lo+i]]
			}
		}, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		checkModel(t, tree, model, rng)
		for range 1000 {
			k := rng.Uint64()
			tree.Set(k, 1)
			model[k] = 1
		}
		checkModel(t, tree, model, rng)
		tree.Close()
	}
}

func sortedKeys[C Code](set map[C]bool) (keys []C) {
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// However many children there are, upper nodes hold them all.
func TestBuildUpperNodes(t *testing.T) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for n := 1; n <= 4*fanout; n++ {
		list := make([]child[uint64], n)
		for i := range list {
			list[i].sep = uint64(i)
		}
		for _, last := range []uint64{uint64(n), ^uint64(0)} {
			list[n-1].sep = last
			var fresh []uint32
			nodes, ok := tree.build(list, &fresh)
			if !ok {
				t.Fatal("no memory")
			}
			all := 0
			for _, y := range nodes {
				c := int(tree.upper(y.ref).info().children)
				if c < 1 || c > fanout {
					t.Fatalf("%d children up to %d: a node has %d", n, last, c)
				}
				all += c
			}
			if all != n {
				t.Fatalf("%d children up to %d: %d are in nodes", n, last, all)
			}
			tree.undo(fresh)
		}
	}
}
