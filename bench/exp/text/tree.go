package text

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var stringsTree = &contest.Experiment{
	Name:     "strings-tree",
	About:    "strings in maps that can be changed: Set from an empty map on, Get, GetBatch, all in order, bytes an entry",
	Per:      "one key",
	CaseName: "keys, work",
	Sizes:    []int{contest.Mega},
	Run:      runStringsTree,
}

func runStringsTree(s *contest.Session) error { return eachTreeTexts(s, 3, 4, textStoreContests) }

// eachTreeTexts calls f with keys of each size and kind, if there is room for the given
// numbers of copies of them and of maps.
func eachTreeTexts(s *contest.Session, copies, maps float64, f func(s *contest.Session, t *data.Texts) error) error {
	for _, n := range s.Sizes {
		for _, kind := range data.TreeTextKinds {
			debug.FreeOSMemory()
			if !s.Room(kind.Label, n, copies*(kind.Bytes+data.StringHeader+data.TextValue)+maps*100, "use a smaller --n") {
				continue
			}
			if err := f(s, data.NewTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// textStoreContests fills maps in random order, and then reads them.
func textStoreContests(s *contest.Session, t *data.Texts) error {
	f := newTextFill(s, t)
	set := &contest.Contest{N: len(t.Keys), Threads: 1, Label: t.Label + ", Set", Ops: len(t.Keys)}
	var stores []peers.TextStore
	for i, m := range textStores() {
		st, err := f.fill(m)
		if err != nil {
			return err
		}
		stores = append(stores, st)
		set.Subjects = append(set.Subjects, f.sets(m, st.BytesPerEntry(), i == 0))
	}
	defer func() {
		for _, st := range stores {
			st.Close()
		}
	}()
	if err := s.Compete(set); err != nil {
		return err
	}
	frozen, err := ours.FreezeTexts(t, "Pando Frozen", 1)
	if err != nil {
		return err
	}
	defer frozen.Close()
	return readTextStores(s, t, frozen, stores)
}

// readTextStores measures Get, GetBatch and Scan.
func readTextStores(s *contest.Session, t *data.Texts, frozen *ours.FrozenText, stores []peers.TextStore) error {
	l := work.NewTextLookups(s, t)
	fresh := func(round int) { l.Draw(s.Seed, round) }
	one := &contest.Contest{N: len(t.Keys), Threads: 1, Label: t.Label + ", Get", Ops: s.Queries, Fresh: fresh}
	batch := &contest.Contest{N: len(t.Keys), Threads: 1, Label: t.Label + ", GetBatch", Ops: s.Queries, Fresh: fresh}
	scan := &contest.Contest{N: len(t.Keys), Threads: 1, Label: t.Label + ", scan", Ops: len(t.Keys)}
	for i, st := range append(stores, peers.TextStore(&ours.FrozenTextStore{FrozenText: frozen})) {
		if i < len(stores) {
			one.Subjects = append(one.Subjects, l.Subject(each{st}))
		}
		if i == 0 || i == len(stores) || st.Name() == nameTextPages {
			batch.Subjects = append(batch.Subjects, l.Subject(st))
		}
		if st.Name() != peers.NameGoMap {
			scan.Subjects = append(scan.Subjects, textScan(t, st))
		}
	}
	for _, c := range []*contest.Contest{one, batch, scan} {
		c.Subjects[0].Reference = true
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

// each is a store that is asked key by key.
type each struct{ peers.TextStore }

func (e each) Get(q []string, vals []uint64, found []bool) int { return e.Each(q, vals, found) }

func textScan(t *data.Texts, st peers.TextStore) *contest.Subject {
	want := uint64(0)
	for _, v := range t.Vals {
		want += v
	}
	var entries int
	var sum uint64
	return &contest.Subject{
		System: st.Name(), Whole: true,
		Do: func(int) error { entries, sum = st.Scan(); return nil },
		Check: func(int) error {
			if entries != len(t.Keys) || sum != want {
				return fmt.Errorf("%d entries with sum %d; they should be %d with %d", entries, sum, len(t.Keys), want)
			}
			return nil
		},
	}
}

// textFill is keys in random order.
type textFill struct {
	t    *data.Texts
	keys []string
	vals []uint64
}

func newTextFill(s *contest.Session, t *data.Texts) *textFill {
	f := &textFill{t: t, keys: make([]string, len(t.Keys)), vals: make([]uint64, len(t.Keys))}
	for i, at := range data.NewRand(s.Seed, data.StreamTexts).Perm(len(t.Keys)) {
		f.keys[i], f.vals[i] = t.Keys[at], t.Vals[at]
	}
	return f
}

// fill makes a store of all keys.
func (f *textFill) fill(m peers.TextStoreMaker) (st peers.TextStore, err error) {
	grown := contest.HeapGrowth(func() {
		st = m.Make()
		err = st.Set(f.keys, f.vals)
	})
	if h, ok := st.(interface{ Weigh(perEntry float64) }); ok {
		h.Weigh(grown/float64(len(f.keys)) + f.t.Mean)
	}
	return st, err
}

// sets is the work of filling an empty store.
func (f *textFill) sets(m peers.TextStoreMaker, perEntry float64, reference bool) *contest.Subject {
	var st peers.TextStore
	return &contest.Subject{
		System: m.Name, Bytes: perEntry, Reference: reference, Whole: true,
		Do: func(int) error { st = m.Make(); return st.Set(f.keys, f.vals) },
		Check: func(int) error {
			if n, _ := st.Scan(); n != len(f.keys) {
				return fmt.Errorf("%d entries of %d", n, len(f.keys))
			}
			return nil
		},
		Reset: func() {
			st.Close()
			st = nil
			runtime.GC()
		},
	}
}
