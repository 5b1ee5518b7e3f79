package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
)

// namePandoHybrid is the schedule of the HB+-tree paper: inner levels on the
// GPU, leaves on the CPU.
const namePandoHybrid = "Pando Hybrid"

// hybridRig is a tree as Frozen builds it, and the systems that search it: the
// CPU, and schedules that share the work between CPU and GPU. Pando's public
// API would do the same, but does not let the caller choose the plan, and
// holds a tree for each schedule.
type hybridRig[W word] struct {
	*bulk[W]
	rig    *gpuRig
	tree   *implicit.Tree[W]
	cpu    cpuSchedule[W]
	wrap   func(device.Device) device.Device // of what schedules run on; nil for the GPU as it is
	opened []*schedule[W]
}

// cpuSchedule is one of the CPU alone, for numbers that are their own codes.
type cpuSchedule[W word] struct{ *exec.CPU[W] }

func (c cpuSchedule[W]) Rank(keys []W, ranks []int) { c.CPU.Rank(order.KeysOf(keys), ranks) }

func (c cpuSchedule[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return c.CPU.GetPairs(order.KeysOf(keys), vals, found)
}

// schedule is one of CPU and GPU together.
type schedule[W word] struct{ *exec.GPU[W] }

func (s *schedule[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return s.GPU.GetPairs(order.KeysOf(keys), vals, found)
}

// eachHybrid calls body with a rig for each size that there is room for.
func eachHybrid[W word](g *gpuRig, body func(*hybridRig[W]) error) error {
	const trees = 1 + 1.25 // the pairs, and a tree of them
	return eachFitting(g.s, trees*pairBytes[W](), bulkBytes[W](), func(d *dataset[W]) error {
		return g.clear(len(d.keys), withHybrid(g, d, body))
	})
}

// eachFitting calls body for each size that fits into free memory, with the
// given bytes per entry and per query. It prints a line for those that do not.
func eachFitting[W word](s *session, perEntry float64, perQuery int, body func(d *dataset[W]) error) error {
	for _, n := range s.sizes {
		debug.FreeOSMemory() // frees the memory of the previous size
		need, free := int64(perEntry*float64(n))+int64(perQuery)*int64(s.queries), freeMemory()
		if need > free {
			s.skip("n %s, %d bits: needs about %s, %s of memory are free", sizeText(n), bitsOf[W](), gib(need), gib(free))
			continue
		}
		d, err := newDataset[W](s, n)
		if err != nil {
			s.skip("%v", err)
			continue
		}
		if err := body(d); err != nil {
			return err
		}
	}
	return nil
}

func withHybrid[W word](g *gpuRig, d *dataset[W], body func(*hybridRig[W]) error) (err error) {
	g.s.say("building %s, %s ...", namePando, sizeText(len(d.keys)))
	tree, err := buildTree(d, implicit.Config{Workers: allCores()})
	if err != nil {
		return err
	}
	defer tree.Release()
	cpu := exec.NewCPU(implicit.Paired[W]{Tree: tree}, len(d.keys), allCores())
	h := &hybridRig[W]{bulk: newBulk(g.s, d), rig: g, tree: tree, cpu: cpuSchedule[W]{cpu}}
	defer func() {
		for _, gpu := range h.opened { // a second Close does nothing
			err = errors.Join(err, gpu.Close())
		}
	}()
	return body(h)
}

// open copies levels of the tree to the GPU, until the rig is closed.
func (h *hybridRig[W]) open(keep exec.Keep) (*schedule[W], error) {
	dev, err := h.s.openGPU()
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
	free, err := h.rig.dev.FreeBytes()
	if err != nil {
		return nil, err
	}
	image := h.tree.Image()
	return h.open(exec.Inner(&image, free))
}

// sampleKeys is the size of the sample that Pando finds its plan with, and
// streamSample distinguishes it from the queries of a round.
const (
	sampleKeys   = 512 * kilo
	streamSample = 1 << 19
)

// sample returns random keys, at most as many as a round has queries.
func (h *hybridRig[W]) sample() []W {
	keys := make([]W, min(sampleKeys, 4*len(h.d.keys), h.s.queries))
	drawPieces(h.s.seed, streamSample, keys, h.d.hits)
	return keys
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
	plan, err := finder.Balance(order.KeysOf(sample))
	if err != nil {
		return nil, 0, err
	}
	least = finder.Crossover(order.KeysOf(sample))
	if err := finder.Close(); err != nil {
		return nil, 0, err
	}
	if gpu, err = h.hybrid(); err != nil {
		return nil, 0, err
	}
	return gpu, least, gpu.Use(plan)
}

// onCPU returns the subject that others are compared with.
func (h *hybridRig[W]) onCPU() *subject {
	sub := h.subject(namePandoCPU, h.cpu, nil)
	sub.reference = true
	return sub
}

// by returns a subject that answers by a plan.
func (h *hybridRig[W]) by(name string, gpu *schedule[W], plan exec.Plan) *subject {
	return h.subject(name, gpu, func() error { return gpu.Use(plan) })
}

// times returns the average times of a bucket by a plan, measured on some of
// the queries: a thousand buckets, or as many as 16M queries fill.
func (h *hybridRig[W]) times(gpu *schedule[W], plan exec.Plan) (t exec.Times, err error) {
	keys := h.q[:min(len(h.q), max(mega, min(16*mega, 1024*plan.Bucket)))]
	for start := time.Now(); ; {
		if t, err = gpu.Measure(order.KeysOf(keys), plan); err != nil || time.Since(start) >= h.s.warmUp {
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
func setSplit(r *row, s exec.Split) {
	r.set(colUpper, float64(s.Upper))
	r.set(colShare, s.Share)
}

// describe returns in words what a GPU holds of a tree.
func (h *hybridRig[W]) describe(gpu *schedule[W]) string {
	keep, image := gpu.Keeps(), h.tree.Image()
	return fmt.Sprintf("the GPU holds %d of %d inner levels, %.1f MiB", min(keep.Last, h.tree.Levels), h.tree.Levels,
		float64(keep.Size(&image))/mega)
}
