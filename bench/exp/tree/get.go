package tree

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var treeGet = &contest.Experiment{
	Name:     "tree-get",
	About:    "GetBatch of a Tree against that of a Frozen: loaded, after random inserts, beside a writer",
	Per:      "one key looked up",
	CaseName: "tree",
	Sizes:    contest.UsualSizes,
	Extra:    []contest.ExtraColumn{{Name: colWrites, Format: contest.Number}},
	Run:      runTreeGet,
}

// colWrites is what a writer does beside the readers, in millions a second.
const colWrites = "writes M/s"

func runTreeGet(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		g := work.NewGrowth(s, d)
		for _, threads := range s.Threads {
			if err := treeGetContests(s, d, g, threads); err != nil {
				return err
			}
		}
		return nil
	})
}

func treeGetContests(s *contest.Session, d *data.Dataset[uint64], g work.Growth, threads int) error {
	frozen, err := ours.OpenFrozenFor(threads, "Pando Frozen", d.Keys, d.Vals)
	if err != nil {
		return err
	}
	defer frozen.Close()
	l := work.NewLookups[uint64](s, d)
	fresh := func(round int) { l.Fresh(round, d.Hits, work.AllHits) }
	for _, state := range []struct {
		name string
		fill func(peers.Store) error
	}{
		{"loaded", func(st peers.Store) error { return peers.LoadSorted(st, d.Keys, d.Vals) }},
		{"after random inserts", g.Grow},
	} {
		s.Say("filling a tree, %s ...", state.name)
		st, err := peers.MakeStore(ours.MakeTreeStore(threads), state.fill)
		if err != nil {
			return err
		}
		tree := st.(*ours.TreeStore)
		c := &contest.Contest{N: len(d.Keys), Threads: threads, Label: state.name, Ops: len(l.Q), Fresh: fresh,
			Subjects: []*contest.Subject{
				l.Ask(ours.FrozenMap[uint64]{Frozen: frozen}, "Pando Frozen", frozen.BytesPerEntry(), true),
				l.Ask(tree, ours.NameTree, float64(tree.Bytes())/float64(tree.Len()), false),
			}}
		err = s.Compete(c)
		if err == nil && state.name != "loaded" {
			err = besideWriter(s, l, tree, threads, fresh)
		}
		tree.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// besideWriter compares a tree that nobody changes with itself while one
// goroutine changes it as fast as it can.
func besideWriter(s *contest.Session, l *work.Lookups[uint64], t *ours.TreeStore, threads int, fresh func(int)) error {
	w := &busyWriter{tree: t, rng: data.NewRand(s.Seed, data.StreamShuffle)}
	alone := l.Ask(t, ours.NameTree+", alone", 0, true)
	beside := l.Ask(t, ours.NameTree+", one writer", 0, false)
	get := beside.Do
	var took time.Duration
	beside.Do = func(ops int) error {
		w.start()
		start := time.Now()
		err := get(ops)
		took = time.Since(start)
		w.stop()
		return err
	}
	beside.Clock = func() time.Duration { return took }
	c := &contest.Contest{N: len(l.D.Keys), Threads: threads, Label: "beside a writer", Ops: len(l.Q), Fresh: fresh,
		Subjects: []*contest.Subject{alone, beside}}
	if err := s.Compete(c); err != nil {
		return err
	}
	s.Latest(c)[1].Set(colWrites, w.rate())
	return w.err
}

// busyWriter sets new keys and deletes old ones of its own, in turn, so that
// the tree stays as large as it is and every other key is there all the time.
type busyWriter struct {
	tree   *ours.TreeStore
	rng    *rand.Rand
	own    []uint64 // keys set, the oldest first
	writes int
	busy   time.Duration
	err    error

	quit  atomic.Bool
	began chan struct{}
	wg    sync.WaitGroup
}

func (w *busyWriter) start() {
	w.quit.Store(false)
	w.began = make(chan struct{})
	w.wg.Go(w.run)
	<-w.began
}

func (w *busyWriter) stop() {
	w.quit.Store(true)
	w.wg.Wait()
}

// held is the number of own keys from which on the oldest are deleted.
const held = 64 * contest.Kilo

func (w *busyWriter) run() {
	close(w.began)
	start := time.Now()
	for !w.quit.Load() && w.err == nil {
		k := w.rng.Uint64()
		w.err = w.tree.Tree.Set(k, data.ValueOf(k))
		w.own = append(w.own, k)
		w.writes++
		if len(w.own) > held {
			w.tree.Tree.Delete(w.own[0])
			w.own = w.own[1:]
			w.writes++
		}
	}
	w.busy += time.Since(start)
}

// rate returns the millions of writes a second.
func (w *busyWriter) rate() float64 { return float64(w.writes) / 1e6 / max(w.busy.Seconds(), 1e-9) }
