package exec

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// GPU runs batches on a GPU that holds a copy of the tree, or of some of its
// levels, together with the CPU: a Plan says who takes which. If the GPU fails,
// for whatever reason, the CPU does its work, and everything from then on.
type GPU[C order.Code] struct {
	*CPU[C]
	attached[bucket]
	steps   layout.Stepped[C]
	image   layout.Image
	keep    Keep
	signs   int64 // bytes that they take on the GPU
	plan    atomic.Pointer[Plan]
	jobs    par.Pool[search[C]]
	watch   watch
	vectors vectors
	forget  runtime.Cleanup
}

// bucket is queries under way on a GPU.
type bucket struct {
	lo, hi int
	deep   int    // this many of them are one level further
	keysAt []byte // keys and values in the caller's memory, where the GPU
	valsAt []byte // reaches it
	params kernel.Params
	launch layout.Launch
	copy   layout.EntryCopy
}

// NewGPU copies levels of the tree of cpu to a GPU. The device is the
// schedule's from then on, also if there is an error: Close, or the failing
// NewGPU, closes it. The first plan leaves to the CPU only the levels that the
// GPU does not hold.
func NewGPU[C order.Code](cpu *CPU[C], dev device.Device, image layout.Image, keep Keep) (*GPU[C], error) {
	g := &GPU[C]{CPU: cpu, steps: cpu.schemes.steps, image: image, keep: keep, jobs: par.NewPool[search[C]]()}
	g.plan.Store(&Plan{Split: Split{Upper: keep.First, Lower: keep.Last}, Bucket: keep.bucket(&image), Overlap: flow.DoubleBuffered})
	g.attach(dev, flow.MaxSlots, image.Resident.Favor)
	if err := g.prepare(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	g.forget = runtime.AddCleanup(g, func(d device.Device) { d.Close() }, dev)
	return g, nil
}

// prepare takes the memory it needs, after a look whether there is room for it.
func (g *GPU[C]) prepare() error {
	if g.steps == nil {
		return errors.New("exec: a layout whose searches cannot be cut has no levels for a GPU")
	}
	if depth := g.steps.Depth(); depth != g.image.Depth() {
		return fmt.Errorf("exec: a layout of %d levels with an image of %d", depth, g.image.Depth())
	}
	free, err := g.dev.FreeBytes()
	if err != nil {
		return err
	}
	need := g.keep.Need(&g.image)
	if need > free {
		return fmt.Errorf("%w: needs %d bytes, %d are free", device.ErrOutOfMemory, need, free)
	}
	if g.set, err = kernel.Load(g.dev, g.image.Resident.Kernels()...); err != nil {
		return err
	}
	if g.Serial, err = g.dev.NewStream(); err != nil {
		return err
	}
	if err := g.upload(); err != nil {
		return err
	}
	return g.sign(free - need)
}

// upload copies the levels.
func (g *GPU[C]) upload() error {
	first := g.image.Level(g.keep.First)
	part := g.image.Memory[first:g.image.Level(g.keep.Last)]
	at, err := g.dev.Alloc(max(len(part), 4))
	if err != nil {
		return err
	}
	if err := g.image.Resident.Place(at - device.Ptr(first)); err != nil {
		return err
	}
	return g.copyIn(at, part)
}

// sign makes signs of a whole tree if the memory that is left has room for them.
func (g *GPU[C]) sign(left int64) error {
	r, ok := g.image.Resident.(layout.Signed)
	if !ok || !g.Whole() {
		return nil
	}
	size := r.SignBytes()
	if size == 0 || int64(size) > left {
		return nil
	}
	at, err := g.dev.Alloc(size)
	if err != nil {
		return err
	}
	used, err := r.Sign(g.set, g.Serial, at)
	switch {
	case err != nil:
		return err
	case !used:
		return g.dev.Free(at)
	}
	g.signs = int64(size)
	return nil
}

// Held returns the bytes of the tree, and of signs to its leaves, that lie on the GPU.
func (g *GPU[C]) Held() int64 { return g.keep.Size(&g.image) + g.signs }

// Keeps returns which levels the GPU holds.
func (g *GPU[C]) Keeps() Keep { return g.keep }

// Whole reports whether the GPU holds all of the tree.
func (g *GPU[C]) Whole() bool { return g.keep == Whole(&g.image) }

// Plan returns the plan that batches run by.
func (g *GPU[C]) Plan() Plan { return *g.plan.Load() }

// Use makes later batches run by a plan. It must lie within the levels that the GPU
// holds.
func (g *GPU[C]) Use(p Plan) error {
	if err := p.check(g.keep, g.steps.Depth()); err != nil {
		return err
	}
	g.plan.Store(&p)
	return nil
}

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (g *GPU[C]) Rank(keys order.Keys, ranks []int) {
	g.run(batch[C]{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of entries with a key up to keys[i].
func (g *GPU[C]) RankAfter(keys order.Keys, ranks []int) {
	g.run(batch[C]{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks keys up and hands the results to sink.
func (g *GPU[C]) FindEach(keys order.Keys, sink Sink) (hits int) {
	return g.run(batch[C]{ask: findEach, keys: keys, sink: sink})
}

// FindVals is FindEach for values in a column of the tree: a GPU that holds
// it sets them (raw is the memory of the results) and found, which may be nil,
// by itself; sink serves the CPU. A tree without values is searched by FindEach.
func (g *GPU[C]) FindVals(keys order.Keys, sink Sink, raw []byte, found []bool) (hits int) {
	if g.image.ValSize == 0 {
		return g.FindEach(keys, sink)
	}
	return g.run(batch[C]{ask: findEach, keys: keys, sink: sink, raw: raw, found: found})
}

// GetPairs looks keys up in a layout of pairs. found may be nil.
func (g *GPU[C]) GetPairs(keys order.Keys, vals []C, found []bool) (hits int) {
	return g.run(batch[C]{ask: getPairs, keys: keys, vals: vals, raw: arena.Bytes(vals), found: found})
}

// Close frees the schedule's memory on the device. Buckets under way are
// waited for; batches under way go on on the CPU.
func (g *GPU[C]) Close() error {
	return g.close(func() {
		g.forget.Stop()
		g.watch.close()
		g.vectors.close()
	})
}
