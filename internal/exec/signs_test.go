package exec

import (
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// A large tree that is whole on a GPU has signs, unless they lead astray or the GPU has no room for them;
// and the answers are the CPU's with and without.
func TestSigns(t *testing.T) {
	rng := seed.Rand(t)
	random := func() uint64 { return rng.Uint64() }
	powers := func() uint64 { return 1<<rng.IntN(64) + uint64(rng.IntN(3000)) }
	pairs, column := shape{implicit.Pairs, 8, 0, 20_000}, shape{implicit.Apart, 4, 0, 70_000}
	t.Run("pairs", func(t *testing.T) { signsOf[int64, uint64](t, rng, pairs, random, true) })
	t.Run("column", func(t *testing.T) {
		signsOf[uint32, uint32](t, rng, column, func() uint32 { return rng.Uint32() }, true)
	})
	t.Run("astray", func(t *testing.T) { signsOf[uint64, uint64](t, rng, pairs, powers, false) })
	t.Run("few leaves", func(t *testing.T) { signsOf[uint64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 900}, random, false) })
}

func signsOf[K order.Key, C order.Code](t *testing.T, rng *rand.Rand, s shape, code func() C, want bool) {
	r := newRigOf[K](t, rng, s, 2, code)
	signs := r.image.Resident.(interface {
		SignBytes() int
		Signs() *kernel.Signs
	})
	p := Plan{Split{0, 0, r.tree.Depth() + 1}, 512, flow.DoubleBuffered}
	seed := rng.Uint64()
	open := func() device.Device { return ptx.New(ptx.Seed(seed), ptx.RaceCheck(false)) }
	g := r.openOn(t, open(), whole(r.image))
	if got := signs.Signs() != nil; got != want {
		t.Errorf("%v: signs are in use: %v, want %v", s, got, want)
	}
	tree := whole(r.image).Size(&r.image)
	if held := g.Held(); want && held != tree+int64(signs.SignBytes()) || !want && held != tree {
		t.Errorf("%v: %d bytes on the GPU, %d of them the tree's, and %d could be signs", s, held, tree, signs.SignBytes())
	}
	r.check(t, g, p, 1500, rng)
	if !want {
		return
	}
	full := &crowded{open(), 0}
	full.most = whole(r.image).Need(&r.image) + int64(signs.SignBytes()) - 1
	g = r.openOn(t, full, whole(r.image))
	if signs.Signs() != nil {
		t.Errorf("%v: signs are in use where %d bytes are free", s, full.most)
	}
	r.check(t, g, p, 500, rng)
}

// crowded is a device that has only so many bytes free.
type crowded struct {
	device.Device
	most int64
}

func (d *crowded) FreeBytes() (int64, error) { return d.most, nil }
