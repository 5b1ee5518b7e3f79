package index

import (
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// texts is the engine for string keys: a tree of them, with the values
// elsewhere.
type texts struct {
	tree  layout.StringTree
	n     int
	cpu   *exec.Strings
	gpu   gpuStrings // nil where there is none
	least int        // batches from this size on go to the GPU
	asked DeviceKind // the kind of device that was asked for

	copier layout.StringCopier // nil where strings need not be copied
}

// newTexts makes the engine over a tree.
func newTexts(tree layout.StringTree, cfg Config) *texts {
	e := &texts{tree: tree, n: tree.Len(), cpu: exec.NewStrings(tree, par.Workers(cfg.Workers))}
	e.copier, _ = tree.(layout.StringCopier)
	return e
}

func (e *texts) Body() layout.Body { return e.tree }

func (e *texts) Seek(key order.Probe) (rank int, equal bool) { return e.tree.Seek(key.Text) }

func (e *texts) After(key order.Probe) int { return e.tree.After(key.Text) }

func (e *texts) EndNear(rank int, key order.Probe) int {
	if e.copier != nil {
		return e.copier.EndNear(rank, key.Text)
	}
	return e.tree.After(key.Text)
}

func (e *texts) Key(i int) order.Probe { return order.Probe{Text: e.tree.Key(i)} }

func (e *texts) CopyKeys(lo int, keys order.Keys) {
	dst := keys.Strings()
	if e.copier != nil {
		e.copier.CopyKeys(dst, lo)
		return
	}
	for i := range dst {
		dst[i] = e.tree.Key(lo + i)
	}
}

// copyKeyRuns prefetches nothing: a search has touched most of the memory.
func (e *texts) copyKeyRuns(first, offsets []int, from, to int, keys order.Keys) {
	for i := from; i < to; i++ {
		if lo, hi := offsets[i], offsets[i+1]; lo < hi {
			e.CopyKeys(first[i], keys.Slice(lo, hi))
		}
	}
}

// Prefix returns the entries [lo, hi) whose key begins with p.
func (e *texts) Prefix(p string) (lo, hi int) {
	lo, _ = e.tree.Seek(p)
	hi = e.n
	if next, ok := order.AfterPrefix(p); ok {
		hi, _ = e.tree.Seek(next)
	}
	return lo, max(lo, hi) // a damaged file may be in no order
}

func (e *texts) AppendKey(dst []byte, i int) []byte {
	if e.copier != nil {
		return e.copier.AppendKey(dst, i)
	}
	return append(dst, e.tree.Key(i)...)
}

// stringSchedule is a way to run batches.
type stringSchedule interface {
	Rank(keys exec.StringBatch, ranks []int)
	RankAfter(keys exec.StringBatch, ranks []int)
	FindEach(keys exec.StringBatch, sink exec.Sink) (hits int)
}

// gpuStrings is an exec.StringsGPU. It is an interface so that a program without a
// driver does not link it.
type gpuStrings interface {
	stringSchedule
	Crossover(sample []string) (least int)
	Held() (bytes int64, strings bool)
	Down() error
	Close() error
}

// on returns the schedule for a batch of n keys.
func (e *texts) on(n int) stringSchedule {
	if e.gpu != nil && n >= e.least {
		return e.gpu
	}
	return e.cpu
}

func (e *texts) Rank(keys order.Keys, ranks []int) {
	e.on(keys.Len()).Rank(exec.StringBatch{Keys: keys.Strings()}, ranks)
}

func (e *texts) RankAfter(keys order.Keys, ranks []int) {
	e.on(keys.Len()).RankAfter(exec.StringBatch{Keys: keys.Strings()}, ranks)
}

func (e *texts) FindEach(keys order.Keys, sink exec.Sink) (hits int) {
	return e.findEach(exec.StringBatch{Keys: keys.Strings()}, sink)
}

func (e *texts) findEach(keys exec.StringBatch, sink exec.Sink) (hits int) {
	return e.on(keys.Len()).FindEach(keys, sink)
}

// Attach puts a copy of the tree on a GPU if that is asked for, or if it is
// left open and pays: without the strings themselves where a hybrid is asked
// for. It returns where batches run, and why.
func (e *texts) Attach(c Config) (Device, string, error) {
	asked := c.Device
	_, can := e.tree.(layout.StringsOnDevice)
	switch {
	case asked.Kind == CPU:
		return asked, ReasonAsked, nil
	case !can:
		return OnCPU, "strings that are not compressed are searched on the CPU", nil
	case asked.Kind == Auto && e.n < AutoEntries:
		return OnCPU, ReasonSmall, nil
	}
	return attachEngine(e, c)
}

// toGPU is Attach where a driver is linked.
func (e *texts) toGPU(c Config) (Device, string, error) {
	asked := c.Device
	dev, free, err := OpenWithin(asked.Ordinal, c.Room)
	if err != nil {
		return WithoutGPU(asked, err)
	}
	gpu, err := exec.NewStringsGPU(e.cpu, dev, free, asked.Kind == Hybrid)
	if err != nil {
		return WithoutGPU(asked, err)
	}
	e.gpu = gpu
	return e.settle(asked)
}

// settle measures from which batch size on the GPU pays: always where the work
// is shared, and where Auto has to choose. An index that has its strings on the
// host is a hybrid, asked for or not.
func (e *texts) settle(asked Device) (Device, string, error) {
	_, whole := e.gpu.Held()
	if PreferCPU && (asked.Kind != GPU || !whole) {
		if e.least = e.gpu.Crossover(e.sample()); e.least == 0 {
			gpu, why := e.gpu, ReasonMeasured
			if down := gpu.Down(); down != nil {
				why = "GPU failed: " + down.Error()
			}
			e.gpu = nil
			return LeaveOut(gpu, why)
		}
	}
	e.asked = asked.Kind
	if whole {
		return Device{GPU, asked.Ordinal}, "", nil // report says how
	}
	return Device{Hybrid, asked.Ordinal}, "", nil
}

// sample returns strings of the index at random.
func (e *texts) sample() []string {
	ranks := Spread(min(SampleKeys, 4*e.n), e.n)
	sample := make([]string, len(ranks))
	for i, r := range ranks {
		sample[i] = e.tree.Key(r)
	}
	return sample
}

// Report adds to Stats the figures that change while an index is in use.
func (e *texts) Report(s *Stats) {
	if e.gpu == nil {
		return
	}
	if err := e.gpu.Down(); err != nil {
		s.Device, s.Reason, s.DeviceBytes = OnCPU, "GPU failed: "+err.Error(), 0
		return
	}
	held, whole := e.gpu.Held()
	s.DeviceBytes = held
	if s.Reason != "" {
		return
	}
	switch s.Reason = "the GPU searches by partial keys, the CPU compares the strings"; {
	case whole:
		s.Reason = "partial keys and strings are in the GPU's memory"
	case e.asked != Hybrid:
		s.Reason += ", for which the GPU has no room"
	}
	s.Reason += fromSize(e.least)
}

// Release gives memory off the heap, or a file, back; Go memory is gone when
// nothing points to it.
func (e *texts) Release() (err error) {
	if e.gpu != nil {
		err = e.gpu.Close()
	}
	e.tree.Release()
	return err
}

// offsetCheck looks for an offset that cannot be, piece by piece.
type offsetCheck struct {
	offsets []int32
	size    int
	worst   atomic.Int64 // the first, counted from 1; 0 for none
}

var offsetChecks = sync.Pool{New: func() any { return new(offsetCheck) }}

// BadOffset returns the first offset that is below the one before it, below 0
// or above size, or -1 if there is none, on at most workers goroutines.
func BadOffset(size int, offsets []int32, workers int) int {
	c := offsetChecks.Get().(*offsetCheck)
	c.offsets, c.size = offsets, size
	c.worst.Store(0)
	par.Run(workers, (len(offsets)+offsetPiece-1)/offsetPiece, c)
	c.offsets = nil // not ours to keep
	worst := int(c.worst.Load()) - 1
	offsetChecks.Put(c)
	return worst
}

// offsetPiece is the number of offsets that a worker looks at: some 30 µs.
const offsetPiece = 64 << 10

// Do looks at a piece.
func (c *offsetCheck) Do(piece int) {
	lo, before := piece*offsetPiece, int32(0)
	if lo > 0 {
		before = c.offsets[lo-1]
	}
	for i, o := range c.offsets[lo:min(lo+offsetPiece, len(c.offsets))] {
		if o < before || int(o) > c.size {
			c.found(int64(lo + i + 1))
			return
		}
		before = o
	}
}

// found notes an offset, unless one before it is noted.
func (c *offsetCheck) found(at int64) {
	for now := c.worst.Load(); now == 0 || at < now; now = c.worst.Load() {
		if c.worst.CompareAndSwap(now, at) {
			return
		}
	}
}
