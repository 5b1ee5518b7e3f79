package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// system is an index over a dataset. Methods that answer queries are called
// from several goroutines at a time, each with its own part of the slices,
// unless the system is also threaded.
type system[W word] interface {
	Name() string
	BytesPerEntry() float64
	// Get answers queries that do not depend on each other, in whatever way
	// is fastest for the system, and counts the hits.
	Get(q, vals []W, found []bool) (hits int)
	Close()
}

// threaded is a system that spreads a batch over goroutines by itself.
type threaded interface{ SetThreads(n int) error }

// single is a system that answers one key at a time.
type single[W word] interface {
	// Each makes one call per query; the calls may overlap in the processor.
	Each(q, vals []W) (hits int)
	// Chain does the same, but each query depends on the previous answer: q[i]
	// is changed by answer AND mask, and mask is 0.
	Chain(q, vals []W, mask W) (hits int)
}

// ranker is a system that counts the keys below a query.
type ranker[W word] interface{ Rank(q []W, ranks []int) }

// ranger is a system that lists the entries of ranges.
type ranger[W word] interface {
	Ranges(lo, hi []W, out *flat[W])
	Scan() (keySum, valSum W)
}

// flat collects the entries of many ranges, one after another, with the end of
// each in ends.
type flat[W word] struct {
	keys, vals []W
	ends       []int
}

func (f *flat[W]) clear() { f.keys, f.vals, f.ends = f.keys[:0], f.vals[:0], f.ends[:0] }

// heapBuilt holds the size of a system on the Go heap.
type heapBuilt struct{ perEntry float64 }

func (h heapBuilt) BytesPerEntry() float64 { return h.perEntry }

// maker builds a system.
type maker[W word] struct {
	name  string
	peak  float64 // maximum bytes per entry while the system is built
	build func(d *dataset[W]) (system[W], error)
}

// Peaks follow from the bytes per entry that the memory experiment shows, and
// the garbage not yet collected; a map that knows its size from the start makes
// no garbage.
const (
	treePeak = 3   // times the pairs: nodes filled in order stay half empty
	mapPeak  = 2.5 // times the pairs
	artPeak  = 150 // bytes, whatever the key's width
)

// isPando reports whether a row is Pando's rather than a peer's.
func isPando(name string) bool { return strings.HasPrefix(name, namePando) }

// wanted reports whether --systems includes a system. Pando always is.
func (s *session) wanted(name string) bool { return isPando(name) || s.named(name) }

// named reports whether --systems includes a system by its name, or is not given.
func (s *session) named(name string) bool {
	return len(s.systems) == 0 || slices.ContainsFunc(s.systems, func(word string) bool {
		return strings.Contains(strings.ToLower(name), word)
	})
}

// buildAll builds the systems, the heaviest last, and leaves out those that do
// not fit into free memory. They are returned in the order of makers.
func buildAll[W word](s *session, d *dataset[W], makers []maker[W]) ([]system[W], error) {
	order := make([]int, len(makers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(makers[a].peak, makers[b].peak) })
	built := make([]system[W], len(makers))
	for _, i := range order {
		sys, err := buildOne(s, d, makers[i])
		if err != nil {
			closeAll(built)
			return nil, err
		}
		built[i] = sys
	}
	return slices.DeleteFunc(built, func(sys system[W]) bool { return sys == nil }), nil
}

// buildOne returns nil, and no error, if the system is not wanted or does not
// fit.
func buildOne[W word](s *session, d *dataset[W], m maker[W]) (system[W], error) {
	n := len(d.keys)
	if !s.fits(m.name, n, m.peak) {
		return nil, nil
	}
	s.say("building %s, %s ...", m.name, sizeText(n))
	defer limitHeap()()
	sys, err := m.build(d)
	if err != nil {
		return nil, fmt.Errorf("building %s, n %s: %w", m.name, sizeText(n), err)
	}
	return sys, nil
}

// fits reports whether a system is wanted and n entries of it fit into free
// memory.
func (s *session) fits(name string, n int, perEntry float64) bool {
	return s.wanted(name) && s.room(name, n, perEntry, fmt.Sprintf("alone it may fit: --systems %q", name))
}

// room reports whether n entries of something fit into free memory. If not, it
// prints a line that says so, with advice.
func (s *session) room(what string, n int, perEntry float64, advice string) bool {
	need, free := int64(float64(n)*perEntry), freeMemory()
	if need > free {
		s.skip("%s at n %s: needs about %s, %s of memory are free; %s", what, sizeText(n), gib(need), gib(free), advice)
		return false
	}
	return true
}

func closeAll[S interface{ Close() }](systems []S) {
	for _, sys := range systems {
		if any(sys) != nil {
			sys.Close()
		}
	}
	debug.FreeOSMemory() // so that the next fits sees the free memory
}

// headroom is the memory that stays free for the system and for the runs
// themselves.
const headroom = 1 << 30

// freeMemory returns the memory that may still be allocated. If the machine
// does not report it, everything is tried.
func freeMemory() int64 {
	free := memInfo("MemAvailable")
	if free == 0 {
		return math.MaxInt64
	}
	return free - headroom
}

// limitHeap makes the garbage collector work harder as the machine's memory
// runs out, until the function it returns is called.
func limitHeap() (restore func()) {
	free := freeMemory()
	if free == math.MaxInt64 {
		return func() {}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	oldLimit := debug.SetMemoryLimit(int64(m.Sys-m.HeapReleased) + max(free, headroom/4))
	oldPercent := debug.SetGCPercent(50)
	return func() {
		debug.SetMemoryLimit(oldLimit)
		debug.SetGCPercent(oldPercent)
	}
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// heapGrowth builds something on the Go heap and returns the bytes that the
// heap grew by.
func heapGrowth(build func()) float64 {
	before := liveHeap()
	build()
	return max(0, float64(liveHeap())-float64(before))
}

// liveHeap also returns free pages to the system, so that the next fits sees
// them.
func liveHeap() uint64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// spread cuts [0, n) into one part per thread and returns the sum of what the
// parts return. With one thread, the caller itself does the work.
func spread(threads, n int, part func(lo, hi int) int) int {
	if threads <= 1 {
		return part(0, n)
	}
	var sum atomic.Int64
	var wg sync.WaitGroup
	for t := range threads {
		lo, hi := n*t/threads, n*(t+1)/threads
		wg.Go(func() { sum.Add(int64(part(lo, hi))) })
	}
	wg.Wait()
	return int(sum.Load())
}
