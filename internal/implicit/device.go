package implicit

import (
	"encoding/binary"
	"errors"
	"unsafe"

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
		Resident: t.resident(),
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

// signedFrom is the least number of leaves of a tree that has signs: the inner nodes of one that has
// fewer stay in the first-level cache.
const signedFrom = 4 << 10

// resident is a tree on a device: one kernel goes through all levels.
type resident struct {
	Copy
	bits  int
	plan  kernel.Signs  // as they would be
	signs *kernel.Signs // nil until they are there
}

func (t *Tree[C]) resident() *resident {
	r := &resident{Copy: t.OnDevice(), bits: 8 * keyBytes[C]()}
	if t.leaves >= signedFrom {
		low := *(*C)(t.leaf(0))
		high := *(*C)(unsafe.Add(t.leaf(t.leaves-1), (t.perLeaf()-1)*keyBytes[C]()))
		r.plan = kernel.NewSigns(&t.Tree, uint64(low), uint64(high))
	}
	return r
}

func (r *resident) Kernels() []kernel.Source {
	if r.SignBytes() == 0 {
		return nil
	}
	return []kernel.Source{kernel.SignsSource}
}

// Place takes note of where the image would begin. Signs have to be made again then.
func (r *resident) Place(base device.Ptr) error {
	r.signs = nil
	return r.Copy.Place(base)
}

// SignBytes returns the bytes of signs, and of a word to count in.
func (r *resident) SignBytes() int {
	if n := r.plan.Bytes(); n > 0 {
		return n + 4
	}
	return 0
}

// Signs returns the signs that were made, or nil.
func (r *resident) Signs() *kernel.Signs { return r.signs }

// Sign makes signs, and looks how far off they lead. Where more than one leaf in a hundred is not found by
// them, they are tried without their table, which serves keys that lie evenly; and then given up, since the
// 32 queries of a warp all wait for one that begins again.
func (r *resident) Sign(set *kernel.Set, st device.Stream, at device.Ptr) (used bool, err error) {
	g := r.plan
	g.Base = at
	if err := set.Sign(st, &r.Tree, &g, r.bits); err != nil {
		return false, err
	}
	most := (g.Last[g.Levels] + 1) / 100
	astray, err := r.astray(set, st, &g)
	if err == nil && astray > most {
		g.Buckets = 0
		astray, err = r.astray(set, st, &g)
	}
	if err != nil || astray > most {
		return false, err
	}
	r.signs = &g
	return true, nil
}

// astray counts the leaves that signs miss.
func (r *resident) astray(set *kernel.Set, st device.Stream, g *kernel.Signs) (uint32, error) {
	var count [4]byte
	at := g.Base + device.Ptr(g.Bytes())
	err := errors.Join(
		st.Fill(at, 0, 4),
		set.Astray(st, &r.Tree, g, r.bits, at),
		st.CopyOut(count[:], at),
		st.Synchronize(),
	)
	return binary.LittleEndian.Uint32(count[:]), err
}

func (r *resident) Favor(st device.Stream) {
	if r.signs != nil {
		r.signs.Favor(st)
		return
	}
	kernel.Favor(st, &r.Tree)
}

func (r *resident) Launch(l *layout.Launch) error {
	switch {
	case l.To <= r.host.Levels:
		return l.Down(l.Enter(r.Tree))
	case l.Begins:
		return l.Answer(l.Enter(r.Tree), nil)
	}
	return l.Answer(r.Tree, r.signs)
}
