package cuart

import (
	"fmt"
	"runtime"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

var cuartUpdates = &contest.Experiment{
	Name:     "cuart-updates",
	About:    "new values for keys of a radix tree, by the size of batches and the length of keys",
	Figure:   "fig. 15 to 17 of the " + paper21 + ", the CPU's part",
	Per:      "one value set",
	CaseName: "bytes a key, keys a batch",
	Sizes:    []int{64 * contest.Kilo, 1 * contest.Mega, 16 * contest.Mega},
	Threads:  []int{runtime.NumCPU()},
	Run:      runCuartUpdates,
}

// updateCase is a length of keys and the sizes of batches to try with it.
type updateCase struct {
	length  int
	batches []int
}

var updateCases = []updateCase{
	{8, []int{16 * contest.Kilo}},
	{16, []int{1 * contest.Kilo, 4 * contest.Kilo, 16 * contest.Kilo, 64 * contest.Kilo, 256 * contest.Kilo}},
	{32, []int{16 * contest.Kilo, 32 * contest.Kilo}},
}

func runCuartUpdates(s *contest.Session) error {
	for _, x := range updateCases {
		err := eachCuart(s, []int{x.length}, func(t *data.Texts, threads int) error { return cuartSets(s, t, threads, x.batches) })
		if err != nil {
			return err
		}
	}
	return nil
}

// cuartSets builds maps, and changes values in them.
func cuartSets(s *contest.Session, t *data.Texts, threads int, batches []int) error {
	makers := cuartMakers(threads)
	systems, err := peers.BuildTexts(s, t, []peers.TextMaker{makers[1], makers[3]})
	if err != nil {
		return err
	}
	defer peers.CloseAll(systems)
	u := &textUpdates{TextLookups: work.NewTextLookups(s, t), sets: make([]uint64, s.Queries)}
	for _, batch := range batches {
		c := &contest.Contest{N: len(t.Keys), Threads: threads, Label: fmt.Sprintf("%s, %s", t.Label, contest.SizeText(batch)), Ops: s.Queries,
			Fresh: func(round int) { u.draw(s.Seed, round) }}
		for _, sys := range systems {
			sub := u.subject(updaterOf(sys, batch))
			sub.Reference = sys.Name() == ours.NameTree
			c.Subjects = append(c.Subjects, sub)
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

// textUpdates is a contest of setting values.
type textUpdates struct {
	*work.TextLookups
	sets []uint64
	turn uint64 // so that each round's values are new
}

func (u *textUpdates) subject(sys peers.TextUpdater) *contest.Subject {
	return &contest.Subject{
		System: sys.Name(), Bytes: sys.BytesPerEntry(),
		Do: func(ops int) error { return sys.Update(u.Q[:ops], u.sets[:ops]) },
		Check: func(ops int) error {
			sys.Get(u.Q[:ops], u.Vals[:ops], u.Found[:ops])
			for i := range u.Q[:ops] {
				if !u.Found[i] || u.Vals[i] != u.sets[i] {
					return fmt.Errorf("key %q has value %d after %d was set", u.Q[i], u.Vals[i], u.sets[i])
				}
			}
			return nil
		},
	}
}

// draw makes the queries of a round, and a new value for each key.
func (u *textUpdates) draw(seed uint64, round int) {
	u.turn++
	u.TextLookups.Draw(seed, round)
	for i, at := range u.At {
		u.sets[i] = data.ValueOf(uint64(at) + u.turn<<32) // equal keys have equal values
	}
}

// updaterOf returns a system whose values are set a batch at a time, if it can.
func updaterOf(sys peers.TextSystem, batch int) peers.TextUpdater {
	if t, ok := sys.(*ours.TreeText); ok {
		return treeUpdater{t, t.Tree, batch}
	}
	return peers.ARTUpdater(sys)
}

type treeUpdater struct {
	peers.TextSystem
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
