package order

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// someCodes returns codes of keys of a type: the ends, around 0, and any.
func someCodes(t Type, rng *rand.Rand) []uint64 {
	zero := t.flip()
	if t.kind == floating {
		zero = 1 << (t.size*8 - 1)
	}
	all := []uint64{0, 1, zero - 1, zero, zero + 1, t.maxCode() - 1, t.maxCode()}
	for range 60 {
		all = append(all, rng.Uint64()&(math.MaxUint64>>(64-8*t.size)))
	}
	for _, f := range []float64{0.5, 1, 1.5, 2.5, -0.5, -1, -2.5, 127.5, 255, 256, 65535.5, 1 << 24, 1<<24 + 1, 1 << 31, 1 << 32, 1 << 53, 1<<53 + 2, 1 << 63, 1 << 64, -(1 << 63)} {
		all = append(all, guess(t, number{float: true, f: f}))
	}
	all = slices.DeleteFunc(all, func(c uint64) bool { return c > t.maxCode() })
	if t.kind == floating { // codes that no key has: more of NaN, and of -0
		all = slices.DeleteFunc(all, func(c uint64) bool { return guess(t, numberOf(t, c)) != c })
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// exactly compares two numbers by way of math/big.
func exactly(a, b number) int {
	if a.nan() || b.nan() {
		return cmp.Compare(b2i(b.nan()), b2i(a.nan()))
	}
	return a.big().Cmp(b.big())
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (x number) big() *big.Float {
	if x.float {
		return big.NewFloat(x.f).SetPrec(200)
	}
	f := new(big.Float).SetPrec(200).SetUint64(x.size)
	if x.negative {
		f.Neg(f)
	}
	return f
}

// The least key not below, or above, a number of another type is that, by the
// numbers as they are.
func TestLeastAndGreatest(t *testing.T) {
	rng := seed.Rand(t)
	types := []Type{
		TypeOf[int8](), TypeOf[int16](), TypeOf[int32](), TypeOf[int64](), TypeOf[uint8](), TypeOf[uint16](),
		TypeOf[uint32](), TypeOf[uint64](), TypeOf[float32](), TypeOf[float64](),
	}
	for _, to := range types {
		codes := someCodes(to, rng)
		for _, of := range types {
			for _, p := range someCodes(of, rng) {
				x := numberOf(of, p)
				for _, open := range []bool{false, true} {
					least, some := Least(to, Probe{Code: p}, of, open)
					greatest, also := Greatest(to, Probe{Code: p}, of, open)
					for _, c := range codes {
						order := exactly(numberOf(to, c), x)
						in := order > 0 || order == 0 && !open
						if in != (some && c >= least) {
							t.Fatalf("%+v from %+v, open %v: code %#x is in: %v; the least is %#x, %v", to, x, open, c, in, least, some)
						}
						in = order < 0 || order == 0 && !open
						if in != (also && c <= greatest) {
							t.Fatalf("%+v up to %+v, open %v: code %#x is in: %v; the greatest is %#x, %v", to, x, open, c, in, greatest, also)
						}
					}
				}
			}
		}
	}
}
