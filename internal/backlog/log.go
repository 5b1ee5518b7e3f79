// Package backlog holds the changes that one of two equal trees has and the other
// does not have yet: a log of runs, one a batch, that a tree on a GPU has accepted
// and that are folded into its twin in host memory in the background, and notes of
// keys that single operations have changed there and the GPU does not have yet.
//
// Order is kept by few rules:
//
//   - A writer of the tree in host memory holds the stripe of its key, or all
//     stripes. While the log is not empty it holds all stripes, so nothing comes
//     between a batch and its fold.
//   - A search for one key looks at the log, newest run first, before the tree.
//     Everything else that reads the tree in host memory waits until the log is
//     empty.
//   - A batch on the GPU begins by bringing the GPU up to date, with all stripes
//     held: so every change that others have seen is noted.
//
// Package twin keeps numbers and strings by these rules.
package backlog

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/device"
)

// Run is the effects of one batch, in memory of its own.
type Run[K, V any] interface {
	// Get returns the outcome of the run's last operation on a key. known is whether
	// there is one.
	Get(key K) (val V, ok, known bool)
	// Fold folds the run into the tree in host memory.
	Fold()
	// Free gives the memory back, when no reader is left.
	Free()
	// Size returns the bytes that count against the bound of the log.
	Size() int
}

// Log is runs that were accepted and are not in the tree in host memory yet. While it
// is not empty, or a batch is on its way to it, all stripes are held for it.
type Log[K, V any] struct {
	stripes *Stripes[K]
	most    int
	mu      sync.Mutex
	less    sync.Cond // a run was folded

	runs    atomic.Pointer[[]Run[K, V]] // oldest first; nil for none
	read    sync.RWMutex                // held by readers of runs, so that their memory stays
	size    int                         // of all runs
	have    int                         // entries of the tree with all runs folded
	coming  bool                        // a batch is on its way
	folding bool
}

// MostRuns is the most runs in a log: a search for one key looks at all of them.
const MostRuns = 64

// Init makes a log ready, whose runs have a size of most all together, or are one.
func (g *Log[K, V]) Init(s *Stripes[K], most int) {
	g.stripes, g.most = s, most
	g.less.L = &g.mu
}

// Pending reports whether there is a run.
func (g *Log[K, V]) Pending() bool { return g.runs.Load() != nil }

// Get returns the outcome of the log's last operation on a key. known is whether
// there is one.
func (g *Log[K, V]) Get(key K) (val V, ok, known bool) {
	if g.runs.Load() == nil {
		return val, false, false
	}
	g.read.RLock()
	defer g.read.RUnlock()
	runs := g.runs.Load()
	if runs == nil {
		return val, false, false
	}
	for _, r := range slices.Backward(*runs) {
		if val, ok, known = r.Get(key); known {
			return val, ok, true
		}
	}
	return val, false, false
}

// Entries returns the number of entries of the tree, if the log knows it.
func (g *Log[K, V]) Entries() (n int, known bool) {
	if g.runs.Load() == nil {
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.have, g.runs.Load() != nil
}

// Wait waits until the log is empty. Batches let it become so.
func (g *Log[K, V]) Wait() {
	if g.runs.Load() == nil {
		return
	}
	g.stripes.waiting.Add(1)
	defer g.stripes.waiting.Add(-1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty()
}

// empty is Wait for a caller that holds the lock.
func (g *Log[K, V]) empty() {
	for g.runs.Load() != nil {
		g.less.Wait()
	}
}

// Begin makes room for a batch whose run has a size: it waits until the log is short
// enough, and, where another goroutine waits for that or for a stripe, until it is empty.
// Then all stripes are held for the batch, until Accept or End. One goroutine at a time
// may have begun.
func (g *Log[K, V]) Begin(size int) {
	g.mu.Lock()
	for runs := g.runs.Load(); runs != nil && (g.size+size > g.most || len(*runs) >= MostRuns); runs = g.runs.Load() {
		g.less.Wait()
	}
	if g.stripes.waiting.Load() > 0 {
		g.empty()
	}
	g.coming = true
	held := g.runs.Load() != nil
	g.mu.Unlock()
	if !held {
		g.stripes.lock()
	}
}

// Accept adds the run of the batch. entries is the number of entries that the tree
// has with it.
func (g *Log[K, V]) Accept(r Run[K, V], entries int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var runs []Run[K, V]
	if old := g.runs.Load(); old != nil {
		runs = slices.Clone(*old)
	}
	runs = append(runs, r)
	g.runs.Store(&runs)
	g.size, g.have, g.coming = g.size+r.Size(), entries, false
	if !g.folding {
		g.folding = true
		go g.fold()
	}
}

// Alone waits until the log is empty. The stripes are still held for the batch,
// which may change the tree in host memory.
func (g *Log[K, V]) Alone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty()
}

// End ends a batch without a run.
func (g *Log[K, V]) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coming = false
	if g.runs.Load() == nil {
		g.stripes.unlock()
	}
}

// fold folds runs into the tree until there is none.
func (g *Log[K, V]) fold() {
	for {
		r := (*g.runs.Load())[0]
		r.Fold()
		if g.done(r) {
			return
		}
	}
}

// done takes the oldest run out of the log, and reports whether there is no
// other. Then the stripes are let go, unless a batch is on its way.
func (g *Log[K, V]) done(r Run[K, V]) (empty bool) {
	g.read.Lock() // no reader is left
	g.mu.Lock()
	defer g.mu.Unlock()
	runs := slices.Clone((*g.runs.Load())[1:])
	g.size -= r.Size()
	r.Free() // before the log may be seen to be empty: then all memory may be given back
	if empty = len(runs) == 0; empty {
		g.runs.Store(nil)
		g.folding = false
	} else {
		g.runs.Store(&runs)
	}
	g.read.Unlock()
	if empty && !g.coming {
		g.stripes.unlock()
	}
	g.less.Broadcast()
	return empty
}

// Insist calls do until it succeeds, for changes that were accepted and must
// not be lost: where the system has no memory for them, it tries again.
func Insist(do func() error) {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if err == nil {
			return
		}
		device.Warn("pando: a batch that the GPU has done does not fit into host memory yet; trying again", "error", err)
		time.Sleep(pause)
	}
}
