package hybrid

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var hybridSkew = &contest.Experiment{
	Name:     "hybrid-skew",
	About:    "Get on CPU, on both and on the GPU, for queries drawn from four distributions over the domain",
	Figure:   "fig. 12 of the " + contest.Paper16,
	Per:      "one key looked up, from host memory to host memory",
	CaseName: "distribution",
	Sizes:    []int{64 * contest.Mega},
	Queries:  32 * contest.Mega,
	Faster:   "x CPU",
	Extra:    append([]contest.ExtraColumn{{Name: contest.ColUniform, Format: contest.Ratio}}, contest.GigaColumns...),
	Run:      runHybridSkew,
}

func runHybridSkew(s *contest.Session) error {
	err := rig.With(s, work.BulkBytes[uint64](), func(g *rig.Rig) error { return eachHybrid(g, compareSkews) })
	s.SetGigas()
	s.CompareTo(contest.ColUniform, func(r *contest.Row) bool { return r.Case == data.Distributions[0].Name },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N })
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
	h.Want = make([]bool, len(h.Q))
	for _, dist := range data.Distributions {
		c := h.Contest(dist.Name, h.onCPU(), h.Subject(ours.NameHybrid, hybrid, nil), h.Subject(ours.NameGPU, gpu, nil))
		c.Fresh = nil // finding out which of them are keys takes longer than all rounds
		h.S.Say("drawing %s queries: %s ...", contest.SizeText(len(h.Q)), dist.Name)
		dist.FillPieces(h.S.Seed, h.Q, len(h.D.Keys))
		contest.Spread(contest.AllCores(), len(h.Q), func(lo, hi int) int {
			for i := lo; i < hi; i++ {
				h.Want[i] = h.D.Has(h.Q[i])
			}
			return 0
		})
		if err := h.S.Compete(c); err != nil {
			return err
		}
	}
	return nil
}
