package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
)

// store is an ordered map of uint64 to uint64 that can be changed. The loops of
// its methods are written out for each, so that no call is more expensive than
// a user's would be.
type store interface {
	Name() string
	// Set makes one call a key.
	Set(keys, vals []uint64) error
	// Get answers queries in whatever way is fastest for the store, and counts
	// the hits.
	Get(q, vals []uint64, found []bool) (hits int)
	Len() int
	Close()
}

// loader is a store that has a way of its own to take sorted pairs while it is
// empty.
type loader interface {
	Load(keys, vals []uint64) error
}

// deleter is a store that can delete any key, one call a key.
type deleter interface {
	Delete(keys []uint64) (deleted int)
}

// scanner is a store that can go through all its entries.
type scanner interface {
	Scan() (keySum, valSum uint64)
}

// walker is a store that can go through entries from any key on.
type walker interface {
	Walk(from uint64, n int) (keySum, valSum uint64)
}

// sharedStore is a store that several goroutines may change at a time.
type sharedStore interface {
	store
	Shared()
}

// weighed is a store that knows its size; that of others is the growth of the
// Go heap.
type weighed interface {
	Bytes() int64
}

// storeMaker makes an empty store.
type storeMaker struct {
	name string
	peak float64 // maximum bytes per entry while it is filled at random
	make func() (store, error)
}

// makeStore makes an empty store and fills it.
func makeStore(m storeMaker, fill func(store) error) (store, error) {
	st, err := m.make()
	if err == nil {
		err = fill(st)
	}
	if err != nil {
		return nil, fmt.Errorf("filling %s: %w", m.name, err)
	}
	return st, nil
}

// buildStores makes stores of n entries, as many at a time as there are cores,
// and leaves out those that do not fit into free memory together. They are
// returned in the order of makers.
func buildStores(s *session, n int, makers []storeMaker, fill func(store) error) ([]store, error) {
	order := slices.Clone(makers)
	slices.SortStableFunc(order, func(a, b storeMaker) int { return cmp.Compare(a.peak, b.peak) })
	taken := 0.0
	fits := map[string]bool{}
	for _, m := range order {
		if fits[m.name] = s.fits(m.name, n, taken+m.peak); fits[m.name] {
			taken += m.peak
		}
	}
	makers = slices.DeleteFunc(slices.Clone(makers), func(m storeMaker) bool { return !fits[m.name] })
	stores, errs := make([]store, len(makers)), make([]error, len(makers))
	var wg sync.WaitGroup
	turns := make(chan struct{}, allCores())
	for i, m := range makers {
		s.say("filling %s, %s ...", m.name, sizeText(n))
		wg.Go(func() {
			turns <- struct{}{}
			stores[i], errs[i] = makeStore(m, fill)
			<-turns
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			closeStores(stores)
			return nil, err
		}
	}
	return stores, nil
}

func closeStores(stores []store) {
	for _, st := range stores {
		if st != nil {
			st.Close()
		}
	}
	clear(stores)
	debug.FreeOSMemory() // so that the next fits sees the free memory
}

// loadSorted puts sorted pairs into an empty store, the way that is best for
// it.
func loadSorted(st store, keys, vals []uint64) error {
	if l, ok := st.(loader); ok {
		return l.Load(keys, vals)
	}
	return st.Set(keys, vals)
}

// growth is the pairs of a dataset in random order: a store that has got them so
// is as random inserts leave it. Nothing is loaded in order first, since nodes
// that were equally full at first are split all at the same time, and so are
// nearly empty or nearly full ever after.
type growth struct{ *dataset[uint64] }

func newGrowth(s *session, d *dataset[uint64]) growth { return growth{d.shuffled(s.seed)} }

// grow fills an empty store by single inserts.
func (g growth) grow(st store) error { return st.Set(g.keys, g.vals) }

// growBatches fills a tree by batches, the last of which doubles it, and takes
// the place of what was there.
func (g growth) growBatches(t *treeStore) error {
	if err := t.Load(nil, nil); err != nil {
		return err
	}
	n := len(g.keys)
	for lo, hi := 0, max(1, n/16); lo < n; lo, hi = hi, min(2*hi, n) {
		if err := t.SetBatch(g.keys[lo:hi], g.vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// newPairs is the pairs that a round puts into stores, and room for the answers
// when it is looked whether they are there.
type newPairs struct {
	s          *session
	keys, vals []uint64
	got        []uint64
	found      []bool
}

func newNewPairs(s *session, n int) *newPairs {
	return &newPairs{s: s, keys: make([]uint64, n), vals: make([]uint64, n), got: make([]uint64, n), found: make([]bool, n)}
}

// fresh draws keys from the whole domain: that one of them is there already is
// as unlikely as it is for a random number of 64 bits.
func (p *newPairs) fresh(round int) {
	rng := p.s.roundRand(round)
	for i := range p.keys {
		p.keys[i] = rng.Uint64()
		p.vals[i] = valueOf(p.keys[i])
	}
}

// check looks whether the first ops keys have their values, or are all missing.
func (p *newPairs) check(st getter[uint64], ops int, there bool) error {
	hits := st.Get(p.keys[:ops], p.got[:ops], p.found[:ops])
	want := 0
	if there {
		want = ops
	}
	if hits != want {
		return fmt.Errorf("%d of %d keys are there; %d should be", hits, ops, want)
	}
	for i, k := range p.keys[:ops] {
		if p.found[i] != there || there && p.got[i] != p.vals[i] {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v", k, p.got[i], p.found[i])
		}
		p.got[i], p.found[i] = ^uint64(0), !there // the next store must not pass with these
	}
	return nil
}

// delete takes the first ops keys out again, on all cores where that is allowed.
func (p *newPairs) delete(st store, ops int) error {
	keys, deleted := p.keys[:ops], 0
	switch st := st.(type) {
	case *treeStore:
		deleted = st.tree.DeleteBatch(keys, nil)
	case deleter:
		deleted = st.Delete(keys)
	}
	if deleted != ops {
		return fmt.Errorf("deleted %d keys of %d", deleted, ops)
	}
	return nil
}

// checkLen reports entries that a store should not have, or that are missing.
func checkLen(st store, want int) error {
	if n := st.Len(); n != want {
		return fmt.Errorf("%d entries; there should be %d", n, want)
	}
	return nil
}

// bytesOf returns what a store takes per entry, made by fill.
func bytesOf(m storeMaker, fill func(store) error) (perEntry float64, st store, err error) {
	grown := heapGrowth(func() { st, err = makeStore(m, fill) })
	if err != nil {
		return 0, nil, err
	}
	if w, ok := st.(weighed); ok {
		grown = float64(w.Bytes())
	}
	runtime.KeepAlive(st)
	return grown / float64(max(1, st.Len())), st, nil
}
