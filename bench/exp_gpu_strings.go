package main

import (
	"errors"
	"runtime/debug"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
)

var gpuStrings = &experiment{
	name:     "gpu-strings",
	about:    "a batch of Get, strings to uint64, random hits, from host slices on all cores and through the GPU",
	per:      "one key looked up, copies to the GPU and back included",
	caseName: "keys",
	sizes:    []int{16 * mega},
	queries:  8 * mega,
	run:      runGPUStrings,
}

func runGPUStrings(s *session) error {
	dev, err := s.openGPU()
	if errors.Is(err, device.ErrNoDriver) || errors.Is(err, device.ErrNoDevice) {
		s.skip("all of %s: it needs a GPU, and there is none to use here: %v", s.exp.name, err)
		return nil
	}
	if err != nil {
		return err
	}
	s.gpuInfo = infoOf(dev)
	if err := dev.Close(); err != nil {
		return err
	}
	for _, n := range s.sizes {
		for _, kind := range textKinds[:2] {
			debug.FreeOSMemory() // frees the memory of the previous ones
			if !s.room(kind.label, n, 5*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
				continue
			}
			if err := gpuStringContest(s, newTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func gpuStringContest(s *session, t *texts) error {
	var systems []*frozenText
	defer func() { closeAll(systems) }()
	add := func(name string, opts ...pando.Option) error {
		f, err := freezeTexts(t, name, allCores(), opts...)
		if err == nil {
			systems = append(systems, f)
		}
		return err
	}
	if err := add(namePandoCPU); err != nil {
		return err
	}
	stats := systems[0].ix.Stats()
	withoutStrings := stats.TotalBytes - int64(float64(len(t.keys))*t.mean) + 64<<20 // room for pages and buckets, not for strings
	if err := add(namePandoGPU, pando.On(pando.GPU(s.gpu))); err != nil {
		return err
	}
	if err := add(namePandoGPU+", strings on the host", pando.On(pando.GPU(s.gpu)), pando.DeviceMemory(withoutStrings)); err != nil {
		return err
	}
	l := newTextLookups(s, t)
	c := &contest{n: len(t.keys), threads: allCores(), label: t.label, ops: s.queries,
		fresh: func(round int) { l.draw(s.seed, round) }}
	for i, sys := range systems {
		sub := l.subject(sys)
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return s.compete(c)
}
