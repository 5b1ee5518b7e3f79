package exec

import (
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// The partitioned scheme. Levels near the root are in the cache, so it costs
// little to find out which sub-tree a query leads to. Queries that lead to the
// same one are put side by side; then they go on from its root, and the nodes
// they touch are in the cache, or at least on the same pages.
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

// room is where the queries of a portion are partitioned.
type room[C order.Code] struct {
	codes    []C // by sub-tree; then answers
	found    []bool
	subtrees []uint16
	next     [maxSubtrees]uint32 // in each sub-tree: how many, then where the next one goes
	first    [maxSubtrees]uint32
	vals     [maxBucket]C
}

// cutLevel is a level whose nodes are the roots of sub-trees: place first is
// that of the first of them.
type cutLevel struct {
	level, first int
	nodes        int
	shift        int // neighbours that are taken for one sub-tree: 1<<shift
}

// subtrees is how many there are to be told apart.
func (g *cutLevel) subtrees() int { return (g.nodes-1)>>g.shift + 1 }

// cutLevels returns the levels that queries can be partitioned at. Where the
// next level has far too many nodes to be told apart and that above far too few,
// neighbours are taken together.
func cutLevels[C order.Code](t layout.Stepped[C]) (out []cutLevel) {
	const tooFew = 32
	for level := 1; level <= t.Depth(); level++ {
		var ends [2]int
		t.Descend(0, level, []C{0, ^C(0)}, ends[:])
		g := cutLevel{level: level, first: ends[0], nodes: (ends[1]-ends[0])/layout.NodeWords + 1}
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

// cutFor returns the level to partition a portion at; it has no nodes if there
// is none.
func (e *CPU[C]) cutFor(portion int) (best cutLevel) {
	s := &e.schemes
	s.once.Do(func() { s.levels = cutLevels(s.steps) })
	for _, g := range s.levels {
		if best.nodes == 0 || g.subtrees() <= portion/perSubtree {
			best = g
		}
	}
	return best
}

// portion is queries under way: n of a batch from lo on.
type portion[C order.Code] struct {
	*CPU[C]
	batch *batch[C]
	room  *room[C]
	lo, n int
}

// answer answers the portion, partitioned at a level.
func (v *portion[C]) answer(g cutLevel) (hits int) {
	l := v.room
	l.codes, l.subtrees = grown(l.codes, v.n), grown(l.subtrees, v.n)
	if v.batch.found != nil {
		l.found = grown(l.found, v.n)
	}
	s := par.Get(v.spaces)
	v.count(g, s)
	l.start(g.subtrees())
	v.move(s)
	r := cursor[C]{room: l, cut: g, node: -1}
	for lo := 0; lo < v.n; lo += maxBucket {
		hits += v.search(&r, lo, min(lo+maxBucket, v.n), s)
	}
	hits += v.putBack(s)
	par.Put(v.spaces, s)
	return hits
}

// grown returns a slice of length n, the old one where it is long enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// encoded returns the codes of queries [lo, hi) of the portion, which are in the
// caller's memory or in space.
func (v *portion[C]) encoded(lo, hi int, s *space[C]) []C {
	codes := order.Codes(v.batch.keys.Slice(v.lo+lo, v.lo+hi), s.codes[:hi-lo])
	if v.batch.ask == rankAfter {
		for i, c := range codes {
			s.codes[i] = c + 1
		}
		codes = s.codes[:hi-lo]
	}
	return codes
}

// count notes the sub-tree of each query, and how many there are in each.
func (v *portion[C]) count(g cutLevel, s *space[C]) {
	const some = 2048 // codes and places stay in the first-level cache
	l, last, shift := v.room, uint(g.subtrees()-1), 3+g.shift
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

// start turns counts into where each sub-tree's queries begin.
func (l *room[C]) start(subtrees int) {
	at := uint32(0)
	for i, n := range l.next[:subtrees] {
		l.next[i], l.first[i] = at, at
		at += n
	}
}

// turn sets at[i] to the position of the query that leads to subtrees[i], and asks
// for its line.
func (l *room[C]) turn(at []int, subtrees []uint16, next *[maxSubtrees]uint32) {
	for i, t := range subtrees[:len(at)] {
		t %= maxSubtrees
		x := next[t]
		next[t] = x + 1
		at[i] = int(x)
	}
	simd.FetchEach(unsafe.Pointer(unsafe.SliceData(l.codes)), at, width[C]())
}

// move puts the codes of each sub-tree side by side.
func (v *portion[C]) move(s *space[C]) {
	l := v.room
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

// cursor goes through the queries of a room, sub-tree by sub-tree.
type cursor[C order.Code] struct {
	room *room[C]
	cut  cutLevel
	node int
	left int // queries of it
}

// enterAt sets the places at which the next queries begin.
func enterAt[C order.Code, P int | uint32 | uint64](r *cursor[C], places []P) {
	for len(places) > 0 {
		for r.left == 0 {
			r.node++
			r.left = int(r.room.next[r.node] - r.room.first[r.node])
		}
		n := min(r.left, len(places))
		place := P(r.cut.first + r.node*layout.NodeWords)
		for i := range places[:n] {
			places[i] = place
		}
		places = places[n:]
		r.left -= n
	}
}

// search answers queries [lo, hi) of the portion, in the place of their codes.
func (v *portion[C]) search(r *cursor[C], lo, hi int, s *space[C]) (hits int) {
	l, b, from := v.room, v.batch, r.cut.level
	codes, ranks := l.codes[lo:hi], s.ranks[:hi-lo]
	if r.cut.shift > 0 { // queries begin at many nodes
		return v.searchAll(codes, lo, s)
	}
	switch b.ask {
	case getPairs:
		vals := l.vals[:len(codes)]
		enterAt(r, vals)
		hits = v.schemes.pairs.GetPairsFrom(from, codes, vals, l.foundAt(b.found != nil, lo))
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
func (v *portion[C]) searchAll(codes []C, lo int, s *space[C]) (hits int) {
	l, b, ranks := v.room, v.batch, s.ranks[:len(codes)]
	switch b.ask {
	case getPairs:
		vals := l.vals[:len(codes)]
		hits = v.pairs.GetPairs(codes, vals, l.foundAt(b.found != nil, lo))
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

func (l *room[C]) foundAt(asked bool, lo int) []bool {
	if !asked {
		return nil
	}
	return l.found[lo:]
}

// keep puts ranks where their codes are. Not found, -1, becomes the greatest
// number. Behind the greatest code, whose next is 0, nothing is.
func (v *portion[C]) keep(codes []C, ranks []int) {
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
func (v *portion[C]) putBack(s *space[C]) (hits int) {
	l, b := v.room, v.batch
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
				at[i] = rankOf(l.codes[x])
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

// take hands ranks to the sink.
func (v *portion[C]) take(lo int, ranks []int) (hits int) {
	if f, ok := v.batch.sink.(Fetcher); ok {
		f.Fetch(ranks)
	}
	return v.batch.sink.Take(lo, ranks)
}

// rankOf returns the rank that keep has kept.
func rankOf[C order.Code](kept C) int {
	if kept == ^C(0) {
		return -1
	}
	return int(kept)
}
