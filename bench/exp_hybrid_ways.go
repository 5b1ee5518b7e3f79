package main

import (
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/papers/hbplus"
)

var hybridWays = &experiment{
	name:     "hybrid-ways",
	about:    "inner levels on the GPU, leaves on the CPU: three ways to move buckets, and what the cost model predicts",
	figure:   "fig. 10 of the " + paper16,
	per:      "one key looked up, from host memory to host memory: its value, no found flag",
	caseName: "bucket",
	sizes:    []int{64 * mega},
	queries:  64 * mega,
	faster:   "x CPU",
	extra: append([]extraColumn{{colSequential, ratio}, {colPredicted, number}, {colMeasured, number}, {colOff, percent}},
		gigaColumns...),
	run: runHybridWays,
}

// The columns of hybrid-ways: the speed relative to one bucket after the
// other; the time between buckets, as predicted by the cost model of section
// 5.4 and as measured; and the error of the model.
const (
	colSequential = "x sequential"
	colPredicted  = "predicted µs"
	colMeasured   = "measured µs"
	colOff        = "off %"
)

var bucketWays = []flow.Overlap{flow.Sequential, flow.Pipelined, flow.DoubleBuffered}

func wayName(o flow.Overlap) string { return namePandoHybrid + ", " + o.String() }

func runHybridWays(s *session) error {
	err := withGPU(s, bulkBytes[uint64](), func(g *gpuRig) error {
		return eachHybrid(g, func(h *hybridRig[uint64]) error {
			h.bare = true // as in Measure
			return withLimit(s, pairBytes[uint64](), len(h.d.keys), func(reads *readLimit) error {
				return withCopyLimit(g, nodeBytes, copyBuffer, func(copies *copyLimit) error {
					return compareWays(h, reads, copies)
				})
			})
		})
	})
	s.setGigas()
	s.compareTo(colSequential, func(r *row) bool { return r.System == wayName(flow.Sequential) },
		func(a, b *row) bool { return a.group == b.group && isPando(a.System) })
	return err
}

func compareWays(h *hybridRig[uint64], reads *readLimit, copies *copyLimit) error {
	gpu, err := h.hybrid()
	if err != nil {
		return err
	}
	h.s.note("n %s: %s", sizeText(len(h.d.keys)), h.describe(gpu))
	for _, bucket := range []int{16 * kilo, 64 * kilo, 256 * kilo, mega} {
		plan := gpu.Plan()
		plan.Bucket = bucket
		c := h.contest(sizeText(bucket))
		for _, way := range bucketWays {
			plan.Overlap = way
			c.subjects = append(c.subjects, h.by(wayName(way), gpu, plan))
		}
		c.subjects = append(c.subjects, h.onCPU())
		h.addLimits(c, reads, copies)
		if err := h.s.compete(c); err != nil {
			return err
		}
		plan.Overlap = flow.Sequential
		t, err := h.times(gpu, plan)
		if err != nil {
			return err
		}
		for i, way := range bucketWays {
			setPrediction(h.s.latest(c)[i], t, way)
		}
	}
	return nil
}

// setPrediction compares what times measured one after the other predict for
// a way with the time that a bucket took by it.
func setPrediction(r *row, t exec.Times, way flow.Overlap) {
	predicted, measured := micros(hbplus.Predict(t, way)), r.Median*float64(t.Queries)/1000
	r.set(colPredicted, predicted)
	if measured > 0 { // otherwise the clock is too coarse for the work
		r.set(colMeasured, measured)
		r.set(colOff, 100*(predicted-measured)/measured)
	}
}

// addLimits adds the limits: reading one leaf line per query on the CPU, and
// copying keys in and nodes out at once. Either may be nil.
func (h *hybridRig[W]) addLimits(c *contest, reads *readLimit, copies *copyLimit) {
	if reads != nil {
		c.subjects = append(c.subjects, reads.subject(allCores()))
		c.fresh = func(round int) {
			h.hits(round)
			drawPieces(h.s.seed, uint64(round+1), reads.lines, reads.draw)
		}
	}
	if copies != nil {
		c.subjects = append(c.subjects, copies.subject())
	}
}

var hybridBuckets = &experiment{
	name:    "hybrid-buckets",
	about:   "inner levels on the GPU, leaves on the CPU, double buffered: buckets of 1K to 1M, and the time of each step",
	figure:  "fig. 11 of the " + paper16,
	per:     "one key looked up, from host memory to host memory: its value, no found flag",
	sizes:   []int{64 * mega},
	queries: 32 * mega,
	faster:  "x CPU",
	extra: append(gigaColumns, extraColumn{colBucketTime, number}, extraColumn{"fill", number}, extraColumn{"in", number},
		extraColumn{"search", number}, extraColumn{"out", number}, extraColumn{"finish", number}, extraColumn{"busy", number}),
	run: runHybridBuckets,
}

func runHybridBuckets(s *session) error {
	err := withGPU(s, bulkBytes[uint64](), func(g *gpuRig) error {
		return eachHybrid(g, func(h *hybridRig[uint64]) error {
			h.bare = true
			return compareBuckets(h)
		})
	})
	s.setGigas()
	return err
}

func compareBuckets(h *hybridRig[uint64]) error {
	gpu, err := h.hybrid()
	if err != nil {
		return err
	}
	var plans []exec.Plan
	c := h.contest("")
	for bucket := kilo; bucket <= exec.MaxBucket; bucket *= 2 {
		plan := gpu.Plan()
		plan.Bucket = bucket
		plans = append(plans, plan)
		c.subjects = append(c.subjects, h.by(namePandoHybrid+", bucket "+sizeText(bucket), gpu, plan))
	}
	c.subjects = append(c.subjects, h.onCPU())
	if err := h.s.compete(c); err != nil {
		return err
	}
	for i, plan := range plans {
		if err := setSteps(h, h.s.latest(c)[i], gpu, plan); err != nil {
			return err
		}
	}
	return nil
}

// setSteps fills in the latency of a bucket among others, and the times of its
// steps while no other is in progress.
func setSteps(h *hybridRig[uint64], r *row, gpu *schedule[uint64], plan exec.Plan) error {
	t, err := h.times(gpu, plan)
	if err != nil {
		return err
	}
	r.set(colBucketTime, micros(t.Latency))
	plan.Overlap = flow.Sequential
	if t, err = h.times(gpu, plan); err != nil {
		return err
	}
	r.set("fill", micros(t.Fill))
	r.set("in", micros(t.In))
	r.set("search", micros(t.Search))
	r.set("out", micros(t.Out))
	r.set("finish", micros(t.Finish))
	r.set("busy", micros(t.Busy))
	return nil
}
