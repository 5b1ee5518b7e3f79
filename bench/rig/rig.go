// Package rig is the door to a GPU: the device of a session, with memory,
// streams, kernels and a clock, trees copied to it, and its limits.
// Experiments name a device's types as they are named here, so that a change
// of the library's device is followed in this package alone.
package rig

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/papers/kaczmarek"
	"github.com/pando-index/pando/papers/thesis"
)

// MaxGPUQueries keeps query numbers within the kernels' 32 bits.
const MaxGPUQueries = 1<<32 - 1

func infoOf(dev Device) *contest.GPUInfo {
	info := dev.Info()
	return &contest.GPUInfo{Name: info.Name, Driver: info.Driver, Capability: info.Capability, Processors: info.Processors, L2: info.L2Bytes, Memory: info.TotalBytes}
}

// Open opens the GPU that a session asks for. Tests put another device in
// its place.
var Open = func(s *contest.Session) (Device, error) { return cuda.Open(s.GPU) }

// Rig is a device with everything needed to time work on it.
type Rig struct {
	S           *contest.Session
	Dev         Device
	Stream      Stream
	begin, end  Event
	Kernels     *kernel.Set
	Params      kernel.Params
	Memory      []Ptr  // allocated for the size being measured
	window      []byte // page-locked, for results copied back
	took        time.Duration
	latches     *kernel.Set // the kernels of latched trees, if they were needed
	BlinkParams thesis.Params
	PagesParams kaczmarek.Params
	favored     any // the tree whose upper levels are kept in the cache
}

// windowBytes bounds the bytes copied back at a time.
const windowBytes = 64 << 20

// With calls body with the session's GPU, for an experiment that needs
// perQuery bytes of host memory per query. A machine without a GPU is a normal
// machine: it prints one line that says so, and nothing else.
func With(s *contest.Session, perQuery int, body func(*Rig) error) (err error) {
	dev, err := Open(s)
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		s.Skip("all of %s: it needs a GPU, and there is none to use here: %v", s.Exp.Name, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }() // and everything on it
	s.GPUInfo = infoOf(dev)
	g := &Rig{S: s, Dev: dev}
	if err := errors.Join(queriesFit(s, perQuery), g.prepare()); err != nil {
		return err
	}
	return body(g)
}

// HasGPU reports whether there is a GPU, for an experiment that uses it through
// Pando's face alone; if not, it prints a line that says so.
func HasGPU(s *contest.Session) (bool, error) {
	there := false
	err := With(s, 0, func(*Rig) error {
		there = true
		return nil
	})
	return there, err
}

func (g *Rig) prepare() (err error) {
	if g.Stream, err = g.Dev.NewStream(); err != nil {
		return err
	}
	if g.begin, err = g.Dev.NewEvent(); err != nil {
		return err
	}
	if g.end, err = g.Dev.NewEvent(); err != nil {
		return err
	}
	if g.window, err = g.Dev.HostAlloc(windowBytes); err != nil {
		return err
	}
	g.Kernels, err = kernel.Load(g.Dev, kernel.BlockedSource, kernel.SignsSource)
	return err
}

// Latched returns the kernels of latched trees and of those of large pages, which
// are loaded once.
func (g *Rig) Latched() (*kernel.Set, error) {
	var err error
	if g.latches == nil {
		g.latches, err = kernel.LoadOnly(g.Dev, thesis.BlinkSource, kaczmarek.PagesSource)
	}
	return g.latches, err
}

// Alloc allocates device memory that clear frees.
func (g *Rig) Alloc(bytes int) (Ptr, error) {
	p, err := g.Dev.Alloc(max(bytes, 4))
	if err == nil {
		g.Memory = append(g.Memory, p)
	}
	return p, err
}

// Clear frees the memory of the size just measured. A size that the GPU has no
// room for is skipped, without an error.
func (g *Rig) Clear(n int, err error) error {
	var frees []error
	for _, p := range g.Memory {
		frees = append(frees, g.Dev.Free(p))
	}
	g.Memory, g.favored = nil, nil
	if errors.Is(err, ErrOutOfMemory) {
		g.S.Skip("n %s: no room for it on the GPU: %v", contest.SizeText(n), err)
		err = nil
	}
	return errors.Join(append(frees, err)...)
}

// Time does the work until the GPU is warm, wipes its results, does it once
// more between two events, and records the time between them.
func (g *Rig) Time(work, wipe func() error) error {
	for start := time.Now(); ; {
		if err := errors.Join(work(), g.Stream.Synchronize()); err != nil {
			return err
		}
		if time.Since(start) >= g.S.WarmUp {
			break
		}
	}
	if err := wipe(); err != nil {
		return err
	}
	return g.TimeOnce(work)
}

// TimeOnce does the work between two events and records the time between them.
func (g *Rig) TimeOnce(work func() error) error {
	if err := errors.Join(g.Stream.Record(g.begin), work(), g.Stream.Record(g.end), g.Stream.Synchronize()); err != nil {
		return err
	}
	ms, err := g.end.Since(g.begin)
	g.took = time.Duration(ms * float64(time.Millisecond))
	return err
}

// Clock returns the time of the last work between two events.
func (g *Rig) Clock() time.Duration { return g.took }

// Subject returns work on the GPU as a subject of a contest.
func (g *Rig) Subject(name string, bytes float64, work func(ops int) error, wipe, check func(ops int) error) *contest.Subject {
	return &contest.Subject{
		System: name, Bytes: bytes, OnGPU: true, Clock: g.Clock, Check: check,
		Do: func(ops int) error {
			return g.Time(func() error { return work(ops) }, func() error { return wipe(ops) })
		},
	}
}

// Put allocates device memory for a slice and copies it there.
func Put[T any](g *Rig, s []T) (Ptr, error) {
	p, err := g.Alloc(len(inside.Bytes(s)))
	if err != nil {
		return 0, err
	}
	return p, errors.Join(g.Stream.CopyIn(p, inside.Bytes(s)), g.Stream.Synchronize())
}

// PutAll allocates device memory for n values and fills it, part by part, on all
// cores: no more of them are on the host than fit into the window.
func PutAll[T data.Word](g *Rig, n int, value func(i int) T) (Ptr, error) {
	var v T
	size := int(unsafe.Sizeof(v))
	at, err := g.Alloc(n * size)
	if err != nil {
		return 0, err
	}
	window := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(g.window))), len(g.window)/size)
	for first := 0; first < n; first += len(window) {
		part := window[:min(len(window), n-first)]
		contest.ForPieces(len(part), func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				part[i] = value(first + i)
			}
		})
		if err := errors.Join(g.Stream.CopyIn(at+Ptr(first*size), inside.Bytes(part)), g.Stream.Synchronize()); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// ReadBack copies n values from device memory, part by part, and calls check
// for each part with the number of its first value.
func ReadBack[T data.Word](g *Rig, from Ptr, n int, check func(first int, part []T) error) error {
	var v T
	size := int(unsafe.Sizeof(v))
	window := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(g.window))), len(g.window)/size)
	for first := 0; first < n; first += len(window) {
		part := window[:min(len(window), n-first)]
		err := errors.Join(g.Stream.CopyOut(inside.Bytes(part), from+Ptr(first*size)), g.Stream.Synchronize())
		if err == nil {
			err = check(first, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// queriesFit returns an error if the queries, at perQuery bytes each, do not
// fit into the machine's memory, or their numbers into the kernels' 32 bits.
func queriesFit(s *contest.Session, perQuery int) error {
	need, free := int64(s.Queries)*int64(perQuery), contest.FreeMemory()
	switch {
	case s.Queries > MaxGPUQueries:
		return fmt.Errorf("--queries %s: a GPU takes at most %d at a time", contest.SizeText(s.Queries), MaxGPUQueries)
	case need > free:
		return fmt.Errorf("--queries %s: queries and answers need %s, %s of memory are free: use fewer",
			contest.SizeText(s.Queries), contest.GiB(need), contest.GiB(free))
	}
	return nil
}

// inWords returns memory as whole words of 32 bits.
func inWords(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// LookForGPU reports whether there is a GPU, and records what it is. If there
// is none, it prints a line that says so, and only the CPU's rows are
// measured.
func LookForGPU(s *contest.Session) (bool, error) {
	dev, err := Open(s)
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		s.Skip("rows on a GPU: there is none to use here: %v", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.GPUInfo = infoOf(dev)
	return true, dev.Close()
}

// LookAtGPU records the GPU, if there is one; the CPU's rows do not need it.
func LookAtGPU(s *contest.Session) error {
	dev, err := Open(s)
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		return nil
	}
	if err != nil {
		return err
	}
	s.GPUInfo = infoOf(dev)
	return dev.Close()
}
