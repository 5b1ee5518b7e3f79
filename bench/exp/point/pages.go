package point

import (
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var pages = &contest.Experiment{
	Name:   "pages",
	About:  "a batch of Get with the index on small pages, inner nodes on huge pages, all on huge pages",
	Figure: "fig. 7(b) of the " + contest.Paper16,
	Per:    "one key looked up",
	Sizes:  contest.UsualSizes,
	Extra:  []contest.ExtraColumn{{Name: colHuge, Format: contest.Whole}},
	Run:    runPages,
}

// colHuge is the memory that the system really put on huge pages: it may
// decline.
const colHuge = "huge MiB"

func runPages(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		return work.WithLimit(s, data.PairBytes[uint64](), len(d.Keys), func(limit *work.ReadLimit) error {
			var systems []peers.System[uint64]
			defer func() { peers.CloseAll(systems) }()
			huge := map[string]float64{}
			for _, m := range ours.Pages[uint64]() {
				before := hugeMiB()
				sys, err := peers.BuildOne(s, d, m)
				if err != nil {
					return err
				}
				if sys == nil {
					continue
				}
				systems = append(systems, sys)
				huge[sys.Name()] = max(0, hugeMiB()-before)
			}
			first := len(s.Rows)
			if err := hitContests(s, d, systems, limit); err != nil {
				return err
			}
			for _, r := range s.Rows[first:] {
				if v, ok := huge[r.System]; ok {
					r.Set(colHuge, v)
				}
			}
			return nil
		})
	})
}

// hugeMiB returns the memory of this process that lies on transparent huge
// pages; 0 if the system does not report it.
func hugeMiB() float64 {
	return float64(contest.ProcBytes("/proc/self/smaps_rollup", "AnonHugePages")) / contest.Mega
}
