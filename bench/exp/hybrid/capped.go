package hybrid

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var hybridCapped = &contest.Experiment{
	Name:    "hybrid-capped",
	About:   "GetBatch of an index whose GPU may hold a tenth of it, beside all inner levels, all of it, and none",
	Per:     "one key looked up, from host memory to host memory",
	Sizes:   []int{64 * contest.Mega},
	Queries: 64 * contest.Mega,
	Faster:  "x CPU",
	Extra:   append(contest.GigaColumns, contest.ExtraColumn{Name: colOnGPU, Format: contest.Number}),
	Run:     runHybridCapped,
}

// colOnGPU is the memory of an index on the GPU, without buckets.
const colOnGPU = "MiB on GPU"

func runHybridCapped(s *contest.Session) error {
	err := rig.With(s, work.BulkBytes[uint64](), func(*rig.Rig) error {
		const trees = 1 + 4*1.25 // the pairs, and four trees of them
		return data.EachFitting(s, trees*data.PairBytes[uint64](), work.BulkBytes[uint64](), func(d *data.Dataset[uint64]) error {
			return compareCapped(s, d)
		})
	})
	s.SetGigas()
	return err
}

func compareCapped(s *contest.Session, d *data.Dataset[uint64]) error {
	systems, err := ours.OpenAll(s, d, ours.NameCPU, ours.NameHybrid, ours.NameGPU)
	if err != nil {
		return err
	}
	defer func() { peers.CloseAll(systems) }()
	capped, err := ours.OpenCapped(s, d, systems[0])
	if err != nil {
		return err
	}
	if capped != nil {
		systems = append(systems, capped)
	}
	b := work.NewBulk(s, d)
	c := b.Contest("")
	for i, sys := range systems {
		sub := b.Subject(sys.Name(), sys, nil)
		sub.Reference, sub.Bytes = i == 0, sys.BytesPerEntry()
		c.Subjects = append(c.Subjects, sub)
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	for i, r := range s.Latest(c) {
		r.Set(colOnGPU, float64(systems[i].Ix.Stats().DeviceBytes)/contest.Mega)
	}
	return nil
}
