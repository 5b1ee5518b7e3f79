package main

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
)

var gpuLayouts = &experiment{
	name:    "gpu-layouts",
	about:   "ranks among uint32 keys on the GPU with each layout, queries and results in its memory, timed by events",
	figure:  "fig. 7, GPU line, of the " + paper10 + ", without the rids",
	per:     "one rank",
	sizes:   fastSizes.sizes,
	queries: 128 * mega,
	extra:   gigaColumns,
	run:     runGPULayouts,
}

func runGPULayouts(s *session) error {
	const queryHost = 4 + 4 + 8 // query, expected rank, the CPU's rank
	err := withGPU(s, queryHost, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint32]) error {
			return g.clear(len(d.keys), residentLayouts(g, d))
		})
	})
	s.setGigas()
	return err
}

func residentLayouts(g *gpuRig, d *dataset[uint32]) error {
	s := g.s
	s.say("building %s, %s ...", namePando, sizeText(len(d.keys)))
	set, err := openFrozenFor(allCores(), namePandoCPU, d.keys, make([]struct{}, len(d.keys)))
	if err != nil {
		return err
	}
	defer set.Close()
	plain, err := upload(g, d, implicit.Apart, 0)
	if err != nil {
		return err
	}
	r := &residentRanks{g: g, d: d, q: make([]uint32, s.queries), want: make([]uint32, s.queries), ranks: make([]int, s.queries)}
	if err := r.prepare(frozenSet[uint32]{set}); err != nil {
		return err
	}
	// Pages and leaves that queries have reached.
	nodes, err := g.alloc(4 * s.queries)
	if err != nil {
		return err
	}
	pages, err := uploadBlocked(g, d, nodes)
	if err != nil {
		return err
	}
	packed, err := uploadPacked(g, d, nodes)
	if err != nil {
		return err
	}
	return competeOnGPU(g, len(d.keys), []*subject{
		r.resident(namePandoImplicit, plain.perEntry, plain),
		r.resident(namePandoBlocked, pages.perEntry, pages),
		r.resident(namePandoCompressed, packed.perEntry, packed),
		r.onCPU(frozenSet[uint32]{set}),
	})
}

// gpuBlocked is a blocked tree on the GPU: one kernel goes through the rows of
// pages, another searches the leaves.
type gpuBlocked struct {
	rows     kernel.Blocked
	leaves   kernel.Tree
	nodes    device.Ptr
	perEntry float64
}

func uploadBlocked(g *gpuRig, d *dataset[uint32], nodes device.Ptr) (*gpuBlocked, error) {
	tree, err := blocked.Build(implicit.Source[uint32]{Len: len(d.keys), Codes: d.keys},
		blocked.Config{Config: stepConfig(arena.HugeAll)})
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	all, _ := tree.Memory()
	base, err := put(g, all)
	if err != nil {
		return nil, err
	}
	t := &gpuBlocked{nodes: nodes, perEntry: float64(len(all)) / float64(len(d.keys))}
	var rows []kernel.Row
	for _, r := range tree.Rows() {
		rows = append(rows, kernel.Row(r))
	}
	if t.rows, err = kernel.NewBlocked(rows, 32, tree.Leaves(), base); err != nil {
		return nil, err
	}
	t.leaves, err = kernel.NewTree(tree.Leaves(), base, 0)
	return t, err
}

func (t *gpuBlocked) favor(g *gpuRig) error {
	return g.favor(t, func() { kernel.FavorBlocked(g.stream, &t.rows) })
}

func (t *gpuBlocked) rank(g *gpuRig, keys device.Ptr, n int, ranks device.Ptr) error {
	leaves := t.leaves
	if t.rows.Rows > 0 { // a single leaf has no rows above it
		if err := g.kernels.BlockedDown(g.stream, &g.params, &t.rows, 32, keys, n, t.nodes); err != nil {
			return err
		}
		leaves.Start = t.nodes
	}
	return g.kernels.Rank(g.stream, &g.params, &leaves, 32, keys, n, ranks)
}

// gpuPacked is packed pages on the GPU, and the tree over them: the rank in
// that tree is the page.
type gpuPacked struct {
	top      kernel.Tree
	pages    kernel.Packed
	nodes    device.Ptr
	perEntry float64
}

func uploadPacked(g *gpuRig, d *dataset[uint32], nodes device.Ptr) (*gpuPacked, error) {
	tree, err := blocked.BuildPacked(implicit.Source[uint32]{Len: len(d.keys), Codes: d.keys}, stepConfig(arena.HugeAll))
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	all, _ := tree.Memory()
	base, err := put(g, all)
	if err != nil {
		return nil, err
	}
	t := &gpuPacked{nodes: nodes, perEntry: float64(len(all)) / float64(len(d.keys))}
	at := tree.Places()
	if t.pages, err = kernel.NewPacked(base+device.Ptr(at.Table), base+device.Ptr(at.Words), at.Last+1, at.End, at.Len); err != nil {
		return nil, err
	}
	if t.top, err = kernel.NewTree(&tree.Top().Tree, base, 0); err != nil {
		return nil, err
	}
	t.top.Count = t.pages.Last // ranks are clamped to it
	return t, nil
}

func (t *gpuPacked) favor(g *gpuRig) error {
	return g.favor(t, func() { kernel.Favor(g.stream, &t.top) })
}

func (t *gpuPacked) rank(g *gpuRig, keys device.Ptr, n int, ranks device.Ptr) error {
	if err := g.kernels.Rank(g.stream, &g.params, &t.top, 32, keys, n, t.nodes); err != nil {
		return err
	}
	return g.kernels.PackedRank(g.stream, &g.params, &t.pages, 32, keys, n, t.nodes, ranks)
}
