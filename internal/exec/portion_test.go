package exec

import (
	"math"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// leaping is a tree whose levels between root and leaves are hidden: the leaves
// are the only sub-trees, and far too many to be told apart.
type leaping[C order.Code] struct {
	tree[C]
	pairs interface {
		layout.Paired[C]
		layout.SteppedPairs[C]
	}
}

func (l leaping[C]) Depth() int { return 1 }

// level is that of the tree below.
func (l leaping[C]) level(x int) int { return x * l.tree.Depth() }

func (l leaping[C]) Descend(from, to int, keys []C, places []int) {
	l.tree.Descend(l.level(from), l.level(to), keys, places)
}

func (l leaping[C]) RankFrom(from int, keys []C, ranks []int) {
	l.tree.RankFrom(l.level(from), keys, ranks)
}

func (l leaping[C]) FindFrom(from int, keys []C, ranks []int) {
	l.tree.FindFrom(l.level(from), keys, ranks)
}

func (l leaping[C]) GetPairsFrom(from int, keys, vals []C, found []bool) int {
	return l.pairs.GetPairsFrom(l.level(from), keys, vals, found)
}

func (l leaping[C]) GetPairs(keys, vals []C, found []bool) int {
	return l.pairs.GetPairs(keys, vals, found)
}

func TestNeighbourSubtreesAreTakenTogether(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{leaves: implicit.Pairs, valSize: 8, entries: 50_000}, 2)
	r.tree = leaping[uint64]{r.tree, r.tree.(implicit.Paired[uint64])}
	levels := cutLevels(layout.Stepped[uint64](r.tree))
	if len(levels) != 1 || levels[0].shift == 0 || levels[0].subtrees() > maxSubtrees || levels[0].subtrees() < maxSubtrees/2 {
		t.Fatalf("sub-trees at %+v", levels)
	}
	for range 10 {
		if err := r.agree(rng, 1+rng.IntN(20_000)); err != nil {
			t.Fatal(err)
		}
	}
}

// Every level that queries are partitioned at has all queries inside, in order.
func TestCutLevels(t *testing.T) {
	rng := seed.Rand(t)
	for _, form := range []int{0, packedPages, pagedRows - 1, pagedRows - 2} {
		for _, entries := range []int{0, 1, 100, 5000, 200_000} {
			r := newRig[uint32, uint32](t, rng, shape{entries: entries, form: form}, 1)
			keys, places := r.questions(rng, 2000), make([]int, 2000)
			for _, g := range cutLevels(layout.Stepped[uint32](r.tree)) {
				r.tree.Descend(0, g.level, keys, places)
				for _, p := range places {
					if node := (p - g.first) / layout.NodeWords; node < 0 || node >= g.nodes || p != g.first+node*layout.NodeWords {
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

// More batches at once than there are rooms: some run unbuffered.
func TestManyPartitionAtOnce(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{leaves: implicit.Pairs, valSize: 8, entries: 30_000}, 2)
	keys, of := r.questions(rng, 20_000), r.randomRuns(rng, 0)
	want := r.ask(r.by(Unbuffered, 1, 1), keys, of)
	for _, s := range schemesToForce {
		e := r.by(s, 2, 3000)
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
			t.Errorf("%v: %d rooms are still taken", s, left)
		}
	}
}

// A sink that panics costs no room.
func TestPanicLeavesTheRooms(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{entries: 30_000, valSize: 8}, 2)
	keys := r.questions(rng, 20_000)
	for _, s := range schemesToForce {
		e := r.by(s, 3, 5000)
		for range 5 {
			func() {
				defer func() {
					if v := recover(); v != "burst" {
						t.Errorf("%v: recovered %v", s, v)
					}
				}()
				e.FindEach(order.KeysOf(keys), burst{})
			}()
		}
		if left := e.schemes.taken.Load(); left != 0 {
			t.Errorf("%v: %d rooms are still taken", s, left)
		}
	}
}

// A tree that was closed meanwhile gives nonsense, but no fault.
func TestPartitionedInAClosedTree(t *testing.T) {
	rng := seed.Rand(t)
	for _, surveyed := range []bool{false, true} {
		for _, form := range []int{0, packedPages, pagedRows - 1} {
			r := newRig[uint64, uint64](t, rng, shape{entries: 100_000, form: form}, 2)
			keys := r.questions(rng, 50_000)
			e := r.by(Partitioned, 2, 10_000)
			if surveyed {
				e.Rank(order.KeysOf(keys), make([]int, len(keys)))
			}
			r.tree.Release()
			e.Rank(order.KeysOf(keys), make([]int, len(keys)))
			e.FindEach(order.KeysOf(keys), newPlaces(len(keys)))
		}
	}
}

// Portions keep to the bound at the pace that was measured; where that is too
// little, nothing is partitioned.
func TestBound(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{entries: 100_000}, 2)
	what := batch[uint64]{ask: rank, keys: order.KeysOf(make([]uint64, 4<<20))}
	for _, s := range []Scheme{Partitioned} {
		e := r.by(s, 2, maxPortion)
		for range 200 {
			pace := rng.Int64N(200_000) // ps
			e.schemes.paces[rank].by[s].Store(pace)
			bound := time.Duration(rng.Int64N(int64(40*time.Millisecond)) + 1)
			e.SetBound(bound)
			how, portion := e.choose(&what)
			takes := float64(portion) * float64(e.schemes.paces[rank].of(s)) / 1000
			switch {
			case how == Unbuffered && int64(bound) > 2*int64(leastPortion)*e.schemes.paces[rank].of(s)/1000:
				t.Errorf("%v: nothing is partitioned at %d ps a query and a bound of %v", s, pace, bound)
			case how != Unbuffered && (takes > float64(bound) || portion < leastPortion || portion > maxPortion):
				t.Errorf("%v: %d queries take %v ns, the bound is %v", s, portion, takes, bound)
			}
		}
		e.SetBound(0)
		if how, portion := e.choose(&what); how != s || portion != maxPortion {
			t.Errorf("%v: without a bound %d queries are partitioned by %v", s, portion, how)
		}
	}
}

// A portion that is timed changes the pace, but none makes it less than 1.
func TestPace(t *testing.T) {
	var p paces
	p.note(Partitioned, 0, 1)
	if now := p.of(Partitioned); now != 1 {
		t.Errorf("%d ps a query, want 1", now)
	}
	for range 100 {
		p.note(Partitioned, time.Second, 100_000_000)
	}
	if now := p.of(Partitioned); now < 9_900 || now > 10_100 {
		t.Errorf("%d ps a query, 10,000 were measured", now)
	}
	p.note(Partitioned, time.Hour, 1)
	if now := p.of(Partitioned); now > 13_000 {
		t.Errorf("%d ps a query after one that was held up", now)
	}
}

// Where both may serve, most batches run by what was faster, and both are
// tried.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		buffered, unbuffered int64
		best                 Scheme
	}{{0, 0, Unbuffered}, {10, 0, Unbuffered}, {10, 20, Partitioned}, {20, 10, Unbuffered}, {0, 10, Unbuffered}} {
		var p paces
		p.by[Partitioned].Store(c.buffered)
		p.by[Unbuffered].Store(c.unbuffered)
		var seen [Partitioned + 1]int
		for range 160 {
			seen[p.turn()]++
		}
		if seen[c.best] != 155 || seen[Partitioned]+seen[Unbuffered] != 160 {
			t.Errorf("at %+v: %d turns", c, seen)
		}
	}
}

// Small batches, small indexes, and layouts that cannot be cut run unbuffered
// by themselves; one with as many entries as codes always does.
func TestChoice(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint32, uint32](t, rng, shape{leaves: implicit.Pairs, valSize: 4, entries: 10_000}, 2)
	choose := func(tree Layout[uint32], bytes int64, b *batch[uint32], s Scheme) Scheme {
		e := NewCPU(tree, r.entries, 2)
		e.SetScheme(s)
		e.schemes.bytes = bytes
		if bytes == 0 {
			most := uint64(math.MaxUint32)
			e.entries = int(most) // -1 on machines of 32 bits, which cannot have as many: too many, too
		}
		how, portion := e.choose(b)
		if n := b.keys.Len(); how != Unbuffered && (portion < 1 || portion > maxPortion) {
			t.Errorf("%v of %d keys: portions of %d", how, n, portion)
		}
		return how
	}
	whole := Layout[uint32](r.tree)
	plain := Layout[uint32](&ordered[uint32]{})
	large := &batch[uint32]{ask: getPairs, keys: order.KeysOf(make([]uint32, 4<<20))}
	small := &batch[uint32]{ask: getPairs, keys: order.KeysOf(make([]uint32, 1000))}
	find := &batch[uint32]{ask: findEach, keys: large.keys, sink: still{}}
	fetch := &batch[uint32]{ask: findEach, keys: large.keys, sink: &fetching{}}
	for _, c := range []struct {
		what   string
		tree   Layout[uint32]
		bytes  int64
		batch  *batch[uint32]
		scheme Scheme
		want   Scheme
	}{
		{"large batch, large index", whole, leastBytes, large, Auto, Auto},
		{"large batch, small index", whole, leastBytes - 1, large, Auto, Unbuffered},
		{"small batch, large index", whole, leastBytes, small, Auto, Unbuffered},
		{"a sink that cannot fetch", whole, leastBytes, find, Auto, Unbuffered},
		{"a sink that can fetch", whole, leastBytes, fetch, Auto, Auto},
		{"a layout that cannot be cut", plain, leastBytes, large, Auto, Unbuffered},
		{"a layout that cannot be cut, forced", plain, 1, large, Partitioned, Unbuffered},
		{"small batch, forced", whole, 1, small, Partitioned, Partitioned},
		{"a sink that cannot fetch, forced", whole, 1, find, Partitioned, Partitioned},
		{"as many entries as codes", whole, 0, large, Partitioned, Unbuffered},
	} {
		if got := choose(c.tree, c.bytes, c.batch, c.scheme); got != c.want {
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

func TestPartitionedRanksAreFetched(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{entries: 30_000}, 2)
	keys := r.questions(rng, 20_000)
	want := newPlaces(len(keys))
	r.by(Unbuffered, 1, 1).FindEach(order.KeysOf(keys), want)
	for _, s := range []Scheme{Partitioned} {
		sink := &fetching{places: *newPlaces(len(keys)), fetched: map[*int]int{}}
		r.by(s, 2, 3000).FindEach(order.KeysOf(keys), sink)
		if sink.missed > 0 || len(sink.fetched) > 0 || !reflect.DeepEqual(&sink.places, want) {
			t.Errorf("%v: %d parts taken that were not fetched, %d fetched that were not taken", s, sink.missed, len(sink.fetched))
		}
	}
}

func TestPartitionedAllocatesNothing(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	rng := seed.Rand(t)
	r := newRig[int64, uint64](t, rng, shape{leaves: implicit.Pairs, valSize: 8, entries: 30_000}, 2)
	var sink Sink = still{}
	for _, workers := range []int{1, 2} {
		e := r.by(Partitioned, workers, 10_000)
		keys, ranks, vals := keysAndRoom(40_000)
		found := make([]bool, len(keys))
		allocs := testing.AllocsPerRun(20, func() {
			e.Rank(order.KeysOf(keys), ranks)
			e.RankAfter(order.KeysOf(keys), ranks)
			e.FindEach(order.KeysOf(keys), sink)
			e.GetPairs(order.KeysOf(keys), vals, found)
		})
		if allocs >= 1 {
			t.Errorf("%d workers: %v allocations", workers, allocs)
		}
	}
}
