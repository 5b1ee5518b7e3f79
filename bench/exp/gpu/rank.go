package gpu

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
)

var gpuRankU32 = &contest.Experiment{
	Name:    "gpu-rank-u32",
	About:   "ranks among uint32 keys on the GPU, queries and results in its memory, timed by events",
	Figure:  "fig. 7, GPU line, of the FAST paper (SIGMOD 2010, section 5.2), without the rids",
	Per:     "one rank",
	Sizes:   []int{16 * contest.Mega, 64 * contest.Mega},
	Queries: 128 * contest.Mega,
	Extra:   contest.GigaColumns,
	Run:     runGPURank,
}

func runGPURank(s *contest.Session) error {
	const queryHost = 4 + 4 + 8 // query, expected rank, the CPU's rank
	err := rig.With(s, queryHost, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint32]) error {
			return g.Clear(len(d.Keys), gpuRanks(g, d))
		})
	})
	s.SetGigas()
	return err
}

// residentRanks is one contest: the queries, on the host and on the GPU, and
// their ranks according to the CPU's index.
type residentRanks struct {
	g     *rig.Rig
	d     *data.Dataset[uint32]
	q     []uint32
	want  []uint32
	ranks []int // the CPU's answers
	keys  rig.Ptr
	out   rig.Ptr
}

func gpuRanks(g *rig.Rig, d *data.Dataset[uint32]) error {
	s := g.S
	s.Say("building %s, %s ...", contest.Pando, contest.SizeText(len(d.Keys)))
	set, err := ours.OpenFrozenFor(contest.AllCores(), ours.NameCPU, d.Keys, make([]struct{}, len(d.Keys)))
	if err != nil {
		return err
	}
	defer set.Close()
	tree, err := rig.UploadKeys(g, d)
	if err != nil {
		return err
	}
	r := &residentRanks{g: g, d: d, q: make([]uint32, s.Queries), want: make([]uint32, s.Queries), ranks: make([]int, s.Queries)}
	if err := r.prepare(ours.FrozenSet[uint32]{Frozen: set}); err != nil {
		return err
	}
	return rig.WithGatherLimit(g, tree.Leaves, func(limit *rig.GatherLimit) error {
		return peers.WithThrust(s, peers.NameThrust, gpu.Rank32, len(d.Keys), data.KeyBytesU32, func(peer *contest.Subject) error {
			subjects := []*contest.Subject{r.onGPU(tree), r.unsigned(tree), r.onCPU(ours.FrozenSet[uint32]{Frozen: set}), peer}
			if limit != nil {
				subjects = append(subjects, limit.Subject())
			}
			return rig.Compete(g, len(d.Keys), subjects)
		})
	})
}

// prepare draws the queries from the whole domain, finds their ranks on the
// CPU, checks each of them, and copies the queries to the GPU.
func (r *residentRanks) prepare(set ours.FrozenSet[uint32]) (err error) {
	data.DrawPieces(r.g.S.Seed, 0, r.q, anyNumber)
	set.Rank(r.q, r.ranks)
	wrong := contest.Spread(contest.AllCores(), len(r.q), func(lo, hi int) (wrong int) {
		for i := lo; i < hi; i++ {
			r.want[i] = uint32(r.ranks[i])
			if !r.d.IsRank(r.q[i], r.ranks[i]) {
				wrong++
			}
		}
		return wrong
	})
	if wrong > 0 {
		return fmt.Errorf("%s: %d wrong ranks", ours.NameCPU, wrong)
	}
	if r.keys, err = rig.Put(r.g, r.q); err != nil {
		return err
	}
	r.out, err = r.g.Alloc(4 * len(r.q))
	return err
}

func anyNumber(rng *rand.Rand, q []uint32) {
	for i := range q {
		q[i] = rng.Uint32()
	}
}

func (r *residentRanks) onGPU(t *rig.Tree) *contest.Subject {
	return r.resident(ours.NameGPU, t.PerEntry, t)
}

// unsigned asks a tree by its inner nodes, if it has signs to compare them with.
func (r *residentRanks) unsigned(t *rig.Tree) *contest.Subject {
	if t = t.Unsigned(); t == nil {
		return nil
	}
	return r.resident(ours.NameGPU+ours.Unsigned, t.PerEntry, t)
}

func (r *residentRanks) resident(name string, perEntry float64, t rig.ResidentTree) *contest.Subject {
	g := r.g
	return g.Subject(name, perEntry,
		func(ops int) error { return errors.Join(t.Favor(g), t.Rank(g, r.keys, ops, r.out)) },
		func(ops int) error { return g.Stream.Fill(r.out, math.MaxUint32, 4*ops) },
		func(ops int) error { return rig.ReadBack(g, r.out, ops, r.compare) })
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

func (r *residentRanks) onCPU(set ours.FrozenSet[uint32]) *contest.Subject {
	return &contest.Subject{
		System: ours.NameCPU,
		Bytes:  set.BytesPerEntry(),
		Do:     func(ops int) error { set.Rank(r.q[:ops], r.ranks[:ops]); return nil },
		Check: func(ops int) error {
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
