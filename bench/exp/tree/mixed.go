package tree

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var mixedExp = &contest.Experiment{
	Name:     "mixed",
	About:    "the workloads A to F of YCSB, uniform and Zipf 0.99, by single calls and by Apply",
	Per:      "one operation",
	CaseName: "workload",
	Sizes:    contest.UsualSizes,
	Queries:  contest.Mega,
	Run:      runMixed,
}

func runMixed(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		stores, err := peers.BuildStores(s, len(d.Keys), append([]peers.StoreMaker{ours.MakeTreeStore(1)}, peers.Stores()...), g.Grow)
		if err != nil {
			return err
		}
		defer peers.CloseStores(stores)
		batched, err := peers.MakeStore(ours.MakeTreeStore(1), g.Grow)
		if err != nil {
			peers.CloseStores(stores)
			return err
		}
		stores = append(stores, &ours.ApplyStore{TreeStore: batched.(*ours.TreeStore)})
		for _, w := range data.Workloads {
			for _, zipf := range []bool{false, true} {
				if err := mixedContest(s, d, w, zipf, stores); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// mixedContest measures one workload. Afterwards all stores have what they had
// before, but for z.Tree, which keeps what was added: those keys are random, and
// no others are asked for.
func mixedContest(s *contest.Session, d *data.Dataset[uint64], w data.Workload, zipf bool, stores []peers.Store) error {
	label := w.Name + ", uniform"
	if zipf {
		label = w.Name + ", Zipf"
	}
	m, x := data.NewMixer(w, d, zipf), data.NewMix(min(s.Queries, contest.Mega))
	got := make([]uint64, len(x.Ops))
	c := &contest.Contest{N: len(d.Keys), Threads: 1, Label: label, Ops: len(x.Ops), Fresh: func(round int) {
		if round >= 0 {
			m.Draw(data.RoundRand(s, round), x)
		}
	}}
	for i, st := range stores {
		if !canMix(st, w) {
			continue
		}
		c.Subjects = append(c.Subjects, mixes(st.Name(), x, got, i == 0, func() error { return st.(peers.Mixing).Mix(x, got) }))
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	return undo(m, w, stores)
}

// canMix reports whether a store has all operations of a workload.
func canMix(st peers.Store, w data.Workload) bool {
	if _, mixes := st.(peers.Mixing); !mixes {
		return false
	}
	_, walks := st.(peers.Walker)
	_, batches := st.(*ours.ApplyStore)
	return walks && !batches || !w.Has(data.MixScan) && !(batches && w.Has(data.MixModify))
}

func mixes(name string, x *data.Mix, got []uint64, reference bool, do func() error) *contest.Subject {
	return &contest.Subject{
		System: name, Reference: reference, Whole: true,
		Do: func(int) error { return do() },
		Check: func(int) error {
			for i, v := range got {
				if v != x.Want[i] {
					return fmt.Errorf("operation %d (%d on key %d) found %d; it should be %d", i, x.Ops[i], x.Keys[i], v, x.Want[i])
				}
				got[i] = ^uint64(0)
			}
			return nil
		},
	}
}

// undo gives stores back the values that a workload has changed, and takes out
// what it has added.
func undo(m *data.Mixer, w data.Workload, stores []peers.Store) error {
	keys, vals := m.Changed()
	for _, st := range stores {
		if err := st.Set(keys, vals); err != nil {
			return err
		}
		if del, ok := st.(peers.Deleter); ok && len(m.Late) > 0 {
			if !canMix(st, w) {
				continue
			}
			if n := del.Delete(m.Late); n != len(m.Late) {
				return fmt.Errorf("%s: %d added keys of %d are there", st.Name(), n, len(m.Late))
			}
		}
	}
	return nil
}
