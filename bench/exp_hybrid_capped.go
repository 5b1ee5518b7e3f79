package main

var hybridCapped = &experiment{
	name:    "hybrid-capped",
	about:   "GetBatch of an index whose GPU may hold a tenth of it, beside all inner levels, all of it, and none",
	per:     "one key looked up, from host memory to host memory",
	sizes:   []int{64 * mega},
	queries: 64 * mega,
	faster:  "x CPU",
	extra:   append(gigaColumns, extraColumn{colOnGPU, number}),
	run:     runHybridCapped,
}

// colOnGPU is the memory of an index on the GPU, without buckets.
const colOnGPU = "MiB on GPU"

func runHybridCapped(s *session) error {
	err := withGPU(s, bulkBytes[uint64](), func(*gpuRig) error {
		const trees = 1 + 4*1.25 // the pairs, and four trees of them
		return eachFitting(s, trees*pairBytes[uint64](), bulkBytes[uint64](), func(d *dataset[uint64]) error {
			return compareCapped(s, d)
		})
	})
	s.setGigas()
	return err
}

func compareCapped(s *session, d *dataset[uint64]) error {
	systems, err := openAll(s, d, namePandoCPU, namePandoHybrid, namePandoGPU)
	if err != nil {
		return err
	}
	defer func() { closeAll(systems) }()
	capped, err := openCapped(s, d, systems[0])
	if err != nil {
		return err
	}
	if capped != nil {
		systems = append(systems, capped)
	}
	b := newBulk(s, d)
	c := b.contest("")
	for i, sys := range systems {
		sub := b.subject(sys.Name(), sys, nil)
		sub.reference, sub.bytes = i == 0, sys.BytesPerEntry()
		c.subjects = append(c.subjects, sub)
	}
	if err := s.compete(c); err != nil {
		return err
	}
	for i, r := range s.latest(c) {
		r.set(colOnGPU, float64(systems[i].ix.Stats().DeviceBytes)/mega)
	}
	return nil
}
