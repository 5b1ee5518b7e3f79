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
			e.schemes.paces[rank].by[s].Store(pace)
			bound := time.Duration(rng.Int64N(int64(40*time.Millisecond)) + 1)
			e.SetBound(bound)
			how, portion := e.choose(&what)
			takes := float64(portion) * float64(e.schemes.paces[rank].of(s)) / 1000
			switch {
			case how == Unbuffered && int64(bound) > 2*leastPortion*e.schemes.paces[rank].of(s)/1000:
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
	var p paces
	p.note(Buffered, 0, 1)
	if now := p.of(Buffered); now != 1 {
		t.Errorf("%d ps a query, want 1", now)
	}
	for range 100 {
		p.note(Buffered, time.Second, 100_000_000)
	}
	if now := p.of(Buffered); now < 9_900 || now > 10_100 {
		t.Errorf("%d ps a query, 10,000 were measured", now)
	}
	p.note(Buffered, time.Hour, 1)
	if now := p.of(Buffered); now > 13_000 {
		t.Errorf("%d ps a query after one that was held up", now)
	}
}

// Where both may serve, most batches run by what was faster, and both are
// tried.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		buffered, unbuffered int64
		best                 Scheme
	}{{0, 0, Unbuffered}, {10, 0, Unbuffered}, {10, 20, Buffered}, {20, 10, Unbuffered}, {0, 10, Unbuffered}} {
		var p paces
		p.by[Buffered].Store(c.buffered)
		p.by[Unbuffered].Store(c.unbuffered)
		var seen [Sorted + 1]int
		for range 160 {
			seen[p.turn()]++
		}
		if seen[c.best] != 155 || seen[Buffered]+seen[Unbuffered] != 160 {
			t.Errorf("at %+v: %d turns", c, seen)
		}
	}
}

// Small batches, small indexes, and layouts that cannot be cut run unbuffered
// by themselves; one with as many entries as codes always does.
func TestChoice(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint32, uint32](t, rng, shape{leaves: implicit.Pairs, valSize: 4, entries: 10_000}, 2)
	choose := func(layout Layout[uint32], bytes int64, b *batch[uint32, uint32], s Scheme) Scheme {
		e := NewCPU(r.codec, layout, r.entries, 2)
		e.SetScheme(s)
		e.schemes.bytes = bytes
		if s == Sorted && bytes == 0 {
			e.entries = math.MaxUint32
		}
		how, portion := e.choose(b)
		if n := len(b.keys); how != Unbuffered && (portion < 1 || portion > maxPortion) {
			t.Errorf("%v of %d keys: portions of %d", how, n, portion)
		}
		return how
	}
	whole := Layout[uint32](r.tree)
	plain := Layout[uint32](&sorted[uint32]{})
	large := &batch[uint32, uint32]{ask: getPairs, keys: make([]uint32, 4<<20)}
	small := &batch[uint32, uint32]{ask: getPairs, keys: make([]uint32, 1000)}
	find := &batch[uint32, uint32]{ask: findEach, keys: large.keys, sink: still{}}
	fetch := &batch[uint32, uint32]{ask: findEach, keys: large.keys, sink: &fetching{}}
	for _, c := range []struct {
		what   string
		layout Layout[uint32]
		bytes  int64
		batch  *batch[uint32, uint32]
		scheme Scheme
		want   Scheme
	}{
		{"large batch, large index", whole, leastBytes, large, Auto, Auto},
		{"large batch, small index", whole, leastBytes - 1, large, Auto, Unbuffered},
		{"small batch, large index", whole, leastBytes, small, Auto, Unbuffered},
		{"a sink that cannot fetch", whole, leastBytes, find, Auto, Unbuffered},
		{"a sink that can fetch", whole, leastBytes, fetch, Auto, Auto},
		{"a layout that cannot be cut", plain, leastBytes, large, Auto, Unbuffered},
		{"a layout that cannot be cut, forced", plain, 1, large, Buffered, Unbuffered},
		{"a layout that cannot be cut, sorted", plain, 1, large, Sorted, Sorted},
		{"small batch, forced", whole, 1, small, Buffered, Buffered},
		{"a sink that cannot fetch, forced", whole, 1, find, Buffered, Buffered},
		{"small batch, sorted", whole, 1, small, Sorted, Sorted},
		{"as many entries as codes", whole, 0, large, Sorted, Unbuffered},
	} {
		if got := choose(c.layout, c.bytes, c.batch, c.scheme); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// fetching is a sink that must be asked to fetch what it takes next.
type fetching struct {
	places
	mu      sync.Mutex
	fetched map[*int]int // by what ranks begin with
	missed  int
}

func (f *fetching) Fetch(ranks []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetched[&ranks[0]] = len(ranks)
}

func (f *fetching) Take(lo int, ranks []int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fetched[&ranks[0]] != len(ranks) {
		f.missed++
	}
	delete(f.fetched, &ranks[0])
	return f.places.Take(lo, ranks)
}

func TestParkedPlacesAreFetched(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{entries: 30_000}, 2)
	keys := r.questions(rng, 20_000)
	want := newPlaces(len(keys))
	r.parks(Unbuffered, 1, 1).FindEach(keys, want)
	for _, s := range []Scheme{Buffered, Sorted} {
		sink := &fetching{places: *newPlaces(len(keys)), fetched: map[*int]int{}}
		r.parks(s, 2, 3000).FindEach(keys, sink)
		if sink.missed > 0 || len(sink.fetched) > 0 || !reflect.DeepEqual(&sink.places, want) {
			t.Errorf("%v: %d parts taken that were not fetched, %d fetched that were not taken", s, sink.missed, len(sink.fetched))
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
