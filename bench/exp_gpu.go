package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/papers/kaczmarek"
	"github.com/pando-index/pando/papers/thesis"
)

// gpuWarmUp is how long a GPU is kept busy before it is timed: a GPU that was
// idle while answers were checked runs at a fraction of its clock.
const gpuWarmUp = 100 * time.Millisecond

// maxGPUQueries keeps query numbers within the kernels' 32 bits.
const maxGPUQueries = 1<<32 - 1

// gpuInfo describes what a GPU experiment ran on.
type gpuInfo struct {
	Name       string `json:"name"`
	Driver     string `json:"driver"`
	Capability int    `json:"compute_capability"` // 90 for 9.0
	Processors int    `json:"multiprocessors"`
	L2         int64  `json:"l2_bytes"`
	Memory     int64  `json:"memory_bytes"`
}

func infoOf(dev device.Device) *gpuInfo {
	info := dev.Info()
	return &gpuInfo{info.Name, info.Driver, info.Capability, info.Processors, info.L2Bytes, info.TotalBytes}
}

func (i *gpuInfo) String() string {
	return fmt.Sprintf("%s, %d multiprocessors, %s, compute capability %d.%d, driver %s",
		i.Name, i.Processors, gib(i.Memory), i.Capability/10, i.Capability%10, i.Driver)
}

// gpuRig is a device with everything needed to time work on it.
type gpuRig struct {
	s           *session
	dev         device.Device
	stream      device.Stream
	begin, end  device.Event
	kernels     *kernel.Set
	params      kernel.Params
	memory      []device.Ptr // allocated for the size being measured
	window      []byte       // page-locked, for results copied back
	took        time.Duration
	latches     *kernel.Set // the kernels of latched trees, if they were needed
	blinkParams thesis.Params
	pagesParams kaczmarek.Params
	favored     any // the tree whose upper levels are kept in the cache
}

// windowBytes bounds the bytes copied back at a time.
const windowBytes = 64 << 20

// withGPU calls body with the session's GPU, for an experiment that needs
// perQuery bytes of host memory per query. A machine without a GPU is a normal
// machine: it prints one line that says so, and nothing else.
func withGPU(s *session, perQuery int, body func(*gpuRig) error) (err error) {
	dev, err := s.openGPU()
	if errors.Is(err, device.ErrNoDriver) || errors.Is(err, device.ErrNoDevice) {
		s.skip("all of %s: it needs a GPU, and there is none to use here: %v", s.exp.name, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }() // and everything on it
	s.gpuInfo = infoOf(dev)
	g := &gpuRig{s: s, dev: dev}
	if err := errors.Join(s.queriesFit(perQuery), g.prepare()); err != nil {
		return err
	}
	return body(g)
}

// hasGPU reports whether there is a GPU, for an experiment that uses it through
// Pando's face alone; if not, it prints a line that says so.
func (s *session) hasGPU() (bool, error) {
	there := false
	err := withGPU(s, 0, func(*gpuRig) error {
		there = true
		return nil
	})
	return there, err
}

func (g *gpuRig) prepare() (err error) {
	if g.stream, err = g.dev.NewStream(); err != nil {
		return err
	}
	if g.begin, err = g.dev.NewEvent(); err != nil {
		return err
	}
	if g.end, err = g.dev.NewEvent(); err != nil {
		return err
	}
	if g.window, err = g.dev.HostAlloc(windowBytes); err != nil {
		return err
	}
	g.kernels, err = kernel.Load(g.dev, kernel.BlockedSource)
	return err
}

// latched returns the kernels of latched trees and of those of large pages, which
// are loaded once.
func (g *gpuRig) latched() (*kernel.Set, error) {
	var err error
	if g.latches == nil {
		g.latches, err = kernel.LoadOnly(g.dev, thesis.BlinkSource, kaczmarek.PagesSource)
	}
	return g.latches, err
}

// alloc allocates device memory that clear frees.
func (g *gpuRig) alloc(bytes int) (device.Ptr, error) {
	p, err := g.dev.Alloc(max(bytes, 4))
	if err == nil {
		g.memory = append(g.memory, p)
	}
	return p, err
}

// clear frees the memory of the size just measured. A size that the GPU has no
// room for is skipped, without an error.
func (g *gpuRig) clear(n int, err error) error {
	var frees []error
	for _, p := range g.memory {
		frees = append(frees, g.dev.Free(p))
	}
	g.memory, g.favored = nil, nil
	if errors.Is(err, device.ErrOutOfMemory) {
		g.s.skip("n %s: no room for it on the GPU: %v", sizeText(n), err)
		err = nil
	}
	return errors.Join(append(frees, err)...)
}

// time does the work until the GPU is warm, wipes its results, does it once
// more between two events, and records the time between them.
func (g *gpuRig) time(work, wipe func() error) error {
	for start := time.Now(); ; {
		if err := errors.Join(work(), g.stream.Synchronize()); err != nil {
			return err
		}
		if time.Since(start) >= g.s.warmUp {
			break
		}
	}
	if err := wipe(); err != nil {
		return err
	}
	return g.timeOnce(work)
}

// timeOnce does the work between two events and records the time between them.
func (g *gpuRig) timeOnce(work func() error) error {
	if err := errors.Join(g.stream.Record(g.begin), work(), g.stream.Record(g.end), g.stream.Synchronize()); err != nil {
		return err
	}
	ms, err := g.end.Since(g.begin)
	g.took = time.Duration(ms * float64(time.Millisecond))
	return err
}

func (g *gpuRig) clock() time.Duration { return g.took }

// subject returns work on the GPU as a subject of a contest.
func (g *gpuRig) subject(name string, bytes float64, work func(ops int) error, wipe, check func(ops int) error) *subject {
	return &subject{
		system: name, bytes: bytes, onGPU: true, clock: g.clock, check: check,
		do: func(ops int) error {
			return g.time(func() error { return work(ops) }, func() error { return wipe(ops) })
		},
	}
}

// put allocates device memory for a slice and copies it there.
func put[T any](g *gpuRig, s []T) (device.Ptr, error) {
	p, err := g.alloc(len(arena.Bytes(s)))
	if err != nil {
		return 0, err
	}
	return p, errors.Join(g.stream.CopyIn(p, arena.Bytes(s)), g.stream.Synchronize())
}

// putAll allocates device memory for n values and fills it, part by part, on all
// cores: no more of them are on the host than fit into the window.
func putAll[T word](g *gpuRig, n int, value func(i int) T) (device.Ptr, error) {
	var v T
	size := int(unsafe.Sizeof(v))
	at, err := g.alloc(n * size)
	if err != nil {
		return 0, err
	}
	window := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(g.window))), len(g.window)/size)
	for first := 0; first < n; first += len(window) {
		part := window[:min(len(window), n-first)]
		forPieces(len(part), func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				part[i] = value(first + i)
			}
		})
		if err := errors.Join(g.stream.CopyIn(at+device.Ptr(first*size), arena.Bytes(part)), g.stream.Synchronize()); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// readBack copies n values from device memory, part by part, and calls check
// for each part with the number of its first value.
func readBack[T word](g *gpuRig, from device.Ptr, n int, check func(first int, part []T) error) error {
	var v T
	size := int(unsafe.Sizeof(v))
	window := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(g.window))), len(g.window)/size)
	for first := 0; first < n; first += len(window) {
		part := window[:min(len(window), n-first)]
		err := errors.Join(g.stream.CopyOut(arena.Bytes(part), from+device.Ptr(first*size)), g.stream.Synchronize())
		if err == nil {
			err = check(first, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allCores returns the number of threads of the CPU's rows.
func allCores() int { return runtime.GOMAXPROCS(0) }

// drawPiece is the number of queries drawn from one stream of random numbers,
// so that the queries do not depend on the number of cores.
const drawPiece = 1 << 20

// forPieces calls part for each piece of n numbers, on all cores.
func forPieces(n int, part func(p, lo, hi int)) {
	pieces := (n + drawPiece - 1) / drawPiece
	spread(min(allCores(), pieces), pieces, func(first, end int) int {
		for p := first; p < end; p++ {
			part(p, p*drawPiece, min((p+1)*drawPiece, n))
		}
		return 0
	})
}

// drawPieces fills q on all cores; stream, below 2^20, distinguishes rounds.
func drawPieces[W word](seed, stream uint64, q []W, fill filler[W]) {
	forPieces(len(q), func(p, lo, hi int) {
		fill(newRand(seed, streamPieces+stream<<20+uint64(p)), q[lo:hi])
	})
}

// The extra columns of the GPU experiments.
const (
	colBestGiga = "best Gops/s"
	colGiga     = "Gops/s"
)

var gigaColumns = []extraColumn{{colBestGiga, number}, {colGiga, number}}

// setGigas fills those columns.
func (s *session) setGigas() {
	for _, r := range s.rows {
		if r.Best > 0 {
			r.set(colBestGiga, 1/r.Best)
			r.set(colGiga, 1/r.Median)
		}
	}
}

// queriesFit returns an error if the queries, at perQuery bytes each, do not
// fit into the machine's memory, or their numbers into the kernels' 32 bits.
func (s *session) queriesFit(perQuery int) error {
	need, free := int64(s.queries)*int64(perQuery), freeMemory()
	switch {
	case s.queries > maxGPUQueries:
		return fmt.Errorf("--queries %s: a GPU takes at most %d at a time", sizeText(s.queries), maxGPUQueries)
	case need > free:
		return fmt.Errorf("--queries %s: queries and answers need %s, %s of memory are free: use fewer",
			sizeText(s.queries), gib(need), gib(free))
	}
	return nil
}

// inWords returns memory as whole words of 32 bits.
func inWords(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
