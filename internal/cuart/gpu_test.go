package cuart

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// onGPU runs a test on a GPU under several seeds, if there is one.
func onGPU(t *testing.T, seeds int, test func(t *testing.T, dev device.Device, rng *rand.Rand)) {
	dev, err := cuda.Open(0)
	if err != nil {
		t.Skip(err)
	}
	defer dev.Close()
	first := seed.Of(t)
	for i := range uint64(seeds) {
		test(t, dev, rand.New(rand.NewPCG(first+i, 0)))
	}
}

func TestFindOnGPU(t *testing.T)  { onGPU(t, seed.Count(60), findOnce) }
func TestApplyOnGPU(t *testing.T) { onGPU(t, seed.Count(60), applyOnce) }
func TestLoadOnGPU(t *testing.T)  { onGPU(t, seed.Count(5), loadFull) }
func TestNodesOnGPU(t *testing.T) { onGPU(t, seed.Count(8), growOnce) }

// Parts of batches, small and large, travel while those before are done.
func TestPartsOnGPU(t *testing.T) {
	for _, few := range []int{1, 1000, 5000} {
		onGPU(t, seed.Count(6), func(t *testing.T, dev device.Device, rng *rand.Rand) { changeInParts(t, dev, rng, few, 200*few) })
	}
}

// Large batches, on a table that grows under them, and with slots that many fall on.
func TestLargeOnGPU(t *testing.T) {
	onGPU(t, 4, func(t *testing.T, dev device.Device, rng *rand.Rand) {
		opts := Options{ValBits: 32 + 32*rng.IntN(2), Room: 2 << 30, Direct: rng.IntN(4) == 0}
		if rng.IntN(2) == 0 {
			opts.Longest, opts.Long = 20, LongHost
		}
		r := newRig(t, dev, opts)
		for _, n := range []int{1000, 200_000, 400_000, 100} {
			keys, vals, kinds := make([]string, n), make([]uint64, n), make([]op.Kind, n)
			for i := range keys {
				keys[i], vals[i], kinds[i] = fmt.Sprintf("https://host%d/%x", rng.IntN(50), rng.IntN(300_000)), r.value(rng), op.Kind(rng.IntN(3))
			}
			r.apply(keys, vals, kinds, rng.IntN(5))
			r.look(rng)
			if rng.IntN(3) == 0 && !r.tree.leaves.host {
				must(t, r.tree.moveLeaves())
			}
		}
		must(t, r.tree.Close())
	})
}
