package main

import (
	"math"
	"math/rand/v2"
)

var hybridSkew = &experiment{
	name:     "hybrid-skew",
	about:    "Get on CPU, on both and on the GPU, for queries drawn from four distributions over the domain",
	figure:   "fig. 12 of the " + paper16,
	per:      "one key looked up, from host memory to host memory",
	caseName: "distribution",
	sizes:    []int{64 * mega},
	queries:  32 * mega,
	faster:   "x CPU",
	extra:    append([]extraColumn{{colUniform, ratio}}, gigaColumns...),
	run:      runHybridSkew,
}

func runHybridSkew(s *session) error {
	err := withGPU(s, bulkBytes[uint64](), func(g *gpuRig) error { return eachHybrid(g, compareSkews) })
	s.setGigas()
	s.compareTo(colUniform, func(r *row) bool { return r.Case == distributions[0].name },
		func(a, b *row) bool { return a.System == b.System && a.N == b.N })
	return err
}

func compareSkews(h *hybridRig[uint64]) error {
	hybrid, _, err := h.balanced()
	if err != nil {
		return err
	}
	gpu, err := h.whole()
	if err != nil {
		return err
	}
	h.want = make([]bool, len(h.q))
	for _, dist := range distributions {
		c := h.contest(dist.name, h.onCPU(), h.subject(namePandoHybrid, hybrid, nil), h.subject(namePandoGPU, gpu, nil))
		c.fresh = nil // finding out which of them are keys takes longer than all rounds
		h.s.say("drawing %s queries: %s ...", sizeText(len(h.q)), dist.name)
		dist.fillPieces(h.s.seed, h.q, len(h.d.keys))
		spread(allCores(), len(h.q), func(lo, hi int) int {
			for i := lo; i < hi; i++ {
				h.want[i] = h.d.has(h.q[i])
			}
			return 0
		})
		if err := h.s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// fillPieces is fill on all cores. The numbers drawn are kept in q until the
// greatest of all is known.
func (dist distribution) fillPieces(seed uint64, q []uint64, n int) {
	drawPieces(seed, 0, q, func(rng *rand.Rand, q []uint64) {
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
	drawPieces(seed, 1, q, func(rng *rand.Rand, q []uint64) {
		for i, bits := range q {
			q[i] = scale[uint64](math.Float64frombits(bits)/top, rng)
		}
	})
}
