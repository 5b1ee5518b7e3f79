package hybrid

import (
	"strconv"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/papers/hbplus"
)

var hybridBalance = &contest.Experiment{
	Name:     "hybrid-balance",
	About:    "a GPU that runs few blocks at a time: the CPU alone, both without and with load balancing, and what the planner takes",
	Figure:   "fig. 18 of the " + contest.Paper16,
	Per:      "one key looked up, from host memory to host memory",
	CaseName: "blocks",
	Sizes:    []int{64 * contest.Mega},
	Queries:  16 * contest.Mega,
	Faster:   "x CPU",
	Extra:    append(contest.GigaColumns, contest.ExtraColumn{Name: colUpper, Format: contest.Whole}, contest.ExtraColumn{Name: colShare, Format: contest.Plain}, contest.ExtraColumn{Name: colLeast, Format: contest.Whole}),
	Run:      runHybridBalance,
}

// colLeast is the smallest batch that the planner gives to CPU and GPU
// together; 0 if it does not use the GPU.
const colLeast = "GPU from"

// The names of the rows of hybrid-balance.
const (
	nameUnbalanced = ours.NameHybrid + ", not balanced"
	nameBalanced   = ours.NameHybrid + ", balanced"
	namePlanned    = contest.Pando + ", as the planner has it"
)

// throttles are the numbers of blocks that kernels may have; 0 means no limit.
var throttles = []int{1, 2, 4, 8, 16, 64, 0}

func runHybridBalance(s *contest.Session) error {
	err := rig.With(s, work.BulkBytes[uint64](), func(g *rig.Rig) error { return eachHybrid(g, compareBalance) })
	s.SetGigas()
	return err
}

// compareBalance measures with one schedule, and finds plans with another,
// which would continue to look for better ones while the first is timed.
func compareBalance(h *hybridRig[uint64]) error {
	var devices []*hbplus.Throttled
	h.wrap = func(d rig.Device) rig.Device {
		t := hbplus.Throttle(d)
		devices = append(devices, t)
		return t
	}
	gpu, err := h.hybrid()
	if err != nil {
		return err
	}
	finder, err := h.hybrid()
	if err != nil {
		return err
	}
	sample, plain := h.sample(), gpu.Plan()
	for _, blocks := range throttles {
		for _, d := range devices {
			d.Limit(blocks)
		}
		plan, err := finder.Balance(sample)
		if err != nil {
			return err
		}
		p := planner{h: h, gpu: gpu, plan: plan, least: finder.Crossover(sample)}
		label := strconv.Itoa(blocks)
		if blocks == 0 {
			label = "all"
		}
		c := h.Contest(label, h.onCPU(), h.by(nameUnbalanced, gpu, plain), h.by(nameBalanced, gpu, plan), p.subject())
		if err := h.S.Compete(c); err != nil {
			return err
		}
		rows := h.S.Latest(c)
		setSplit(rows[2], plan.Split)
		rows[3].Set(colLeast, float64(p.least))
	}
	return nil
}

// planner answers as On(Hybrid(0)) does: batches below the smallest go to the
// CPU, and so do all batches if there is no smallest.
type planner struct {
	h     *hybridRig[uint64]
	gpu   *schedule[uint64]
	plan  bucketPlan
	least int
}

func (p planner) GetPairs(keys, vals []uint64, found []bool) (hits int) {
	if p.least == 0 || len(keys) < p.least {
		return p.h.cpu.GetPairs(keys, vals, found)
	}
	return p.gpu.GetPairs(keys, vals, found)
}

func (p planner) Down() error { return p.gpu.Down() }

func (p planner) subject() *contest.Subject {
	return p.h.Subject(namePlanned, p, func() error { return p.gpu.Use(p.plan) })
}
