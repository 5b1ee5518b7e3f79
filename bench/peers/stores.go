package peers

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/pando-index/pando/bench/contest"
)

// Store is an ordered map of uint64 to uint64 that can be changed. The loops of
// its methods are written out for each, so that no call is more expensive than
// a user's would be.
type Store interface {
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

// Deleter is a store that can delete any key, one call a key.
type Deleter interface {
	Delete(keys []uint64) (deleted int)
}

// Scanner is a store that can go through all its entries.
type Scanner interface {
	Scan() (keySum, valSum uint64)
}

// Walker is a store that can go through entries from any key on.
type Walker interface {
	Walk(from uint64, n int) (keySum, valSum uint64)
}

// SharedStore is a store that several goroutines may change at a time.
type SharedStore interface {
	Store
	Shared()
}

// Batched is a store that takes and loses many keys a call.
type Batched interface {
	loader
	SetBatch(keys, vals []uint64) error
	DeleteBatch(keys []uint64) (deleted int)
}

// Weighed is a store that knows its size; that of others is the growth of the
// Go heap.
type Weighed interface {
	Bytes() int64
}

// StoreMaker makes an empty store.
type StoreMaker struct {
	Name string
	Peak float64 // maximum bytes per entry while it is filled at random
	Make func() (Store, error)
}

// MakeStore makes an empty store and fills it.
func MakeStore(m StoreMaker, fill func(Store) error) (Store, error) {
	st, err := m.Make()
	if err == nil {
		err = fill(st)
	}
	if err != nil {
		return nil, fmt.Errorf("filling %s: %w", m.Name, err)
	}
	return st, nil
}

// BuildStores makes stores of n entries, as many at a time as there are cores,
// and leaves out those that do not fit into free memory together. They are
// returned in the order of makers.
func BuildStores(s *contest.Session, n int, makers []StoreMaker, fill func(Store) error) ([]Store, error) {
	order := slices.Clone(makers)
	slices.SortStableFunc(order, func(a, b StoreMaker) int { return cmp.Compare(a.Peak, b.Peak) })
	taken := 0.0
	fits := map[string]bool{}
	for _, m := range order {
		if fits[m.Name] = s.Fits(m.Name, n, taken+m.Peak); fits[m.Name] {
			taken += m.Peak
		}
	}
	makers = slices.DeleteFunc(slices.Clone(makers), func(m StoreMaker) bool { return !fits[m.Name] })
	stores, errs := make([]Store, len(makers)), make([]error, len(makers))
	var wg sync.WaitGroup
	turns := make(chan struct{}, contest.AllCores())
	for i, m := range makers {
		s.Say("filling %s, %s ...", m.Name, contest.SizeText(n))
		wg.Go(func() {
			turns <- struct{}{}
			stores[i], errs[i] = MakeStore(m, fill)
			<-turns
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			CloseStores(stores)
			return nil, err
		}
	}
	return stores, nil
}

// CloseStores closes stores, and forgets them.
func CloseStores(stores []Store) {
	for _, st := range stores {
		if st != nil {
			st.Close()
		}
	}
	clear(stores)
	debug.FreeOSMemory() // so that the next fits sees the free memory
}

// LoadSorted puts sorted pairs into an empty store, the way that is best for
// it.
func LoadSorted(st Store, keys, vals []uint64) error {
	if l, ok := st.(loader); ok {
		return l.Load(keys, vals)
	}
	return st.Set(keys, vals)
}

// BytesOf returns what a store takes per entry, made by fill.
func BytesOf(m StoreMaker, fill func(Store) error) (perEntry float64, st Store, err error) {
	grown := contest.HeapGrowth(func() { st, err = MakeStore(m, fill) })
	if err != nil {
		return 0, nil, err
	}
	if w, ok := st.(Weighed); ok {
		grown = float64(w.Bytes())
	}
	runtime.KeepAlive(st)
	return grown / float64(max(1, st.Len())), st, nil
}
