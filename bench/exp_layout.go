package main

var layoutExp = &experiment{
	name:     "layout",
	about:    "leaves with pairs in one line against keys and values apart, hits and misses",
	per:      "one key looked up",
	caseName: "queries",
	sizes:    usualSizes,
	run:      runLayout,
}

func runLayout(s *session) error {
	if err := layoutContests[uint64](s, "uint64"); err != nil {
		return err
	}
	return layoutContests[uint32](s, "uint32")
}

func layoutContests[W word](s *session, width string) error {
	return forEachSize(s, func(d *dataset[W]) error {
		systems, err := buildAll(s, d, pandoLayouts[W]())
		if err != nil {
			return err
		}
		defer closeAll(systems)
		l := newLookups(s, d)
		for _, threads := range s.threads {
			for _, q := range []struct {
				label string
				fill  filler[W]
				ex    expect
			}{{"hits", d.hits, allHits}, {"misses", d.misses, allMisses}} {
				c, err := l.contest(systems, nil, threads, width+" "+q.label, q.fill, q.ex)
				if err != nil {
					return err
				}
				if err := s.compete(c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
