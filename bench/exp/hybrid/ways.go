package hybrid

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/papers/hbplus"
)

var hybridWays = &contest.Experiment{
	Name:     "hybrid-ways",
	About:    "inner levels on the GPU, leaves on the CPU: three ways to move buckets, and what the cost model predicts",
	Figure:   "fig. 10 of the " + contest.Paper16,
	Per:      "one key looked up, from host memory to host memory: its value, no found flag",
	CaseName: "bucket",
	Sizes:    []int{64 * contest.Mega},
	Queries:  64 * contest.Mega,
	Faster:   "x CPU",
	Extra: append([]contest.ExtraColumn{{Name: colSequential, Format: contest.Ratio}, {Name: colPredicted, Format: contest.Number}, {Name: colMeasured, Format: contest.Number}, {Name: colOff, Format: contest.Percent}},
		contest.GigaColumns...),
	Run: runHybridWays,
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

func wayName(o flow.Overlap) string { return ours.NameHybrid + ", " + o.String() }

func runHybridWays(s *contest.Session) error {
	err := rig.With(s, work.BulkBytes[uint64](), func(g *rig.Rig) error {
		return eachHybrid(g, func(h *hybridRig[uint64]) error {
			h.Bare = true // as in Measure
			return work.WithLimit(s, data.PairBytes[uint64](), len(h.D.Keys), func(reads *work.ReadLimit) error {
				return rig.WithCopyLimit(g, rig.NodeBytes, rig.CopyBuffer, func(copies *rig.CopyLimit) error {
					return compareWays(h, reads, copies)
				})
			})
		})
	})
	s.SetGigas()
	s.CompareTo(colSequential, func(r *contest.Row) bool { return r.System == wayName(flow.Sequential) },
		func(a, b *contest.Row) bool { return a.Beside(b) && contest.IsPando(a.System) })
	return err
}

func compareWays(h *hybridRig[uint64], reads *work.ReadLimit, copies *rig.CopyLimit) error {
	gpu, err := h.hybrid()
	if err != nil {
		return err
	}
	h.S.Note("n %s: %s", contest.SizeText(len(h.D.Keys)), h.describe(gpu))
	for _, bucket := range []int{16 * contest.Kilo, 64 * contest.Kilo, 256 * contest.Kilo, contest.Mega} {
		plan := gpu.Plan()
		plan.Bucket = bucket
		c := h.Contest(contest.SizeText(bucket))
		for _, way := range bucketWays {
			plan.Overlap = way
			c.Subjects = append(c.Subjects, h.by(wayName(way), gpu, plan))
		}
		c.Subjects = append(c.Subjects, h.onCPU())
		h.addLimits(c, reads, copies)
		if err := h.S.Compete(c); err != nil {
			return err
		}
		plan.Overlap = flow.Sequential
		t, err := h.times(gpu, plan)
		if err != nil {
			return err
		}
		for i, way := range bucketWays {
			setPrediction(h.S.Latest(c)[i], t, way)
		}
	}
	return nil
}

// setPrediction compares what times measured one after the other predict for
// a way with the time that a bucket took by it.
func setPrediction(r *contest.Row, t bucketTimes, way flow.Overlap) {
	predicted, measured := micros(hbplus.Predict(t, way)), r.Median*float64(t.Queries)/1000
	r.Set(colPredicted, predicted)
	if measured > 0 { // otherwise the clock is too coarse for the work
		r.Set(colMeasured, measured)
		r.Set(colOff, 100*(predicted-measured)/measured)
	}
}

// addLimits adds the limits: reading one leaf line per query on the CPU, and
// copying keys in and nodes out at once. Either may be nil.
func (h *hybridRig[W]) addLimits(c *contest.Contest, reads *work.ReadLimit, copies *rig.CopyLimit) {
	if reads != nil {
		c.Subjects = append(c.Subjects, reads.Subject(contest.AllCores()))
		c.Fresh = func(round int) {
			h.Hits(round)
			data.DrawPieces(h.S.Seed, uint64(round+1), reads.Lines, reads.Draw)
		}
	}
	if copies != nil {
		c.Subjects = append(c.Subjects, copies.Subject())
	}
}

var hybridBuckets = &contest.Experiment{
	Name:    "hybrid-buckets",
	About:   "inner levels on the GPU, leaves on the CPU, double buffered: buckets of 1K to 1M, and the time of each step",
	Figure:  "fig. 11 of the " + contest.Paper16,
	Per:     "one key looked up, from host memory to host memory: its value, no found flag",
	Sizes:   []int{64 * contest.Mega},
	Queries: 32 * contest.Mega,
	Faster:  "x CPU",
	Extra: append(contest.GigaColumns, contest.ExtraColumn{Name: colBucketTime, Format: contest.Number}, contest.ExtraColumn{Name: "fill", Format: contest.Number}, contest.ExtraColumn{Name: "in", Format: contest.Number},
		contest.ExtraColumn{Name: "search", Format: contest.Number}, contest.ExtraColumn{Name: "out", Format: contest.Number}, contest.ExtraColumn{Name: "finish", Format: contest.Number}, contest.ExtraColumn{Name: "busy", Format: contest.Number}),
	Run: runHybridBuckets,
}

func runHybridBuckets(s *contest.Session) error {
	err := rig.With(s, work.BulkBytes[uint64](), func(g *rig.Rig) error {
		return eachHybrid(g, func(h *hybridRig[uint64]) error {
			h.Bare = true
			return compareBuckets(h)
		})
	})
	s.SetGigas()
	return err
}

func compareBuckets(h *hybridRig[uint64]) error {
	gpu, err := h.hybrid()
	if err != nil {
		return err
	}
	var plans []bucketPlan
	c := h.Contest("")
	for bucket := contest.Kilo; bucket <= maxBucket; bucket *= 2 {
		plan := gpu.Plan()
		plan.Bucket = bucket
		plans = append(plans, plan)
		c.Subjects = append(c.Subjects, h.by(ours.NameHybrid+", bucket "+contest.SizeText(bucket), gpu, plan))
	}
	c.Subjects = append(c.Subjects, h.onCPU())
	if err := h.S.Compete(c); err != nil {
		return err
	}
	for i, plan := range plans {
		if err := setSteps(h, h.S.Latest(c)[i], gpu, plan); err != nil {
			return err
		}
	}
	return nil
}

// setSteps fills in the latency of a bucket among others, and the times of its
// steps while no other is in progress.
func setSteps(h *hybridRig[uint64], r *contest.Row, gpu *schedule[uint64], plan bucketPlan) error {
	t, err := h.times(gpu, plan)
	if err != nil {
		return err
	}
	r.Set(colBucketTime, micros(t.Latency))
	plan.Overlap = flow.Sequential
	if t, err = h.times(gpu, plan); err != nil {
		return err
	}
	r.Set("fill", micros(t.Fill))
	r.Set("in", micros(t.In))
	r.Set("search", micros(t.Search))
	r.Set("out", micros(t.Out))
	r.Set("finish", micros(t.Finish))
	r.Set("busy", micros(t.Busy))
	return nil
}
