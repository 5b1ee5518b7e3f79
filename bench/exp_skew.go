package main

import (
	"math"
	"math/rand/v2"
)

var skew = &experiment{
	name:     "skew",
	about:    "Get and Rank for queries drawn from four distributions over the domain",
	figure:   "fig. 12 of the " + paper16 + ", on the CPU",
	per:      "one key looked up, or one rank",
	caseName: "distribution",
	sizes:    usualSizes,
	extra:    []extraColumn{{colUniform, ratio}},
	run:      runSkew,
}

// colUniform is the speed relative to uniform queries.
const colUniform = "x uniform"

// distribution draws a number; all numbers of a batch are mapped linearly so
// that the domain's end corresponds to top, or to the greatest number drawn if
// top is 0.
type distribution struct {
	name string
	top  float64
	draw func(rng *rand.Rand, n int) func() float64
}

// The paper's four: Uniform, Normal(mean 0.5, variance 0.125) within [0, 1],
// Gamma(k 3, theta 3) and Zipf(alpha 2). It says that all are in [0, 1] but
// not how Gamma and Zipf are mapped there. Here, for Gamma, the greatest
// number of a batch maps to the domain's end; Zipf has as many ranks as there
// are keys.
var distributions = []distribution{
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

// fill draws queries from the distribution over a domain that holds n keys.
func (dist distribution) fill(rng *rand.Rand, q []uint64, n int) {
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

// Which method answered, in the rows of skew.
const (
	viaGet  = ", Get"
	viaRank = ", Rank"
)

func runSkew(s *session) error {
	err := forEachSize(s, func(d *dataset[uint64]) error {
		makers := []maker[uint64]{makePandoPairs[uint64](), makeTidwallMap[uint64](), makeBinarySearch[uint64]()}
		systems, err := buildAll(s, d, makers)
		if err != nil {
			return err
		}
		defer closeAll(systems)
		l, r := newLookups(s, d), newRanks(s, d)
		for _, threads := range s.threads {
			for _, dist := range distributions {
				if err := skewContests(l, r, systems, threads, dist); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.compareTo(colUniform, func(r *row) bool { return r.Case == distributions[0].name },
		func(a, b *row) bool { return a.System == b.System && a.N == b.N && a.Threads == b.Threads })
	return nil
}

// skewContests asks every system for values, then those that support it for
// ranks.
func skewContests(l *lookups[uint64], r *ranks[uint64], systems []system[uint64], threads int, dist distribution) error {
	n := len(l.d.keys)
	fill := func(rng *rand.Rand, q []uint64) { dist.fill(rng, q, n) }
	gets, err := l.contest(systems, nil, threads, dist.name, fill, askEach)
	if err != nil {
		return err
	}
	rank := &contest{n: n, threads: threads, label: dist.name, ops: len(r.q),
		fresh: func(round int) { fill(l.s.roundRand(round), r.q) }}
	for i, sys := range systems {
		gets.subjects[i].system += viaGet
		asked, ok := sys.(ranker[uint64])
		if !ok {
			continue
		}
		sub, err := r.batches(sys.Name()+viaRank, sys.BytesPerEntry(), asked, threads)
		if err != nil {
			return err
		}
		sub.reference = i == 0 && isPando(sys.Name())
		rank.subjects = append(rank.subjects, sub)
	}
	if err := l.s.compete(gets); err != nil {
		return err
	}
	return l.s.compete(rank)
}
