package store

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/pandostore"
)

const nameReads = "limit: read the files"

var storeRecover = &contest.Experiment{
	Name:     "store-recover",
	About:    "Open of a store: a checkpoint, or a log of batches of 64K, each read from the disk",
	Per:      "one entry recovered",
	CaseName: "from",
	Sizes:    []int{4 * contest.Mega},
	Extra: []contest.ExtraColumn{{Name: colMillions, Format: contest.Number}, {Name: colOfTree, Format: contest.Ratio},
		{Name: colOfDisk, Format: contest.Ratio}},
	Run: runRecover,
}

func runRecover(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		p, err := newPlace()
		if err != nil {
			return err
		}
		defer p.close()
		if err := recoverCheckpoint(s, p, d); err != nil {
			return err
		}
		return recoverLog(s, p, d)
	})
}

// never keeps a store from writing checkpoints by itself.
var never = pandostore.CheckpointAfter(0)

// recoverCheckpoint measures a store that is a checkpoint alone, and peers as they are when
// they were filled and closed.
func recoverCheckpoint(s *contest.Session, p *place, d *data.Dataset[uint64]) error {
	makers := []peers.DurableMaker{ours.MakeDurable(ours.NameStore, never)}
	if len(peers.Durables()) == 0 {
		s.SkipOnce(peers.WithoutDurables)
	}
	for _, m := range peers.Durables() {
		if s.Wanted(m.Name) {
			makers = append(makers, m)
		}
	}
	for _, m := range makers {
		st, err := p.open(s, m, d)
		if err == nil {
			if own, ok := st.(*ours.DurableStore); ok {
				err = own.Checkpoint()
			}
		}
		if err != nil {
			return err
		}
		if err := p.shut(st); err != nil {
			return err
		}
	}
	c := recoverContest(p, d, "checkpoint", makers)
	c.Subjects = append(c.Subjects, reads(filepath.Join(p.dir, ours.NameStore, "checkpoint-*")))
	return finish(s, c)
}

// recoverLog measures a store that is a log alone.
func recoverLog(s *contest.Session, p *place, d *data.Dataset[uint64]) error {
	own := ours.MakeDurable(ours.NameStore+", log", never)
	st, err := p.open(s, own, d)
	if err != nil {
		return err
	}
	if err := p.shut(st); err != nil {
		return err
	}
	c := recoverContest(p, d, "log", []peers.DurableMaker{own})
	from := d.Shuffled(s.Seed)
	var tree *ours.DurableTree
	c.Subjects = append(c.Subjects, &contest.Subject{
		System: nameNoLog, Whole: true,
		Do: func(ops int) (err error) {
			if tree, err = ours.NewDurableTree(nameNoLog); err != nil {
				return err
			}
			return inBatches(tree, from.Keys[:ops], from.Vals[:ops], fillBatch)
		},
		Check: func(int) error { return tree.Close() },
	}, reads(filepath.Join(p.dir, own.Name, "log-*")))
	return finish(s, c)
}

// shut closes the store that was opened last, to be opened again.
func (p *place) shut(st peers.Durable) error {
	p.stores = p.stores[:len(p.stores)-1]
	return st.Close()
}

// recoverContest is stores that are opened. What is in the system's memory of their files is
// given up before each round.
func recoverContest(p *place, d *data.Dataset[uint64], label string, makers []peers.DurableMaker) *contest.Contest {
	c := &contest.Contest{N: len(d.Keys), Threads: contest.AllCores(), Label: label, Ops: len(d.Keys), Fresh: func(int) { evictAll(p.dir) }}
	for i, m := range makers {
		var st peers.Durable
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: m.Name, Reference: i == 0, Whole: true,
			Do: func(int) (err error) { st, err = m.Open(p.folder(m.Name)); return err },
			Check: func(ops int) error {
				step := max(1, ops/1000)
				for j := 0; j < ops; j += step {
					if err := check(st, d.Keys[j:j+1], d.Vals[j:j+1]); err != nil {
						return err
					}
				}
				return st.Close()
			},
		})
	}
	return c
}

// finish measures a contest, and fills the columns.
func finish(s *contest.Session, c *contest.Contest) error {
	if err := s.Compete(c); err != nil {
		return err
	}
	for _, r := range s.Latest(c) {
		r.Set(colMillions, 1e3/r.Median)
	}
	s.CompareTo(colOfTree, named(nameNoLog), sameSet)
	s.CompareTo(colOfDisk, named(nameReads), sameSet)
	return nil
}

// reads is the disk that reads files, one after the other.
func reads(pattern string) *contest.Subject {
	got := int64(0)
	buf := make([]byte, 4<<20)
	return &contest.Subject{
		System: nameReads, Whole: true,
		Do: func(int) error {
			names, err := filepath.Glob(pattern)
			if err != nil {
				return err
			}
			got = 0
			for _, name := range names {
				f, err := os.Open(name)
				if err != nil {
					return err
				}
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
				f.Close()
				if got += n; err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(int) error {
			if got == 0 {
				return fmt.Errorf("no files %s", pattern)
			}
			return nil
		},
	}
}

// evictAll makes the system forget the files below a folder. Where it cannot, they are
// read from memory, by the limit as well.
func evictAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if f, err := os.Open(path); err == nil {
			_ = evict(f)
			f.Close()
		}
		return nil
	})
}
