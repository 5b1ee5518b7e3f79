package work

import (
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// Growth is the pairs of a dataset in random order: a store that has got them so
// is as random inserts leave it. Nothing is loaded in order first, since nodes
// that were equally full at first are split all at the same time, and so are
// nearly empty or nearly full ever after.
type Growth struct{ *data.Dataset[uint64] }

// NewGrowth shuffles a dataset.
func NewGrowth(s *contest.Session, d *data.Dataset[uint64]) Growth { return Growth{d.Shuffled(s.Seed)} }

// Grow fills an empty store by single inserts.
func (g Growth) Grow(st peers.Store) error { return st.Set(g.Keys, g.Vals) }

// GrowBatches fills a tree by batches, the last of which doubles it, and takes
// the place of what was there.
func (g Growth) GrowBatches(t peers.Batched) error {
	if err := t.Load(nil, nil); err != nil {
		return err
	}
	n := len(g.Keys)
	for lo, hi := 0, max(1, n/16); lo < n; lo, hi = hi, min(2*hi, n) {
		if err := t.SetBatch(g.Keys[lo:hi], g.Vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// Pairs is the pairs that a round puts into stores, and room for the answers
// when it is looked whether they are there.
type Pairs struct {
	s          *contest.Session
	Keys, Vals []uint64
	got        []uint64
	found      []bool
}

// NewPairs returns room for n pairs.
func NewPairs(s *contest.Session, n int) *Pairs {
	return &Pairs{s: s, Keys: make([]uint64, n), Vals: make([]uint64, n), got: make([]uint64, n), found: make([]bool, n)}
}

// PairsOf is pairs that are there already.
func PairsOf(s *contest.Session, keys, vals []uint64) *Pairs {
	return &Pairs{s, keys, vals, make([]uint64, len(keys)), make([]bool, len(keys))}
}

// Fresh draws keys from the whole domain: that one of them is there already is
// as unlikely as it is for a random number of 64 bits.
func (p *Pairs) Fresh(round int) {
	rng := data.RoundRand(p.s, round)
	for i := range p.Keys {
		p.Keys[i] = rng.Uint64()
		p.Vals[i] = data.ValueOf(p.Keys[i])
	}
}

// Check looks whether the first ops keys have their values, or are all missing.
func (p *Pairs) Check(st peers.Getter[uint64], ops int, there bool) error {
	hits := st.Get(p.Keys[:ops], p.got[:ops], p.found[:ops])
	want := 0
	if there {
		want = ops
	}
	if hits != want {
		return fmt.Errorf("%d of %d keys are there; %d should be", hits, ops, want)
	}
	for i, k := range p.Keys[:ops] {
		if p.found[i] != there || there && p.got[i] != p.Vals[i] {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v", k, p.got[i], p.found[i])
		}
		p.got[i], p.found[i] = ^uint64(0), !there // the next store must not pass with these
	}
	return nil
}

// Delete takes the first ops keys out again, on all cores where that is allowed.
func (p *Pairs) Delete(st peers.Store, ops int) error {
	keys, deleted := p.Keys[:ops], 0
	switch st := st.(type) {
	case peers.Batched:
		deleted = st.DeleteBatch(keys)
	case peers.Deleter:
		deleted = st.Delete(keys)
	}
	if deleted != ops {
		return fmt.Errorf("deleted %d keys of %d", deleted, ops)
	}
	return nil
}

// CheckLen reports entries that a store should not have, or that are missing.
func CheckLen(st peers.Store, want int) error {
	if n := st.Len(); n != want {
		return fmt.Errorf("%d entries; there should be %d", n, want)
	}
	return nil
}

// changedPart is the part of a map that a round changes at most: one in
// changedPart entries, so that a map stays about as large as it was.
const changedPart = 32

// ChangesOf returns the number of changes of a round on n entries.
func ChangesOf(s *contest.Session, n int) int { return max(1, min(s.Queries, n/changedPart)) }

// LeastBatched is the number of keys that a round sets at least: small batches
// are done one after the other until there are as many.
const LeastBatched = 64 * contest.Kilo

// Sets is a store that takes the pairs of a round one by one, or as many as it
// can in the time of a round. They are taken out again.
func (p *Pairs) Sets(st peers.Store) *contest.Subject {
	n, name := st.Len(), st.Name()
	if contest.IsPando(name) {
		name += ", Set"
	}
	return &contest.Subject{
		System: name,
		Do:     func(ops int) error { return st.Set(p.Keys[:ops], p.Vals[:ops]) },
		Check: func(ops int) error {
			err := errors.Join(CheckLen(st, n+ops), p.Check(st, ops, true))
			return errors.Join(err, p.Delete(st, ops))
		},
	}
}

// Fills is a store that is made anew each round.
func Fills(s *contest.Session, d *data.Dataset[uint64], m peers.StoreMaker, name string, reference bool,
	set func(st peers.Store, keys, vals []uint64) error) *contest.Subject {
	var st peers.Store
	var took time.Duration
	return &contest.Subject{
		System: name, Reference: reference, Whole: true,
		Do: func(int) (err error) {
			start := time.Now()
			st, err = peers.MakeStore(m, func(st peers.Store) error { return set(st, d.Keys, d.Vals) })
			took = time.Since(start)
			if clock := peers.ClockOf(st); err == nil && clock != nil {
				took = clock()
			}
			return err
		},
		Clock: func() time.Duration { return took },
		Check: func(int) error {
			made := peers.Made[uint64]{Entries: st.Len(), Get: getOne(st)}
			return made.Check(s, d)
		},
		Reset: func() {
			if st != nil {
				peers.CloseStores([]peers.Store{st})
			}
		},
	}
}

// getOne looks up single keys, for checks.
func getOne(st peers.Store) func(uint64) (uint64, bool) {
	return func(k uint64) (uint64, bool) {
		val, found := []uint64{0}, []bool{false}
		st.Get([]uint64{k}, val, found)
		return val[0], found[0]
	}
}
