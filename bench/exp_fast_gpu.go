package main

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packed"
	"github.com/pando-index/pando/internal/paged"
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
	small, err := uploadPacked(g, d, nodes)
	if err != nil {
		return err
	}
	return competeOnGPU(g, len(d.keys), []*subject{
		r.resident(namePandoImplicit, plain.perEntry, plain),
		r.resident(namePandoBlocked, pages.perEntry, pages),
		r.resident(namePandoCompressed, small.perEntry, small),
		r.onCPU(frozenSet[uint32]{set}),
	})
}

// gpuImage is a tree on the GPU as an index has it there.
type gpuImage struct {
	layout.Image
	nodes    device.Ptr // room for what queries have come to
	perEntry float64
}

// uploadImage copies a tree of n keys, which is not needed after that.
func uploadImage(g *gpuRig, n int, im layout.Image, nodes device.Ptr) (*gpuImage, error) {
	base, err := put(g, im.Memory)
	if err != nil {
		return nil, err
	}
	t := &gpuImage{im, nodes, float64(len(im.Memory)) / float64(n)}
	t.Memory = nil
	return t, im.Resident.Place(base)
}

func uploadBlocked(g *gpuRig, d *dataset[uint32], nodes device.Ptr) (*gpuImage, error) {
	tree, err := paged.Build(layout.Source[uint32]{Len: len(d.keys), Codes: d.keys},
		paged.Config{Config: stepConfig(arena.HugeAll)})
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	return uploadImage(g, len(d.keys), tree.Image(), nodes)
}

func uploadPacked(g *gpuRig, d *dataset[uint32], nodes device.Ptr) (*gpuImage, error) {
	tree, err := packed.Build(layout.Source[uint32]{Len: len(d.keys), Codes: d.keys}, stepConfig(arena.HugeAll))
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	return uploadImage(g, len(d.keys), tree.Image(), nodes)
}

func (t *gpuImage) favor(g *gpuRig) error {
	return g.favor(t, func() { t.Resident.Favor(g.stream) })
}

func (t *gpuImage) rank(g *gpuRig, keys device.Ptr, n int, ranks device.Ptr) error {
	return t.Resident.Launch(&layout.Launch{
		Set: g.kernels, Stream: g.stream, Params: &g.params,
		Bits: 32, N: n, Keys: keys, Nodes: t.nodes, To: t.Depth() + 1, Want: layout.WantRanks, Out: ranks,
	})
}
