package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// Parts of one range are added in the order that the CPU adds its blocks in, however
// many units there are, and however many of them a launch has. The sums of units are
// drawn, so that a range may have as many as billions of values do.
func TestPartsAreAddedInTheirOrder(t *testing.T) {
	rng := seed.Rand(t)
	d := faulty.New(ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false)), faulty.Plan{})
	defer d.Close()
	st, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	on := &OnDevice{Device: d, Stream: st, Sums: kernel.FrozenVectors}
	for _, most := range []int{0, 1, 2, 5, Block, 2 * Block} {
		on.most = most
		for _, units := range []int{Block - 1, Block, Block + 1, 1390, 2*Block + 3, 5000, mostUnits + Block + 9} {
			if units > 5000 && most != 0 {
				continue // in many launches, which take long here
			}
			sums := drawSums(rng, units)
			launch := func(_ *kernel.Set, v *kernel.Vectors) error {
				parts := make([]float64, 4*v.Parts.Room)
				copy(parts, sums[v.Units.From/Block:][:v.Units.Units])
				if err := st.CopyIn(v.Parts.Base, arena.Bytes(parts)); err != nil {
					return err
				}
				return st.Synchronize()
			}
			out, copies := make([]Summary, 1), d.Count(faulty.CopyOut)
			if err := on.Sum(Type{simd.Float64, 8}, []Range{{0, units * Block}}, launch, out); err != nil {
				t.Fatal(err)
			}
			if want := addBlocks(sums); math.Float64bits(out[0].Sum) != math.Float64bits(want) {
				t.Errorf("%d units, at most %d at a time: %v, want %v", units, most, out[0].Sum, want)
			}
			// Launches whose parts are joined are not waited for one by one.
			if copies = d.Count(faulty.CopyOut) - copies; copies > 1 && on.room >= Block {
				t.Errorf("%d units, at most %d at a time: %d copies to the host, want 1", units, most, copies)
			}
		}
		if err := on.free(); err != nil {
			t.Fatal(err)
		}
	}
	if err := on.Close(); err != nil {
		t.Fatal(err)
	}
}

// drawSums returns numbers whose sum depends on the order of additions.
func drawSums(rng *rand.Rand, n int) []float64 {
	sums := make([]float64, n)
	for i := range sums {
		sums[i] = rng.NormFloat64()
	}
	return sums
}
