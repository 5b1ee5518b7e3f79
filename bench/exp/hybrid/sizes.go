package hybrid

import (
	"errors"
	"strconv"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var hybridSizes = &contest.Experiment{
	Name:     "hybrid-sizes",
	About:    "Get on CPU, on both and on the GPU, 64 and 32 bits, over many sizes: throughput and latency",
	Figure:   "fig. 16 of the " + contest.Paper16,
	Per:      "one key looked up, from host memory to host memory",
	CaseName: "bits",
	Sizes:    []int{8 * contest.Mega, 16 * contest.Mega, 32 * contest.Mega, 64 * contest.Mega, 128 * contest.Mega, 256 * contest.Mega, 512 * contest.Mega},
	Queries:  32 * contest.Mega,
	Faster:   "x CPU",
	Extra:    append(contest.GigaColumns, contest.ExtraColumn{Name: colBucketTime, Format: contest.Number}, contest.ExtraColumn{Name: colUpper, Format: contest.Whole}, contest.ExtraColumn{Name: colShare, Format: contest.Plain}),
	Run:      runHybridSizes,
}

func runHybridSizes(s *contest.Session) error {
	err := rig.With(s, work.BulkBytes[uint64](), func(g *rig.Rig) error {
		if err := eachHybrid(g, compareSizes[uint64]); err != nil {
			return err
		}
		return eachHybrid(g, compareSizes[uint32])
	})
	s.SetGigas()
	return err
}

func compareSizes[W data.Word](h *hybridRig[W]) error {
	hybrid, _, err := h.balanced()
	if err != nil {
		return err
	}
	c := h.Contest(strconv.Itoa(data.BitsOf[W]()), h.onCPU(), h.Subject(ours.NameHybrid, hybrid, nil))
	schedules := []*schedule[W]{hybrid}
	gpu, err := h.whole()
	switch {
	case errors.Is(err, rig.ErrOutOfMemory):
		h.S.Skip("%s at n %s: no room for it on the GPU: %v", ours.NameGPU, contest.SizeText(len(h.D.Keys)), err)
	case err != nil:
		return err
	default:
		c.Subjects = append(c.Subjects, h.Subject(ours.NameGPU, gpu, nil))
		schedules = append(schedules, gpu)
	}
	if err := h.S.Compete(c); err != nil {
		return err
	}
	rows := h.S.Latest(c)
	rows[0].Set(colBucketTime, micros(h.cpuLatency()))
	for i, gpu := range schedules {
		t, err := h.times(gpu, gpu.Plan())
		if err != nil {
			return err
		}
		rows[i+1].Set(colBucketTime, micros(t.Latency))
		setSplit(rows[i+1], gpu.Plan().Split)
	}
	return nil
}

// cpuLatency returns the time of a batch of 256 queries, one batch after
// another: the paper's number of concurrent queries on the CPU.
func (h *hybridRig[W]) cpuLatency() time.Duration {
	const batch, batches = 256, 4096
	n := min(batch, len(h.Q))
	count := min(batches, len(h.Q)/n)
	start := time.Now()
	for i := range count {
		h.Ask(h.cpu, i*n, (i+1)*n)
	}
	took := time.Since(start)
	h.Wipe(0, count*n)
	return took / time.Duration(count)
}
