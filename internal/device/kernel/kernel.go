// Package kernel holds Pando's kernels: CUDA C++ sources, the PTX that plain
// clang makes of them, and typed launchers, so that no other package lays out
// argument lists.
package kernel

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S search.cu -o search.ptx
//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S blocked.cu -o blocked.ptx

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:embed search.ptx
var searchPTX string

// Source is a set of kernels that are compiled together. A device compiles the
// PTX again for itself when it is loaded, so each layout loads only what it
// needs.
type Source struct {
	ptx   *string // so that a program has the text only if it can get at the source
	names []string
}

// search holds what every layout needs: the kernels of search.cu.
var search = Source{&searchPTX, []string{"rank32", "rank64", "find32", "find64", "pairs32", "pairs64", "down32", "down64",
	"apart32x32", "apart32x64", "apart64x32", "apart64x64",
	"entries32x32", "entries32x64", "entries64x32", "entries64x64"}}

// Tree describes a tree in a device's memory, in the form that the kernels
// read: struct Tree of search.cu, field by field.
type Tree struct {
	Base, Vals     device.Ptr
	Next           [simd.MaxLevels + 1]uint32
	Last           [simd.MaxLevels + 1]uint32 // the last node of each level, then the last leaf: no search gets past them
	Leaves, Count  uint32
	Levels, Fanout uint32
	LeafKeys       uint32
	Start          device.Ptr // nodes (u32) at which queries begin; 0: all begin at the root
	From           uint32     // level of those nodes
	Deep           uint32     // queries before this one, a multiple of 32, begin one level further down
}

const (
	lineWords = simd.LineBytes / 8
	// maxCount is the most that a kernel counts in a line, and adds before it
	// cuts the sum to what there is: numbers end so far before 2^32.
	maxCount = simd.LineBytes / 4
)

// ErrTooLarge is the error for a tree with more lines than kernels can number.
var ErrTooLarge = errors.New("kernel: tree too large for a GPU")

// NewTree describes a tree whose memory was copied to base, byte for byte, and
// its column of values, if any, to vals. If only a part of the tree was
// copied, base is where the whole tree would begin.
func NewTree(t *simd.Tree, base, vals device.Ptr) (Tree, error) {
	if t.LastLeaf/lineWords >= math.MaxUint32-maxCount || t.Len >= math.MaxUint32-maxCount {
		return Tree{}, fmt.Errorf("%w: %d entries", ErrTooLarge, t.Len)
	}
	d := Tree{
		Base: base, Vals: vals,
		Leaves: uint32(t.Leaves / lineWords), Count: uint32(t.Len),
		Levels: uint32(t.Levels), Fanout: uint32(t.Fanout),
	}
	if t.LeafMask != 0 { // an empty tree has a leaf without keys
		d.LeafKeys = 1 << t.LeafShift
	}
	for l, n := range t.Next {
		d.Next[l] = uint32(n / lineWords)
	}
	d.setLast(t)
	return d, nil
}

// setLast sets the last node of each level.
func (d *Tree) setLast(t *simd.Tree) {
	d.Last[t.Levels] = uint32(t.LastLeaf / lineWords)
	nodes := (t.LastLeaf-t.Leaves)/lineWords + 1
	for l := t.Levels - 1; l >= 0; l-- {
		nodes = (nodes + t.Fanout - 1) / t.Fanout
		d.Last[l] = uint32(t.Place(l)/lineWords + nodes - 1)
	}
}

// Favor asks that as many upper levels of a tree as fit stay in the device's
// cache for the kernels of a stream. It favors whole levels only: a part of a
// level is worse than none of it (docs/gpu.md). On a device without this
// feature it does nothing.
func Favor(st device.Stream, t *Tree) {
	p, ok := st.(device.Persister)
	if !ok {
		return
	}
	most, end, fits := uint64(p.Persistable()), uint32(0), uint32(0)
	for l := range t.Levels {
		end = t.Fanout*end + t.Next[l]
		if uint64(end)*simd.LineBytes <= most {
			fits = end
		}
	}
	if fits > 0 {
		p.Persist(t.Base, int(fits)*simd.LineBytes) // only a hint: its effect shows in the running time alone
	}
}

// NotFound is the result of Find for a key that is not there.
const NotFound = math.MaxUint32

// Set is a set of kernels loaded on a device.
type Set struct {
	modules []device.Module
	kernels map[string]device.Kernel
}

// blockThreads is the number of threads per block: the kernels' launch bound.
// A grid has one thread per query: short-lived blocks keep the device busier
// than a few that loop (27.8 against 20.8 G ranks per second on an H200).
const blockThreads = 256

// Load loads the kernels of search.cu, and those of the sources in more, on a
// device.
func Load(d device.Device, more ...Source) (*Set, error) {
	s := &Set{kernels: map[string]device.Kernel{}}
	for _, src := range append([]Source{search}, more...) {
		if err := s.add(d, src); err != nil {
			return nil, errors.Join(err, s.Unload())
		}
	}
	return s, nil
}

func (s *Set) add(d device.Device, src Source) error {
	m, err := d.Load(*src.ptx)
	if err != nil {
		return err
	}
	s.modules = append(s.modules, m)
	for _, n := range src.names {
		if s.kernels[n], err = m.Kernel(n); err != nil {
			return err
		}
	}
	return nil
}

// Unload frees the kernels.
func (s *Set) Unload() (err error) {
	for _, m := range s.modules {
		err = errors.Join(err, m.Unload())
	}
	return err
}

// Params is room for the arguments of one launch. A caller keeps one per
// stream and passes it in, so that a launch allocates nothing.
type Params struct {
	search  searchParams
	signed  signParams
	copy    copyParams
	blocked blockedParams
	packed  packedParams
	gather  gatherParams
	words   wordsParams

	sortCount sortCountParams
	sortPass  sortPassParams
	flat      flatParams
	bin       binParams
	join      joinParams

	mirror  mirrorParams
	scatter scatterParams
}

// searchParams are the arguments of a search in an implicit tree.
type searchParams struct {
	tree Tree
	keys device.Ptr
	n    uint32
	_    uint32
	out  device.Ptr
	bits device.Ptr // 0 for kernels without it
}

// copyParams are the arguments of Entries.
type copyParams struct {
	tree           Tree
	first, offsets device.Ptr
	ranges, n      uint32
	keys, vals     device.Ptr
}

// launch runs a search over n queries, by signs if there are any. Kernels without found bits have one
// parameter less.
func (s *Set) launch(st device.Stream, name string, p *Params, t *Tree, g *Signs, keys device.Ptr, n int, out, bits device.Ptr) error {
	if g != nil {
		return s.launchSigned(st, bySigns[name], p, t, g, keys, n, out, bits)
	}
	a := &p.search
	a.tree, a.keys, a.n, a.out, a.bits = *t, keys, uint32(n), out, bits
	size := unsafe.Sizeof(*a)
	if bits == 0 {
		size = unsafe.Offsetof(a.bits)
	}
	return s.start(st, name, n, unsafe.Slice((*byte)(unsafe.Pointer(a)), size))
}

// start runs a kernel that handles queries in rounds, so it may have fewer
// threads than queries.
func (s *Set) start(st device.Stream, name string, n int, args []byte) error {
	return st.Launch(s.kernels[name], GridOf(n), args)
}

// argsOf returns the memory of a kernel's arguments, the fields of P, up to the
// end of the last: the driver refuses a launch (error 701) with even the padding
// that Go has behind it.
func argsOf[P any](p *P) []byte {
	size, ok := argBytes.Load(reflect.TypeFor[P]())
	if !ok {
		t := reflect.TypeFor[P]()
		last := t.Field(t.NumField() - 1)
		size = last.Offset + last.Type.Size()
		argBytes.Store(t, size)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), size.(uintptr))
}

var argBytes sync.Map // of arguments, by the type that has them

// Runner launches kernels, of which there is one for 32 and one for 64 bits each.
type Runner struct {
	Set    *Set
	Stream device.Stream
	Bits   int // of keys, or of values
}

// start starts the kernel for the runner's bits.
func start[P any](r *Runner, narrow, wide string, grid device.Grid, params P) error {
	return r.Stream.Launch(r.Set.kernels[pick(r.Bits, narrow, wide)], grid, argsOf(&params))
}

// GridOf returns a grid with n threads.
func GridOf(n int) device.Grid {
	return device.Grid{Blocks: (n + blockThreads - 1) / blockThreads, Threads: blockThreads}
}

// Rank sets ranks (u32) to the number of entries below each of n keys of the
// given number of bits. Signs may be nil here and below; with them all queries begin
// at the root.
func (s *Set) Rank(st device.Stream, p *Params, t *Tree, g *Signs, bits int, keys device.Ptr, n int, ranks device.Ptr) error {
	return s.launch(st, pick(bits, "rank32", "rank64"), p, t, g, keys, n, ranks, 0)
}

// Find sets ranks (u32) to the rank of the first entry equal to each key, or
// to NotFound.
func (s *Set) Find(st device.Stream, p *Params, t *Tree, g *Signs, bits int, keys device.Ptr, n int, ranks device.Ptr) error {
	return s.launch(st, pick(bits, "find32", "find64"), p, t, g, keys, n, ranks, 0)
}

// Pairs looks keys up in leaves of pairs. found gets one bit per key.
func (s *Set) Pairs(st device.Stream, p *Params, t *Tree, g *Signs, bits int, keys device.Ptr, n int, vals, found device.Ptr) error {
	return s.launch(st, pick(bits, "pairs32", "pairs64"), p, t, g, keys, n, vals, found)
}

// Apart looks keys up in a tree whose values, of valBits bits, are in a
// column.
func (s *Set) Apart(st device.Stream, p *Params, t *Tree, g *Signs, bits, valBits int, keys device.Ptr, n int, vals, found device.Ptr) error {
	name := pick(bits, pick(valBits, "apart32x32", "apart32x64"), pick(valBits, "apart64x32", "apart64x64"))
	return s.launch(st, name, p, t, g, keys, n, vals, found)
}

// Down sets nodes (u32) to the node that each query reaches below the tree's
// last level.
func (s *Set) Down(st device.Stream, p *Params, t *Tree, bits int, keys device.Ptr, n int, nodes device.Ptr) error {
	return s.launch(st, pick(bits, "down32", "down64"), p, t, nil, keys, n, nodes, 0)
}

// Entries copies runs of entries out of a tree: run r begins with entry
// first[r] of the tree and is written from entry offsets[r] of the result up
// to the next run; the result has n entries in all. Both arrays are u32. vals
// may be 0; otherwise the tree's Vals must be 0 if its leaves hold pairs.
func (s *Set) Entries(st device.Stream, p *Params, t *Tree, bits, valBits int, first, offsets device.Ptr, ranges, n int, keys, vals device.Ptr) error {
	p.copy = copyParams{tree: *t, first: first, offsets: offsets, ranges: uint32(ranges), n: uint32(n), keys: keys, vals: vals}
	name := pick(bits, pick(valBits, "entries32x32", "entries32x64"), pick(valBits, "entries64x32", "entries64x64"))
	return st.Launch(s.kernels[name], GridOf(n), argsOf(&p.copy))
}

func pick(bits int, narrow, wide string) string {
	if bits == 32 {
		return narrow
	}
	return wide
}
