package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// model is the simplest blocked tree: rows of pages, then leaves, then a
// column of values, in one piece of memory.
type model[C simd.Code] struct {
	keys, vals []C
	leaves     implicit.Leaves
	rows       []kernel.Row
	lines      [][]C // in memory order
	leafTree   simd.Tree
	perLeaf    int
	leafCount  int
}

func slotsOf[C simd.Code]() int { return 512 / widthOf[C]() }

func newModel[C simd.Code](rng *rand.Rand) *model[C] {
	n := []int{1, 3, 5, 9, 17, 64, 129, 257, 600, 1153, 2500, 4097, 9000}[rng.IntN(13)]
	m := &model[C]{keys: keySet[C](n, rng), vals: make([]C, n), leaves: implicit.Leaves(rng.IntN(2))}
	for i := range m.vals {
		m.vals[i] = C(i)*7 + 1
	}
	m.perLeaf = slotsOf[C]()
	if m.leaves == implicit.Pairs {
		m.perLeaf /= 2
	}
	m.leafCount = (n + m.perLeaf - 1) / m.perLeaf
	height := 0 // levels of lines
	for below := 1; below < m.leafCount; below *= slotsOf[C]() {
		height++
	}
	m.addRows(height, 1+rng.IntN(3), rng.IntN(2) == 0)
	m.addLeaves()
	return m
}

// addRows lays out pages of the given number of levels, the top row with what
// is left over. The greatest key of all may be a separator or not: nothing
// comes after it.
func (m *model[C]) addRows(height, levels int, separateLast bool) {
	for level := 0; level < height; {
		row := kernel.Row{At: len(m.lines), Levels: levels, Pages: m.nodes(height - level)}
		if level == 0 && height%levels > 0 {
			row.Levels = height % levels
		}
		for l := range row.Levels {
			row.PageLines += power[C](l)
		}
		for p := range row.Pages {
			for l := range row.Levels {
				for i := range power[C](l) {
					m.lines = append(m.lines, m.line(p*power[C](l)+i, height-level-l, separateLast))
				}
			}
		}
		m.rows = append(m.rows, row)
		level += row.Levels
	}
}

// power returns the number of lines the given number of levels below one line.
func power[C simd.Code](levels int) int {
	n := 1
	for range levels {
		n *= slotsOf[C]()
	}
	return n
}

// nodes returns the number of lines on the level at a height above the leaves.
func (m *model[C]) nodes(height int) int {
	return (m.leafCount + power[C](height) - 1) / power[C](height)
}

// line returns the separators of line x on a level that is so high above the
// leaves.
func (m *model[C]) line(x, height int, separateLast bool) []C {
	line := make([]C, slotsOf[C]())
	for j := range line {
		line[j] = ^C(0)
		end := (x*len(line) + j + 1) * power[C](height-1) // leaf after child j
		if j < len(line)-1 && (end < m.leafCount || separateLast && end-power[C](height-1) < m.leafCount) {
			line[j] = m.keys[min(end*m.perLeaf, len(m.keys))-1]
		}
	}
	return line
}

func (m *model[C]) addLeaves() {
	first := len(m.lines)
	for x := range m.leafCount {
		line := make([]C, slotsOf[C]())
		for j := range m.perLeaf {
			at := min(x*m.perLeaf+j, len(m.keys)-1)
			line[j] = m.keys[at]
			if m.leaves == implicit.Pairs {
				line[m.perLeaf+j] = m.vals[at]
			}
		}
		m.lines = append(m.lines, line)
	}
	m.leafTree = simd.Tree{Leaves: uint64(8 * first), LastLeaf: uint64(8 * (len(m.lines) - 1)), Len: uint64(len(m.keys)), LeafMask: 1}
	for 1<<m.leafTree.LeafShift < m.perLeaf {
		m.leafTree.LeafShift++
	}
}

// memory returns all lines, then the column.
func (m *model[C]) memory() (all []byte, vals int) {
	for _, l := range m.lines {
		all = append(all, arena.Bytes(l)...)
	}
	vals = len(all)
	return append(all, arena.Bytes(m.vals)...), vals
}

// node returns the page of a row, or behind the last the line of the leaf, that
// a key leads to: by counting keys.
func (m *model[C]) node(key C, row int) uint32 {
	leaf := 0
	for (leaf+1)*m.perLeaf < len(m.keys) && m.keys[(leaf+1)*m.perLeaf-1] < key {
		leaf++
	}
	if row == len(m.rows) {
		return uint32(int(m.leafTree.Leaves)/8 + leaf)
	}
	for _, r := range m.rows[row:] {
		leaf /= power[C](r.Levels)
	}
	return uint32(leaf)
}

// nodesOf returns the nodes of all keys; the first deep of them one row further.
func (m *model[C]) nodesOf(keys []C, row, deep int) []uint32 {
	nodes := make([]uint32, len(keys))
	for i, k := range keys {
		nodes[i] = m.node(k, row)
		if i < deep {
			nodes[i] = m.node(k, row+1)
		}
	}
	return nodes
}

// upload copies the model to a device.
func (m *model[C]) upload(t *testing.T, d device.Device) (*place[C], kernel.Blocked) {
	t.Helper()
	p := newPlace[C](t, d, kernel.BlockedSource)
	all, vals := m.memory()
	base := p.put(t, all)
	var err error
	p.tree, err = kernel.NewTree(&m.leafTree, base, base+device.Ptr(vals))
	must(t, err)
	rows, err := kernel.NewBlocked(m.rows, widthOf[C](), &m.leafTree, base)
	must(t, err)
	return p, rows
}

func TestBlockedDown(t *testing.T) {
	seeds := 200
	if !seed.Long() {
		seeds = 15
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		blockedDown[uint32](t, d, rng)
		blockedDown[uint64](t, d, rng)
	})
}

// blockedDown takes queries from one row to another, some of them starting one
// row further down, and from there to the leaves and their entries.
func blockedDown[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	m := newModel[C](rng)
	asked := questions(m.keys, 1+rng.IntN(150), rng)
	p, rows := m.upload(t, d)
	defer p.close(t)
	to := rng.IntN(len(m.rows) + 1)
	from, deep := rng.IntN(to+1), 0
	if from < to {
		deep = rng.IntN(len(asked)/32+1) * 32
	}
	if from > 0 || deep > 0 {
		rows.Start = p.put(t, arena.Bytes(m.nodesOf(asked, from, deep)))
		rows.From, rows.Deep = uint32(from), uint32(deep)
	}
	rows.To = uint32(to)
	what := fmt.Sprintf("%s, %d bits, %v, %d keys, rows %v, from %d, %d one further, to %d",
		d.Info().Name, widthOf[C](), m.leaves, len(m.keys), m.rows, from, deep, to)
	keys := p.put(t, arena.Bytes(asked))
	nodes := rows.Start // in place, or not
	if nodes == 0 || rng.IntN(2) == 0 {
		nodes = p.alloc(t, 4*len(asked))
	}
	must(t, p.set.BlockedDown(p.s, &p.params, &rows, widthOf[C](), keys, len(asked), nodes))
	if got := p.get(t, nodes, 4*len(asked)); to < len(m.rows) || len(m.rows) > 0 {
		m.sameNodes(t, what, asked, to, got)
	}
	rows.Start, rows.From, rows.Deep, rows.To = nodes, uint32(to), 0, uint32(len(m.rows))
	if to == 0 {
		rows.Start = 0
	}
	must(t, p.set.BlockedDown(p.s, &p.params, &rows, widthOf[C](), keys, len(asked), nodes))
	m.sameNodes(t, what+", then to the leaves", asked, len(m.rows), p.get(t, nodes, 4*len(asked)))
	p.tree.Start = nodes
	p.compare(t, what, m.keys, m.vals, asked, m.leaves)
}

func (m *model[C]) sameNodes(t *testing.T, what string, asked []C, row int, got []byte) {
	t.Helper()
	for i, k := range asked {
		g, want := binary.LittleEndian.Uint32(got[4*i:]), m.node(k, row)
		if row < len(m.rows) && k > m.keys[len(m.keys)-1] && g > want {
			continue // past all keys, any page past the last is as good
		}
		if g != want {
			t.Fatalf("%s: query %d, %d comes to %d, want %d", what, i, k, g, want)
		}
	}
}

// Whatever the lines hold, no search leaves them: the interpreter would report
// it.
func TestDamagedRows(t *testing.T) {
	onEach(t, seed.Times(10, 40), func(t *testing.T, d device.Device, rng *rand.Rand) {
		damagedRows[uint32](t, d, rng)
		damagedRows[uint64](t, d, rng)
	})
}

func damagedRows[C simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	m := newModel[C](rng)
	for _, l := range m.lines {
		for j := range l {
			l[j] = C(rng.Uint64()) >> rng.IntN(widthOf[C]())
		}
	}
	m.lines, m.vals = m.lines[:m.leafTree.Leaves/8], nil // nothing after the rows
	p, rows := m.upload(t, d)
	defer p.close(t)
	asked := questions(m.keys, 100, rng)
	keys, out := p.put(t, arena.Bytes(asked)), p.alloc(t, 400)
	must(t, p.set.BlockedDown(p.s, &p.params, &rows, widthOf[C](), keys, 100, out))
	for i, leaf := range arena.As[uint32](p.get(t, out, 400)) {
		if uint64(leaf) < m.leafTree.Leaves/8 || uint64(leaf) > m.leafTree.LastLeaf/8 {
			t.Fatalf("query %d comes to line %d, leaves are %d to %d", i, leaf, m.leafTree.Leaves/8, m.leafTree.LastLeaf/8)
		}
	}
}

// get copies bytes from the device.
func (p *place[C]) get(t *testing.T, at device.Ptr, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	must(t, p.s.CopyOut(b, at))
	must(t, p.s.Synchronize())
	return b
}

// Trees with more rows or lines than kernels support are refused.
func TestBlockedTooLarge(t *testing.T) {
	small := simd.Tree{LastLeaf: 8}
	if _, err := kernel.NewBlocked(make([]kernel.Row, kernel.MaxRows+1), 32, &small, 0); err == nil {
		t.Error("too many rows are taken")
	}
	if _, err := kernel.NewBlocked(nil, 32, &simd.Tree{LastLeaf: 8 << 32}, 0); err == nil {
		t.Error("too many leaves are taken")
	}
	many := uint64(1) << 32
	if _, err := kernel.NewPacked(0, 0, 1<<24, 0, int(many)); err == nil && int(many) != 0 { // an int of 32 bits cannot say so
		t.Error("too many entries are taken")
	}
}

func TestGather(t *testing.T) {
	onEach(t, seed.Times(10, 30), func(t *testing.T, d device.Device, rng *rand.Rand) {
		gather[uint32](t, d, rng)
		gather[uint64](t, d, rng)
	})
}

func gather[V simd.Code](t *testing.T, d device.Device, rng *rand.Rand) {
	p := newPlace[V](t, d, kernel.BlockedSource)
	defer p.close(t)
	column := make([]V, 1+rng.IntN(300))
	for i := range column {
		column[i] = V(rng.Uint64())
	}
	places := make([]uint32, 1+rng.IntN(700))
	vals, found := make([]V, len(places)), make([]byte, (len(places)+31)/32*4)
	for i := range places {
		if places[i] = kernel.NotFound; rng.IntN(3) > 0 {
			places[i] = uint32(rng.IntN(len(column)))
			vals[i] = column[places[i]]
			found[i/8] |= 1 << (i % 8)
		} else if rng.IntN(2) > 0 { // damaged pages have entries behind the last
			places[i] = uint32(len(column) + rng.IntN(300))
		}
	}
	p.s = fewBlocks{p.s, rng.IntN(3)}
	out, bits := p.alloc(t, len(arena.Bytes(vals))), p.alloc(t, len(found))
	must(t, p.set.Gather(p.s, &p.params, widthOf[V](), p.put(t, arena.Bytes(column)), len(column), len(places), p.put(t, arena.Bytes(places)), out, bits))
	if !bytes.Equal(p.get(t, out, len(arena.Bytes(vals))), arena.Bytes(vals)) || !bytes.Equal(p.get(t, bits, len(found)), found) {
		t.Fatalf("%s, %d bits: other values at %d", d.Info().Name, widthOf[V](), places)
	}
}

// everyBlocked runs all kernels of blocked.cu on a device, as everyKernel does
// for search.cu.
func everyBlocked[C simd.Code](t *testing.T, d device.Device, at uint64) (out []named) {
	rng := rand.New(rand.NewPCG(at, 9))
	m, k := newModel[C](rng), newPages[C](rng)
	asked := questions(m.keys, 1+rng.IntN(300), rng)
	p, rows := m.upload(t, d)
	defer p.close(t)
	packed := k.upload(t, p)
	w, n := widthOf[C](), len(asked)
	keys, pages := p.put(t, arena.Bytes(asked)), p.put(t, arena.Bytes(k.pagesOf(asked)))
	run := func(kernel string, launch func(a, b device.Ptr) error) {
		out = append(out, p.dirty(t, fmt.Sprintf("%s of %d bits", kernel, w), 8*n+64, rng.Uint32(), launch))
	}
	run("blockedDown", func(a, _ device.Ptr) error { return p.set.BlockedDown(p.s, &p.params, &rows, w, keys, n, a) })
	run("packedRank", func(a, _ device.Ptr) error { return p.set.PackedRank(p.s, &p.params, &packed, w, keys, n, pages, a) })
	run("packedFind", func(a, _ device.Ptr) error { return p.set.PackedFind(p.s, &p.params, &packed, w, keys, n, pages, a) })
	places := make([]uint32, n)
	for i := range places {
		places[i] = []uint32{uint32(i % len(k.keys)), kernel.NotFound}[rng.IntN(2)]
	}
	column, from := p.put(t, arena.Bytes(k.keys)), p.put(t, arena.Bytes(places))
	run("gather", func(a, b device.Ptr) error {
		return p.set.Gather(p.s, &p.params, w, column, len(k.keys), n, from, a, b)
	})
	return out
}

// dirty runs a kernel over outputs filled beforehand, and returns their memory.
func (p *place[C]) dirty(t *testing.T, kernel string, size int, fill uint32, launch func(a, b device.Ptr) error) named {
	t.Helper()
	size = (size + 7) &^ 7
	both := p.alloc(t, 2*size)
	must(t, p.s.Fill(both, fill, 2*size))
	must(t, launch(both, both+device.Ptr(size)))
	return named{kernel, p.get(t, both, 2*size)}
}

// Every kernel can be launched with the arguments that Go lays out: the
// interpreter checks their size.
func TestBlockedKernelsAreThere(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d device.Device, rng *rand.Rand) {
		at := rng.Uint64()
		if narrow, wide := everyBlocked[uint32](t, d, at), everyBlocked[uint64](t, d, at); len(narrow) != 4 || len(wide) != 4 {
			t.Error("not every kernel ran")
		}
	})
}
