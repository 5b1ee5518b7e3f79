package exec

import (
	"math"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// leaping is a tree whose levels between root and leaves are hidden: the leaves
// are the only sub-trees, and far too many to be told apart.
type leaping[C order.Code] struct{ layout[C] }

func (l leaping[C]) Depth() int { return 1 }

// level is that of the tree below.
func (l leaping[C]) level(x int) int { return x * l.layout.Depth() }

func (l leaping[C]) Descend(from, to int, keys []C, places []int) {
	l.layout.Descend(l.level(from), l.level(to), keys, places)
}

func (l leaping[C]) RankFrom(from int, keys []C, ranks []int) {
	l.layout.RankFrom(l.level(from), keys, ranks)
}

func (l leaping[C]) FindFrom(from int, keys []C, ranks []int) {
	l.layout.FindFrom(l.level(from), keys, ranks)
}

func (l leaping[C]) GetPairsFrom(from int, keys, vals []C, found []bool) int {
	return l.layout.GetPairsFrom(l.level(from), keys, vals, found)
}

func TestNeighbourSubtreesAreTakenTogether(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{leaves: implicit.Pairs, valSize: 8, entries: 50_000}, 2)
	r.tree = leaping[uint64]{r.tree}
	grounds := survey(Stepped[uint64](r.tree))
	if len(grounds) != 1 || grounds[0].shift == 0 || grounds[0].subtrees() > maxSubtrees || grounds[0].subtrees() < maxSubtrees/2 {
		t.Fatalf("sub-trees at %+v", grounds)
	}
	for range 10 {
		if err := r.agree(rng, 1+rng.IntN(20_000)); err != nil {
			t.Fatal(err)
		}
	}
}

// Every level that queries are parked at has all queries inside, in order.
func TestSurvey(t *testing.T) {
	rng := seed.Rand(t)
	for _, form := range []int{0, packedPages, blockedRows - 1, blockedRows - 2} {
		for _, entries := range []int{0, 1, 100, 5000, 200_000} {
			r := newRig[uint32, uint32](t, rng, shape{entries: entries, form: form}, 1)
			keys, places := r.questions(rng, 2000), make([]int, 2000)
			for _, g := range survey(Stepped[uint32](r.tree)) {
				r.tree.Descend(0, g.level, keys, places)
				for _, p := range places {
					if node := (p - g.first) / nodeWords; node < 0 || node >= g.nodes || p != g.first+node*nodeWords {
						t.Fatalf("%v: a query leads to place %d at %+v", r.shape, p, g)
					}
				}
				if g.subtrees() > maxSubtrees {
					t.Errorf("%v: %d sub-trees", r.shape, g.subtrees())
				}
			}
		}
	}
}

// More batches at once than there are lots: some run unbuffered.
func TestManyParkAtOnce(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{leaves: implicit.Pairs, valSize: 8, entries: 30_000}, 2)
	keys, of := r.questions(rng, 20_000), r.randomRuns(rng, 0)
	want := r.ask(r.parks(Unbuffered, 1, 1), keys, of)
	for _, s := range Schemes() {
		e := r.parks(s, 2, 3000)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for range 3 {
					if got := r.ask(e, keys, of); !reflect.DeepEqual(got, want) {
						t.Errorf("%v differs", s)
					}
				}
			})
		}
		wg.Wait()
		if left := e.schemes.taken.Load(); left != 0 {
			t.Errorf("%v: %d lots are still taken", s, left)
		}
	}
}

// A sink that panics costs no lot.
func TestPanicLeavesTheLots(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{entries: 30_000, valSize: 8}, 2)
	keys := r.questions(rng, 20_000)
	for _, s := range Schemes() {
		e := r.parks(s, 3, 5000)
		for range 5 {
			func() {
				defer func() {
					if v := recover(); v != "burst" {
						t.Errorf("%v: recovered %v", s, v)
					}
				}()
				e.FindEach(keys, burst{})
			}()
		}
		if left := e.schemes.taken.Load(); left != 0 {
			t.Errorf("%v: %d lots are still taken", s, left)
		}
	}
}

// A tree that was closed meanwhile gives nonsense, but no fault.
func TestParkedInAClosedTree(t *testing.T) {
	rng := seed.Rand(t)
	for _, surveyed := range []bool{false, true} {
		for _, form := range []int{0, packedPages, blockedRows - 1} {
			r := newRig[uint64, uint64](t, rng, shape{entries: 100_000, form: form}, 2)
			keys := r.questions(rng, 50_000)
			e := r.parks(Buffered, 2, 10_000)
			if surveyed {
				e.Rank(keys, make([]int, len(keys)))
			}
			r.tree.Release()
			e.Rank(keys, make([]int, len(keys)))
			e.FindEach(keys, newPlaces(len(keys)))
		}
	}
}

// Portions keep to the bound at the pace that was measured; where that is too
// little, nothing is parked.
func TestBound(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{entries: 100_000}, 2)
	what := batch[uint64, uint64]{ask: rank, keys: make([]uint64, 4<<20)}
	for _, s := range []Scheme{Buffered, Sorted} {
		e := r.parks(s, 2, maxPortion)
		for range 200 {
			pace := rng.Int64N(200_000) // ps
			e.schemes.paces[s].Store(pace)
			bound := time.Duration(rng.Int64N(int64(40*time.Millisecond)) + 1)
			e.SetBound(bound)
			how, portion := e.choose(&what)
			takes := float64(portion) * float64(e.pace(s)) / 1000
			switch {
			case how == Unbuffered && int64(bound) > 2*leastPortion*e.pace(s)/1000:
				t.Errorf("%v: nothing is parked at %d ps a query and a bound of %v", s, pace, bound)
			case how != Unbuffered && (takes > float64(bound) || portion < leastPortion || portion > maxPortion):
				t.Errorf("%v: %d queries take %v ns, the bound is %v", s, portion, takes, bound)
			}
		}
		e.SetBound(0)
		if how, portion := e.choose(&what); how != s || portion != maxPortion {
			t.Errorf("%v: without a bound %d queries are parked by %v", s, portion, how)
		}
	}
}

// A portion that is timed changes the pace, but none makes it less than 1.
func TestPace(t *testing.T) {
	e := NewCPU(order.NewCodec[uint64, uint64](), still{}, 10, 1)
	for range 100 {
		e.clock(Buffered, 0, 1)
	}
	if p := e.pace(Buffered); p != 1 {
		t.Errorf("%d ps a query, want 1", p)
	}
	for range 100 {
		e.clock(Buffered, time.Second, 100_000_000)
	}
	if p := e.pace(Buffered); p < 9_000 || p > 10_000 {
		t.Errorf("%d ps a query, 10,000 were measured", p)
	}
}

// Small batches, small indexes, and layouts that cannot be cut run unbuffered
// by themselves; a layout with as many entries as codes does always.
func TestChoice(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint32, uint32](t, rng, shape{leaves: implicit.Pairs, valSize: 4, entries: 10_000}, 2)
	choose := func(layout Layout[uint32], entries, n int, s Scheme) Scheme {
		e := NewCPU(r.codec, layout, entries, 2)
		e.SetScheme(s)
		how, portion := e.choose(&batch[uint32, uint32]{ask: getPairs, keys: make([]uint32, n)})
		if how != Unbuffered && (portion < 1 || portion > maxPortion) {
			t.Errorf("%v of %d keys: portions of %d", how, n, portion)
		}
		return how
	}
	whole := Layout[uint32](r.tree)
	plain := Layout[uint32](&sorted[uint32]{})
	const many, large = 100 << 20, 4 << 20
	for _, c := range []struct {
		what   string
		layout Layout[uint32]
		n      int
		held   int
		scheme Scheme
		want   Scheme
	}{
		{"large batch, large index", whole, large, many, Auto, Buffered},
		{"large batch, small index", whole, large, 1000, Auto, Unbuffered},
		{"small batch, large index", whole, 1000, many, Auto, Unbuffered},
		{"a layout that cannot be cut", plain, large, many, Auto, Unbuffered},
		{"a layout that cannot be cut, forced", plain, large, many, Buffered, Unbuffered},
		{"a layout that cannot be cut, sorted", plain, large, many, Sorted, Sorted},
		{"small batch, forced", whole, 10, 1000, Buffered, Buffered},
		{"small batch, sorted", whole, 10, 1000, Sorted, Sorted},
		{"too many entries", whole, large, math.MaxUint32, Sorted, Unbuffered},
	} {
		if got := choose(c.layout, c.held, c.n, c.scheme); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestBufferedAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget")
	}
	rng := seed.Rand(t)
	r := newRig[int64, uint64](t, rng, shape{leaves: implicit.Pairs, valSize: 8, entries: 30_000}, 2)
	var sink Sink = still{}
	for _, workers := range []int{1, 2} {
		e := r.parks(Buffered, workers, 10_000)
		keys, ranks, vals := room(40_000)
		found := make([]bool, len(keys))
		allocs := testing.AllocsPerRun(20, func() {
			e.Rank(keys, ranks)
			e.RankAfter(keys, ranks)
			e.FindEach(keys, sink)
			e.GetPairs(keys, vals, found)
		})
		if allocs >= 1 {
			t.Errorf("%d workers: %v allocations", workers, allocs)
		}
	}
}
