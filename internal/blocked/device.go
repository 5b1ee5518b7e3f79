package blocked

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Rows describes the rows of pages, for searches of a copy of Memory.
func (t *Tree[C]) Rows() []kernel.Row {
	rows := make([]kernel.Row, len(t.rows))
	for i, r := range t.rows {
		rows[i] = kernel.Row(r)
	}
	return rows
}

// Image returns the tree as it is copied to a device.
func (t *Tree[C]) Image() layout.Image {
	im := t.leaves.Image()
	leaves := im.Level(len(im.Levels) - 1)
	im.Levels = nil
	for _, r := range t.rows {
		im.Levels = append(im.Levels, r.At*simd.LineBytes)
	}
	im.Levels = append(im.Levels, leaves)
	if len(t.rows) > 0 { // else the leaves are all there is
		im.Resident = &resident{Copy: t.leaves.OnDevice(), bits: 8 * keyBytes[C](), table: t.Rows(), host: t.Leaves()}
	}
	return im
}

// resident is a tree on a device: a kernel goes through the rows of pages,
// another looks at the leaves.
type resident struct {
	implicit.Copy // of the leaves
	host          *simd.Tree
	bits          int // of a key
	table         []kernel.Row
	rows          kernel.Blocked
}

func (r *resident) Kernels() []kernel.Source { return []kernel.Source{kernel.BlockedSource} }

func (r *resident) Favor(st device.Stream) { kernel.FavorBlocked(st, &r.rows) }

func (r *resident) Place(base device.Ptr) error {
	rows, err := kernel.NewBlocked(r.table, r.bits, r.host, base)
	if err != nil {
		return err
	}
	r.rows = rows
	return r.Copy.Place(base)
}

func (r *resident) Launch(l *layout.Launch) error {
	depth := len(r.table)
	if l.To <= depth {
		return r.down(l, l.To, l.Out)
	}
	if !l.Begins || l.From < depth {
		if err := r.down(l, depth, l.Nodes); err != nil {
			return err
		}
	}
	t := r.Tree
	t.Start = l.Nodes
	return l.Answer(t, nil)
}

// down takes queries to a row, or behind the last to their leaves.
func (r *resident) down(l *layout.Launch, to int, nodes device.Ptr) error {
	t := r.rows
	t.To = uint32(to)
	if l.Begins {
		t.Start, t.From, t.Deep = l.Nodes, uint32(l.From), uint32(l.Deep)
	}
	return l.Set.BlockedDown(l.Stream, l.Params, &t, l.Bits, l.Keys, l.N, nodes)
}
