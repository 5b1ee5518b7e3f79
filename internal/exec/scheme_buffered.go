package exec

import (
	"unsafe"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// The buffered scheme. Levels near the root are in the cache, so it costs
// little to find out which sub-tree a query leads to. Queries that lead to the
// same one are put side by side; then they go on from its root, and what they
// touch is in the cache, or at least on the same pages.
//
//	keys     7 2 9 1 8 3          in the caller's order
//	subtrees 1 0 2 0 2 0          noted, 2 bytes each
//	codes    2 1 3 │ 7 │ 9 8      counted, then moved
//	         ↓ ↓ ↓   ↓   ↓ ↓      searched; answers take the place of codes
//	answers  a b c │ d │ e f
//
// A query's number in its sub-tree follows from those before it. So answers are
// put back by counting once more, in the caller's order: nothing but the
// sub-tree is kept for a query, and results are written one after another.

// maxSubtrees bounds the number of sub-trees that are told apart. Of 32, it
// takes 1.6 ns to move a query, 1.6 to put its answer back and 19 to 22 to
// search; of 2,557, 3.9, 3.2, and 10 to 15 (64M pairs of 64 bits, portions of 1M
// to 16M, one worker). Without prefetches it would be 9 to move. To find out
// which sub-tree takes 4 to 7, most of which the search then saves.
const maxSubtrees = 4096

// perSubtree is how many queries a sub-tree should get, on average.
const perSubtree = 128

// few is the number of queries that lines are prefetched for at a time.
const few = 512

// lot is where the queries of a portion are parked.
type lot[C order.Code] struct {
	codes    []C // by sub-tree, or sorted; then answers
	found    []bool
	subtrees []uint16
	next     [maxSubtrees]uint32 // in each sub-tree: how many, then where the next one goes
	first    [maxSubtrees]uint32
	vals     [maxBucket]C
	sorting  sorting[C]
}

// ground is a level whose nodes are the roots of sub-trees: place first is that
// of the first of them.
type ground struct {
	level, first int
	nodes        int
	shift        int // neighbours that are taken for one sub-tree: 1<<shift
}

// subtrees is how many there are to be told apart.
func (g *ground) subtrees() int { return (g.nodes-1)>>g.shift + 1 }

// survey finds the levels that queries can be parked at: places count words,
// a node has eight. Where the next level has far too many nodes to be told
// apart and that above far too few, neighbours are taken together.
func survey[C order.Code](t Stepped[C]) (out []ground) {
	const tooFew = 32
	for level := 1; level <= t.Depth(); level++ {
		var ends [2]int
		t.Descend(0, level, []C{0, ^C(0)}, ends[:])
		g := ground{level: level, first: ends[0], nodes: (ends[1]-ends[0])/nodeWords + 1}
		if g.nodes > maxSubtrees && len(out) > 0 && out[len(out)-1].nodes >= tooFew {
			break
		}
		for g.subtrees() > maxSubtrees {
			g.shift++
		}
		if g.nodes < 1 {
			break
		}
		out = append(out, g)
		if g.shift > 0 {
			break
		}
	}
	return out
}

// ground gives the level to park a portion at; it has no nodes if there is none.
func (e *CPU[K, C]) ground(portion int) (best ground) {
	s := &e.schemes
	s.once.Do(func() { s.grounds = survey(s.steps) })
	for _, g := range s.grounds {
		if best.nodes == 0 || g.subtrees() <= portion/perSubtree {
			best = g
		}
	}
	return best
}

// visit is a portion under way: n queries of a batch from lo on.
type visit[K order.Key, C order.Code] struct {
	*CPU[K, C]
	batch *batch[K, C]
	lot   *lot[C]
	lo, n int
}

func (v *visit[K, C]) buffered(g ground) (hits int) {
	l := v.lot
	l.codes, l.subtrees = grown(l.codes, v.n), grown(l.subtrees, v.n)
	if v.batch.found != nil {
		l.found = grown(l.found, v.n)
	}
	s := v.spaces.Get().(*space[C])
	v.count(g, s)
	l.place(g.subtrees())
	v.move(s)
	r := tour[C]{lot: l, ground: g, node: -1}
	for lo := 0; lo < v.n; lo += maxBucket {
		hits += v.search(&r, lo, min(lo+maxBucket, v.n), s)
	}
	hits += v.putBack(s)
	v.spaces.Put(s)
	return hits
}

// grown gives a slice of length n, the old one where it is long enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// encoded gives the codes of queries [lo, hi) of the portion, which are in the
// caller's memory or in space.
func (v *visit[K, C]) encoded(lo, hi int, s *space[C]) []C {
	codes := v.codec.EncodeSlice(s.codes[:hi-lo], v.batch.keys[v.lo+lo:v.lo+hi])
	if v.batch.ask == rankAfter {
		for i, c := range codes {
			s.codes[i] = c + 1
		}
		codes = s.codes[:hi-lo]
	}
	return codes
}

// count notes the sub-tree of each query, and how many there are in each.
func (v *visit[K, C]) count(g ground, s *space[C]) {
	const some = 2048 // codes and places stay in the first-level cache
	l, last, shift := v.lot, uint(g.subtrees()-1), 3+g.shift
	clear(l.next[:last+1])
	for lo := 0; lo < v.n; lo += some {
		hi := min(lo+some, v.n)
		places, subtrees := s.ranks[:hi-lo], l.subtrees[lo:hi]
		v.schemes.steps.Descend(0, g.level, v.encoded(lo, hi, s), places)
		for i := range subtrees {
			t := min(uint(places[i]-g.first)>>(shift&63), last) // a tree that is being closed leads anywhere
			subtrees[i] = uint16(t)
			l.next[t%maxSubtrees]++
		}
	}
}

// place turns counts into places.
func (l *lot[C]) place(subtrees int) {
	at := uint32(0)
	for i, n := range l.next[:subtrees] {
		l.next[i], l.first[i] = at, at
		at += n
	}
}

// turn sets at[i] to the place of the query that leads to subtrees[i], and asks
// for its line.
func (l *lot[C]) turn(at []int, subtrees []uint16, next *[maxSubtrees]uint32) {
	for i, t := range subtrees[:len(at)] {
		t %= maxSubtrees
		x := next[t]
		next[t] = x + 1
		at[i] = int(x)
	}
	simd.FetchEach(unsafe.Pointer(unsafe.SliceData(l.codes)), at, width[C]())
}

// move puts the codes of each sub-tree side by side.
func (v *visit[K, C]) move(s *space[C]) {
	l := v.lot
	for lo := 0; lo < v.n; lo += few {
		hi := min(lo+few, v.n)
		at := s.ranks[:hi-lo]
		l.turn(at, l.subtrees[lo:hi], &l.next)
		codes := v.encoded(lo, hi, s)[:len(at)]
		for i, x := range at {
			l.codes[x] = codes[i]
		}
	}
}

// tour goes through the queries of a lot, sub-tree by sub-tree.
type tour[C order.Code] struct {
	lot    *lot[C]
	ground ground
	node   int
	left   int // queries of it
}

// enterAt sets the places at which the next queries begin.
func enterAt[C order.Code, P int | uint32 | uint64](r *tour[C], places []P) {
	for len(places) > 0 {
		for r.left == 0 {
			r.node++
			r.left = int(r.lot.next[r.node] - r.lot.first[r.node])
		}
		n := min(r.left, len(places))
		place := P(r.ground.first + r.node*nodeWords)
		for i := range places[:n] {
			places[i] = place
		}
		places = places[n:]
		r.left -= n
	}
}

// search answers queries [lo, hi) of a lot, in the place of their codes.
func (v *visit[K, C]) search(r *tour[C], lo, hi int, s *space[C]) (hits int) {
	l, b, from := v.lot, v.batch, r.ground.level
	codes, ranks := l.codes[lo:hi], s.ranks[:hi-lo]
	if r.ground.shift > 0 { // queries begin at many nodes
		return v.searchAll(codes, lo, s)
	}
	switch b.ask {
	case getPairs:
		vals := l.vals[:len(codes)]
		enterAt(r, vals)
		hits = v.schemes.steps.GetPairsFrom(from, codes, vals, l.foundAt(b.found != nil, lo))
		copy(codes, vals)
		return hits
	case findEach:
		enterAt(r, ranks)
		v.schemes.steps.FindFrom(from, codes, ranks)
	default:
		enterAt(r, ranks)
		v.schemes.steps.RankFrom(from, codes, ranks)
	}
	v.keep(codes, ranks)
	return 0
}

// searchAll is search from the root.
func (v *visit[K, C]) searchAll(codes []C, lo int, s *space[C]) (hits int) {
	l, b, ranks := v.lot, v.batch, s.ranks[:len(codes)]
	switch b.ask {
	case getPairs:
		vals := l.vals[:len(codes)]
		hits = v.layout.GetPairs(codes, vals, l.foundAt(b.found != nil, lo))
		copy(codes, vals)
		return hits
	case findEach:
		v.layout.Find(codes, ranks)
	default:
		v.layout.Rank(codes, ranks)
	}
	v.keep(codes, ranks)
	return 0
}

func (l *lot[C]) foundAt(asked bool, lo int) []bool {
	if !asked {
		return nil
	}
	return l.found[lo:]
}

// keep puts ranks where their codes are. Not found, -1, becomes the greatest
// number. Behind the greatest code, whose next is 0, nothing is.
func (v *visit[K, C]) keep(codes []C, ranks []int) {
	if v.batch.ask == rankAfter {
		for i, c := range codes {
			if c == 0 {
				ranks[i] = v.entries
			}
		}
	}
	for i, r := range ranks[:len(codes)] {
		codes[i] = C(r)
	}
}

// putBack hands answers out in the caller's order.
func (v *visit[K, C]) putBack(s *space[C]) (hits int) {
	l, b := v.lot, v.batch
	for lo := 0; lo < v.n; lo += few {
		hi := min(lo+few, v.n)
		at := s.ranks[:hi-lo]
		l.turn(at, l.subtrees[lo:hi], &l.first)
		switch b.ask {
		case getPairs:
			vals := b.vals[v.lo+lo:][:len(at)]
			for i, x := range at {
				vals[i] = l.codes[x]
			}
			if b.found != nil {
				found := b.found[v.lo+lo:][:len(at)]
				for i, x := range at {
					found[i] = l.found[x]
				}
			}
		case findEach:
			for i, x := range at {
				at[i] = placeOf(l.codes[x])
			}
			hits += v.take(v.lo+lo, at)
		default:
			ranks := b.ranks[v.lo+lo:][:len(at)]
			for i, x := range at {
				ranks[i] = int(l.codes[x])
			}
		}
	}
	return hits
}

// take hands places to the sink.
func (v *visit[K, C]) take(lo int, ranks []int) (hits int) {
	if f, ok := v.batch.sink.(Fetcher); ok {
		f.Fetch(ranks)
	}
	return v.batch.sink.Take(lo, ranks)
}

// placeOf is the place that keep has kept.
func placeOf[C order.Code](kept C) int {
	if kept == ^C(0) {
		return -1
	}
	return int(kept)
}
