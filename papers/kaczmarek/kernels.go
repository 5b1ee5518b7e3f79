package kaczmarek

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -I../../internal/device/kernel -S pages.cu -o pages.ptx

//go:embed pages.ptx
var pagesPTX string

// PagesSource is the kernels of pages.cu.
var PagesSource = kernel.SourceOf(&pagesPTX, "pagesInsert32", "pagesInsert64", "pagesGet32", "pagesGet64",
	"pagesSum32", "pagesSum64", "pagesAdd32", "pagesAdd64", "pagesBuild32", "pagesBuild64")

// PagesMemory is Kaczmarek's tree in a device's memory, as the kernels take it: struct
// Pages of pages.cu, field by field.
type PagesMemory struct {
	Memory          device.Ptr
	State           device.Ptr // u32: pages in use, then 1 if one was missing
	Capacity, Order uint32     // pages, pairs of a page
}

// PageBytes returns the size of a page of order pairs whose keys and values have
// the given bits.
func PageBytes(bits, order int) int { return 16 + 2*order*bits/8 }

// MaxPageThreads is the most threads of a block that the kernels take.
const MaxPageThreads = 1024

// Outcome is the outcome of an operation.
type Outcome uint8

// The outcomes. An operation without room has changed nothing.
const (
	Absent Outcome = iota // the key was not there
	Found
	NoRoom // the key was not there, and there is no memory for it
)

// Kernels launches the kernels of PagesSource, of a set that was loaded with it.
type Kernels struct{ Set *kernel.Set }

// Params is room for the arguments of one launch. A caller keeps one per stream.
type Params struct {
	batch pagesParams
	all   pagesAllParams
	add   pagesAddParams
	build pagesBuildParams
}

// pagesParams are the arguments of Insert and Get.
type pagesParams struct {
	tree       PagesMemory
	keys, vals device.Ptr
	n          uint32
	_          uint32
	outcomes   device.Ptr
}

// pagesAllParams are the arguments of Sum and of Add with values of 64 bits.
type pagesAllParams struct {
	tree PagesMemory
	with uint64 // an address, or a number
}

// pagesAddParams are those of Add with values of 32 bits.
type pagesAddParams struct {
	tree PagesMemory
	with uint32
}

// pagesBuildParams are the arguments of Build.
type pagesBuildParams struct {
	tree                  PagesMemory
	keys, vals            device.Ptr
	n, fill, level, first uint32
	below, _              uint32
	span                  uint64
}

// Build makes a tree of n ascending, distinct keys, with fill of them a page,
// level by level, by blocks that take pages in turn. Pages of a level stand side
// by side, the leaves first; the root is page 0. Whole trees are made by single
// inserts in the paper, which takes minutes where this takes milliseconds.
func (s Kernels) Build(st device.Stream, p *Params, t *PagesMemory, bits, blocks, threads int, keys, vals device.Ptr, n, fill int) error {
	if fill < 2 || fill > int(t.Order) {
		return fmt.Errorf("kaczmarek: %d pairs in a page of %d", fill, t.Order)
	}
	levels, used := []int{n}, 1
	for n := n; n > fill; n = levels[len(levels)-1] {
		levels = append(levels, (n-1)/fill+1)
		used += levels[len(levels)-1]
	}
	if used > int(t.Capacity) {
		return fmt.Errorf("%w: %d pages, room for %d", device.ErrOutOfMemory, used, t.Capacity)
	}
	first, below, span := 1, 0, uint64(1)
	for level, children := range levels {
		count := max(1, (children-1)/fill+1)
		if level == len(levels)-1 {
			first = 0
		}
		p.build = pagesBuildParams{tree: *t, keys: keys, vals: vals, n: uint32(n), fill: uint32(fill),
			level: uint32(level), first: uint32(first), below: uint32(below), span: span}
		grid := device.Grid{Blocks: min(count, blocks), Threads: threads}
		if err := kernel.Start(s.Set, st, pick(bits, "pagesBuild32", "pagesBuild64"), grid, &p.build); err != nil {
			return err
		}
		first, below, span = first+count, first, span*uint64(fill)
	}
	return errors.Join(st.Fill(t.State, uint32(used), 4), st.Fill(t.State+4, 0, 4))
}

// Clear makes a tree empty. Pages need room for three pairs: a root that has
// just grown has two, and must take one more.
func (s Kernels) Clear(st device.Stream, t *PagesMemory) error {
	if t.Order < 3 || t.Capacity == 0 {
		return fmt.Errorf("kaczmarek: %d pages of %d pairs", t.Capacity, t.Order)
	}
	for i, v := range []uint32{1, 0} {
		if err := st.Fill(t.State+device.Ptr(4*i), v, 4); err != nil {
			return err
		}
	}
	return st.Fill(t.Memory, 0, 16)
}

// Insert inserts n pairs, one after the other, by one block of the given
// threads: with n = 1, Kaczmarek's single insert in one launch. vals gets the
// values that were there, outcomes an Outcome for each.
func (s Kernels) Insert(st device.Stream, p *Params, t *PagesMemory, bits, threads int, keys, vals device.Ptr, n int, outcomes device.Ptr) error {
	p.batch = pagesParams{tree: *t, keys: keys, vals: vals, n: uint32(n), outcomes: outcomes}
	return kernel.Start(s.Set, st, pick(bits, "pagesInsert32", "pagesInsert64"), device.Grid{Blocks: 1, Threads: threads}, &p.batch)
}

// Get looks n keys up, each by a block.
func (s Kernels) Get(st device.Stream, p *Params, t *PagesMemory, bits, threads int, keys, vals device.Ptr, n int, outcomes device.Ptr) error {
	p.batch = pagesParams{tree: *t, keys: keys, vals: vals, n: uint32(n), outcomes: outcomes}
	return kernel.Start(s.Set, st, pick(bits, "pagesGet32", "pagesGet64"), device.Grid{Blocks: min(n, 1<<16), Threads: threads}, &p.batch)
}

// Sum adds all values to the u64 at sum, by blocks that take pages in turn.
// Sums wrap.
func (s Kernels) Sum(st device.Stream, p *Params, t *PagesMemory, bits, blocks, threads int, sum device.Ptr) error {
	p.all = pagesAllParams{tree: *t, with: uint64(sum)}
	return kernel.Start(s.Set, st, pick(bits, "pagesSum32", "pagesSum64"), device.Grid{Blocks: blocks, Threads: threads}, &p.all)
}

// Add adds a number to every value.
func (s Kernels) Add(st device.Stream, p *Params, t *PagesMemory, bits, blocks, threads int, x uint64) error {
	grid := device.Grid{Blocks: blocks, Threads: threads}
	if bits == 32 {
		p.add = pagesAddParams{tree: *t, with: uint32(x)}
		return kernel.Start(s.Set, st, "pagesAdd32", grid, &p.add)
	}
	p.all = pagesAllParams{tree: *t, with: x}
	return kernel.Start(s.Set, st, "pagesAdd64", grid, &p.all)
}

func pick(bits int, narrow, wide string) string {
	if bits == 32 {
		return narrow
	}
	return wide
}
