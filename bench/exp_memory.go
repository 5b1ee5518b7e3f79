package main

import figures "github.com/pando-index/pando/bench/report"

import "runtime/debug"

var memory = &experiment{
	name:     "memory",
	about:    "bytes an entry takes, and how much of that is not the pair itself",
	caseName: "pairs",
	sizes:    usualSizes,
	extra:    []extraColumn{{colBeyond, percent}, {colInner, percent}},
	run:      runMemory,
}

// The extra columns of memory.
const (
	colBeyond = "% beyond pairs"
	colInner  = "% inner nodes"
)

func runMemory(s *session) error {
	if err := memoryRows[uint64](s, "uint64 to uint64"); err != nil {
		return err
	}
	return memoryRows[uint32](s, "uint32 to uint32")
}

// memoryRows builds one system after the other, each dropped before the next,
// so that systems fit that would not fit next to others.
func memoryRows[W word](s *session, label string) error {
	return forEachSize(s, func(d *dataset[W]) error {
		var first float64
		for _, m := range append(pandoLayouts[W](), peerMakers[W]()...) {
			sys, err := buildOne(s, d, m)
			if err != nil {
				return err
			}
			if sys == nil {
				continue
			}
			r := memoryRow(d, sys, label)
			if first == 0 && isPando(m.name) {
				first, r.Reference = r.BytesPerEntry, true
			}
			if first > 0 {
				r.RatioMedian, r.RatioBest = r.BytesPerEntry/first, r.BytesPerEntry/first
			}
			s.rows = append(s.rows, r)
			sys.Close()
			debug.FreeOSMemory()
		}
		return nil
	})
}

func memoryRow[W word](d *dataset[W], sys system[W], label string) *row {
	r := &row{Row: figures.Row{System: sys.Name(), Case: label, N: len(d.keys), BytesPerEntry: sys.BytesPerEntry()}}
	r.set(colBeyond, 100*(r.BytesPerEntry/pairBytes[W]()-1))
	if f, ok := sys.(frozenMap[W]); ok {
		st := f.ix.Stats()
		r.set(colInner, 100*float64(st.InnerBytes)/float64(st.TotalBytes))
	}
	return r
}
