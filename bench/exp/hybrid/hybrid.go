package hybrid

import (
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/order"
)

// hybridRig is a tree as Frozen builds it, and the systems that search it: the
// CPU, and schedules that share the work between CPU and GPU. Pando's public
// API would do the same, but does not let the caller choose the plan, and
// holds a tree for each schedule.
type hybridRig[W data.Word] struct {
	*work.Bulk[W]
	rig    *rig.Rig
	tree   *inside.Tree[W]
	cpu    inside.CPU[W]
	wrap   func(rig.Device) rig.Device // of what schedules run on; nil for the GPU as it is
	opened []*schedule[W]
}

// What a schedule goes by, what it measures, and the largest bucket.
type (
	bucketPlan  = exec.Plan
	bucketTimes = exec.Times
)

const maxBucket = exec.MaxBucket

// schedule is one of CPU and GPU together.
type schedule[W data.Word] struct{ *exec.GPU[W] }

func (s *schedule[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return s.GPU.GetPairs(order.KeysOf(keys), vals, found)
}

// eachHybrid calls body with a rig for each size that there is room for.
func eachHybrid[W data.Word](g *rig.Rig, body func(*hybridRig[W]) error) error {
	const trees = 1 + 1.25 // the pairs, and a tree of them
	return data.EachFitting(g.S, trees*data.PairBytes[W](), work.BulkBytes[W](), func(d *data.Dataset[W]) error {
		return g.Clear(len(d.Keys), withHybrid(g, d, body))
	})
}

func withHybrid[W data.Word](g *rig.Rig, d *data.Dataset[W], body func(*hybridRig[W]) error) (err error) {
	g.S.Say("building %s, %s ...", contest.Pando, contest.SizeText(len(d.Keys)))
	tree, err := inside.BuildTree(d, 0, contest.AllCores())
	if err != nil {
		return err
	}
	defer tree.Release()
	h := &hybridRig[W]{Bulk: work.NewBulk(g.S, d), rig: g, tree: tree, cpu: inside.NewPairsCPU(tree, contest.AllCores())}
	defer func() {
		for _, gpu := range h.opened { // a second Close does nothing
			err = errors.Join(err, gpu.Close())
		}
	}()
	return body(h)
}

// open copies levels of the tree to the GPU, until the rig is closed.
func (h *hybridRig[W]) open(keep exec.Keep) (*schedule[W], error) {
	dev, err := rig.Open(h.S)
	if err != nil {
		return nil, err
	}
	if h.wrap != nil {
		dev = h.wrap(dev)
	}
	gpu, err := exec.NewGPU(h.cpu.CPU, dev, h.tree.Image(), keep) // an image of its own: it knows where its copy is
	if err != nil {
		return nil, err
	}
	s := &schedule[W]{gpu}
	h.opened = append(h.opened, s)
	return s, nil
}

// whole opens a schedule whose GPU holds all of the tree.
func (h *hybridRig[W]) whole() (*schedule[W], error) {
	image := h.tree.Image()
	return h.open(exec.Whole(&image))
}

// hybrid opens a schedule whose GPU holds the inner levels, as many as fit.
func (h *hybridRig[W]) hybrid() (*schedule[W], error) {
	free, err := h.rig.Dev.FreeBytes()
	if err != nil {
		return nil, err
	}
	image := h.tree.Image()
	return h.open(exec.Inner(&image, free))
}

// sampleKeys is the size of the sample that Pando finds its plan with, and
// streamSample distinguishes it from the queries of a round.
const (
	sampleKeys   = 512 * contest.Kilo
	streamSample = 1 << 19
)

// sample returns random keys, at most as many as a round has queries.
func (h *hybridRig[W]) sample() order.Keys {
	keys := make([]W, min(sampleKeys, 4*len(h.D.Keys), h.S.Queries))
	data.DrawPieces(h.S.Seed, streamSample, keys, h.D.Hits)
	return order.KeysOf(keys)
}

// balanced opens a hybrid that runs by the plan Balance finds, as
// On(Hybrid(0)) does, and returns the smallest batch for which that is faster
// than the CPU. The plan is found on a separate schedule: this one then keeps
// it, whereas a schedule would look for another plan when queries change.
func (h *hybridRig[W]) balanced() (gpu *schedule[W], least int, err error) {
	finder, err := h.hybrid()
	if err != nil {
		return nil, 0, err
	}
	sample := h.sample()
	plan, err := finder.Balance(sample)
	if err != nil {
		return nil, 0, err
	}
	least = finder.Crossover(sample)
	if err := finder.Close(); err != nil {
		return nil, 0, err
	}
	if gpu, err = h.hybrid(); err != nil {
		return nil, 0, err
	}
	return gpu, least, gpu.Use(plan)
}

// onCPU returns the subject that others are compared with.
func (h *hybridRig[W]) onCPU() *contest.Subject {
	sub := h.Subject(ours.NameCPU, h.cpu, nil)
	sub.Reference = true
	return sub
}

// by returns a subject that answers by a plan.
func (h *hybridRig[W]) by(name string, gpu *schedule[W], plan bucketPlan) *contest.Subject {
	return h.Subject(name, gpu, func() error { return gpu.Use(plan) })
}

// times returns the average times of a bucket by a plan, measured on some of
// the queries: a thousand buckets, or as many as 16M queries fill.
func (h *hybridRig[W]) times(gpu *schedule[W], plan bucketPlan) (t bucketTimes, err error) {
	keys := h.Q[:min(len(h.Q), max(contest.Mega, min(16*contest.Mega, 1024*plan.Bucket)))]
	for start := time.Now(); ; {
		if t, err = gpu.Measure(order.KeysOf(keys), plan); err != nil || time.Since(start) >= h.S.WarmUp {
			return t, err
		}
	}
}

// The extra columns of the hybrid experiments. Times are in microseconds.
const (
	colBucketTime = "latency µs"
	colUpper      = "D"
	colShare      = "R"
)

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// setSplit records which side handles which levels.
func setSplit(r *contest.Row, s exec.Split) {
	r.Set(colUpper, float64(s.Upper))
	r.Set(colShare, s.Share)
}

// describe returns in words what a GPU holds of a tree.
func (h *hybridRig[W]) describe(gpu *schedule[W]) string {
	keep, image := gpu.Keeps(), h.tree.Image()
	return fmt.Sprintf("the GPU holds %d of %d inner levels, %.1f MiB", min(keep.Last, h.tree.Levels), h.tree.Levels,
		float64(keep.Size(&image))/contest.Mega)
}
