package implicit

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Memory returns the tree as it lies: inner nodes, leaves, and the column of
// values if there is one, which starts at byte vals (0: there is none). A copy
// of it is the same tree.
func (t *Tree[C]) Memory() (all []byte, vals int) {
	end := int(t.Leaves)*8 + t.leaves*simd.LineBytes
	if t.hasColumn() {
		column := t.block.Segment(2)
		vals = t.block.Offset(column)
		end = vals + len(column)
	}
	all = t.block.Memory()
	return all[:min(len(all), (end+4095)&^4095)], vals // a file may have more behind
}

// Image returns the tree as it is copied to a device.
func (t *Tree[C]) Image() layout.Image {
	memory, _ := t.Memory()
	im := layout.Image{
		Memory: memory, ValSize: t.cfg.ValSize, Pairs: t.cfg.Leaves == Pairs,
		Resident: &resident{t.OnDevice()},
	}
	for _, place := range t.places {
		im.Levels = append(im.Levels, place*8)
	}
	return im
}

// Copy is a tree on a device, or the leaves of one, as kernels take it.
type Copy struct {
	kernel.Tree
	host *simd.Tree
	vals int // byte of the image where the column of values begins; 0 for none
}

// OnDevice returns the tree's copy on a device, of which it is not yet known
// where it lies.
func (t *Tree[C]) OnDevice() Copy {
	_, vals := t.Memory()
	return Copy{host: &t.Tree, vals: vals}
}

// Place takes note of where the image would begin.
func (c *Copy) Place(base device.Ptr) (err error) {
	vals := device.Ptr(0)
	if c.vals > 0 {
		vals = base + device.Ptr(c.vals)
	}
	c.Tree, err = kernel.NewTree(c.host, base, vals)
	return err
}

// CopyEntries copies runs of entries.
func (c *Copy) CopyEntries(e *layout.EntryCopy) error {
	return e.Set.Entries(e.Stream, e.Params, &c.Tree, e.Bits, e.ValBits, e.First, e.Offsets, e.Runs, e.N, e.Keys, e.Vals)
}

// Vectors works on the values in the column, or beside their keys.
func (c *Copy) Vectors(v *layout.VectorLaunch) error {
	if c.vals > 0 {
		return v.Set.Column(v.Stream, v.Params, v.Vectors, c.Vals)
	}
	return v.Set.PairValues(v.Stream, v.Params, v.Vectors, &c.Tree)
}

// resident is a tree on a device: one kernel goes through all levels.
type resident struct{ Copy }

func (r *resident) Kernels() []kernel.Source { return nil }

func (r *resident) Favor(st device.Stream) { kernel.Favor(st, &r.Tree) }

func (r *resident) Launch(l *layout.Launch) error {
	if l.To <= r.host.Levels {
		return l.Down(l.Enter(r.Tree))
	}
	return l.Answer(l.Enter(r.Tree))
}
