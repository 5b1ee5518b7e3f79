package gpu

import (
	"errors"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

const namePandoBuffers = "Pando GPU, pando.Buffer"

var gpuEndToEnd = &contest.Experiment{
	Name:    "gpu-endtoend",
	About:   "a batch of Get, uint64 to uint64, random hits, from host slices through the GPU and back",
	Figure:  "fig. 16(a) of the " + contest.Paper16 + ", with the whole tree on the GPU",
	Per:     "one key looked up, copies to the GPU and back included",
	Sizes:   []int{16 * contest.Mega, 64 * contest.Mega},
	Queries: 64 * contest.Mega,
	Extra:   contest.GigaColumns,
	Run:     runGPUEndToEnd,
}

func runGPUEndToEnd(s *contest.Session) error {
	const queryHost = 2*(8+8) + 1 + 1 // query and value, twice; found, found expected
	err := rig.With(s, queryHost, func(g *rig.Rig) error {
		return rig.WithCopyLimit(g, rig.QueryBytes, rig.CopyBuffer, func(limit *rig.CopyLimit) error {
			return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
				return endToEnd(s, d, limit)
			})
		})
	})
	s.SetGigas()
	return err
}

// endToEnd measures Pando's public API, on the GPU and on the CPU, both timed
// by the host's clock: the time that a caller waits.
func endToEnd(s *contest.Session, d *data.Dataset[uint64], limit *rig.CopyLimit) error {
	s.Say("building %s, %s ...", contest.Pando, contest.SizeText(len(d.Keys)))
	cpu, err := ours.OpenFrozenFor(contest.AllCores(), ours.NameCPU, d.Keys, d.Vals)
	if err != nil {
		return err
	}
	defer cpu.Close()
	systems := []peers.System[uint64]{ours.FrozenMap[uint64]{Frozen: cpu}}
	gpu, err := ours.OpenOnGPU(s.GPU, contest.AllCores(), d)
	if err != nil {
		s.Skip("%s at n %s: %v", ours.NameGPU, contest.SizeText(len(d.Keys)), err)
	} else {
		defer gpu.Close()
		systems = append([]peers.System[uint64]{ours.FrozenMap[uint64]{Frozen: gpu.Frozen}}, systems...)
	}
	l := work.NewLookups(s, d)
	c, err := l.Contest(systems, nil, contest.AllCores(), "", d.Hits, work.AllHits)
	if err != nil {
		return err
	}
	locked, err := inBuffers(l)
	if err != nil {
		return err
	}
	defer locked.close()
	if gpu != nil && s.Wanted(namePandoBuffers) {
		sub, err := locked.Batches(ours.FrozenMap[uint64]{Frozen: gpu.Frozen}, contest.AllCores())
		if err != nil {
			return err
		}
		sub.System = namePandoBuffers
		c.Subjects = append(c.Subjects[:1], append([]*contest.Subject{sub}, c.Subjects[1:]...)...)
	}
	if limit != nil {
		c.Subjects = append(c.Subjects, limit.Subject())
	}
	for i := range l.Want {
		l.Want[i] = true
	}
	c.Fresh = func(round int) {
		data.DrawPieces(s.Seed, uint64(round+1), l.Q, d.Hits)
		copy(locked.Q, l.Q)
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	if gpu != nil && gpu.Strayed() != "" {
		s.Skip("%s at n %s: not all of its answers are the GPU's: %s", ours.NameGPU, contest.SizeText(len(d.Keys)), gpu.Strayed())
	}
	return nil
}

// lockedLookups are lookups whose queries and values the GPU can access
// directly.
type lockedLookups struct {
	*work.Lookups[uint64]
	in, out *pando.Buffer[uint64]
}

// inBuffers makes lookups like others, in memory of their own.
func inBuffers(l *work.Lookups[uint64]) (*lockedLookups, error) {
	in, err := pando.NewBuffer[uint64](len(l.Q))
	if err != nil {
		return nil, err
	}
	out, err := pando.NewBuffer[uint64](len(l.Vals))
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	own := *l
	own.Q, own.Vals = in.Slice(), out.Slice()
	return &lockedLookups{&own, in, out}, nil
}

func (l *lockedLookups) close() error { return errors.Join(l.in.Close(), l.out.Close()) }
