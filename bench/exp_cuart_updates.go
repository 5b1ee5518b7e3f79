package main

import (
	"fmt"
	"runtime"

	art "github.com/plar/go-adaptive-radix-tree/v2"

	"github.com/pando-index/pando"
)

var cuartUpdates = &experiment{
	name:     "cuart-updates",
	about:    "new values for keys of a radix tree, by the size of batches and the length of keys",
	figure:   "fig. 15 to 17 of the " + paper21 + ", the CPU's part",
	per:      "one value set",
	caseName: "bytes a key, keys a batch",
	sizes:    []int{64 * kilo, 1 * mega, 16 * mega},
	threads:  []int{runtime.NumCPU()},
	run:      runCuartUpdates,
}

// updateCase is a length of keys and the sizes of batches to try with it.
type updateCase struct {
	length  int
	batches []int
}

var updateCases = []updateCase{
	{8, []int{16 * kilo}},
	{16, []int{1 * kilo, 4 * kilo, 16 * kilo, 64 * kilo, 256 * kilo}},
	{32, []int{16 * kilo, 32 * kilo}},
}

func runCuartUpdates(s *session) error {
	for _, x := range updateCases {
		err := s.eachCuart([]int{x.length}, func(t *texts, threads int) error { return cuartSets(s, t, threads, x.batches) })
		if err != nil {
			return err
		}
	}
	return nil
}

// textUpdater is a map of strings whose values change.
type textUpdater interface {
	textSystem
	Update(q []string, vals []uint64) error
}

// cuartSets builds maps, and changes values in them.
func cuartSets(s *session, t *texts, threads int, batches []int) error {
	makers := cuartMakers(threads)
	systems, err := buildTexts(s, t, []textMaker{makers[1], makers[3]})
	if err != nil {
		return err
	}
	defer closeAll(systems)
	u := &textUpdates{textLookups: newTextLookups(s, t), sets: make([]uint64, s.queries)}
	for _, batch := range batches {
		c := &contest{n: len(t.keys), threads: threads, label: fmt.Sprintf("%s, %s", t.label, sizeText(batch)), ops: s.queries,
			fresh: func(round int) { u.draw(s.seed, round) }}
		for _, sys := range systems {
			sub := u.subject(updaterOf(sys, batch))
			sub.reference = sys.Name() == namePandoTree
			c.subjects = append(c.subjects, sub)
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// textUpdates is a contest of setting values.
type textUpdates struct {
	*textLookups
	sets []uint64
	turn uint64 // so that each round's values are new
}

func (u *textUpdates) subject(sys textUpdater) *subject {
	return &subject{
		system: sys.Name(), bytes: sys.BytesPerEntry(),
		do: func(ops int) error { return sys.Update(u.q[:ops], u.sets[:ops]) },
		check: func(ops int) error {
			sys.Get(u.q[:ops], u.vals[:ops], u.found[:ops])
			for i := range u.q[:ops] {
				if !u.found[i] || u.vals[i] != u.sets[i] {
					return fmt.Errorf("key %q has value %d after %d was set", u.q[i], u.vals[i], u.sets[i])
				}
			}
			return nil
		},
	}
}

// draw makes the queries of a round, and a new value for each key.
func (u *textUpdates) draw(seed uint64, round int) {
	u.turn++
	u.textLookups.draw(seed, round)
	for i, at := range u.at {
		u.sets[i] = valueOf(uint64(at) + u.turn<<32) // equal keys have equal values
	}
}

// updaterOf returns a system whose values are set a batch at a time, if it can.
func updaterOf(sys textSystem, batch int) textUpdater {
	if t, ok := sys.(*treeText); ok {
		return treeUpdater{t, t.tree, batch}
	}
	return artUpdater{sys.(*textART)}
}

type treeUpdater struct {
	textSystem
	tree  *pando.Tree[string, uint64]
	batch int
}

func (t treeUpdater) Update(q []string, vals []uint64) error {
	for lo := 0; lo < len(q); lo += t.batch {
		hi := min(lo+t.batch, len(q))
		if err := t.tree.SetBatch(q[lo:hi], vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// artUpdater is plar's tree, which one goroutine changes.
type artUpdater struct{ *textART }

func (t artUpdater) Update(q []string, vals []uint64) error {
	var key art.Key
	for i, k := range q {
		key = append(key[:0], k...)
		t.tree.Insert(key, vals[i])
	}
	return nil
}
