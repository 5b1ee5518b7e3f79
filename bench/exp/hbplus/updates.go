package hbplus

import (
	"fmt"
	"slices"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/papers/hbplus"
)

var updateWays = &contest.Experiment{
	Name:     "update-ways",
	About:    "new keys by the paper's asynchronous and synchronous updates, beside Apply and trees on the GPU; a copy of all inner nodes",
	Figure:   "fig. 13 of the " + contest.Paper16,
	Per:      "one new key set; one inner node copied",
	CaseName: "what",
	Sizes:    contest.UsualSizes,
	Threads:  contest.OneAndAll(),
	Extra:    []contest.ExtraColumn{{Name: contest.ColSpeedup, Format: contest.Ratio}, {Name: colMillis, Format: contest.Plain}},
	Run:      runUpdateWays,
}

var updateBatches = &contest.Experiment{
	Name:     "update-batches",
	About:    "batches of 8K to 1M new keys with the inner nodes copied elsewhere, or to the GPU: asynchronous, synchronous, Apply",
	Figure:   "fig. 14 of the " + contest.Paper16,
	Per:      "one new key set",
	CaseName: "batch",
	Sizes:    []int{16 * contest.Mega},
	Threads:  []int{contest.AllCores()},
	Extra:    []contest.ExtraColumn{{Name: colMillis, Format: contest.Plain}},
	Run:      runUpdateBatches,
}

var updateMix = &contest.Experiment{
	Name:     "update-mix",
	About:    "searches and updates mixed: asynchronous, synchronous, Apply, with the GPU and without",
	Figure:   "fig. 21 of the " + contest.Paper16,
	Per:      "one search or update",
	CaseName: "updates",
	Sizes:    contest.UsualSizes,
	Threads:  contest.OneAndAll(),
	Run:      runUpdateMix,
}

// colMillis is the time of the whole batch, or copy.
const colMillis = "ms in all"

// The names of the ways; Pando's own is the reference.
const (
	nameApply        = "Pando Apply"
	nameAsynchronous = "asynchronous"
	nameSynchronous  = "synchronous"
	nameCopyInner    = ", inner nodes copied"
)

// updated is a tree that the updates of a round change in one way after the
// other. Keys that they add are taken out again.
type updated struct {
	s       *contest.Session
	d       *data.Dataset[uint64]
	tree    *bplus.Tree[uint64]
	mirror  hbplus.Mirror[uint64]
	threads int
	batch   int // operations that are done together
	keys    []uint64
	vals    []uint64 // of updates what to set, of searches what must be found
	gets    []bool   // which operations are searches
	apart   apart
	gpu     *updatedGPU // nil without a GPU
	got     []uint64
	hits    int
}

// newUpdated grows a tree at random.
func newUpdated(s *contest.Session, d *data.Dataset[uint64]) (*updated, error) {
	tree, err := bplus.New[uint64](0)
	if err != nil {
		return nil, err
	}
	s.Say("filling a tree, %s ...", contest.SizeText(len(d.Keys)))
	u := &updated{s: s, d: d, tree: tree, threads: 1}
	all := d.Shuffled(s.Seed)
	for lo, hi := 0, max(1, len(all.Keys)/16); lo < len(all.Keys) && err == nil; lo, hi = hi, min(2*hi, len(all.Keys)) {
		err = u.applySorted(all.Keys[lo:hi], all.Vals[lo:hi], op.Set, contest.AllCores())
	}
	return u, err
}

// size sets the number of operations of a round, and of those done together.
func (u *updated) size(ops, batch int) {
	u.batch = batch
	u.keys, u.vals, u.got, u.gets = make([]uint64, ops), make([]uint64, ops), make([]uint64, ops), make([]bool, ops)
}

// fresh draws new keys, and for searches keys that are there.
func (u *updated) fresh(round, percentUpdates int) {
	rng := data.RoundRand(u.s, round)
	for i := range u.keys {
		u.keys[i], u.gets[i] = rng.Uint64(), rng.IntN(100) >= percentUpdates
		if u.gets[i] {
			u.keys[i] = u.d.Keys[rng.IntN(len(u.d.Keys))]
		}
		u.vals[i] = data.ValueOf(u.keys[i])
	}
	u.split()
}

// applySorted sorts operations of one kind and does them, as SetBatch and
// DeleteBatch do.
func (u *updated) applySorted(keys, vals []uint64, kind op.Kind, workers int) error {
	n := len(keys)
	ks, vs := append([]uint64(nil), keys...), append([]uint64(nil), vals...)
	ks, vs = inside.Sort(ks, make([]uint64, n), vs, make([]uint64, n), workers)
	return u.tree.Apply(&bplus.Ops[uint64]{Keys: ks, Vals: vs, Kind: kind}, workers)
}

// apply does operations [lo, hi) in exact order, by Pando's own way.
func (u *updated) apply(lo, hi int) error {
	n := hi - lo
	if u.updates(lo, hi) == n {
		return u.applySorted(u.keys[lo:hi], u.vals[lo:hi], op.Set, u.threads)
	}
	ks, rows := append([]uint64(nil), u.keys[lo:hi]...), make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	ks, rows = inside.Sort(ks, make([]uint64, n), rows, make([]uint32, n), u.threads)
	ops := &bplus.Ops[uint64]{Keys: ks, Vals: make([]uint64, n), Kinds: make([]op.Kind, n), Old: make([]uint64, n), Found: make([]bool, n)}
	for i, r := range rows {
		ops.Vals[i] = u.vals[lo+int(r)]
		if !u.gets[lo+int(r)] {
			ops.Kinds[i] = op.Set
		}
	}
	err := u.tree.Apply(ops, u.threads)
	for i, r := range rows {
		u.got[lo+int(r)] = ops.Old[i]
		if ops.Found[i] {
			u.hits++
		}
	}
	return err
}

// updates returns how many of operations [lo, hi) are no searches.
func (u *updated) updates(lo, hi int) (n int) {
	for _, get := range u.gets[lo:hi] {
		if !get {
			n++
		}
	}
	return n
}

// queries returns operations [lo, hi) as the paper's ways take them.
func (u *updated) queries(lo, hi int) *hbplus.Queries[uint64] {
	q := &hbplus.Queries[uint64]{Keys: u.keys[lo:hi], Vals: u.got[lo:hi], Gets: u.gets[lo:hi]}
	copy(q.Vals, u.vals[lo:hi])
	return q
}

func (u *updated) asynchronous(lo, hi int) error {
	q := u.queries(lo, hi)
	_, err := hbplus.Asynchronous(u.tree, q, u.threads)
	u.hits += q.Hits
	return err
}

func (u *updated) synchronous(lo, hi int) error {
	q := u.queries(lo, hi)
	err := hbplus.Synchronous(u.tree, &u.mirror, q, u.threads)
	u.hits += q.Hits
	return err
}

// copied does the same, and then copies all inner nodes.
func (u *updated) copied(way func(lo, hi int) error) func(lo, hi int) error {
	return func(lo, hi int) error {
		if err := way(lo, hi); err != nil {
			return err
		}
		u.mirror.CopyAll(u.tree)
		return nil
	}
}

// subject is one way to do the operations of a round, batch by batch. mirrored
// says that the mirror must then have all inner nodes.
func (u *updated) subject(name string, mirrored bool, way func(lo, hi int) error) *contest.Subject {
	var took time.Duration
	return &contest.Subject{
		System: name, Reference: name == nameApply, Whole: true,
		Do: func(ops int) error {
			u.hits = 0
			if mirrored {
				u.mirror.CopyAll(u.tree)
			}
			start := time.Now()
			for lo := 0; lo < ops; lo += u.batch {
				if err := way(lo, min(lo+u.batch, ops)); err != nil {
					return err
				}
			}
			took = time.Since(start)
			return nil
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error { return u.check(mirrored, ops) },
	}
}

// check checks all answers, and takes out the added keys.
func (u *updated) check(mirrored bool, ops int) error {
	updates := u.updates(0, ops)
	if u.hits != ops-updates {
		return fmt.Errorf("%d searches of %d found something", u.hits, ops-updates)
	}
	if mirrored && !u.mirror.Equal(u.tree) {
		return fmt.Errorf("the inner nodes copied are not those of the tree")
	}
	if n := u.tree.Len(); n != len(u.d.Keys)+updates {
		return fmt.Errorf("%d entries; there should be %d", n, len(u.d.Keys)+updates)
	}
	now := make([]uint64, ops)
	u.tree.GetBatch(u.keys[:ops], now, nil, contest.AllCores(), nil)
	for i, k := range u.keys[:ops] {
		v := now[i]
		if u.gets[i] {
			v = u.got[i]
		}
		if v != u.vals[i] {
			return fmt.Errorf("key %d has %d; it should have %d", k, v, u.vals[i])
		}
		u.got[i] = ^uint64(0)
	}
	added := u.apart.keys
	return u.applySorted(added, make([]uint64, len(added)), op.Delete, contest.AllCores())
}

// compete measures ways, and fills the column of whole times.
func (u *updated) compete(label string, ops, percentUpdates int, subjects ...*contest.Subject) error {
	subjects = slices.DeleteFunc(subjects, func(sub *contest.Subject) bool { return !u.s.Wanted(sub.System) })
	c := &contest.Contest{N: len(u.d.Keys), Threads: u.threads, Label: label, Ops: ops, Subjects: subjects,
		Fresh: func(round int) { u.fresh(round, percentUpdates) }}
	if err := u.s.Compete(c); err != nil {
		return err
	}
	for _, r := range u.s.Latest(c) {
		r.Set(colMillis, r.Median*float64(ops)/1e6)
	}
	return nil
}

// forUpdated calls body with a tree for each size and number of threads.
func forUpdated(s *contest.Session, body func(u *updated) error) error {
	there, err := rig.LookForGPU(s)
	if err != nil {
		return err
	}
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		u, err := newUpdated(s, d)
		if err != nil {
			return err
		}
		defer u.tree.Close()
		for _, u.threads = range s.Threads {
			err := u.withGPU(there, u.threads == s.Threads[len(s.Threads)-1], func() error { return body(u) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ways returns every way, on the CPU and with the GPU.
func (u *updated) ways() []*contest.Subject {
	return append([]*contest.Subject{
		u.subject(nameApply, false, u.apply),
		u.subject(nameAsynchronous, false, u.asynchronous),
		u.subject(nameSynchronous, true, u.synchronous),
	}, u.onGPU()...)
}

func runUpdateWays(s *contest.Session) error {
	err := forUpdated(s, func(u *updated) error {
		ops := work.ChangesOf(s, len(u.d.Keys))
		u.size(ops, ops)
		err := u.compete("updates", ops, 100, u.ways()...)
		if err != nil || u.threads != s.Threads[0] {
			return err
		}
		return u.competeCopy()
	})
	s.CompareTo(contest.ColSpeedup, func(r *contest.Row) bool { return r.Threads == s.Threads[0] },
		func(a, b *contest.Row) bool { return a.System == b.System && a.N == b.N && a.Case == b.Case })
	return err
}

// competeCopy measures a copy of all inner nodes, in host memory and to the GPU.
func (u *updated) competeCopy() error {
	nodes := 0
	u.tree.Inner(func(bplus.Node) { nodes++ })
	subjects := []*contest.Subject{{
		System: "copy of all inner nodes", Whole: true,
		Do: func(int) error { u.mirror.CopyAll(u.tree); return nil },
		Check: func(int) error {
			if !u.mirror.Equal(u.tree) {
				return fmt.Errorf("the inner nodes copied are not those of the tree")
			}
			return nil
		},
	}}
	if u.gpu != nil {
		subjects = append(subjects, u.copyToGPU())
	}
	return u.compete("inner nodes", nodes, 100, subjects...)
}

func runUpdateBatches(s *contest.Session) error {
	return forUpdated(s, func(u *updated) error {
		for batch := 8 * contest.Kilo; batch <= contest.Mega; batch *= 2 {
			if batch > 8*contest.Kilo && batch > len(u.d.Keys) {
				break
			}
			u.size(min(batch, s.Queries), batch)
			err := u.compete(contest.SizeText(batch), len(u.keys), 100, append([]*contest.Subject{
				u.subject(nameApply, false, u.apply),
				u.subject(nameApply+nameCopyInner, true, u.copied(u.apply)),
				u.subject(nameAsynchronous+nameCopyInner, true, u.copied(u.asynchronous)),
				u.subject(nameSynchronous, true, u.synchronous)}, u.onGPU()...)...)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func runUpdateMix(s *contest.Session) error {
	return forUpdated(s, func(u *updated) error {
		ops := work.ChangesOf(s, len(u.d.Keys))
		u.size(ops, ops)
		for _, percent := range []int{0, 5, 25, 50, 75, 100} {
			if err := u.compete(fmt.Sprintf("%d %%", percent), ops, percent, u.ways()...); err != nil {
				return err
			}
		}
		return nil
	})
}
