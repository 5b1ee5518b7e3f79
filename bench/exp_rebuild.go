package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/pando-index/pando/internal/order"
)

var rebuildExp = &experiment{
	name:     "rebuild",
	about:    "a batch of new keys by building a Frozen anew, step by step, beside SetBatch, with the GPU and without",
	figure:   "fig. 15 of the " + paper16,
	per:      "one new key",
	caseName: "batch",
	sizes:    []int{16 * mega},
	threads:  []int{allCores()},
	extra:    []extraColumn{{colMillis, plain}, {colMerge, plain}, {colBuild, plain}, {colInnerCopy, plain}},
	run:      runRebuild,
}

// The steps of a rebuild. The paper's L-segment is merged and written, its
// I-segment is written; Pando writes both in one pass.
const (
	colMerge     = "merge ms"
	colBuild     = "build ms"
	colInnerCopy = "copy of inner ms"
)

func runRebuild(s *session) error {
	there, err := s.lookForGPU()
	if err != nil {
		return err
	}
	return forEachSize(s, func(d *dataset[uint64]) error {
		for _, threads := range s.threads {
			if err := withRebuildGPU(s, d, there, threads, func(g *rebuildGPU) error { return rebuildContests(s, d, g, threads) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// rebuildContests measures batches of several sizes; g is nil without a GPU.
func rebuildContests(s *session, d *dataset[uint64], g *rebuildGPU, threads int) error {
	tree, err := newTreeStore(threads)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := newGrowth(s, d).growBatches(tree); err != nil {
		return err
	}
	for _, part := range []int{1024, 64, 16, 4} {
		pairs := newNewPairs(s, max(1, len(d.keys)/part))
		set := pairs.sets(tree)
		set.system, set.reference, set.whole = namePandoSetBatch, true, true
		set.do = func(ops int) error { return tree.SetBatch(pairs.keys[:ops], pairs.vals[:ops]) }
		c := &contest{n: len(d.keys), threads: threads, label: fmt.Sprintf("1/%d", part), ops: len(pairs.keys), fresh: pairs.fresh,
			subjects: []*subject{set}}
		var made []*rebuilding
		for _, to := range g.targets() {
			re := &rebuilding{d: d, pairs: pairs, threads: threads, gpu: to}
			made = append(made, re)
			c.subjects = append(c.subjects, re.subject(s))
		}
		c.subjects = append(c.subjects, g.sets(pairs, len(d.keys))...)
		if err := s.compete(c); err != nil {
			return err
		}
		rows := s.latest(c)
		for _, r := range rows {
			r.set(colMillis, r.Median*float64(c.ops)/1e6)
		}
		for i, re := range made {
			re.columns(rows[1+i])
		}
	}
	return nil
}

// rebuilding makes a Frozen of all pairs and those of a round.
type rebuilding struct {
	d          *dataset[uint64]
	pairs      *newPairs
	threads    int
	gpu        *rebuildGPU // where inner levels go, in the time that counts; nil: to other host memory, beside it
	made       made[uint64]
	keys, vals []uint64

	merge, build, inner []float64 // times of each round, in milliseconds
}

func (r *rebuilding) subject(s *session) *subject {
	name := "Pando Freeze anew"
	if r.gpu != nil {
		name += nameOnGPU
	}
	return &subject{
		system: name, whole: true,
		do:    func(ops int) error { return r.do(ops) },
		check: func(ops int) error { return r.check(s, ops) },
		reset: func() {
			if r.made.close != nil {
				r.made.close()
			}
			r.made, r.keys, r.vals = made[uint64]{}, nil, nil
		},
	}
}

// do merges and builds, and copies to the GPU.
func (r *rebuilding) do(ops int) (err error) {
	start := time.Now()
	ks, vs := slices.Clone(r.pairs.keys[:ops]), slices.Clone(r.pairs.vals[:ops])
	ks, vs = order.Sort(ks, make([]uint64, ops), vs, make([]uint64, ops), r.threads)
	r.keys, r.vals = mergePairs(r.d, &dataset[uint64]{ks, vs})
	merged := time.Now()
	build := freezeOnce[uint64]
	if r.gpu != nil {
		build = buildInner
	}
	r.made, err = build(&dataset[uint64]{r.keys, r.vals}, r.threads)
	built := time.Now()
	r.merge, r.build = append(r.merge, millis(merged.Sub(start))), append(r.build, millis(built.Sub(merged)))
	if err != nil || r.gpu == nil {
		return err
	}
	err = r.gpu.copyInner(r.made.levels)
	r.inner = append(r.inner, millis(time.Since(built)))
	return err
}

// check looks all new keys up, and some others.
func (r *rebuilding) check(s *session, ops int) error {
	if err := r.pairs.check(r.made.all, ops, true); err != nil {
		return err
	}
	if r.gpu == nil {
		r.copyInner()
	} else if err := r.gpu.checkInner(r.made.levels); err != nil {
		return err
	}
	return r.made.check(s, &dataset[uint64]{r.keys, r.vals})
}

// copyInner copies as many bytes as the inner levels have, to memory that is
// there.
func (r *rebuilding) copyInner() {
	from, to := make([]byte, r.made.inner), make([]byte, r.made.inner)
	for i := range from {
		from[i], to[i] = 1, 2
	}
	start := time.Now()
	copy(to, from)
	r.inner = append(r.inner, millis(time.Since(start)))
}

// columns fills the steps of a row.
func (r *rebuilding) columns(to *row) {
	to.set(colMerge, median(r.merge))
	to.set(colBuild, median(r.build))
	to.set(colInnerCopy, median(r.inner))
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// mergePairs merges sorted pairs.
func mergePairs(a, b *dataset[uint64]) (keys, vals []uint64) {
	n := len(a.keys) + len(b.keys)
	keys, vals = make([]uint64, 0, n), make([]uint64, 0, n)
	at := 0
	for i, k := range b.keys {
		to := at
		for to < len(a.keys) && a.keys[to] < k {
			to++
		}
		keys, vals = append(append(keys, a.keys[at:to]...), k), append(append(vals, a.vals[at:to]...), b.vals[i])
		at = to
	}
	return append(keys, a.keys[at:]...), append(vals, a.vals[at:]...)
}
