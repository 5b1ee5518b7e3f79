package gpu

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/internal/layout"
)

var gpuLayouts = &contest.Experiment{
	Name:    "gpu-layouts",
	About:   "ranks among uint32 keys on the GPU with each layout, queries and results in its memory, timed by events",
	Figure:  "fig. 7, GPU line, of the " + contest.Paper10 + ", without the rids",
	Per:     "one rank",
	Sizes:   contest.ManySizes,
	Queries: 128 * contest.Mega,
	Extra:   contest.GigaColumns,
	Run:     runGPULayouts,
}

func runGPULayouts(s *contest.Session) error {
	const queryHost = 4 + 4 + 8 // query, expected rank, the CPU's rank
	err := rig.With(s, queryHost, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint32]) error {
			return g.Clear(len(d.Keys), residentLayouts(g, d))
		})
	})
	s.SetGigas()
	return err
}

func residentLayouts(g *rig.Rig, d *data.Dataset[uint32]) error {
	s := g.S
	s.Say("building %s, %s ...", contest.Pando, contest.SizeText(len(d.Keys)))
	set, err := ours.OpenFrozenFor(contest.AllCores(), ours.NameCPU, d.Keys, make([]struct{}, len(d.Keys)))
	if err != nil {
		return err
	}
	defer set.Close()
	plain, err := rig.UploadKeys(g, d)
	if err != nil {
		return err
	}
	r := &residentRanks{g: g, d: d, q: make([]uint32, s.Queries), want: make([]uint32, s.Queries), ranks: make([]int, s.Queries)}
	if err := r.prepare(ours.FrozenSet[uint32]{Frozen: set}); err != nil {
		return err
	}
	// Pages and leaves that queries have reached.
	nodes, err := g.Alloc(4 * s.Queries)
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
	return rig.Compete(g, len(d.Keys), []*contest.Subject{
		r.resident(ours.NameImplicit, plain.PerEntry, plain),
		r.resident(ours.NameBlocked, pages.perEntry, pages),
		r.resident(ours.NameCompressed, small.perEntry, small),
		r.onCPU(ours.FrozenSet[uint32]{Frozen: set}),
	})
}

// gpuImage is a tree on the GPU as an index has it there.
type gpuImage struct {
	layout.Image
	nodes    rig.Ptr // room for what queries have come to
	perEntry float64
}

// uploadImage copies a tree of n keys, which is not needed after that.
func uploadImage(g *rig.Rig, n int, im layout.Image, nodes rig.Ptr) (*gpuImage, error) {
	base, err := rig.Put(g, im.Memory)
	if err != nil {
		return nil, err
	}
	t := &gpuImage{im, nodes, float64(len(im.Memory)) / float64(n)}
	t.Memory = nil
	return t, im.Resident.Place(base)
}

func uploadBlocked(g *rig.Rig, d *data.Dataset[uint32], nodes rig.Ptr) (*gpuImage, error) {
	tree, err := inside.BuildPaged(d, 0, 0, inside.HugePages)
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	return uploadImage(g, len(d.Keys), tree.Image(), nodes)
}

func uploadPacked(g *rig.Rig, d *data.Dataset[uint32], nodes rig.Ptr) (*gpuImage, error) {
	tree, err := inside.BuildPacked(d, 0)
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	return uploadImage(g, len(d.Keys), tree.Image(), nodes)
}

func (t *gpuImage) Favor(g *rig.Rig) error {
	return g.Favor(t, func() { t.Resident.Favor(g.Stream) })
}

func (t *gpuImage) Rank(g *rig.Rig, keys rig.Ptr, n int, ranks rig.Ptr) error {
	return t.Resident.Launch(&layout.Launch{
		Set: g.Kernels, Stream: g.Stream, Params: &g.Params,
		Bits: 32, N: n, Keys: keys, Nodes: t.nodes, To: t.Depth() + 1, Want: layout.WantRanks, Out: ranks,
	})
}
