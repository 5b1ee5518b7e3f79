package main

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

var treeGet = &experiment{
	name:     "tree-get",
	about:    "GetBatch of a Tree against that of a Frozen: loaded, after random inserts, beside a writer",
	per:      "one key looked up",
	caseName: "tree",
	sizes:    usualSizes,
	extra:    []extraColumn{{colWrites, number}},
	run:      runTreeGet,
}

// colWrites is what a writer does beside the readers, in millions a second.
const colWrites = "writes M/s"

func runTreeGet(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		for _, threads := range s.threads {
			if err := treeGetContests(s, d, g, threads); err != nil {
				return err
			}
		}
		return nil
	})
}

func treeGetContests(s *session, d *dataset[uint64], g growth, threads int) error {
	frozen, err := openFrozenFor(threads, "Pando Frozen", d.keys, d.vals)
	if err != nil {
		return err
	}
	defer frozen.Close()
	l := newLookups[uint64](s, d)
	fresh := func(round int) { l.fresh(round, d.hits, allHits) }
	for _, state := range []struct {
		name string
		fill func(store) error
	}{
		{"loaded", func(st store) error { return loadSorted(st, d.keys, d.vals) }},
		{"after random inserts", g.grow},
	} {
		s.say("filling a tree, %s ...", state.name)
		st, err := makeStore(makeTreeStore(threads), state.fill)
		if err != nil {
			return err
		}
		tree := st.(*treeStore)
		c := &contest{n: len(d.keys), threads: threads, label: state.name, ops: len(l.q), fresh: fresh,
			subjects: []*subject{
				l.ask(frozenMap[uint64]{frozen}, "Pando Frozen", frozen.BytesPerEntry(), true),
				l.ask(tree, namePandoTree, float64(tree.Bytes())/float64(tree.Len()), false),
			}}
		err = s.compete(c)
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

// ask returns a subject that answers all queries with one call.
func (l *lookups[W]) ask(sys interface {
	Get(q, vals []W, found []bool) (hits int)
}, name string, bytes float64, reference bool) *subject {
	var hits int
	return &subject{
		system: name, bytes: bytes, reference: reference,
		do: func(ops int) error {
			hits = sys.Get(l.q[:ops], l.vals[:ops], l.found[:ops])
			return failureOf(sys)
		},
		clock: clockOf(sys),
		check: func(ops int) error { return l.check(ops, hits) },
	}
}

// besideWriter compares a tree that nobody changes with itself while one
// goroutine changes it as fast as it can.
func besideWriter(s *session, l *lookups[uint64], t *treeStore, threads int, fresh func(int)) error {
	w := &busyWriter{tree: t, rng: newRand(s.seed, streamShuffle)}
	alone := l.ask(t, namePandoTree+", alone", 0, true)
	beside := l.ask(t, namePandoTree+", one writer", 0, false)
	get := beside.do
	var took time.Duration
	beside.do = func(ops int) error {
		w.start()
		start := time.Now()
		err := get(ops)
		took = time.Since(start)
		w.stop()
		return err
	}
	beside.clock = func() time.Duration { return took }
	c := &contest{n: len(l.d.keys), threads: threads, label: "beside a writer", ops: len(l.q), fresh: fresh,
		subjects: []*subject{alone, beside}}
	if err := s.compete(c); err != nil {
		return err
	}
	s.latest(c)[1].set(colWrites, w.rate())
	return w.err
}

// busyWriter sets new keys and deletes old ones of its own, in turn, so that
// the tree stays as large as it is and every other key is there all the time.
type busyWriter struct {
	tree   *treeStore
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
const held = 64 * kilo

func (w *busyWriter) run() {
	close(w.began)
	start := time.Now()
	for !w.quit.Load() && w.err == nil {
		k := w.rng.Uint64()
		w.err = w.tree.tree.Set(k, valueOf(k))
		w.own = append(w.own, k)
		w.writes++
		if len(w.own) > held {
			w.tree.tree.Delete(w.own[0])
			w.own = w.own[1:]
			w.writes++
		}
	}
	w.busy += time.Since(start)
}

// rate returns the millions of writes a second.
func (w *busyWriter) rate() float64 { return float64(w.writes) / 1e6 / max(w.busy.Seconds(), 1e-9) }
