package gpu

import (
	"math/rand/v2"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/internal/op"
)

// treeBatch is operations on a tree that has the entries of a dataset, and
// their expected result. Keys that are there have, before the batch, another
// value than the dataset's: see before.
type treeBatch[W data.Word] struct {
	keys, vals []W
	kinds      []op.Kind // nil: all are sets
	fresh      []bool    // keys that the tree has not before
	added      int       // different ones of these
	want       []W       // value of each key afterwards
	old        []W       // value that each operation finds, where there are kinds
	had        []uint8
}

// before returns the value that a key of the dataset has before a batch.
func before[W data.Word](k W) W { return ^data.ValueOf(k) }

// undo returns values and kinds of a batch of the same keys that undoes it.
func (b *treeBatch[W]) undo() (vals []W, kinds []op.Kind) {
	vals, kinds = make([]W, len(b.keys)), make([]op.Kind, len(b.keys))
	contest.Spread(contest.AllCores(), len(b.keys), func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			vals[i], kinds[i] = before(b.keys[i]), op.Set
			if b.fresh[i] {
				kinds[i] = op.Delete
			}
		}
		return 0
	})
	return vals, kinds
}

// drawUpserts draws sets of n keys all over the domain, every other one of them
// new. As far as there are enough entries all are different.
func drawUpserts(seed uint64, d *data.Dataset[uint64], n int) *treeBatch[uint64] {
	b := &treeBatch[uint64]{keys: make([]uint64, n), vals: make([]uint64, n), fresh: make([]bool, n), added: n / 2}
	step := strideOf(len(d.Keys))
	contest.Spread(contest.AllCores(), n, func(lo, hi int) int {
		for i := lo; i < hi; i++ {
			if b.fresh[i] = i%2 == 1; b.fresh[i] {
				b.keys[i] = newKey(d, seed, i)
			} else {
				b.keys[i] = d.Keys[i/2*step%len(d.Keys)]
			}
			b.vals[i] = data.ValueOf(b.keys[i])
		}
		return 0
	})
	b.want = b.vals
	return b
}

// strideOf returns a number that has no divisor in common with n, near the
// golden section of n, so that its multiples are all over [0, n).
func strideOf(n int) int {
	step := max(1, int(float64(n)*0.6180339887))
	for gcd(step, n) != 1 {
		step++
	}
	return step
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// newKey returns the i-th of keys that are not in the set. They are different
// for different i: SplitMix64 is a permutation.
func newKey(d *data.Dataset[uint64], seed uint64, i int) uint64 {
	x := seed<<40 + (uint64(i)+1)*data.Odd
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	k := x ^ x>>31
	for d.Has(k) {
		k++
	}
	return k
}

// batchShape draws n operations for gpu-update-shapes.
type batchShape struct {
	name string
	draw func(s *contest.Session, d *data.Dataset[uint64], n int) (keys []uint64, kinds []op.Kind)
}

// keysBy returns n sets, by their keys.
func keysBy(n int, key func(i int) uint64) ([]uint64, []op.Kind) {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = key(i)
	}
	return keys, nil
}

// batchShapes are the shapes; ratios are relative to the first. After keys by Zipf's law
// the tree sorts by all bits for up to a thousand batches, so they are the last.
var batchShapes = []batchShape{
	{"uniform", func(s *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		return drawUpserts(s.Seed, d, n).keys, nil
	}},
	{"half lookups", func(s *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		return halfGets(s, drawUpserts(s.Seed, d, n).keys, func(rng *rand.Rand) uint64 { return d.Keys[rng.IntN(len(d.Keys))] })
	}},
	{"one key", func(_ *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		return keysBy(n, func(int) uint64 { return d.Keys[len(d.Keys)/2] })
	}},
	{"28 neighbours", func(_ *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		return keysBy(n, func(i int) uint64 { return d.Keys[(len(d.Keys)/2+i*5%28)%len(d.Keys)] })
	}},
	{"new keys of one leaf", func(_ *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		lo, hi := d.Gap(len(d.Keys) / 2)
		room, step := int(min(hi-lo, uint64(n)))+1, strideOf(n)
		return keysBy(n, func(i int) uint64 { return lo + uint64(i*step%n%room) })
	}},
	{"ascending", func(_ *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		last := d.Keys[len(d.Keys)-1]
		room := int(min(^last, uint64(n))) + 1
		return keysBy(n, func(i int) uint64 { return last + uint64((i+1)%room) })
	}},
	{"half lookups, one key", func(s *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		k := d.Keys[len(d.Keys)/2]
		keys, _ := keysBy(n, func(int) uint64 { return k })
		return halfGets(s, keys, func(*rand.Rand) uint64 { return k })
	}},
	{"Zipf 0.99", func(s *contest.Session, d *data.Dataset[uint64], n int) ([]uint64, []op.Kind) {
		rng, z, step := data.NewRand(s.Seed, data.StreamShuffle), data.NewZipf(len(d.Keys), 0.99), strideOf(len(d.Keys))
		return keysBy(n, func(int) uint64 { return d.Keys[z.Draw(rng)*step%len(d.Keys)] })
	}},
}

// halfGets makes half of the operations lookups of other keys, at random.
func halfGets(s *contest.Session, keys []uint64, key func(*rand.Rand) uint64) ([]uint64, []op.Kind) {
	rng := data.NewRand(s.Seed, data.StreamShuffle)
	kinds := make([]op.Kind, len(keys))
	for i := range kinds {
		if kinds[i] = op.Set; rng.IntN(2) == 0 {
			kinds[i], keys[i] = op.Get, key(rng)
		}
	}
	return keys, kinds
}

// inOrder returns operations with what they must come to, one after the other:
// each sets another value.
func inOrder(d *data.Dataset[uint64], keys []uint64, kinds []op.Kind) *treeBatch[uint64] {
	n := len(keys)
	b := &treeBatch[uint64]{keys: keys, kinds: kinds, vals: make([]uint64, n), fresh: make([]bool, n), want: make([]uint64, n)}
	if kinds != nil {
		b.old, b.had = make([]uint64, n), make([]uint8, n)
	}
	now, there := make(map[uint64]uint64, n), make(map[uint64]bool, n)
	for i, k := range keys {
		if _, seen := there[k]; !seen {
			if there[k] = d.Has(k); there[k] {
				now[k] = before(k)
			} else {
				b.added++
			}
		}
		b.vals[i], b.fresh[i] = data.ValueOf(k)+uint64(i), !there[k]
		if kinds != nil {
			if v, ok := now[k]; ok {
				b.old[i], b.had[i] = v, 1
			}
		}
		if kinds == nil || kinds[i] == op.Set {
			now[k] = b.vals[i]
		}
	}
	for i, k := range keys {
		b.want[i] = now[k]
	}
	return b
}
