package cuart

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/cuart/cuarttest"
	"github.com/pando-index/pando/internal/seed"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// randomKeys returns distinct keys that ascend, of one kind or several.
func randomKeys(rng *rand.Rand, n int) []string {
	set, kind := map[string]bool{}, rng.IntN(9)
	for range n {
		if kind >= 7 {
			set[cuarttest.RandomKey(rng, rng.IntN(7))] = true
		} else {
			set[cuarttest.RandomKey(rng, kind)] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func randomPlace(rng *rand.Rand) Place {
	return Place{seed: rng.Uint64(), skip: []int{0, 3, 90}[rng.IntN(3)], direct: rng.IntN(3) == 0, bits: 1 + rng.IntN(9)}
}

// What is built is what Check proves, and has the entries it was built of.
func TestBuild(t *testing.T) {
	rng := seed.Rand(t)
	for range seed.Count(200) {
		keys := randomKeys(rng, []int{0, 1, 2, 5, 17, 49, 300}[rng.IntN(7)])
		vals := make([]uint64, len(keys))
		want := map[string]uint64{}
		for i := range vals {
			vals[i] = rng.Uint64N(1 << 32)
			want[keys[i]] = vals[i]
		}
		im, err := build(keys, vals, 4+4*rng.IntN(2), randomPlace(rng), mostUnits, classes)
		must(t, err)
		got, err := im.check(new([classes][]uint32))
		must(t, err)
		if len(got) != len(keys) {
			t.Fatalf("%d entries, want %d", len(got), len(keys))
		}
		for _, e := range got {
			if v, ok := want[e.key]; !ok || v != e.val {
				t.Fatalf("key %q has %d, want %d, %t", e.key, e.val, v, ok)
			}
		}
	}
}

// Each type of node is used from one child more than the type below has on.
func TestNodeTypes(t *testing.T) {
	for n, want := range map[int]int{2: node4, 4: node4, 5: node16, 16: node16, 17: node48, 48: node48, 49: node256, 256: node256} {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = "k" + string([]byte{byte(i)})
		}
		im, err := build(keys, make([]uint64, n), 8, Place{bits: 1, direct: true}, mostUnits, classes)
		must(t, err)
		if got := im.nodes(); got[want] != 1 {
			t.Errorf("%d children: nodes %v", n, got)
		}
		_, err = im.check(new([classes][]uint32))
		must(t, err)
	}
}

// Check finds what is not as it must be.
func TestCheckFinds(t *testing.T) {
	for what, spoil := range map[string]func(im *image){
		"a child less":          func(im *image) { im.n4[0].count-- },
		"another byte":          func(im *image) { im.n4[0].keys[0]++ },
		"another depth":         func(im *image) { im.n4[0].depth++ },
		"a link twice":          func(im *image) { im.n4[0].links[0] = im.n4[0].links[1] },
		"a link to nowhere":     func(im *image) { im.n4[0].links[0] = linkTo(node48, 7) },
		"no own key":            func(im *image) { im.n4[0].own = 0 },
		"another key":           func(im *image) { im.units[1] ^= 1 << 33 },
		"a byte behind the key": func(im *image) { im.units[1] ^= 1 << 56 },
		"another length":        func(im *image) { im.units[1]++ },
		"units to spare":        func(im *image) { im.units = append(im.units, 0) },
		"a node to spare":       func(im *image) { im.n16 = append(im.n16, inner16{}) },
		"another slot":          func(im *image) { im.table[0], im.table[1] = im.table[1], im.table[0] },
	} {
		im, err := build([]string{"key", "key1x", "key2"}, []uint64{1, 2, 3}, 8, Place{bits: 1, direct: true}, mostUnits, classes)
		must(t, err)
		_, err = im.check(new([classes][]uint32))
		must(t, err)
		spoil(im)
		if _, err = im.check(new([classes][]uint32)); err == nil {
			t.Errorf("%s: nobody noticed", what)
		}
	}
}
