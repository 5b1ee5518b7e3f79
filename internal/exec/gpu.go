package exec

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// Stepped is a layout whose searches can be cut at any level: the inner levels
// are 0 to Depth-1, level Depth is the leaves. Where a search begins below the
// root, the place it has come to is handed in where its result will be.
type Stepped[C order.Code] interface {
	Layout[C]
	Depth() int
	Descend(from, to int, keys []C, places []int)
	RankFrom(from int, keys []C, ranks []int)
	FindFrom(from int, keys []C, ranks []int)
	GetPairsFrom(from int, keys, vals []C, found []bool) (hits int)
}

// Image is a tree as it lies in memory, to be copied to a GPU byte for byte.
//
// Its levels are those of Tree and, the last, its leaves. Where there are Rows,
// the levels above the leaves are these, and Tree describes leaves alone. Where
// there are Pages, they are one more level, below the leaves of Tree.
type Image struct {
	Tree   *simd.Tree
	Memory []byte
	Vals   int // byte of Memory where a column of values starts; 0 for none
	Bytes  int // of a value in the tree; 0 for none
	Rows   []kernel.Row
	Pages  *Pages
}

// Pages is where the pages of a packed tree lie: see kernel.Packed.
type Pages struct {
	Table   int // byte of Memory where their table starts; Count entries
	Words   int // byte of Memory where the pages start; End words of 8 bytes
	Count   int
	End     int
	Entries int // in all pages
}

// pairs says whether values lie in the leaves.
func (im *Image) pairs() bool { return im.Bytes > 0 && im.Vals == 0 }

// depth is the number of levels above the last.
func (im *Image) depth() int {
	switch {
	case len(im.Rows) > 0:
		return len(im.Rows)
	case im.Pages != nil:
		return im.Tree.Levels + 1
	}
	return im.Tree.Levels
}

// level gives the byte where a level begins; behind the last, where all ends.
func (im *Image) level(l int) int {
	switch {
	case l > im.depth():
		return len(im.Memory)
	case l < len(im.Rows):
		return im.Rows[l].At * simd.LineBytes
	case len(im.Rows) > 0:
		return int(im.Tree.Leaves) * 8
	case l > im.Tree.Levels:
		return im.Pages.Table
	}
	return int(im.Tree.Place(l)) * 8
}

// Keep says which levels a GPU holds: those from First on, before Last. Level
// Depth is the entries: leaves, or pages, and their values.
type Keep struct{ First, Last int }

// Whole is all of a tree.
func (im *Image) Whole() Keep { return Keep{0, im.depth() + 1} }

// Inner is as many upper inner levels as a device with so much memory can
// hold, beside buckets.
func (im *Image) Inner(free int64) Keep {
	k := Keep{}
	for k.Last < im.depth() && im.Need(Keep{0, k.Last + 1}) <= free {
		k.Last++
	}
	return k
}

// Size is the memory that the levels take.
func (im *Image) Size(k Keep) int64 { return int64(im.level(k.Last) - im.level(k.First)) }

// Need is Size, and all the buckets that there may be.
func (im *Image) Need(k Keep) int64 { return im.Size(k) + maxSlots*slotBytes(im.bucketFor(k)) }

// GPU runs batches on a GPU that holds a copy of the tree, or of some of its
// levels, together with the CPU: a Plan says who takes which. What the GPU
// cannot do, for whatever reason, the CPU does; from then on the CPU does
// everything.
type GPU[K order.Key, C order.Code] struct {
	*CPU[K, C]
	steps  Stepped[C]
	image  Image
	keep   Keep
	dev    device.Device
	set    *kernel.Set
	tree   kernel.Tree // image.Tree on the device
	form   form
	plan   atomic.Pointer[Plan]
	slots  pool
	serial device.Stream // of the Pipelined way
	down   atomic.Pointer[error]
	once   sync.Once
	jobs   sync.Pool // *search[K, C]
	watch  watch
	forget runtime.Cleanup
}

// NewGPU copies levels of a tree to a GPU. The device is the schedule's from
// then on, also if there is an error: Close, or the failing NewGPU, closes it.
// The first plan leaves to the CPU only what the GPU does not hold.
func NewGPU[K order.Key, C order.Code](cpu *CPU[K, C], steps Stepped[C], dev device.Device, image Image, keep Keep) (*GPU[K, C], error) {
	g := &GPU[K, C]{CPU: cpu, steps: steps, dev: dev, image: image, keep: keep}
	g.plan.Store(&Plan{Split: Split{Upper: keep.First, Lower: keep.Last}, Bucket: image.bucketFor(keep), Way: Doubled})
	g.jobs.New = func() any {
		j := &search[K, C]{gpu: g}
		j.flow.of(&g.slots, g.serial, g.given, g.fail)
		return j
	}
	g.form = formOf(&g.image, 8*width[C]())
	g.slots.init(dev, g.form.favor)
	if err := g.prepare(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	g.forget = runtime.AddCleanup(g, func(d device.Device) { d.Close() }, dev)
	return g, nil
}

// prepare takes what is needed, after a look whether there is room for it.
func (g *GPU[K, C]) prepare() error {
	if depth := g.steps.Depth(); depth != g.image.depth() {
		return fmt.Errorf("exec: a layout of %d levels with an image of %d", depth, g.image.depth())
	}
	free, err := g.dev.FreeBytes()
	if err != nil {
		return err
	}
	if need := g.image.Need(g.keep); need > free {
		return fmt.Errorf("%w: needs %d bytes, %d are free", device.ErrOutOfMemory, need, free)
	}
	if g.set, err = kernel.Load(g.dev, g.form.sources()...); err != nil {
		return err
	}
	if g.serial, err = g.dev.NewStream(); err != nil {
		return err
	}
	return g.upload()
}

// upload copies the levels, page-locked for the time of the copy if the system
// allows it.
func (g *GPU[K, C]) upload() error {
	first, part := g.image.level(g.keep.First), g.image.Memory
	part = part[first:g.image.level(g.keep.Last)]
	at, err := g.dev.Alloc(max(len(part), 4))
	if err != nil {
		return err
	}
	base, vals := at-device.Ptr(first), device.Ptr(0) // where the whole tree would begin
	if g.image.Vals > 0 {
		vals = base + device.Ptr(g.image.Vals)
	}
	if g.tree, err = kernel.NewTree(g.image.Tree, base, vals); err != nil {
		return err
	}
	if err := g.form.place(&g.tree, base); err != nil || len(part) == 0 {
		return err
	}
	registered := g.dev.Register(part) == nil
	err = g.serial.CopyIn(at, part)
	if err == nil {
		err = g.serial.Synchronize()
	}
	if registered {
		err = errors.Join(err, g.dev.Unregister(part))
	}
	return err
}

// Keeps says which levels the GPU holds.
func (g *GPU[K, C]) Keeps() Keep { return g.keep }

// Whole says whether the GPU holds all of the tree.
func (g *GPU[K, C]) Whole() bool { return g.keep == g.image.Whole() }

// Throttle makes kernels run in so many blocks at most, 0 for no limit: to see
// what a smaller GPU would do.
func (g *GPU[K, C]) Throttle(blocks int) { g.set.MaxBlocks = blocks }

// Plan gives the plan that batches run by.
func (g *GPU[K, C]) Plan() Plan { return *g.plan.Load() }

// Use makes later batches run by a plan. It must lie within what the GPU holds.
func (g *GPU[K, C]) Use(p Plan) error {
	if err := p.check(g.keep, g.steps.Depth()); err != nil {
		return err
	}
	g.plan.Store(&p)
	return nil
}

// Rank sets ranks[i] to the number of entries with a key below keys[i].
func (g *GPU[K, C]) Rank(keys []K, ranks []int) {
	g.run(batch[K, C]{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of entries with a key up to keys[i].
func (g *GPU[K, C]) RankAfter(keys []K, ranks []int) {
	g.run(batch[K, C]{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks keys up and hands the places found to sink.
func (g *GPU[K, C]) FindEach(keys []K, sink Sink) (hits int) {
	return g.run(batch[K, C]{ask: findEach, keys: keys, sink: sink})
}

// FindVals is FindEach for values in a column of the tree: a GPU that holds
// it sets them (raw is the memory of the results) and found, which may be nil,
// by itself; sink serves the CPU. A tree without values is searched by FindEach.
func (g *GPU[K, C]) FindVals(keys []K, sink Sink, raw []byte, found []bool) (hits int) {
	if g.image.Bytes == 0 {
		return g.FindEach(keys, sink)
	}
	return g.run(batch[K, C]{ask: findEach, keys: keys, sink: sink, raw: raw, found: found})
}

// GetPairs looks keys up in a layout of pairs. found may be nil.
func (g *GPU[K, C]) GetPairs(keys []K, vals []C, found []bool) (hits int) {
	return g.run(batch[K, C]{ask: getPairs, keys: keys, vals: vals, raw: arena.Bytes(vals), found: found})
}

// Down gives the reason why the GPU is no longer used, or nil.
func (g *GPU[K, C]) Down() error {
	if e := g.down.Load(); e != nil {
		return *e
	}
	return nil
}

// fail gives the GPU up, and says so the first time.
func (g *GPU[K, C]) fail(err error) {
	if g.down.CompareAndSwap(nil, &err) {
		slog.Warn("pando: the GPU failed, the CPU answers from now on", "device", g.dev.Info().Name, "error", err)
	}
}

// Close frees what the schedule holds on the device. Buckets on their way are
// waited for; batches under way go on on the CPU.
func (g *GPU[K, C]) Close() error {
	var err error
	g.once.Do(func() {
		g.forget.Stop()
		g.watch.close()
		g.slots.close()
		err = g.dev.Close()
	})
	return err
}
