package packed

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
)

// Image returns the tree as it is copied to a device: the levels of the top
// tree, its leaves, and the pages.
func (t *Tree[C]) Image() layout.Image {
	memory, vals := t.Memory()
	table, words := t.block.Offset(t.block.Segment(2)), t.block.Offset(t.block.Segment(3))
	return layout.Image{
		Memory: memory, Levels: append(t.top.Image().Levels, table), ValSize: t.cfg.ValSize,
		Resident: &resident{
			top: t.top.OnDevice(), depth: t.Depth(), table: table, words: words, vals: vals,
			count: t.count, end: int(t.pages.End), entries: t.length,
		},
	}
}

// resident is a tree on a device: ranks in the top tree are the numbers of
// pages.
type resident struct {
	top                implicit.Copy
	depth              int
	table, words, vals int // bytes of the image; vals is 0 where there are none
	count, end         int
	entries            int
	pages              kernel.Packed
	column             device.Ptr
}

func (r *resident) Kernels() []kernel.Source { return []kernel.Source{kernel.BlockedSource} }

func (r *resident) Favor(st device.Stream) { kernel.Favor(st, &r.top.Tree) }

func (r *resident) Place(base device.Ptr) (err error) {
	if err := r.top.Place(base); err != nil {
		return err
	}
	if r.vals > 0 {
		r.column = base + device.Ptr(r.vals)
	}
	r.pages, err = kernel.NewPacked(base+device.Ptr(r.table), base+device.Ptr(r.words), r.count, r.end, r.entries)
	return err
}

func (r *resident) Launch(l *layout.Launch) error {
	switch {
	case l.To < r.depth:
		return l.Down(l.Enter(r.top.Tree))
	case l.To == r.depth:
		return r.enter(l, l.Out)
	}
	if err := r.enter(l, l.Nodes); err != nil {
		return err
	}
	if l.Want == layout.WantRanks {
		return l.Set.PackedRank(l.Stream, l.Params, &r.pages, l.Bits, l.Keys, l.N, l.Nodes, l.Out)
	}
	ranks := l.Out
	if l.Want == layout.WantColumn {
		ranks = l.Nodes
	}
	err := l.Set.PackedFind(l.Stream, l.Params, &r.pages, l.Bits, l.Keys, l.N, l.Nodes, ranks)
	if err != nil || l.Want == layout.WantFinds {
		return err
	}
	return l.Set.Gather(l.Stream, l.Params, l.Vals, r.column, r.entries, l.N, ranks, l.Out, l.Found)
}

// Vectors works on the values in the column.
func (r *resident) Vectors(v *layout.VectorLaunch) error {
	return v.Set.Column(v.Stream, v.Params, v.Vectors, r.column)
}

// enter takes queries to their pages. Those that have come there already are
// the first of the launch, or all.
func (r *resident) enter(l *layout.Launch, pages device.Ptr) error {
	there := 0
	rest := *l
	if l.Begins && l.From+1 >= r.depth {
		if there = l.Deep; l.From == r.depth {
			there = l.N
		}
		rest.Deep = 0
	}
	if there > 0 && pages != l.Nodes {
		if err := l.Stream.CopyDevice(pages, l.Nodes, 4*there); err != nil {
			return err
		}
	}
	if there == l.N {
		return nil
	}
	rest.Nodes += device.Ptr(4 * there)
	t := rest.Enter(r.top.Tree)
	t.Count = r.pages.Last // ranks are cut to it
	return l.Set.Rank(l.Stream, l.Params, &t, nil, l.Bits, l.Keys+device.Ptr(there*l.Bits/8), l.N-there, pages+device.Ptr(4*there))
}
