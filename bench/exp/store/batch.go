package store

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/pandostore"
)

const (
	colMillions = "M pairs/s"
	colOfTree   = "of no log"
	colOfDisk   = "of the disk"

	nameWrites = "limit: write the bytes, fdatasync"

	pairBytes = 16
)

var storeBatch = &contest.Experiment{
	Name:     "store-batch",
	About:    "SetBatch of 64K and 1M new random keys, each batch on disk when it returns; beside the tree without a log",
	Per:      "one new key set, its batch durable",
	CaseName: "batch",
	Sizes:    []int{contest.Mega},
	Queries:  contest.Mega,
	Extra: []contest.ExtraColumn{{Name: colMillions, Format: contest.Number}, {Name: colOfTree, Format: contest.Ratio},
		{Name: colOfDisk, Format: contest.Ratio}},
	Run: runBatch,
}

var batchSizes = []int{64 * contest.Kilo, contest.Mega}

func runBatch(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		p, err := newPlace()
		if err != nil {
			return err
		}
		defer p.close()
		var stores []peers.Durable
		for _, m := range []peers.DurableMaker{
			ours.MakeDurable(ours.NameStore),
			ours.MakeDurable(ours.NameStoreNoSync, pandostore.NoSync()),
			{Name: nameNoLog, Open: func(string) (peers.Durable, error) { return ours.NewDurableTree(nameNoLog) }},
		} {
			st, err := p.open(s, m, d)
			if err != nil {
				return err
			}
			stores = append(stores, st)
		}
		others, err := p.openPeers(s, d)
		if err != nil {
			return err
		}
		limit, err := p.newBare(64 << 20)
		if err != nil {
			return err
		}
		for i, batch := range batchSizes {
			if batch > s.Queries && i > 0 {
				continue
			}
			batch = min(batch, s.Queries)
			if err := batchContest(s, d, batch, append(stores, others...), limit); err != nil {
				return err
			}
		}
		return nil
	})
}

// nameNoLog is the row of the tree without a log.
const nameNoLog = "Pando Tree, no log"

// batchContest measures one size of batches. All stores get the same pairs and keep them.
func batchContest(s *contest.Session, d *data.Dataset[uint64], batch int, stores []peers.Durable, limit *bare) error {
	pairs := work.NewPairs(s, max(batch, s.Queries/batch*batch))
	c := &contest.Contest{N: len(d.Keys), Threads: contest.AllCores(), Label: contest.SizeText(batch), Ops: len(pairs.Keys), Fresh: pairs.Fresh}
	for i, st := range stores {
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: st.Name(), Reference: i == 0, Whole: true,
			Do:    func(ops int) error { return inBatches(st, pairs.Keys[:ops], pairs.Vals[:ops], batch) },
			Check: func(ops int) error { return check(st, pairs.Keys[:ops], pairs.Vals[:ops]) },
		})
	}
	c.Subjects = append(c.Subjects, limit.subject(nameWrites, int64(batch)*pairBytes, func(ops int) int { return ops / batch }))
	if err := s.Compete(c); err != nil {
		return err
	}
	for _, r := range s.Latest(c) {
		r.Set(colMillions, 1e3/r.Median)
	}
	s.CompareTo(colOfTree, named(nameNoLog), sameSet)
	s.CompareTo(colOfDisk, named(nameWrites), sameSet)
	return nil
}

// subject is the disk that writes bytes, and syncs them, some times for a number of operations.
func (b *bare) subject(name string, bytes int64, times func(ops int) int) *contest.Subject {
	return &contest.Subject{
		System: name, Whole: true,
		Do: func(ops int) error {
			for range times(ops) {
				if err := b.write(bytes); err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(int) error {
			if bytes > b.size {
				return fmt.Errorf("a file of %d bytes is too small for %d", b.size, bytes)
			}
			return nil
		},
	}
}

// named returns whether a row is that of a system.
func named(system string) func(*contest.Row) bool {
	return func(r *contest.Row) bool { return r.System == system }
}

// sameSet reports whether two rows are of one contest.
func sameSet(a, b *contest.Row) bool { return a.Beside(b) }
