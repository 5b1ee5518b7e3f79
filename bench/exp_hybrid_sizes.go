package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/pando-index/pando/internal/device"
)

var hybridSizes = &experiment{
	name:     "hybrid-sizes",
	about:    "Get on CPU, on both and on the GPU, 64 and 32 bits, over many sizes: throughput and latency",
	figure:   "fig. 16 of the " + paper16,
	per:      "one key looked up, from host memory to host memory",
	caseName: "bits",
	sizes:    []int{8 * mega, 16 * mega, 32 * mega, 64 * mega, 128 * mega, 256 * mega, 512 * mega},
	queries:  32 * mega,
	faster:   "x CPU",
	extra:    append(gigaColumns, extraColumn{colBucketTime, number}, extraColumn{colUpper, whole}, extraColumn{colShare, plain}),
	run:      runHybridSizes,
}

func runHybridSizes(s *session) error {
	err := withGPU(s, bulkBytes[uint64](), func(g *gpuRig) error {
		if err := eachHybrid(g, compareSizes[uint64]); err != nil {
			return err
		}
		return eachHybrid(g, compareSizes[uint32])
	})
	s.setGigas()
	return err
}

func compareSizes[W word](h *hybridRig[W]) error {
	hybrid, _, err := h.balanced()
	if err != nil {
		return err
	}
	c := h.contest(strconv.Itoa(bitsOf[W]()), h.onCPU(), h.subject(namePandoHybrid, hybrid, nil))
	schedules := []*schedule[W]{hybrid}
	gpu, err := h.whole()
	switch {
	case errors.Is(err, device.ErrOutOfMemory):
		h.s.skip("%s at n %s: no room for it on the GPU: %v", namePandoGPU, sizeText(len(h.d.keys)), err)
	case err != nil:
		return err
	default:
		c.subjects = append(c.subjects, h.subject(namePandoGPU, gpu, nil))
		schedules = append(schedules, gpu)
	}
	if err := h.s.compete(c); err != nil {
		return err
	}
	rows := h.s.latest(c)
	rows[0].set(colBucketTime, micros(h.cpuLatency()))
	for i, gpu := range schedules {
		t, err := h.times(gpu, gpu.Plan())
		if err != nil {
			return err
		}
		rows[i+1].set(colBucketTime, micros(t.Latency))
		setSplit(rows[i+1], gpu.Plan().Split)
	}
	return nil
}

// cpuLatency returns the time of a batch of 256 queries, one batch after
// another: the paper's number of concurrent queries on the CPU.
func (h *hybridRig[W]) cpuLatency() time.Duration {
	const batch, batches = 256, 4096
	n := min(batch, len(h.q))
	count := min(batches, len(h.q)/n)
	start := time.Now()
	for i := range count {
		h.ask(h.cpu, i*n, (i+1)*n)
	}
	took := time.Since(start)
	h.wipe(0, count*n)
	return took / time.Duration(count)
}
