package fast

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var fastSizes = &contest.Experiment{
	Name:    "fast-sizes",
	About:   "a batch of Get, uint32 to uint32, on all cores and on the GPU, with each layout, over many sizes",
	Figure:  "fig. 7 of the " + contest.Paper10,
	Per:     "one key looked up, from host memory to host memory",
	Sizes:   contest.ManySizes,
	Queries: 32 * contest.Mega,
	Extra:   contest.GigaColumns,
	Run:     runFastSizes,
}

func runFastSizes(s *contest.Session) error {
	there, err := rig.LookForGPU(s)
	if err != nil {
		return err
	}
	const trees = 1 + 3*1.3 // the pairs, and a tree of them for each layout
	err = data.EachFitting(s, trees*data.PairBytes[uint32](), work.BulkBytes[uint32](), func(d *data.Dataset[uint32]) error {
		return compareFastSize(s, d, there)
	})
	s.SetGigas()
	return err
}

// compareFastSize measures all layouts, on the CPU first.
func compareFastSize(s *contest.Session, d *data.Dataset[uint32], there bool) error {
	places := []pando.Device{pando.CPU}
	if there {
		places = append(places, pando.GPU(s.GPU))
	}
	b := work.NewBulk(s, d)
	c := b.Contest("")
	var opened []*ours.Placed[uint32]
	defer func() { peers.CloseAll(opened) }()
	for _, where := range places {
		for _, l := range layoutsCompared {
			name := l.name
			if where != pando.CPU {
				name += ", GPU"
			}
			ix, err := ours.OpenPlaced(s, name, where, d, pando.Layout(l.kind))
			if err != nil {
				return err
			}
			if ix == nil {
				continue
			}
			opened = append(opened, ix)
			sub := b.Subject(name, ix, nil)
			sub.Bytes, sub.OnGPU = ix.BytesPerEntry(), where != pando.CPU
			sub.Reference = len(c.Subjects) == 0
			c.Subjects = append(c.Subjects, sub)
		}
	}
	return s.Compete(c)
}
