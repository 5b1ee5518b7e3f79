package kernel

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S pages.cu -o pages.ptx

//go:embed pages.ptx
var pagesPTX string

// PagesSource is the kernels of pages.cu.
var PagesSource = Source{&pagesPTX, []string{"pagesInsert32", "pagesInsert64", "pagesGet32", "pagesGet64",
	"pagesSum32", "pagesSum64", "pagesAdd32", "pagesAdd64", "pagesBuild32", "pagesBuild64"}}

// Pages is Kaczmarek's tree in a device's memory, as the kernels take it: struct
// Pages of pages.cu, field by field.
type Pages struct {
	Memory          device.Ptr
	State           device.Ptr // u32: pages in use, then 1 if one was missing
	Capacity, Order uint32     // pages, pairs of a page
}

// PageBytes returns the size of a page of order pairs whose keys and values have
// so many bits.
func PageBytes(bits, order int) int { return 16 + 2*order*bits/8 }

// MaxPageThreads is the most threads of a block that the kernels take.
const MaxPageThreads = 1024

// pagesParams are the arguments of PagesInsert and PagesGet.
type pagesParams struct {
	tree       Pages
	keys, vals device.Ptr
	n          uint32
	_          uint32
	outcomes   device.Ptr
}

// pagesAllParams are the arguments of PagesSum and PagesAdd.
type pagesAllParams struct {
	tree Pages
	with uint64 // an address, or a number of the width of a value
}

// pagesBuildParams are the arguments of PagesBuild.
type pagesBuildParams struct {
	tree                  Pages
	keys, vals            device.Ptr
	n, fill, level, first uint32
	below, _              uint32
	span                  uint64
}

// PagesBuild makes a tree of n ascending, distinct keys, with fill of them a page,
// level by level, by blocks that take pages in turn. Pages of a level stand side
// by side, the leaves first; the root is page 0. Whole trees are made by single
// inserts in the paper, which takes minutes where this takes milliseconds.
func (s *Set) PagesBuild(st device.Stream, p *Params, t *Pages, bits, blocks, threads int, keys, vals device.Ptr, n, fill int) error {
	if fill < 2 || fill > int(t.Order) {
		return fmt.Errorf("kernel: %d pairs in a page of %d", fill, t.Order)
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
		p.pagesBuild = pagesBuildParams{tree: *t, keys: keys, vals: vals, n: uint32(n), fill: uint32(fill),
			level: uint32(level), first: uint32(first), below: uint32(below), span: span}
		grid := device.Grid{Blocks: min(count, blocks), Threads: threads}
		if err := st.Launch(s.kernels[pick(bits, "pagesBuild32", "pagesBuild64")], grid, argsOf(&p.pagesBuild)); err != nil {
			return err
		}
		first, below, span = first+count, first, span*uint64(fill)
	}
	return errors.Join(st.Fill(t.State, uint32(used), 4), st.Fill(t.State+4, 0, 4))
}

// PagesClear makes a tree empty. Pages need room for three pairs: a root that has
// just grown has two, and must take one more.
func (s *Set) PagesClear(st device.Stream, t *Pages) error {
	if t.Order < 3 || t.Capacity == 0 {
		return fmt.Errorf("kernel: %d pages of %d pairs", t.Capacity, t.Order)
	}
	for i, v := range []uint32{1, 0} {
		if err := st.Fill(t.State+device.Ptr(4*i), v, 4); err != nil {
			return err
		}
	}
	return st.Fill(t.Memory, 0, 16)
}

// PagesInsert inserts n pairs, one after the other, by one block of so many
// threads: with n = 1, Kaczmarek's single insert in one launch. vals gets the
// values that were there, outcomes a BlinkOutcome for each.
func (s *Set) PagesInsert(st device.Stream, p *Params, t *Pages, bits, threads int, keys, vals device.Ptr, n int, outcomes device.Ptr) error {
	p.pages = pagesParams{tree: *t, keys: keys, vals: vals, n: uint32(n), outcomes: outcomes}
	return st.Launch(s.kernels[pick(bits, "pagesInsert32", "pagesInsert64")], device.Grid{Blocks: 1, Threads: threads}, argsOf(&p.pages))
}

// PagesGet looks n keys up, each by a block.
func (s *Set) PagesGet(st device.Stream, p *Params, t *Pages, bits, threads int, keys, vals device.Ptr, n int, outcomes device.Ptr) error {
	p.pages = pagesParams{tree: *t, keys: keys, vals: vals, n: uint32(n), outcomes: outcomes}
	return st.Launch(s.kernels[pick(bits, "pagesGet32", "pagesGet64")], device.Grid{Blocks: min(n, 1<<16), Threads: threads}, argsOf(&p.pages))
}

// PagesSum adds all values to the u64 at sum, by blocks that take pages in turn.
// Sums wrap.
func (s *Set) PagesSum(st device.Stream, p *Params, t *Pages, bits, blocks, threads int, sum device.Ptr) error {
	p.pagesAll = pagesAllParams{tree: *t, with: uint64(sum)}
	return st.Launch(s.kernels[pick(bits, "pagesSum32", "pagesSum64")], device.Grid{Blocks: blocks, Threads: threads}, argsOf(&p.pagesAll))
}

// PagesAdd adds a number to every value.
func (s *Set) PagesAdd(st device.Stream, p *Params, t *Pages, bits, blocks, threads int, x uint64) error {
	p.pagesAll = pagesAllParams{tree: *t, with: x}
	args := argsOf(&p.pagesAll)
	return st.Launch(s.kernels[pick(bits, "pagesAdd32", "pagesAdd64")], device.Grid{Blocks: blocks, Threads: threads}, args[:len(args)-(64-bits)/8])
}
