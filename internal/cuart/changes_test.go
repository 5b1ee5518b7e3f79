package cuart

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart/cuarttest"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/seed"
)

// someChanges returns operations on few keys, most of which come several times: of one
// length, or not.
func someChanges(rng *rand.Rand, n int) (keys []string, vals []uint64, kinds []op.Kind) {
	even, letters := rng.IntN(2) == 0, min(4+n/1000, 200)
	for range n {
		k := string([]byte{byte(rng.IntN(letters)), byte(rng.IntN(letters)), 'k'})
		if !even {
			k = strings.Repeat(k, rng.IntN(3))
		}
		keys, vals, kinds = append(keys, k), append(vals, rng.Uint64()), append(kinds, op.Set+op.Kind(rng.IntN(2)))
	}
	return keys, vals, kinds
}

// inTree returns what a tree has.
func inTree(t *testing.T, tree *Tree) map[string]uint64 {
	t.Helper()
	all, err := tree.read()
	must(t, err)
	m := map[string]uint64{}
	for _, e := range all {
		m[e.key] = e.val
	}
	return m
}

// A batch that travels in parts is done as if one operation after the other, wherever
// its strings lie.
func TestChangesInParts(t *testing.T) {
	onEach(t, seed.Count(6), func(t *testing.T, dev device.Device, rng *rand.Rand) { changeInParts(t, dev, rng, 1, 200) })
}

// changeInParts does batches of at most so many operations, in parts of at least few of
// them.
func changeInParts(t *testing.T, dev device.Device, rng *rand.Rand, few, most int) {
	tree, err := New(dev, Options{Room: int64(min(few, 64)) << 26})
	must(t, err)
	x := &counter{t: t, dev: dev, port: NewPort(tree, 2), model: map[string]uint64{}}
	x.port.leastPart = few + rng.IntN(20*few)
	for range 5 {
		keys, vals, kinds := someChanges(rng, 1+rng.IntN(most))
		c := &Changes{Keys: packing.Strings{Keys: keys}, Vals: arena.Bytes(vals), Kinds: kinds}
		done := func() {}
		switch rng.IntN(3) {
		case 0:
			c.Keys = packed(keys)
		case 1:
			c.Keys, done = x.shared(keys)
		}
		must(t, x.port.Apply(c))
		done()
		for i, k := range keys {
			if x.model[k] = vals[i]; kinds[i] == op.Delete {
				delete(x.model, k)
			}
		}
		if got := inTree(t, tree); !maps.Equal(got, x.model) {
			t.Fatalf("%d entries are other than these %d", len(got), len(x.model))
		}
	}
	must(t, errors.Join(x.port.Close(), tree.Close()))
}

// Wherever a device fails, the operations before are done and those behind are not, or
// the tree says that it is broken; nothing is left on the device.
func TestPartsOfFailingDevice(t *testing.T) {
	first := seed.Of(t)
	for at, all := 0, 0; at <= all; at += 1 + all/12 {
		plan := faulty.Plan{At: at, Lose: at%3 == 0 && at > 0}
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), plan)
		rng := rand.New(rand.NewPCG(first, 1))
		keys, vals, kinds := someChanges(rng, 100)
		tree, err := New(dev, Options{Room: 64 << 20, Seed: 1})
		if err == nil {
			port := NewPort(tree, 2)
			port.leastPart = 10
			from, model := 0, map[string]uint64{}
			err = port.Apply(&Changes{Keys: packed(keys), Vals: arena.Bytes(vals), Kinds: kinds})
			if at == 0 {
				must(t, err)
				all = dev.Count(faulty.Any)
			}
			same := err != nil && (plan.Lose || tree.broken != nil) // which nobody can read any more
			for !same {
				if same = maps.Equal(inTree(t, tree), model) && (err != nil || from == len(keys)); same || from == len(keys) {
					break
				}
				if model[keys[from]] = vals[from]; kinds[from] == op.Delete {
					delete(model, keys[from])
				}
				from++
			}
			if !same {
				t.Fatalf("operation %d fails (%v): the tree has what no number of operations comes to", at, err)
			}
			port.Close()
			tree.Close()
		}
		if live := dev.Live(); live != 0 {
			t.Fatalf("operation %d of %d fails: %d things are left on the device", at, all, live)
		}
		dev.Close()
	}
}

// packed returns strings one behind the other, from some byte on.
func packed(keys []string) packing.Strings {
	b := packing.Strings{Data: []byte("in front"), Offsets: []int32{8}}
	for _, k := range keys {
		b.Data = append(b.Data, k...)
		b.Offsets = append(b.Offsets, int32(len(b.Data)))
	}
	return b
}

// Of operations that all set something, on keys of one length, keys and values travel,
// and nothing else but some words a part.
func TestOnlyKeysAndValuesTravel(t *testing.T) {
	inner := ptx.New(ptx.RaceCheck(false))
	dev := &cuarttest.Scale{Device: inner}
	tree, err := New(dev, Options{Room: 64 << 20})
	must(t, err)
	x := &counter{t: t, dev: dev, port: NewPort(tree, 2), model: map[string]uint64{}}
	x.port.leastPart = 1000
	const n, width = 5000, 32
	keys, vals := make([]string, n), make([]uint64, n)
	for i := range keys {
		keys[i] = strings.Repeat("k", width-2) + string([]byte{byte(i >> 8), byte(i)})
	}
	shared, done := x.shared(keys)
	for _, s := range []packing.Strings{shared, packed(keys), {Keys: keys}} {
		dev.In.Store(0)
		must(t, x.port.Apply(&Changes{Keys: s, Vals: arena.Bytes(vals), Kind: op.Set}))
		const parts = 8 // at most, with those in which the table grows
		if in := dev.In.Load(); in < n*(width+8) || in > n*(width+8)+int64(parts*ToldBytes) {
			t.Errorf("%d bytes travel, of %d operations with %d bytes of key and value", in, n, width+8)
		}
	}
	done()
	if got := inTree(t, tree); len(got) != n || !slices.Equal(slices.Sorted(maps.Keys(got)), keys) {
		t.Errorf("%d entries", len(got))
	}
	must(t, errors.Join(x.port.Close(), tree.Close(), inner.Close()))
}
