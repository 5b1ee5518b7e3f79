package main

import (
	"errors"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/chunked"
)

var gpuUpdate = &experiment{
	name:     "gpu-update",
	about:    "batches of upserts, half of the keys new, in the GPU's memory: leaf by leaf, by a flat merge, and the toolkit's sort and merge",
	per:      "one upsert, operations in the GPU's memory, from the call until the GPU is idle",
	caseName: "batch",
	sizes:    []int{64 * mega},
	queries:  64 * mega,
	extra:    append(gigaColumns[:2:2], stepColumns...),
	run:      runGPUUpdate,
}

var gpuUpdateShapes = &experiment{
	name:     "gpu-update-shapes",
	about:    "1M operations in the GPU's memory on one key, on one leaf, ascending, by Zipf's law, half of them lookups",
	per:      "one operation, in the GPU's memory, from the call until the GPU is idle",
	caseName: "operations",
	sizes:    []int{64 * mega},
	queries:  mega,
	extra:    append([]extraColumn{{colUniform, ratio}}, append(gigaColumns[:2:2], stepColumns...)...),
	run:      runGPUUpdateShapes,
}

const nameSortMerge = "limit: cub's sort, thrust's merge"

// gpuBatches are the operations of a batch.
var gpuBatches = []int{kilo, 64 * kilo, mega, 4 * mega, 16 * mega, 64 * mega}

// upTo returns the sizes of batches that the session allows, at least one.
func (s *session) upTo(sizes []int) (out []int) {
	for _, n := range sizes {
		if n <= s.queries {
			out = append(out, n)
		}
	}
	if out == nil {
		out = []int{s.queries}
	}
	return out
}

// stepColumns are the steps of a batch, in milliseconds.
var stepColumns = func() (columns []extraColumn) {
	for s := range chunked.Steps {
		if s != chunked.StepEffects { // nobody asks for them here
			columns = append(columns, extraColumn{stepColumn(s), plain})
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

var batchWays = []batchWay{{namePandoGPUTree, flatBySize}, {nameByLeaf, flatNever}, {nameFlat, flatAlways}}

// batchHost is the bytes of host memory that an operation takes.
const batchHost = 8 + 8 + 8 + 8 + 1 + 1

func runGPUUpdate(s *session) error {
	err := withGPU(s, batchHost, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint64]) error {
			most := s.upTo(gpuBatches)
			return withThrustOf(s, nameSortMerge, gpu.Update64, len(d.keys), most[len(most)-1], pairBytes[uint64](), func(limit *subject) error {
				return g.clearTree(len(d.keys), gpuUpdates(g, d, limit))
			})
		})
	})
	s.setGigas()
	return err
}

// gpuUpdates measures all batches on one tree.
func gpuUpdates(g *gpuRig, d *dataset[uint64], limit *subject) (err error) {
	t, err := openResident(g, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for _, n := range g.s.upTo(gpuBatches) {
		err := t.take(drawUpserts(g.s.seed, d, n))
		if err == nil {
			err = t.compete(sizeText(n), limit)
		}
		if err := g.clearTree(len(d.keys), err); err != nil {
			return err
		}
	}
	return nil
}

// compete measures the tree's batch in every way, and its steps. limit may be
// nil.
func (t *liveTree[W]) compete(label string, limit *subject) error {
	c := &contest{n: len(t.d.keys), threads: allCores(), label: label, ops: len(t.b.keys)}
	for _, w := range batchWays {
		c.subjects = append(c.subjects, t.subject(w.name, w.flat))
	}
	c.subjects[0].reference = true
	if limit != nil {
		own := *limit
		own.whole = true
		c.subjects = append(c.subjects, &own)
	}
	s := t.g.s
	if err := s.compete(c); err != nil {
		return err
	}
	rows := s.latest(c)
	for i, w := range batchWays {
		ms, err := t.steps(w.flat)
		if err != nil {
			return err
		}
		for step := range chunked.Steps {
			if step != chunked.StepEffects {
				rows[i].set(stepColumn(step), ms[step])
			}
		}
	}
	return nil
}

func runGPUUpdateShapes(s *session) error {
	err := withGPU(s, batchHost, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint64]) error {
			return g.clearTree(len(d.keys), gpuShapes(g, d))
		})
	})
	s.setGigas()
	s.compareTo(colUniform, func(r *row) bool { return r.Case == batchShapes[0].name },
		func(a, b *row) bool { return a.System == b.System && a.N == b.N })
	return err
}

func gpuShapes(g *gpuRig, d *dataset[uint64]) (err error) {
	t, err := openResident(g, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for _, shape := range batchShapes {
		keys, kinds := shape.draw(g.s, d, g.s.queries)
		err := t.take(inOrder(d, keys, kinds))
		if err == nil {
			err = t.compete(shape.name, nil)
		}
		if err := g.clearTree(len(d.keys), err); err != nil {
			return err
		}
	}
	return nil
}
