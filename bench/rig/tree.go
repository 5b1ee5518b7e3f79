package rig

import (
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
)

// Tree is Pando's tree in a GPU's memory.
type Tree struct {
	kernel.Tree
	Signs    *kernel.Signs // nil if there are none
	PerEntry float64       // bytes
	Leaves   int64         // bytes
}

// UploadPairs builds a tree as Frozen would, with pairs in its leaves, and
// copies it to the GPU.
func UploadPairs[W data.Word](g *Rig, d *data.Dataset[W]) (*Tree, error) {
	return upload(g, d, implicit.Pairs, data.BitsOf[W]()/8)
}

// UploadApart is UploadPairs with keys and values apart.
func UploadApart[W data.Word](g *Rig, d *data.Dataset[W]) (*Tree, error) {
	return upload(g, d, implicit.Apart, data.BitsOf[W]()/8)
}

// UploadKeys is UploadPairs without values.
func UploadKeys[W data.Word](g *Rig, d *data.Dataset[W]) (*Tree, error) {
	return upload(g, d, implicit.Apart, 0)
}

// upload does so; the host's own copy is not needed after that.
func upload[W data.Word](g *Rig, d *data.Dataset[W], leaves implicit.Leaves, valSize int) (*Tree, error) {
	tree, err := implicit.Build(layout.Source[W]{
		Len: len(d.Keys), Codes: d.Keys, Vals: unsafe.Pointer(unsafe.SliceData(d.Vals)),
	}, implicit.Config{Leaves: leaves, ValSize: valSize, Pages: inside.HugePages, Workers: contest.AllCores()})
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	all, vals := tree.Memory()
	base, err := Put(g, all)
	if err != nil {
		return nil, err
	}
	t := &Tree{PerEntry: float64(len(all)) / float64(len(d.Keys)), Leaves: tree.Stats().LeafBytes}
	if t.Tree, err = kernel.NewTree(&tree.Tree, base, base+Ptr(vals)); err != nil {
		return nil, err
	}
	return t, t.sign(g, tree.Image().Resident, base, len(d.Keys))
}

// sign makes signs as an index on a GPU does.
func (t *Tree) sign(g *Rig, r layout.Resident, base Ptr, n int) error {
	signed := r.(interface {
		layout.Signed
		Signs() *kernel.Signs
	})
	size := signed.SignBytes()
	if size == 0 {
		return nil
	}
	at, err := g.Alloc(size)
	if err != nil {
		return err
	}
	if err := r.Place(base); err != nil {
		return err
	}
	if _, err := signed.Sign(g.Kernels, g.Stream, at); err != nil {
		return err
	}
	if t.Signs = signed.Signs(); t.Signs != nil {
		t.PerEntry += float64(size) / float64(n)
	}
	return nil
}

// Unsigned returns the tree without signs, or nil if it has none.
func (t *Tree) Unsigned() *Tree {
	if t.Signs == nil {
		return nil
	}
	return &Tree{Tree: t.Tree, PerEntry: t.PerEntry, Leaves: t.Leaves}
}

// Favor keeps the tree's upper levels in the GPU's cache, as an index on a GPU
// does, in place of those of the tree used before.
func (t *Tree) Favor(g *Rig) error {
	return g.Favor(t, func() {
		if t.Signs != nil {
			t.Signs.Favor(g.Stream)
			return
		}
		kernel.Favor(g.Stream, &t.Tree)
	})
}

// Favor calls keep, which asks for a tree's upper levels to stay in the cache,
// unless that tree was also the last one.
func (g *Rig) Favor(tree any, keep func()) error {
	if g.favored == tree {
		return nil
	}
	g.favored = tree
	if p, ok := g.Stream.(device.Persister); ok && p.Persistable() > 0 {
		if err := p.Persist(0, 0); err != nil {
			return err
		}
		keep()
	}
	return nil
}

// Compete runs a contest of subjects; nil ones are skipped. Ratios are
// relative to the first.
func Compete(g *Rig, n int, subjects []*contest.Subject) error {
	c := &contest.Contest{N: n, Threads: contest.AllCores(), Ops: g.S.Queries}
	for _, sub := range subjects {
		if sub != nil {
			c.Subjects = append(c.Subjects, sub)
		}
	}
	c.Subjects[0].Reference = true
	return g.S.Compete(c)
}

// ResidentTree is a tree on the GPU that ranks keys that are on the GPU too.
type ResidentTree interface {
	Favor(g *Rig) error
	Rank(g *Rig, keys Ptr, n int, ranks Ptr) error
}

// Rank ranks keys of 32 bits.
func (t *Tree) Rank(g *Rig, keys Ptr, n int, ranks Ptr) error {
	return g.Kernels.Rank(g.Stream, &g.Params, &t.Tree, t.Signs, 32, keys, n, ranks)
}
