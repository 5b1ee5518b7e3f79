package data

import (
	"math"
	"math/rand/v2"
)

// FillPieces is fill on all cores. The numbers drawn are kept in q until the
// greatest of all is known.
func (dist Distribution) FillPieces(seed uint64, q []uint64, n int) {
	DrawPieces(seed, 0, q, func(rng *rand.Rand, q []uint64) {
		draw := dist.draw(rng, n)
		for i := range q {
			q[i] = math.Float64bits(draw())
		}
	})
	top := dist.top
	if top == 0 {
		for _, bits := range q {
			top = max(top, math.Float64frombits(bits))
		}
	}
	DrawPieces(seed, 1, q, func(rng *rand.Rand, q []uint64) {
		for i, bits := range q {
			q[i] = scale[uint64](math.Float64frombits(bits)/top, rng)
		}
	})
}

// Distribution draws a number; all numbers of a batch are mapped linearly so
// that the domain's end corresponds to top, or to the greatest number drawn if
// top is 0.
type Distribution struct {
	Name string
	top  float64
	draw func(rng *rand.Rand, n int) func() float64
}

// The paper's four: Uniform, Normal(mean 0.5, variance 0.125) within [0, 1],
// Gamma(k 3, theta 3) and Zipf(alpha 2). It says that all are in [0, 1] but
// not how Gamma and Zipf are mapped there. Here, for Gamma, the greatest
// number of a batch maps to the domain's end; Zipf has as many ranks as there
// are keys.
var Distributions = []Distribution{
	{"uniform", 1, func(rng *rand.Rand, _ int) func() float64 { return rng.Float64 }},
	{"normal", 1, func(rng *rand.Rand, _ int) func() float64 {
		return func() float64 {
			for {
				if x := 0.5 + math.Sqrt(0.125)*rng.NormFloat64(); x >= 0 && x <= 1 {
					return x
				}
			}
		}
	}},
	{"gamma", 0, func(rng *rand.Rand, _ int) func() float64 {
		// An integer k makes Gamma a sum of k exponentials.
		return func() float64 { return 3 * (rng.ExpFloat64() + rng.ExpFloat64() + rng.ExpFloat64()) }
	}},
	{"Zipf", 1, func(rng *rand.Rand, n int) func() float64 {
		z := rand.NewZipf(rng, 2, 1, uint64(n-1))
		return func() float64 { return float64(z.Uint64()) / float64(max(1, n-1)) }
	}},
}

// Fill draws queries from the distribution over a domain that holds n keys.
func (dist Distribution) Fill(rng *rand.Rand, q []uint64, n int) {
	draw := dist.draw(rng, n)
	x := make([]float64, len(q))
	top := dist.top
	for i := range x {
		x[i] = draw()
		if dist.top == 0 {
			top = max(top, x[i])
		}
	}
	for i := range q {
		q[i] = scale[uint64](x[i]/top, rng)
	}
}
