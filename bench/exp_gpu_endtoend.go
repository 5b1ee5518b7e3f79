package main

import (
	"errors"

	"github.com/pando-index/pando"
)

const namePandoBuffers = "Pando GPU, pando.Buffer"

var gpuEndToEnd = &experiment{
	name:    "gpu-endtoend",
	about:   "a batch of Get, uint64 to uint64, random hits, from host slices through the GPU and back",
	figure:  "fig. 16(a) of the " + paper16 + ", with the whole tree on the GPU",
	per:     "one key looked up, copies to the GPU and back included",
	sizes:   []int{16 * mega, 64 * mega},
	queries: 64 * mega,
	extra:   gigaColumns,
	run:     runGPUEndToEnd,
}

func runGPUEndToEnd(s *session) error {
	const queryHost = 2*(8+8) + 1 + 1 // query and value, twice; found, found expected
	err := withGPU(s, queryHost, func(g *gpuRig) error {
		return withCopyLimit(g, queryBytes, copyBuffer, func(limit *copyLimit) error {
			return forEachSize(s, func(d *dataset[uint64]) error {
				return endToEnd(s, d, limit)
			})
		})
	})
	s.setGigas()
	return err
}

// endToEnd measures Pando's public API, on the GPU and on the CPU, both timed
// by the host's clock: the time that a caller waits.
func endToEnd(s *session, d *dataset[uint64], limit *copyLimit) error {
	s.say("building %s, %s ...", namePando, sizeText(len(d.keys)))
	cpu, err := openFrozenFor(allCores(), namePandoCPU, d.keys, d.vals)
	if err != nil {
		return err
	}
	defer cpu.Close()
	systems := []system[uint64]{frozenMap[uint64]{cpu}}
	gpu, err := openOnGPU(s.gpu, allCores(), d)
	if err != nil {
		s.skip("%s at n %s: %v", namePandoGPU, sizeText(len(d.keys)), err)
	} else {
		defer gpu.Close()
		systems = append([]system[uint64]{frozenMap[uint64]{gpu.frozen}}, systems...)
	}
	l := newLookups(s, d)
	c, err := l.contest(systems, nil, allCores(), "", d.hits, allHits)
	if err != nil {
		return err
	}
	locked, err := inBuffers(l)
	if err != nil {
		return err
	}
	defer locked.close()
	if gpu != nil && s.wanted(namePandoBuffers) {
		sub, err := locked.batches(frozenMap[uint64]{gpu.frozen}, allCores())
		if err != nil {
			return err
		}
		sub.system = namePandoBuffers
		c.subjects = append(c.subjects[:1], append([]*subject{sub}, c.subjects[1:]...)...)
	}
	if limit != nil {
		c.subjects = append(c.subjects, limit.subject())
	}
	for i := range l.want {
		l.want[i] = true
	}
	c.fresh = func(round int) {
		drawPieces(s.seed, uint64(round+1), l.q, d.hits)
		copy(locked.q, l.q)
	}
	if err := s.compete(c); err != nil {
		return err
	}
	if gpu != nil && gpu.strayed() != "" {
		s.skip("%s at n %s: not all of its answers are the GPU's: %s", namePandoGPU, sizeText(len(d.keys)), gpu.strayed())
	}
	return nil
}

// lockedLookups are lookups whose queries and values the GPU can access
// directly.
type lockedLookups struct {
	*lookups[uint64]
	in, out *pando.Buffer[uint64]
}

// inBuffers makes lookups like others, in memory of their own.
func inBuffers(l *lookups[uint64]) (*lockedLookups, error) {
	in, err := pando.NewBuffer[uint64](len(l.q))
	if err != nil {
		return nil, err
	}
	out, err := pando.NewBuffer[uint64](len(l.vals))
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	own := *l
	own.q, own.vals = in.Slice(), out.Slice()
	return &lockedLookups{&own, in, out}, nil
}

func (l *lockedLookups) close() error { return errors.Join(l.in.Close(), l.out.Close()) }
