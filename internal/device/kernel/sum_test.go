package kernel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/simd"
)

// sums returns the prefix sums of numbers that the device computes.
func sums[C simd.Code](p *primitive, in []uint32, inPlace bool) ([]C, error) {
	w := widthOf[C]()
	n := len(in)
	from, err := p.room(4 * (n + 1))
	if err != nil {
		return nil, err
	}
	to := from
	if !inPlace {
		if to, err = p.room(w / 8 * (n + 1)); err != nil {
			return nil, err
		}
	}
	temp, err := p.room(kernel.SumTemp(n))
	if err != nil {
		return nil, err
	}
	out := make([]C, n+1)
	err = errors.Join(p.s.CopyIn(from, arena.Bytes(in)),
		p.set.Sum(p.s, w, from, n, to, temp),
		p.s.CopyOut(arena.Bytes(out), to),
		p.s.Synchronize())
	return out, err
}

// checkSums compares with sums in Go.
func checkSums[C simd.Code](p *primitive, in []uint32, inPlace bool) error {
	what := fmt.Sprintf("%d numbers to sums of %d bits, in place: %v", len(in), widthOf[C](), inPlace)
	got, err := sums[C](p, in, inPlace)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	want := C(0)
	for i, s := range got {
		if s != want {
			return fmt.Errorf("%s: sum %d is %d, want %d", what, i, s, want)
		}
		if i < len(in) {
			want += C(in[i])
		}
	}
	return nil
}

// sumEither draws numbers in up to so many tiles and adds them up.
func sumEither(p *primitive, rng *rand.Rand, tiles int) error {
	tile := kernel.SumTile
	sizes := []int{0, 1, 3, 4, 5, 31, 32, 33, 127, 128, 129, tile - 1, tile, tile + 1, rng.IntN(tile), tiles * tile}
	n := sizes[rng.IntN(len(sizes))]
	if rng.IntN(2) == 0 {
		n = rng.IntN(tiles * tile)
	}
	in := make([]uint32, n)
	kind := rng.IntN(4)
	for i := range in {
		switch kind {
		case 0:
			in[i] = rng.Uint32()
		case 1:
			in[i] = 1<<32 - 1
		case 2:
			in[i] = uint32(rng.IntN(2))
		}
	}
	if rng.IntN(2) == 0 {
		return checkSums[uint64](p, in, false)
	}
	return checkSums[uint32](p, in, rng.IntN(2) == 0)
}

func TestSum(t *testing.T) {
	onPrimitive(t, kernel.Summing, ordinary, 60, func(p *primitive, rng *rand.Rand) error { return sumEither(p, rng, 40) })
}

// Blocks wait for each other here, too.
func TestSumHard(t *testing.T) {
	onPrimitive(t, kernel.Summing, hard, 12, func(p *primitive, rng *rand.Rand) error { return sumEither(p, rng, 6) })
}

func TestSumRefuses(t *testing.T) {
	p := newPrimitive(t, ptx.New(), kernel.Summing)
	for _, c := range []struct {
		bits, n int
		in      device.Ptr
	}{{16, 1, 0}, {32, -1, 0}, {64, 1, 4}} {
		if err := p.set.Sum(p.s, c.bits, c.in, c.n, 0, 0); !errors.Is(err, kernel.ErrBadJob) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p.close(t)
}
