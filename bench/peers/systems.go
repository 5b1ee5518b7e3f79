// Package peers is what Pando is measured beside: the structures of other
// projects, each behind one of four interfaces, for an index or a map that
// changes, of numbers or of strings. Those in Go are linked, those in C++ and
// CUDA compiled when they are needed. No other package imports what it links,
// but for a model in data.
package peers

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

// System is an index over a dataset. Methods that answer queries are called
// from several goroutines at a time, each with its own part of the slices,
// unless the system is also threaded.
type System[W data.Word] interface {
	Name() string
	BytesPerEntry() float64
	// Get answers queries that do not depend on each other, in whatever way
	// is fastest for the system, and counts the hits.
	Get(q, vals []W, found []bool) (hits int)
	Close()
}

// Threaded is a system that spreads a batch over goroutines by itself.
type Threaded interface{ SetThreads(n int) error }

// Single is a system that answers one key at a time.
type Single[W data.Word] interface {
	// Each makes one call per query; the calls may overlap in the processor.
	Each(q, vals []W) (hits int)
	// Chain does the same, but each query depends on the previous answer: q[i]
	// is changed by answer AND mask, and mask is 0.
	Chain(q, vals []W, mask W) (hits int)
}

// Ranker is a system that counts the keys below a query.
type Ranker[W data.Word] interface{ Rank(q []W, ranks []int) }

// Ranger is a system that lists the entries of ranges.
type Ranger[W data.Word] interface {
	Ranges(lo, hi []W, out *Flat[W])
	Scan() (keySum, valSum W)
}

// Flat collects the entries of many ranges, one after another, with the end of
// each in ends.
type Flat[W data.Word] struct {
	Keys, Vals []W
	Ends       []int
}

func (f *Flat[W]) clear() { f.Keys, f.Vals, f.Ends = f.Keys[:0], f.Vals[:0], f.Ends[:0] }

// heapBuilt holds the size of a system on the Go heap.
type heapBuilt struct{ perEntry float64 }

func (h heapBuilt) BytesPerEntry() float64 { return h.perEntry }

// Maker builds a system.
type Maker[W data.Word] struct {
	Name  string
	Peak  float64 // maximum bytes per entry while the system is built
	Build func(d *data.Dataset[W]) (System[W], error)
}

// Peaks follow from the bytes per entry that the memory experiment shows, and
// the garbage not yet collected; a map that knows its size from the start makes
// no garbage.
const (
	treePeak = 3   // times the pairs: nodes filled in order stay half empty
	MapPeak  = 2.5 // times the pairs
	artPeak  = 150 // bytes, whatever the key's width
)

// BuildAll builds the systems, the heaviest last, and leaves out those that do
// not fit into free memory. They are returned in the order of makers.
func BuildAll[W data.Word](s *contest.Session, d *data.Dataset[W], makers []Maker[W]) ([]System[W], error) {
	order := make([]int, len(makers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(makers[a].Peak, makers[b].Peak) })
	built := make([]System[W], len(makers))
	for _, i := range order {
		sys, err := BuildOne(s, d, makers[i])
		if err != nil {
			CloseAll(built)
			return nil, err
		}
		built[i] = sys
	}
	return slices.DeleteFunc(built, func(sys System[W]) bool { return sys == nil }), nil
}

// BuildOne returns nil, and no error, if the system is not wanted or does not
// fit.
func BuildOne[W data.Word](s *contest.Session, d *data.Dataset[W], m Maker[W]) (System[W], error) {
	n := len(d.Keys)
	if !s.Fits(m.Name, n, m.Peak) {
		return nil, nil
	}
	s.Say("building %s, %s ...", m.Name, contest.SizeText(n))
	defer contest.LimitHeap()()
	sys, err := m.Build(d)
	if err != nil {
		return nil, fmt.Errorf("building %s, n %s: %w", m.Name, contest.SizeText(n), err)
	}
	return sys, nil
}

// CloseAll closes systems, those that are not nil.
func CloseAll[S interface{ Close() }](systems []S) {
	for _, sys := range systems {
		if any(sys) != nil {
			sys.Close()
		}
	}
	debug.FreeOSMemory() // so that the next fits sees the free memory
}

// Makers returns every system of Go that is not Pando.
func Makers[W data.Word]() []Maker[W] {
	return []Maker[W]{
		MakeTidwallMap[W](), MakeTidwallG[W](), MakeGoogle[W](), makeART[W](),
		MakeBinarySearch[W](), MakeGoMap[W](),
	}
}
