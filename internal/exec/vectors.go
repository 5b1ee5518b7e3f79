package exec

import (
	"sync"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/vector"
)

// vectors is how a GPU works on values: one call at a time, since each takes all
// of its memory's speed.
type vectors struct {
	sync.Mutex
	on     vector.OnDevice
	params kernel.Params
	closed bool
}

// Summarize sums up ranges of values that the GPU holds, and reports whether it
// could.
func (g *GPU[C]) Summarize(t vector.Type, ranges []vector.Range, out []vector.Summary) bool {
	return g.withValues(t, func(on *vector.OnDevice, launch vector.Launch) error { return on.Sum(t, ranges, launch, out) })
}

// Histogram counts values between bounds, and reports whether the GPU could.
func (g *GPU[C]) Histogram(t vector.Type, r vector.Range, bounds []uint64, counts []int) bool {
	if len(bounds) > kernel.MaxBounds {
		return false
	}
	return g.withValues(t, func(on *vector.OnDevice, launch vector.Launch) error {
		return on.Histogram(t, r, bounds, launch, counts)
	})
}

// withValues calls work if the GPU holds all values, and reports whether that
// went well.
func (g *GPU[C]) withValues(t vector.Type, work func(on *vector.OnDevice, launch vector.Launch) error) bool {
	tree, can := g.image.Resident.(layout.Vectored)
	if !can || !g.Whole() || t.Size != g.image.ValSize {
		return false
	}
	v := &g.vectors
	v.Lock()
	defer v.Unlock()
	if v.closed || g.given() {
		return false
	}
	err := v.open(g.dev.NewStream)
	if err == nil {
		v.on.Device = g.dev
		err = work(&v.on, func(set *kernel.Set, job *kernel.Vectors) error {
			return tree.Vectors(&layout.VectorLaunch{Vectors: job, Set: set, Stream: v.on.Stream, Params: &v.params})
		})
	}
	if err != nil {
		g.fail(err)
	}
	return err == nil
}

// open makes a stream of its own, the first time.
func (v *vectors) open(newStream func() (device.Stream, error)) (err error) {
	if v.on.Stream == nil {
		v.on.Sums, v.on.Histograms = kernel.FrozenVectors, kernel.FrozenHistograms
		v.on.Stream, err = newStream()
	}
	return err
}

// close waits for operations under way; none begins later.
func (v *vectors) close() {
	v.Lock()
	v.closed = true
	v.Unlock()
}
