package point

import (
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

var memory = &contest.Experiment{
	Name:     "memory",
	About:    "bytes an entry takes, and how much of that is not the pair itself",
	CaseName: "pairs",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: contest.ColBeyond, Format: contest.Percent}, {Name: colInner, Format: contest.Percent}},
	Run:      runMemory,
}

const colInner = "% inner nodes"

func runMemory(s *contest.Session) error {
	if err := memoryRows[uint64](s, "uint64 to uint64"); err != nil {
		return err
	}
	return memoryRows[uint32](s, "uint32 to uint32")
}

// memoryRows builds one system after the other, each dropped before the next,
// so that systems fit that would not fit next to others.
func memoryRows[W data.Word](s *contest.Session, label string) error {
	return data.ForEachSize(s, func(d *data.Dataset[W]) error {
		var first float64
		for _, m := range append(ours.Layouts[W](), peers.Makers[W]()...) {
			sys, err := peers.BuildOne(s, d, m)
			if err != nil {
				return err
			}
			if sys == nil {
				continue
			}
			r := memoryRow(d, sys, label)
			if first == 0 && contest.IsPando(m.Name) {
				first, r.Reference = r.BytesPerEntry, true
			}
			if first > 0 {
				r.RatioMedian, r.RatioBest = r.BytesPerEntry/first, r.BytesPerEntry/first
			}
			s.Add(r)
			sys.Close()
			debug.FreeOSMemory()
		}
		return nil
	})
}

func memoryRow[W data.Word](d *data.Dataset[W], sys peers.System[W], label string) *contest.Row {
	r := contest.NewRow(sys.Name(), label, len(d.Keys))
	r.BytesPerEntry = sys.BytesPerEntry()
	r.Set(contest.ColBeyond, 100*(r.BytesPerEntry/data.PairBytes[W]()-1))
	if f, ok := sys.(ours.FrozenMap[W]); ok {
		st := f.Ix.Stats()
		r.Set(colInner, 100*float64(st.InnerBytes)/float64(st.TotalBytes))
	}
	return r
}
