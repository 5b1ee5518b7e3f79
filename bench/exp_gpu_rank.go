package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
)

var gpuRankU32 = &experiment{
	name:    "gpu-rank-u32",
	about:   "ranks among uint32 keys on the GPU, queries and results in its memory, timed by events",
	figure:  "fig. 7, GPU line, of the FAST paper (SIGMOD 2010, section 5.2), without the rids",
	per:     "one rank",
	sizes:   []int{16 * mega, 64 * mega},
	queries: 128 * mega,
	extra:   gigaColumns,
	run:     runGPURank,
}

const (
	namePandoGPU      = "Pando GPU"
	namePandoGPUPairs = "Pando GPU pairs"
	namePandoGPUApart = "Pando GPU apart"
	namePandoCPU      = "Pando CPU"
)

func runGPURank(s *session) error {
	const queryHost = 4 + 4 + 8 // query, expected rank, the CPU's rank
	err := withGPU(s, queryHost, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint32]) error {
			return g.clear(len(d.keys), gpuRanks(g, d))
		})
	})
	s.setGigas()
	return err
}

// gpuTree is Pando's tree in a GPU's memory.
type gpuTree struct {
	kernel.Tree
	perEntry float64 // bytes
	leaves   int64   // bytes
}

// upload builds a tree as Frozen would and copies it to the GPU. The host's
// own copy is not needed after that.
func upload[W word](g *gpuRig, d *dataset[W], leaves implicit.Leaves, valSize int) (*gpuTree, error) {
	tree, err := implicit.Build(layout.Source[W]{
		Len: len(d.keys), Codes: d.keys, Vals: unsafe.Pointer(unsafe.SliceData(d.vals)),
	}, implicit.Config{Leaves: leaves, ValSize: valSize, Pages: arena.HugeAll, Workers: allCores()})
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	all, vals := tree.Memory()
	base, err := put(g, all)
	if err != nil {
		return nil, err
	}
	t := &gpuTree{perEntry: float64(len(all)) / float64(len(d.keys)), leaves: tree.Stats().LeafBytes}
	t.Tree, err = kernel.NewTree(&tree.Tree, base, base+device.Ptr(vals))
	return t, err
}

// favor keeps the tree's upper levels in the GPU's cache, as an index on a GPU
// does, in place of those of the tree used before.
func (t *gpuTree) favor(g *gpuRig) error {
	return g.favor(t, func() { kernel.Favor(g.stream, &t.Tree) })
}

// favor calls keep, which asks for a tree's upper levels to stay in the cache,
// unless that tree was also the last one.
func (g *gpuRig) favor(tree any, keep func()) error {
	if g.favored == tree {
		return nil
	}
	g.favored = tree
	if p, ok := g.stream.(device.Persister); ok && p.Persistable() > 0 {
		if err := p.Persist(0, 0); err != nil {
			return err
		}
		keep()
	}
	return nil
}

// residentRanks is one contest: the queries, on the host and on the GPU, and
// their ranks according to the CPU's index.
type residentRanks struct {
	g     *gpuRig
	d     *dataset[uint32]
	q     []uint32
	want  []uint32
	ranks []int // the CPU's answers
	keys  device.Ptr
	out   device.Ptr
}

func gpuRanks(g *gpuRig, d *dataset[uint32]) error {
	s := g.s
	s.say("building %s, %s ...", namePando, sizeText(len(d.keys)))
	set, err := openFrozenFor(allCores(), namePandoCPU, d.keys, make([]struct{}, len(d.keys)))
	if err != nil {
		return err
	}
	defer set.Close()
	tree, err := upload(g, d, implicit.Apart, 0)
	if err != nil {
		return err
	}
	r := &residentRanks{g: g, d: d, q: make([]uint32, s.queries), want: make([]uint32, s.queries), ranks: make([]int, s.queries)}
	if err := r.prepare(frozenSet[uint32]{set}); err != nil {
		return err
	}
	return withGatherLimit(g, tree.leaves, func(limit *gatherLimit) error {
		return withThrust(s, nameThrust, gpu.Rank32, len(d.keys), keyBytesU32, func(peer *subject) error {
			subjects := []*subject{r.onGPU(tree), r.onCPU(frozenSet[uint32]{set}), peer}
			if limit != nil {
				subjects = append(subjects, limit.subject())
			}
			return competeOnGPU(g, len(d.keys), subjects)
		})
	})
}

// competeOnGPU runs a contest of subjects; nil ones are skipped. Ratios are
// relative to the first.
func competeOnGPU(g *gpuRig, n int, subjects []*subject) error {
	c := &contest{n: n, threads: allCores(), ops: g.s.queries}
	for _, sub := range subjects {
		if sub != nil {
			c.subjects = append(c.subjects, sub)
		}
	}
	c.subjects[0].reference = true
	return g.s.compete(c)
}

// prepare draws the queries from the whole domain, finds their ranks on the
// CPU, checks each of them, and copies the queries to the GPU.
func (r *residentRanks) prepare(set frozenSet[uint32]) (err error) {
	drawPieces(r.g.s.seed, 0, r.q, anyNumber)
	set.Rank(r.q, r.ranks)
	wrong := spread(allCores(), len(r.q), func(lo, hi int) (wrong int) {
		for i := lo; i < hi; i++ {
			r.want[i] = uint32(r.ranks[i])
			if !r.d.isRank(r.q[i], r.ranks[i]) {
				wrong++
			}
		}
		return wrong
	})
	if wrong > 0 {
		return fmt.Errorf("%s: %d wrong ranks", namePandoCPU, wrong)
	}
	if r.keys, err = put(r.g, r.q); err != nil {
		return err
	}
	r.out, err = r.g.alloc(4 * len(r.q))
	return err
}

func anyNumber(rng *rand.Rand, q []uint32) {
	for i := range q {
		q[i] = rng.Uint32()
	}
}

func (r *residentRanks) onGPU(t *gpuTree) *subject {
	return r.resident(namePandoGPU, t.perEntry, t)
}

// residentTree is a tree on the GPU that ranks keys that are on the GPU too.
type residentTree interface {
	favor(g *gpuRig) error
	rank(g *gpuRig, keys device.Ptr, n int, ranks device.Ptr) error
}

func (t *gpuTree) rank(g *gpuRig, keys device.Ptr, n int, ranks device.Ptr) error {
	return g.kernels.Rank(g.stream, &g.params, &t.Tree, 32, keys, n, ranks)
}

func (r *residentRanks) resident(name string, perEntry float64, t residentTree) *subject {
	g := r.g
	return g.subject(name, perEntry,
		func(ops int) error { return errors.Join(t.favor(g), t.rank(g, r.keys, ops, r.out)) },
		func(ops int) error { return g.stream.Fill(r.out, math.MaxUint32, 4*ops) },
		func(ops int) error { return readBack(g, r.out, ops, r.compare) })
}

// compare checks every rank that came back from the GPU.
func (r *residentRanks) compare(first int, part []uint32) error {
	for i, rank := range part {
		if rank != r.want[first+i] {
			return r.wrong(first+i, int(rank))
		}
	}
	return nil
}

func (r *residentRanks) wrong(i, rank int) error {
	return fmt.Errorf("wrong rank of key %d: %d; it should be %d", r.q[i], rank, r.want[i])
}

func (r *residentRanks) onCPU(set frozenSet[uint32]) *subject {
	return &subject{
		system: namePandoCPU,
		bytes:  set.BytesPerEntry(),
		do:     func(ops int) error { set.Rank(r.q[:ops], r.ranks[:ops]); return nil },
		check: func(ops int) error {
			for i, rank := range r.ranks[:ops] {
				if rank != int(r.want[i]) {
					return r.wrong(i, rank)
				}
				r.ranks[i] = -1
			}
			return nil
		},
	}
}
