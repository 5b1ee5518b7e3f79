package gpu

import (
	"errors"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/internal/chunked"
)

var gpuUpdate = &contest.Experiment{
	Name:     "gpu-update",
	About:    "batches of upserts, half of the keys new, in the GPU's memory: leaf by leaf, by a flat merge, and the toolkit's sort and merge",
	Per:      "one upsert, operations in the GPU's memory, from the call until the GPU is idle",
	CaseName: "batch",
	Sizes:    []int{64 * contest.Mega},
	Queries:  64 * contest.Mega,
	Extra:    append(contest.GigaColumns[:2:2], stepColumns...),
	Run:      runGPUUpdate,
}

var gpuUpdateShapes = &contest.Experiment{
	Name:     "gpu-update-shapes",
	About:    "1M operations in the GPU's memory on one key, on one leaf, ascending, by Zipf's law, half of them lookups",
	Per:      "one operation, in the GPU's memory, from the call until the GPU is idle",
	CaseName: "operations",
	Sizes:    []int{64 * contest.Mega},
	Queries:  contest.Mega,
	Extra:    append([]contest.ExtraColumn{{Name: contest.ColUniform, Format: contest.Ratio}}, append(contest.GigaColumns[:2:2], stepColumns...)...),
	Run:      runGPUUpdateShapes,
}

const nameSortMerge = "limit: cub's sort, thrust's merge"

// gpuBatches are the operations of a batch.
var gpuBatches = []int{contest.Kilo, 64 * contest.Kilo, contest.Mega, 4 * contest.Mega, 16 * contest.Mega, 64 * contest.Mega}

// stepColumns are the steps of a batch, in milliseconds.
var stepColumns = func() (columns []contest.ExtraColumn) {
	for s := range chunked.Steps {
		if s != chunked.StepEffects { // nobody asks for them here
			columns = append(columns, contest.ExtraColumn{Name: stepColumn(s), Format: contest.Plain})
		}
	}
	return columns
}()

func stepColumn(s chunked.Step) string { return s.String() + " ms" }

// batchWay is a way to take a batch.
type batchWay struct {
	name string
	flat int
}

var batchWays = []batchWay{{ours.NameGPUTree, flatBySize}, {nameByLeaf, flatNever}, {nameFlat, flatAlways}}

// batchHost is the bytes of host memory that an operation takes.
const batchHost = 8 + 8 + 8 + 8 + 1 + 1

func runGPUUpdate(s *contest.Session) error {
	err := rig.With(s, batchHost, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
			most := s.UpTo(gpuBatches)
			return peers.WithThrustOf(s, nameSortMerge, gpu.Update64, len(d.Keys), most[len(most)-1], data.PairBytes[uint64](), func(limit *contest.Subject) error {
				return g.ClearTree(len(d.Keys), gpuUpdates(g, d, limit))
			})
		})
	})
	s.SetGigas()
	return err
}

// gpuUpdates measures all batches on one tree.
func gpuUpdates(g *rig.Rig, d *data.Dataset[uint64], limit *contest.Subject) (err error) {
	t, err := openResident(g, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for _, n := range g.S.UpTo(gpuBatches) {
		err := t.take(drawUpserts(g.S.Seed, d, n))
		if err == nil {
			err = t.compete(contest.SizeText(n), limit)
		}
		if err := g.ClearTree(len(d.Keys), err); err != nil {
			return err
		}
	}
	return nil
}

// compete measures the tree's batch in every way, and its steps. limit may be
// nil.
func (t *liveTree[W]) compete(label string, limit *contest.Subject) error {
	c := &contest.Contest{N: len(t.d.Keys), Threads: contest.AllCores(), Label: label, Ops: len(t.b.keys)}
	for _, w := range batchWays {
		c.Subjects = append(c.Subjects, t.subject(w.name, w.flat))
	}
	c.Subjects[0].Reference = true
	if limit != nil {
		own := *limit
		own.Whole = true
		c.Subjects = append(c.Subjects, &own)
	}
	s := t.g.S
	if err := s.Compete(c); err != nil {
		return err
	}
	rows := s.Latest(c)
	for i, w := range batchWays {
		ms, err := t.steps(w.flat)
		if err != nil {
			return err
		}
		for step := range chunked.Steps {
			if step != chunked.StepEffects {
				rows[i].Set(stepColumn(step), ms[step])
			}
		}
	}
	return nil
}

func runGPUUpdateShapes(s *contest.Session) error {
	err := rig.With(s, batchHost, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
			return g.ClearTree(len(d.Keys), gpuShapes(g, d))
		})
	})
	s.SetGigas()
	s.CompareTo(contest.ColUniform, func(r *contest.Row) bool { return r.Case == batchShapes[0].name },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N })
	return err
}

func gpuShapes(g *rig.Rig, d *data.Dataset[uint64]) (err error) {
	t, err := openResident(g, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for _, shape := range batchShapes {
		keys, kinds := shape.draw(g.S, d, g.S.Queries)
		err := t.take(inOrder(d, keys, kinds))
		if err == nil {
			err = t.compete(shape.name, nil)
		}
		if err := g.ClearTree(len(d.Keys), err); err != nil {
			return err
		}
	}
	return nil
}
