package exec

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// schemesToForce are those that can be forced.
var schemesToForce = []Scheme{Unbuffered, Partitioned}

// by makes a schedule like a rig's that runs by a scheme, in portions of at most
// as many queries.
func (r *rig[K, C]) by(s Scheme, workers, most int) *CPU[C] {
	e := NewCPU(Layout[C](r.tree), r.entries, workers)
	e.SetScheme(s)
	e.schemes.most = most
	if s == Auto {
		e.schemes.bytes = leastBytes
	}
	return e
}

// All schemes give the same answers, on all kinds of trees.
func TestSchemesAgree(t *testing.T) {
	t.Run("uint64", func(t *testing.T) { schemesAgree[uint64, uint64](t, 8) })
	t.Run("int64", func(t *testing.T) { schemesAgree[int64, uint64](t, 8) })
	t.Run("float64", func(t *testing.T) { schemesAgree[float64, uint64](t, 8) })
	t.Run("uint32", func(t *testing.T) { schemesAgree[uint32, uint32](t, 4) })
	t.Run("int16", func(t *testing.T) { schemesAgree[int16, uint32](t, 4) })
}

func schemesAgree[K order.Key, C order.Code](t *testing.T, size int) {
	rng := seed.Rand(t)
	for _, entries := range []int{0, 1, 17, 300, 5000, 100_000} {
		for _, s := range []shape{
			{leaves: implicit.Pairs, valSize: size},
			{leaves: implicit.Apart, valSize: 8},
			{leaves: implicit.Apart, form: packedPages},
			{leaves: implicit.Pairs, valSize: size, form: pagedRows - 1},
		} {
			if !pick(rng, 3) {
				continue
			}
			s.entries = entries
			r := newRig[K, C](t, rng, s, 2)
			for _, n := range []int{1, 5, 700, 3000, 30_000} {
				if err := r.agree(rng, n); err != nil {
					t.Fatalf("%v, batch of %d: %v", s, n, err)
				}
			}
		}
	}
}

// agree asks a batch by every scheme, as the sizes and workers come.
func (r *rig[K, C]) agree(rng *rand.Rand, n int) error {
	keys, of := r.skewed(rng, n), r.randomRuns(rng, 0)
	want := r.ask(r.by(Unbuffered, 1, 1), keys, of)
	for _, s := range append(schemesToForce[:2:2], Auto) {
		workers, most := 1+rng.IntN(5), []int{1, 100, 5000, maxPortion}[rng.IntN(4)]
		most = max(most, n/100)
		e := r.by(s, workers, most)
		if got := r.ask(e, keys, of); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%v in portions of %d on %d workers differs", s, most, workers)
		}
		if err := r.inPlace(e, keys, want); err != nil {
			return fmt.Errorf("%v in portions of %d on %d workers: %w", s, most, workers, err)
		}
		if left := e.schemes.taken.Load(); left != 0 {
			return fmt.Errorf("%v: %d rooms are still taken", s, left)
		}
	}
	return nil
}

// skewed returns questions: all sorts, or nearly all in one sub-tree, or all the
// same, or in order.
func (r *rig[K, C]) skewed(rng *rand.Rand, n int) []K {
	keys := r.questions(rng, n)
	switch rng.IntN(4) {
	case 0:
		for i := range keys {
			if rng.IntN(50) > 0 {
				keys[i] = r.codec.Decode(r.codec.Encode(keys[0]) + C(rng.IntN(4)))
			}
		}
	case 1:
		keys = slices.Repeat(keys[:1], n)
	case 2:
		slices.SortFunc(keys, cmp.Compare[K])
	}
	return keys
}

// inPlace lets values take the place of the keys they were looked up by.
func (r *rig[K, C]) inPlace(e *CPU[C], keys []K, want *reply[K]) error {
	if r.leaves != implicit.Pairs || !r.codec.Identity() {
		return nil
	}
	both := slices.Clone(keys)
	vals := r.codec.EncodeSlice(nil, both) // the same memory
	e.GetPairs(order.KeysOf(both), vals, nil)
	if !slices.Equal(arena.Bytes(vals), want.Vals) {
		return fmt.Errorf("values in the place of keys differ")
	}
	return nil
}
