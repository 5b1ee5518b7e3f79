package main

import (
	"errors"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
)

var fastSizes = &experiment{
	name:    "fast-sizes",
	about:   "a batch of Get, uint32 to uint32, on all cores and on the GPU, with each layout, over many sizes",
	figure:  "fig. 7 of the " + paper10,
	per:     "one key looked up, from host memory to host memory",
	sizes:   []int{64 * kilo, 256 * kilo, 1 * mega, 4 * mega, 16 * mega, 64 * mega, 256 * mega},
	queries: 32 * mega,
	extra:   gigaColumns,
	run:     runFastSizes,
}

func runFastSizes(s *session) error {
	there, err := s.lookForGPU()
	if err != nil {
		return err
	}
	const trees = 1 + 3*1.3 // the pairs, and a tree of them for each layout
	err = eachFitting(s, trees*pairBytes[uint32](), bulkBytes[uint32](), func(d *dataset[uint32]) error {
		return compareFastSize(s, d, there)
	})
	s.setGigas()
	return err
}

// lookForGPU reports whether there is a GPU, and records what it is. If there
// is none, it prints a line that says so, and only the CPU's rows are
// measured.
func (s *session) lookForGPU() (bool, error) {
	dev, err := s.openGPU()
	if errors.Is(err, device.ErrNoDriver) || errors.Is(err, device.ErrNoDevice) {
		s.skip("rows on a GPU: there is none to use here: %v", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.gpuInfo = infoOf(dev)
	return true, dev.Close()
}

// compareFastSize measures all layouts, on the CPU first.
func compareFastSize(s *session, d *dataset[uint32], there bool) error {
	places := []pando.Device{pando.CPU}
	if there {
		places = append(places, pando.GPU(s.gpu))
	}
	b := newBulk(s, d)
	c := b.contest("")
	var opened []*placed[uint32]
	defer func() { closeAll(opened) }()
	for _, where := range places {
		for _, l := range layoutsCompared {
			name := l.name
			if where != pando.CPU {
				name += ", GPU"
			}
			ix, err := openPlaced(s, name, where, d, pando.Layout(l.kind))
			if err != nil {
				return err
			}
			if ix == nil {
				continue
			}
			opened = append(opened, ix)
			sub := b.subject(name, ix, nil)
			sub.bytes, sub.onGPU = ix.BytesPerEntry(), where != pando.CPU
			sub.reference = len(c.subjects) == 0
			c.subjects = append(c.subjects, sub)
		}
	}
	return s.compete(c)
}
