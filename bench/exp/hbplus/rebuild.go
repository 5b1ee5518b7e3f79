package hbplus

import (
	"fmt"
	"slices"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var rebuildExp = &contest.Experiment{
	Name:     "rebuild",
	About:    "a batch of new keys by building a Frozen anew, step by step, beside SetBatch, with the GPU and without",
	Figure:   "fig. 15 of the " + contest.Paper16,
	Per:      "one new key",
	CaseName: "batch",
	Sizes:    []int{16 * contest.Mega},
	Threads:  []int{contest.AllCores()},
	Extra:    []contest.ExtraColumn{{Name: colMillis, Format: contest.Plain}, {Name: colMerge, Format: contest.Plain}, {Name: colBuild, Format: contest.Plain}, {Name: colInnerCopy, Format: contest.Plain}},
	Run:      runRebuild,
}

// The steps of a rebuild. The paper's L-segment is merged and written, its
// I-segment is written; Pando writes both in one pass.
const (
	colMerge     = "merge ms"
	colBuild     = "build ms"
	colInnerCopy = "copy of inner ms"
)

func runRebuild(s *contest.Session) error {
	there, err := rig.LookForGPU(s)
	if err != nil {
		return err
	}
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		for _, threads := range s.Threads {
			if err := withRebuildGPU(s, d, there, threads, func(g *rebuildGPU) error { return rebuildContests(s, d, g, threads) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// rebuildContests measures batches of several sizes; g is nil without a GPU.
func rebuildContests(s *contest.Session, d *data.Dataset[uint64], g *rebuildGPU, threads int) error {
	tree, err := ours.NewTreeStore(threads)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := work.NewGrowth(s, d).GrowBatches(tree); err != nil {
		return err
	}
	for _, part := range []int{1024, 64, 16, 4} {
		pairs := work.NewPairs(s, max(1, len(d.Keys)/part))
		set := pairs.Sets(tree)
		set.System, set.Reference, set.Whole = ours.NameSetBatch, true, true
		set.Do = func(ops int) error { return tree.SetBatch(pairs.Keys[:ops], pairs.Vals[:ops]) }
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: fmt.Sprintf("1/%d", part), Ops: len(pairs.Keys), Fresh: pairs.Fresh,
			Subjects: []*contest.Subject{set}}
		var made []*rebuilding
		for _, to := range g.targets() {
			re := &rebuilding{d: d, pairs: pairs, threads: threads, gpu: to}
			made = append(made, re)
			c.Subjects = append(c.Subjects, re.subject(s))
		}
		c.Subjects = append(c.Subjects, g.sets(pairs, len(d.Keys))...)
		if err := s.Compete(c); err != nil {
			return err
		}
		rows := s.Latest(c)
		for _, r := range rows {
			r.Set(colMillis, r.Median*float64(c.Ops)/1e6)
		}
		for i, re := range made {
			re.columns(rows[1+i])
		}
	}
	return nil
}

// rebuilding makes a Frozen of all pairs and those of a round.
type rebuilding struct {
	d          *data.Dataset[uint64]
	pairs      *work.Pairs
	threads    int
	gpu        *rebuildGPU // where inner levels go, in the time that counts; nil: to other host memory, beside it
	made       peers.Made[uint64]
	keys, vals []uint64

	merge, build, inner []float64 // times of each round, in milliseconds
}

func (r *rebuilding) subject(s *contest.Session) *contest.Subject {
	name := "Pando Freeze anew"
	if r.gpu != nil {
		name += nameOnGPU
	}
	return &contest.Subject{
		System: name, Whole: true,
		Do:    func(ops int) error { return r.do(ops) },
		Check: func(ops int) error { return r.check(s, ops) },
		Reset: func() {
			if r.made.Close != nil {
				r.made.Close()
			}
			r.made, r.keys, r.vals = peers.Made[uint64]{}, nil, nil
		},
	}
}

// do merges and builds, and copies to the GPU.
func (r *rebuilding) do(ops int) (err error) {
	start := time.Now()
	ks, vs := slices.Clone(r.pairs.Keys[:ops]), slices.Clone(r.pairs.Vals[:ops])
	ks, vs = inside.Sort(ks, make([]uint64, ops), vs, make([]uint64, ops), r.threads)
	r.keys, r.vals = mergePairs(r.d, &data.Dataset[uint64]{Keys: ks, Vals: vs})
	merged := time.Now()
	build := ours.FreezeOnce[uint64]
	if r.gpu != nil {
		build = buildInner
	}
	r.made, err = build(&data.Dataset[uint64]{Keys: r.keys, Vals: r.vals}, r.threads)
	built := time.Now()
	r.merge, r.build = append(r.merge, millis(merged.Sub(start))), append(r.build, millis(built.Sub(merged)))
	if err != nil || r.gpu == nil {
		return err
	}
	err = r.gpu.copyInner(r.made.Levels)
	r.inner = append(r.inner, millis(time.Since(built)))
	return err
}

// check looks all new keys up, and some others.
func (r *rebuilding) check(s *contest.Session, ops int) error {
	if err := r.pairs.Check(r.made.All, ops, true); err != nil {
		return err
	}
	if r.gpu == nil {
		r.copyInner()
	} else if err := r.gpu.checkInner(r.made.Levels); err != nil {
		return err
	}
	return r.made.Check(s, &data.Dataset[uint64]{Keys: r.keys, Vals: r.vals})
}

// copyInner copies as many bytes as the inner levels have, to memory that is
// there.
func (r *rebuilding) copyInner() {
	from, to := make([]byte, r.made.Inner), make([]byte, r.made.Inner)
	for i := range from {
		from[i], to[i] = 1, 2
	}
	start := time.Now()
	copy(to, from)
	r.inner = append(r.inner, millis(time.Since(start)))
}

// columns fills the steps of a row.
func (r *rebuilding) columns(to *contest.Row) {
	to.Set(colMerge, contest.Median(r.merge))
	to.Set(colBuild, contest.Median(r.build))
	to.Set(colInnerCopy, contest.Median(r.inner))
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// mergePairs merges sorted pairs.
func mergePairs(a, b *data.Dataset[uint64]) (keys, vals []uint64) {
	n := len(a.Keys) + len(b.Keys)
	keys, vals = make([]uint64, 0, n), make([]uint64, 0, n)
	at := 0
	for i, k := range b.Keys {
		to := at
		for to < len(a.Keys) && a.Keys[to] < k {
			to++
		}
		keys, vals = append(append(keys, a.Keys[at:to]...), k), append(append(vals, a.Vals[at:to]...), b.Vals[i])
		at = to
	}
	return append(keys, a.Keys[at:]...), append(vals, a.Vals[at:]...)
}
