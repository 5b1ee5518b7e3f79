package main

import (
	"strconv"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/papers/hbplus"
)

var hybridBalance = &experiment{
	name:     "hybrid-balance",
	about:    "a GPU that runs few blocks at a time: the CPU alone, both without and with load balancing, and what the planner takes",
	figure:   "fig. 18 of the " + paper16,
	per:      "one key looked up, from host memory to host memory",
	caseName: "blocks",
	sizes:    []int{64 * mega},
	queries:  16 * mega,
	faster:   "x CPU",
	extra:    append(gigaColumns, extraColumn{colUpper, whole}, extraColumn{colShare, plain}, extraColumn{colLeast, whole}),
	run:      runHybridBalance,
}

// colLeast is the smallest batch that the planner gives to CPU and GPU
// together; 0 if it does not use the GPU.
const colLeast = "GPU from"

// The names of the rows of hybrid-balance.
const (
	nameUnbalanced = namePandoHybrid + ", not balanced"
	nameBalanced   = namePandoHybrid + ", balanced"
	namePlanned    = namePando + ", as the planner has it"
)

// throttles are the numbers of blocks that kernels may have; 0 means no limit.
var throttles = []int{1, 2, 4, 8, 16, 64, 0}

func runHybridBalance(s *session) error {
	err := withGPU(s, bulkBytes[uint64](), func(g *gpuRig) error { return eachHybrid(g, compareBalance) })
	s.setGigas()
	return err
}

// compareBalance measures with one schedule, and finds plans with another,
// which would continue to look for better ones while the first is timed.
func compareBalance(h *hybridRig[uint64]) error {
	var devices []*hbplus.Throttled
	h.wrap = func(d device.Device) device.Device {
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
	sample, plain := order.KeysOf(h.sample()), gpu.Plan()
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
		c := h.contest(label, h.onCPU(), h.by(nameUnbalanced, gpu, plain), h.by(nameBalanced, gpu, plan), p.subject())
		if err := h.s.compete(c); err != nil {
			return err
		}
		rows := h.s.latest(c)
		setSplit(rows[2], plan.Split)
		rows[3].set(colLeast, float64(p.least))
	}
	return nil
}

// planner answers as On(Hybrid(0)) does: batches below the smallest go to the
// CPU, and so do all batches if there is no smallest.
type planner struct {
	h     *hybridRig[uint64]
	gpu   *schedule[uint64]
	plan  exec.Plan
	least int
}

func (p planner) GetPairs(keys, vals []uint64, found []bool) (hits int) {
	if p.least == 0 || len(keys) < p.least {
		return p.h.cpu.GetPairs(keys, vals, found)
	}
	return p.gpu.GetPairs(keys, vals, found)
}

func (p planner) Down() error { return p.gpu.Down() }

func (p planner) subject() *subject {
	return p.h.subject(namePlanned, p, func() error { return p.gpu.Use(p.plan) })
}
