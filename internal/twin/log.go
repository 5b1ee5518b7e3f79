package twin

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/order"
)

// log is what was accepted and is not in the tree in host memory yet: runs of
// changes, each key once and in order. While it is not empty, or a batch is on its
// way to it, all stripes are held for it.
type log[C order.Code] struct {
	t    *Twin[C]
	mu   sync.Mutex
	less sync.Cond // a run was folded

	runs    atomic.Pointer[[]*run[C]] // oldest first; nil for none
	read    sync.RWMutex              // held by who reads runs, so that their memory stays
	ops     int                       // in all runs
	have    int                       // entries of the tree with all runs folded
	coming  bool                      // a batch is on its way
	folding bool
	spare   [segmentSizes][]*segment[C]
}

// run is what one batch comes to, in segments.
type run[C order.Code] struct {
	parts []*segment[C]
	n     int
}

// cut leaves the first n changes of a run, and returns the segments that it has no
// use for.
func (r *run[C]) cut(n int) (rest []*segment[C]) {
	r.n = n
	for i, s := range r.parts {
		if n == 0 {
			r.parts, rest = r.parts[:i], r.parts[i:]
			return rest
		}
		s.n = min(s.n, n)
		n -= s.n
	}
	return nil
}

// segment is changes in page-locked memory.
type segment[C order.Code] struct {
	memory     []byte
	room       int // operations that it is made for
	keys, vals []C
	kinds      []bplus.Kind
	n          int
}

// newSegment returns page-locked memory for so many operations.
func newSegment[C order.Code](dev device.Device, ops int) (*segment[C], error) {
	memory, err := dev.HostAlloc(2*device.Aligned(ops*sizeOf[C]()) + ops)
	if err != nil {
		return nil, err
	}
	return &segment[C]{memory: memory, room: ops}, nil
}

// lay says that a segment has n keys, unless keys is false, vals and kinds one
// behind the other, at a distance of so many bytes, and reports whether it has room
// for that.
func (s *segment[C]) lay(n, column int, keys bool) bool {
	at, bytes := s.memory, n*sizeOf[C]()
	if s.keys = nil; keys {
		if len(at) < column {
			return false
		}
		s.keys, at = arena.As[C](at[:bytes]), at[column:]
	}
	if len(at) < column+n {
		return false
	}
	s.vals, s.kinds = arena.As[C](at[:bytes]), arena.As[bplus.Kind](at[column:][:n])
	return true
}

// get returns what the log says of a key, if it says something.
func (s *segment[C]) get(key C) (val C, ok, known bool) {
	if i, there := slices.BinarySearch(s.keys[:s.n], key); there {
		return s.vals[i], s.kinds[i] == bplus.Set, true
	}
	return 0, false, false
}

func (g *log[C]) init(t *Twin[C]) {
	g.t = t
	g.less.L = &g.mu
}

func (g *log[C]) pending() bool { return g.runs.Load() != nil }

// get returns what the log says of a key, if it says something.
func (g *log[C]) get(key C) (val C, ok, known bool) {
	if g.runs.Load() == nil {
		return 0, false, false
	}
	g.read.RLock()
	defer g.read.RUnlock()
	runs := g.runs.Load()
	if runs == nil {
		return 0, false, false
	}
	for _, r := range slices.Backward(*runs) {
		for _, s := range r.parts {
			if s.n > 0 && key <= s.keys[s.n-1] {
				if val, ok, known = s.get(key); known {
					return val, ok, true
				}
				break
			}
		}
	}
	return 0, false, false
}

// entries returns the number of entries of the tree, if the log knows it.
func (g *log[C]) entries() (n int, known bool) {
	if g.runs.Load() == nil {
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.have, g.runs.Load() != nil
}

// wait waits until the log is empty.
func (g *log[C]) wait() {
	if g.runs.Load() == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty()
}

// empty is wait for who holds the lock.
func (g *log[C]) empty() {
	for g.runs.Load() != nil {
		g.less.Wait()
	}
}

// begin makes room for a batch of n operations: it waits until the log is short
// enough, and, where somebody waits for a stripe, until it is empty. Then all
// stripes are held for the batch, until accept or end. One goroutine at a time
// may have begun.
func (g *log[C]) begin(n int) {
	g.mu.Lock()
	for runs := g.runs.Load(); runs != nil && (g.ops+n > g.t.opts.Log || len(*runs) >= mostRuns); runs = g.runs.Load() {
		g.less.Wait()
	}
	if g.t.waiting.Load() > 0 {
		g.empty()
	}
	g.coming = true
	held := g.runs.Load() != nil
	g.mu.Unlock()
	if !held {
		g.t.lockAll()
	}
}

// accept adds what the batch comes to. entries is what the tree has with it.
func (g *log[C]) accept(r *run[C], entries int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var runs []*run[C]
	if old := g.runs.Load(); old != nil {
		runs = slices.Clone(*old)
	}
	runs = append(runs, r)
	g.runs.Store(&runs)
	g.ops, g.have, g.coming = g.ops+r.n, entries, false
	if !g.folding {
		g.folding = true
		go g.fold()
	}
}

// alone waits until the log is empty. The stripes are still held for the batch,
// which may change the tree in host memory.
func (g *log[C]) alone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty()
}

// end ends a batch without a run.
func (g *log[C]) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coming = false
	if g.runs.Load() == nil {
		g.t.unlockAll()
	}
}

// fold folds runs into the tree until there is none.
func (g *log[C]) fold() {
	for {
		r := (*g.runs.Load())[0]
		for _, s := range r.parts {
			g.foldPart(s)
		}
		if g.done(r) {
			return
		}
	}
}

// foldPart folds a segment. What was accepted must not be lost: where the system
// has no memory for it, it is tried again.
func (g *log[C]) foldPart(s *segment[C]) {
	ops := &bplus.Ops[C]{Keys: s.keys[:s.n], Vals: s.vals[:s.n], Kinds: s.kinds[:s.n]}
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := g.t.cpu.Apply(ops, g.t.workers)
		if err == nil {
			return
		}
		slog.Error("pando: a batch that the GPU has done does not fit into host memory yet; trying again", "error", err)
		time.Sleep(pause)
	}
}

// done takes the oldest run out of the log, and reports whether there is no
// other. Then the stripes are let go, unless a batch is on its way.
func (g *log[C]) done(r *run[C]) (empty bool) {
	g.read.Lock() // nobody reads it any more
	g.mu.Lock()
	defer g.mu.Unlock()
	runs := slices.Clone((*g.runs.Load())[1:])
	g.ops -= r.n
	if empty = len(runs) == 0; empty {
		g.runs.Store(nil)
		g.folding = false
	} else {
		g.runs.Store(&runs)
	}
	g.read.Unlock()
	g.keep(r.parts)
	if empty && !g.coming {
		g.t.unlockAll()
	}
	g.less.Broadcast()
	return empty
}

// mostRuns is the most runs in the log: a search for one key looks at all of them.
const mostRuns = 64

// Segments are of a few sizes: a small batch does not take the memory of a large
// one.
const (
	segmentOps   = 1 << 20 // operations in the largest,
	segmentStep  = 8       // which has so many times those of the next,
	segmentSizes = 3       // and so on
)

// segment returns memory for a run of n operations, or for a part of it.
func (g *log[C]) segment(n int) (*segment[C], error) {
	size, ops := 0, segmentOps
	for ; size+1 < segmentSizes && n <= ops/segmentStep; size++ {
		ops /= segmentStep
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if k := len(g.spare[size]); k > 0 {
		s := g.spare[size][k-1]
		g.spare[size] = g.spare[size][:k-1]
		return s, nil
	}
	return newSegment[C](g.t.gpu.dev, ops)
}

// back takes segments that are not needed.
func (g *log[C]) back(parts []*segment[C]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep(parts)
}

// keep keeps segments for later, for who holds the lock.
func (g *log[C]) keep(parts []*segment[C]) {
	for _, s := range parts {
		size := 0
		for ops := segmentOps; ops > s.room; size++ {
			ops /= segmentStep
		}
		g.spare[size] = append(g.spare[size], s)
	}
}

// close frees all segments. The log is empty.
func (g *log[C]) close() (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for size, spare := range g.spare {
		for _, s := range spare {
			err = errors.Join(err, g.t.gpu.dev.HostFree(s.memory))
		}
		g.spare[size] = nil
	}
	return err
}
