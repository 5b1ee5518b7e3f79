package main

var pages = &experiment{
	name:   "pages",
	about:  "a batch of Get with the index on small pages, inner nodes on huge pages, all on huge pages",
	figure: "fig. 7(b) of the " + paper16,
	per:    "one key looked up",
	sizes:  usualSizes,
	extra:  []extraColumn{{colHuge, whole}},
	run:    runPages,
}

// colHuge is the memory that the system really put on huge pages: it may
// decline.
const colHuge = "huge MiB"

func runPages(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		return withLimit(s, pairBytes[uint64](), len(d.keys), func(limit *readLimit) error {
			var systems []system[uint64]
			defer func() { closeAll(systems) }()
			huge := map[string]float64{}
			for _, m := range pandoPages[uint64]() {
				before := hugeMiB()
				sys, err := buildOne(s, d, m)
				if err != nil {
					return err
				}
				if sys == nil {
					continue
				}
				systems = append(systems, sys)
				huge[sys.Name()] = max(0, hugeMiB()-before)
			}
			first := len(s.rows)
			if err := hitContests(s, d, systems, limit); err != nil {
				return err
			}
			for _, r := range s.rows[first:] {
				if v, ok := huge[r.System]; ok {
					r.set(colHuge, v)
				}
			}
			return nil
		})
	})
}

// hugeMiB returns the memory of this process that lies on transparent huge
// pages; 0 if the system does not report it.
func hugeMiB() float64 {
	return float64(procBytes("/proc/self/smaps_rollup", "AnonHugePages")) / mega
}
