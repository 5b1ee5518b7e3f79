package index

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

// onGPU is the GPU's part of an engine for numbers.
type onGPU[C order.Code] struct {
	gpu      gpuSchedule[C] // nil where there is none
	least    int            // batches from this size on go to the GPU
	onDevice int64          // bytes that the GPU holds
	copies   bool           // the GPU copies runs of entries
}

// gpuSchedule is an exec.GPU. It is an interface so that a program without a driver
// does not link it.
type gpuSchedule[C order.Code] interface {
	schedule[C]
	FindVals(keys order.Keys, sink exec.Sink, raw []byte, found []bool) (hits int)
	CopiesEntries() bool
	Entries(first, offsets []int, keys order.Keys, vals []byte, part func(lo, hi int))
	Summarize(t vector.Type, ranges []vector.Range, out []vector.Summary) bool
	Histogram(t vector.Type, r vector.Range, bounds []uint64, counts []int) bool
	Balance(sample order.Keys) (exec.Plan, error)
	Crossover(sample order.Keys) (least int)
	Keeps() exec.Keep
	Whole() bool
	Plan() exec.Plan
	Down() error
	Close() error
}

// takes reports whether a batch of n keys goes to the GPU.
func (g *onGPU[C]) takes(n int) bool { return g.gpu != nil && n >= g.least }

// Attach puts a copy of the index, or of its upper levels, on a GPU if that is
// asked for, or if it is left open and pays. It returns where batches run, and
// why.
func (e *numbers[C]) Attach(c Config) (Device, string, error) {
	return e.attachAs(e, c)
}

// Attach does the same for an index whose values are in the tree: the GPU may
// copy them, too.
func (e *withValues[C]) Attach(c Config) (Device, string, error) {
	return e.attachAs(e, c)
}

func (e *numbers[C]) attachAs(self Engine, c Config) (Device, string, error) {
	asked := c.Device
	switch {
	case asked.Kind == CPU:
		return asked, ReasonAsked, nil
	case asked.Kind == Auto && e.n < AutoEntries:
		return OnCPU, ReasonSmall, nil
	}
	if !onDevice(e.tree) {
		return OnCPU, "this layout is searched on the CPU", nil
	}
	return attachEngine(self, c)
}

// numbersToGPU is Attach where a driver is linked.
func numbersToGPU[C order.Code](e *numbers[C], c Config, copiesFaster func() bool) (Device, string, error) {
	asked := c.Device
	if err := copyTo(e, asked, e.tree.(layout.OnDevice).Image(), c.Room); err != nil {
		return WithoutGPU(asked, err)
	}
	e.copies = copiesFaster != nil && e.gpu.CopiesEntries() && (!PreferCPU || copiesFaster())
	return e.settle(asked)
}

// copyTo opens a GPU and copies the tree there: all of it if it fits, unless a
// hybrid is asked for; else as many upper levels as fit.
func copyTo[C order.Code](e *numbers[C], asked Device, image layout.Image, room int64) error {
	dev, free, err := OpenWithin(asked.Ordinal, room)
	if err != nil {
		return err
	}
	whole := exec.Whole(&image)
	keep := whole
	if asked.Kind == Hybrid || keep.Need(&image) > free {
		keep = exec.Inner(&image, free)
	}
	if keep.Need(&image) > free || keep.Last == 0 && image.Depth() > 0 {
		err := fmt.Errorf("%w: needs %d bytes, %d are free for it", device.ErrOutOfMemory, whole.Need(&image), free)
		return errors.Join(err, dev.Close())
	}
	gpu, err := exec.NewGPU(e.cpu, dev, image, keep)
	if err != nil {
		return err
	}
	e.gpu, e.onDevice = gpu, gpu.Held()
	return nil
}

// settle measures how CPU and GPU work best together, and from which batch
// size on: always where the work is shared, and where Auto has to choose.
func (e *numbers[C]) settle(asked Device) (Device, string, error) {
	if asked.Kind == GPU && e.gpu.Whole() {
		return asked, ReasonAsked, nil
	}
	sample := e.sample()
	if _, err := e.gpu.Balance(sample); err != nil {
		return e.leaveOut("GPU failed: " + err.Error())
	}
	if PreferCPU {
		if e.least = e.gpu.Crossover(sample); e.least == 0 {
			return e.leaveOut(ReasonMeasured)
		}
	}
	if e.gpu.Whole() {
		return Device{GPU, asked.Ordinal}, "", nil // report says why
	}
	return Device{Hybrid, asked.Ordinal}, "", nil
}

// leaveOut gives the GPU back.
func (e *numbers[C]) leaveOut(why string) (Device, string, error) {
	gpu := e.gpu
	e.onGPU = onGPU[C]{}
	return LeaveOut(gpu, why)
}

// sample returns keys of the index at random.
func (e *numbers[C]) sample() order.Keys {
	if e.n == 0 {
		return order.MakeKeys(e.key, 0)
	}
	ranks := Spread(min(SampleKeys, 4*e.n), e.n)
	codes := make([]C, len(ranks))
	for i, r := range ranks {
		codes[i] = e.tree.Key(r)
	}
	keys := order.MakeKeys(e.key, len(codes))
	order.SetKeys(keys, codes)
	return keys
}

// copiesFaster compares how long GPU and CPU take to copy runs of entries. The
// GPU must be faster by a quarter: its way has one copy more, through memory
// that a sample finds in the cache.
func (e *withValues[C]) copiesFaster() bool {
	const runs, entries = 4 << 10, 64
	if e.n < entries {
		return false
	}
	first, offsets := make([]int, runs), make([]int, runs+1)
	for i := range first {
		first[i], offsets[i+1] = i*7919%(e.n-entries+1), (i+1)*entries
	}
	keys, vals := order.MakeKeys(e.key, runs*entries), make([]byte, runs*entries*e.valSize)
	part := func(lo, hi int) { e.copyPart(first, offsets, lo, hi, keys, vals) }
	there := exec.BestOf(func() { e.gpu.Entries(first, offsets, keys, vals, part) })
	here := exec.BestOf(func() {
		e.copyRuns(first, offsets, keys, vals)
	})
	return there*5/4 < here
}

// CopyRuns copies entries on a GPU that holds them, or on the CPU.
func (e *withValues[C]) CopyRuns(first, offsets []int, keys order.Keys, column Column) {
	n, vals := keys.Len(), e.bytes(column)
	if !e.copies || !e.takes(n) || n == 0 {
		e.copyRuns(first, offsets, keys, vals)
		return
	}
	e.gpu.Entries(first, offsets, keys, vals, func(lo, hi int) { e.copyPart(first, offsets, lo, hi, keys, vals) })
}

// copyPart copies entries [from, to) of a result of runs.
func (e *withValues[C]) copyPart(first, offsets []int, from, to int, keys order.Keys, vals []byte) {
	copyPart(first, offsets, from, to, func(entry, from, to int) {
		e.CopyKeys(entry, keys.Slice(from, to))
		e.CopyVals(vals[from*e.valSize:to*e.valSize], entry)
	})
}

// LeastSummed is the number of values from which on a GPU sums them up: fewer are
// in the CPU's caches, or read by its cores before a kernel has been started and
// waited for.
const LeastSummed = 256 << 10

// summarize sums up ranges of values on a GPU that holds them, and reports
// whether it has.
func (e *withValues[C]) summarize(t vector.Type, ranges []vector.Range, out []vector.Summary) bool {
	if e.gpu == nil {
		return false
	}
	n := 0
	for _, r := range ranges {
		n += r.N
	}
	return (!PreferCPU || n >= LeastSummed) && e.gpu.Summarize(t, ranges, out)
}

// histogram counts values on a GPU that holds them, and reports whether it has.
func (e *withValues[C]) histogram(t vector.Type, r vector.Range, bounds []uint64, counts []int) bool {
	return e.gpu != nil && (!PreferCPU || r.N >= LeastSummed) && e.gpu.Histogram(t, r, bounds, counts)
}

// Report adds to Stats the figures that change while an index is in use.
func (e *numbers[C]) Report(s *Stats) {
	if e.gpu == nil {
		return
	}
	s.DeviceBytes = e.onDevice
	if err := e.gpu.Down(); err != nil {
		s.Device, s.Reason, s.DeviceBytes = OnCPU, "GPU failed: "+err.Error(), 0
		return
	}
	if s.Reason == "" {
		s.Reason = e.explain()
	}
}

// explain says in words how a batch runs.
func (e *numbers[C]) explain() string {
	keep, plan := e.gpu.Keeps(), e.gpu.Plan()
	where, inner := "the whole index fits into the GPU's memory", 0
	if !e.gpu.Whole() {
		inner = e.tree.(layout.Stepped[C]).Depth()
		where = fmt.Sprintf("the GPU holds %d of %d inner levels", keep.Last, inner)
	}
	who := "it answers"
	shared := !e.gpu.Whole()
	switch {
	case shared && plan.Upper == 0 && plan.Share == 0:
		who = "it takes those, the CPU the rest"
	case shared:
		who = fmt.Sprintf("the CPU takes the first %.1f of them and what is below the last", float64(plan.Upper)+plan.Share)
	case plan.Upper > 0 || plan.Share > 0:
		who = fmt.Sprintf("the CPU takes the first %.1f levels, the GPU the rest", float64(plan.Upper)+plan.Share)
	}
	return where + "; " + who + fromSize(e.least)
}

// fromSize says from which batch size on a GPU is used.
func fromSize(least int) string {
	if least == 0 {
		return ""
	}
	return fmt.Sprintf("; measured: faster than the CPU alone for batches of %d keys and more", least)
}

func (e *numbers[C]) Release() error {
	var err error
	if e.gpu != nil {
		err = e.gpu.Close()
	}
	e.tree.Release()
	return err
}
