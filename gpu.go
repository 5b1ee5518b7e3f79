package pando

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
)

// openGPU opens a GPU; tests put the interpreter in its place.
var openGPU = cuda.Open

// preferCPU says whether batches that the CPU answers faster are its own.
// Tests put false here: the interpreter is never faster.
var preferCPU = true

// autoEntries is the size from which on Auto looks for a GPU: below, an index
// is in the CPU's caches, and opening a GPU takes longer than building it.
const autoEntries = 1 << 20

// sampleKeys is the number of keys with which CPU and GPU are compared. Tests
// put less here: the interpreter takes its time.
var sampleKeys uint64 = 512 << 10

// attach puts a copy of the index, or of its upper levels, on a GPU if that is
// asked for, or if it is left open and pays. It gives where batches run, and
// why.
func (e *fixed[K, C, V]) attach(c config) (Device, string, error) {
	asked := c.device
	switch {
	case asked.kind == cpu:
		return CPU, "asked for", nil
	case asked.kind == auto && e.n < autoEntries:
		return CPU, "small enough for the CPU's caches", nil
	}
	if err := e.copyTo(asked, c.room); err != nil {
		return withoutGPU(asked, err)
	}
	return e.settle(asked)
}

// withoutGPU says where batches run if an index could not be copied to a GPU:
// on the CPU, unless the GPU asked for does not exist.
func withoutGPU(asked Device, err error) (Device, string, error) {
	switch {
	case errors.Is(err, device.ErrNoDevice) && asked.kind != auto:
		return asked, "", fmt.Errorf("%w: On(%v): %w; `pando devices` lists what there is", ErrNoDevice, asked, err)
	case errors.Is(err, device.ErrNoDriver):
		return CPU, "no GPU driver on this machine", nil
	}
	slog.Warn("pando: the index is not on the GPU, the CPU answers", "error", err)
	return CPU, "GPU not used: " + err.Error(), nil
}

// copyTo opens a GPU and copies the tree there: all of it if it fits, unless a
// hybrid is asked for; else as many upper levels as fit.
func (e *fixed[K, C, V]) copyTo(asked Device, room int64) error {
	dev, err := openGPU(asked.ordinal)
	if err != nil {
		return err
	}
	image := e.image()
	free, err := dev.FreeBytes()
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	if room > 0 {
		free = min(free, room)
	}
	keep := image.Whole()
	if asked.kind == hybrid || image.Need(keep) > free {
		keep = image.Inner(free)
	}
	if image.Need(keep) > free || keep.Last == 0 && e.tree.Depth() > 0 {
		err := fmt.Errorf("%w: needs %d bytes, %d are free for it", device.ErrOutOfMemory, image.Need(image.Whole()), free)
		return errors.Join(err, dev.Close())
	}
	e.gpu, err = exec.NewGPU(e.cpu, e.tree, dev, image, keep)
	if err == nil {
		e.onDevice = image.Size(keep)
	}
	return err
}

// image gives the tree as it is copied to a GPU.
func (e *fixed[K, C, V]) image() exec.Image {
	image := exec.Image{Bytes: inlineSize[V]()}
	switch t := e.tree.(type) {
	case *implicit.Tree[C]:
		image.Tree = &t.Tree
		image.Memory, image.Vals = t.Memory()
	case *blocked.Tree[C]:
		image.Tree = t.Leaves()
		image.Memory, image.Vals = t.Memory()
		for _, row := range t.Rows() {
			image.Rows = append(image.Rows, kernel.Row(row))
		}
	case *blocked.Packed[C]:
		p := t.Places()
		image.Tree = &t.Top().Tree
		image.Memory, image.Vals = t.Memory()
		image.Pages = &exec.Pages{Table: p.Table, Words: p.Words, Count: p.Last + 1, End: p.End, Entries: p.Len}
	}
	return image
}

// settle measures how CPU and GPU work best together, and from which batch
// size on: always where the work is shared, and where Auto has to choose.
func (e *fixed[K, C, V]) settle(asked Device) (Device, string, error) {
	e.copies = e.gpu.Whole() && inlineSize[V]() > 0 && e.kind != Compressed && (!preferCPU || e.copiesFaster())
	if asked.kind == gpu && e.gpu.Whole() {
		return asked, "asked for", nil
	}
	sample := e.sample()
	if _, err := e.gpu.Balance(sample); err != nil {
		return e.leaveOut("GPU failed: " + err.Error())
	}
	if preferCPU {
		if e.least = e.gpu.Crossover(sample); e.least == 0 {
			return e.leaveOut("measured: the CPU alone is faster for batches of any size")
		}
	}
	if e.gpu.Whole() {
		return GPU(asked.ordinal), "", nil // Report says why
	}
	return Hybrid(asked.ordinal), "", nil
}

// leaveOut gives the GPU back: batches run on the CPU, and why. A GPU that
// cannot even be given back is no reason to have no index.
func (e *fixed[K, C, V]) leaveOut(why string) (Device, string, error) {
	if err := e.gpu.Close(); err != nil {
		slog.Warn("pando: the GPU could not be given back", "error", err)
	}
	e.gpu, e.onDevice = nil, 0
	return CPU, why, nil
}

// copiesFaster compares how long GPU and CPU take to copy runs of entries. The
// GPU must be faster by a quarter: its way has one copy more, through memory
// that a sample finds in the cache.
func (e *fixed[K, C, V]) copiesFaster() bool {
	const runs, entries = 4 << 10, 64
	n := e.n
	if n < entries {
		return false
	}
	first, offsets := make([]int, runs), make([]int, runs+1)
	for i := range first {
		first[i], offsets[i+1] = i*7919%(n-entries+1), (i+1)*entries
	}
	r := &Ranges[K, V]{Keys: make([]K, runs*entries), Vals: make([]V, runs*entries), Offsets: offsets}
	ix := &index[K, V]{engine: e, stats: Stats{Workers: e.cpu.Workers()}}
	onCPU := func(lo, hi int) { r.fillPart(ix, first, lo, hi) }
	there := exec.BestOf(func() { e.gpu.Entries(first, offsets, r.Keys, arena.Bytes(r.Vals), onCPU) })
	here := exec.BestOf(func() { r.fill(ix, first) })
	return there*5/4 < here
}

// sample gives keys of the index at random.
func (e *fixed[K, C, V]) sample() []K {
	if e.n == 0 {
		return nil
	}
	sample := make([]K, min(sampleKeys, 4*uint64(e.n)))
	x := uint64(1)
	for i := range sample {
		x = x*6364136223846793005 + 1442695040888963407
		sample[i] = e.Key(int(x >> 16 % uint64(e.n)))
	}
	return sample
}

// onGPU says whether a batch of n keys goes to the GPU.
func (e *fixed[K, C, V]) onGPU(n int) bool { return e.gpu != nil && n >= e.least }

// Report adds to Stats what changes while an index is in use.
func (e *fixed[K, C, V]) Report(s *Stats) {
	if e.gpu == nil {
		return
	}
	s.DeviceBytes = e.onDevice
	if err := e.gpu.Down(); err != nil {
		s.Device, s.Reason, s.DeviceBytes = CPU, "GPU failed: "+err.Error(), 0
		return
	}
	if s.Reason == "" {
		s.Reason = e.explain()
	}
}

// explain says in words how a batch runs.
func (e *fixed[K, C, V]) explain() string {
	keep, plan, depth := e.gpu.Keeps(), e.gpu.Plan(), e.tree.Depth()
	where := "the whole index fits into the GPU's memory"
	if !e.gpu.Whole() {
		where = fmt.Sprintf("the GPU holds %d of %d inner levels", keep.Last, depth)
	}
	who := "it answers"
	switch {
	case plan.Lower <= depth && plan.Upper == 0 && plan.Share == 0:
		who = "it takes those, the CPU the rest"
	case plan.Lower <= depth:
		who = fmt.Sprintf("the CPU takes the first %.1f of them and what is below the last", float64(plan.Upper)+plan.Share)
	case plan.Upper > 0 || plan.Share > 0:
		who = fmt.Sprintf("the CPU takes the first %.1f levels, the GPU the rest", float64(plan.Upper)+plan.Share)
	}
	why := fmt.Sprintf("%s; %s", where, who)
	if e.least > 0 {
		why += fmt.Sprintf("; measured: faster than the CPU alone for batches of %d keys and more", e.least)
	}
	return why
}

// CopyRuns copies entries on a GPU that holds them.
func (e *fixed[K, C, V]) CopyRuns(first, offsets []int, keys []K, vals []V, onCPU func(lo, hi int)) bool {
	if !e.copies || !e.onGPU(len(keys)) || len(keys) == 0 {
		return false
	}
	e.gpu.Entries(first, offsets, keys, arena.Bytes(vals), onCPU)
	return true
}
