package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/pandostore"
)

const (
	colOfAlone = "of alone"

	nameAlone  = ours.NameStore + ", no checkpoint"
	nameBeside = ours.NameStore + " beside checkpoints"
)

var storeCheckpoint = &contest.Experiment{
	Name:     "store-checkpoint",
	About:    "Checkpoint of a store; and SetBatch of 64K, and Set by 64 goroutines, while checkpoints are written",
	Per:      "one entry written to a checkpoint; one key set",
	CaseName: "what",
	Sizes:    []int{4 * contest.Mega},
	Queries:  contest.Mega,
	Extra: []contest.ExtraColumn{{Name: colMillions, Format: contest.Number}, {Name: colOfDisk, Format: contest.Ratio},
		{Name: colOfAlone, Format: contest.Ratio}},
	Run: runCheckpoint,
}

func runCheckpoint(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		p, err := newPlace()
		if err != nil {
			return err
		}
		defer p.close()
		st, err := p.open(s, ours.MakeDurable(ours.NameStore, never), d)
		if err != nil {
			return err
		}
		own := st.(*ours.DurableStore)
		if err := alone(s, p, d, own); err != nil {
			return err
		}
		pairs := work.NewPairs(s, s.Queries)
		batches := func(ops int) error { return inBatches(own, pairs.Keys[:ops], pairs.Vals[:ops], fillBatch) }
		if err := besides(s, d, own, pairs, "batches of 64k", batches); err != nil {
			return err
		}
		few := work.NewPairs(s, max(64, s.Queries/32))
		sets := func(ops int) error {
			return each(64, ops, new(waits), func(i int) error { return own.Set(few.Keys[i], few.Vals[i]) })
		}
		return besides(s, d, own, few, "64 writers", sets)
	})
}

// alone measures a checkpoint that nobody changes anything beside.
func alone(s *contest.Session, p *place, d *data.Dataset[uint64], own *ours.DurableStore) error {
	if err := own.Checkpoint(); err != nil {
		return err
	}
	info, err := pandostore.Inspect(filepath.Join(p.dir, ours.NameStore))
	if err != nil {
		return err
	}
	limit, err := p.newBare(info.Checkpoint.Bytes + 1<<20)
	if err != nil {
		return err
	}
	written := 0
	c := &contest.Contest{N: len(d.Keys), Threads: contest.AllCores(), Label: "checkpoint", Ops: len(d.Keys), Subjects: []*contest.Subject{
		{System: ours.NameStore, Reference: true, Whole: true,
			Do: func(int) error { written = own.Log().Checkpoints; return own.Checkpoint() },
			Check: func(int) error {
				if n := own.Log().Checkpoints - written; n != 1 {
					return fmt.Errorf("%d checkpoints were written", n)
				}
				return nil
			}},
		limit.subject(nameWrites, info.Checkpoint.Bytes, func(int) int { return 1 }),
	}}
	if err := s.Compete(c); err != nil {
		return err
	}
	for _, r := range s.Latest(c) {
		r.Set(colMillions, 1e3/r.Median)
	}
	s.CompareTo(colOfDisk, named(nameWrites), sameSet)
	return nil
}

// besides measures changes without and with checkpoints that are written meanwhile, one after
// the other.
func besides(s *contest.Session, d *data.Dataset[uint64], own *ours.DurableStore, pairs *work.Pairs, label string, change func(ops int) error) error {
	c := &contest.Contest{N: len(d.Keys), Threads: contest.AllCores(), Label: label, Ops: len(pairs.Keys), Fresh: pairs.Fresh}
	for _, with := range []bool{false, true} {
		var took time.Duration
		sub := &contest.Subject{
			System: nameAlone, Reference: !with, Whole: true,
			Do: func(ops int) error {
				stop, ended := make(chan struct{}), make(chan error, 1)
				if with {
					go func() { ended <- checkpoints(own, stop) }()
				} else {
					ended <- nil
				}
				begun := time.Now()
				err := change(ops)
				took = time.Since(begun)
				close(stop)
				return errors.Join(err, <-ended)
			},
			Clock: func() time.Duration { return took },
			Check: func(ops int) error { return check(own, pairs.Keys[:ops], pairs.Vals[:ops]) },
		}
		if with {
			sub.System = nameBeside
		}
		c.Subjects = append(c.Subjects, sub)
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	for _, r := range s.Latest(c) {
		r.Set(colMillions, 1e3/r.Median)
	}
	s.CompareTo(colOfAlone, named(nameAlone), sameSet)
	return nil
}

// checkpoints writes checkpoints until it is told to stop.
func checkpoints(own *ours.DurableStore, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := own.Checkpoint(); err != nil {
			return err
		}
	}
}
