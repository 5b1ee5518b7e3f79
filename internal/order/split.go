package order

import "github.com/pando-index/pando/internal/par"

// Buckets are pairs split by the highest bits in which their codes differ: the codes
// of a bucket are below those of the next. It is Sort that stops half way, for a user
// who takes the buckets one by one: it sorts each while its pairs are in the cache,
// and uses them there.
type Buckets[C, P Code] struct {
	sorting[C, P]
	rooms par.Pool[bucketRoom[C, P]]
}

// bucketRoom is memory to sort a bucket in.
type bucketRoom[C, P Code] struct{ sorted, scratch pairs[C, P] }

// SplitLeast is the number of pairs from which on Split is of use: fewer are one
// bucket.
const SplitLeast = soloMax + 1

// Split splits pairs, as many as codes and payload have room for, where they end up;
// equal codes keep their order. It reads them by span, which returns pairs [lo, hi).
// Several goroutines call span, more than once for a pair. Where room is not 0, span
// is asked for so many pairs at most, and may use the memory that it is given. If
// buckets have to be split again, Split allocates as much memory as it was given.
func Split[C, P Code](codes []C, payload []P, room int, span func(lo, hi int, codes []C, payload []P) ([]C, []P), workers int) *Buckets[C, P] {
	workers = max(workers, 1)
	b := &Buckets[C, P]{rooms: par.NewPool[bucketRoom[C, P]]()}
	b.sides[0], b.workers, b.anySide = pairs[C, P]{codes, payload}, workers, true
	from := source[C, P]{span: span, room: room}
	b.refine(0, b.partitionFrom(from, 0, b.sides[0], from.differ(len(codes), workers)), 0)
	return b
}

// Len returns the number of buckets.
func (b *Buckets[C, P]) Len() int { return len(b.todo) }

// Sorted calls use with the pairs of bucket i, sorted. They are gone when it returns.
// Several goroutines may call Sorted.
func (b *Buckets[C, P]) Sorted(i int, use func(codes []C, payload []P)) {
	at := b.todo[i]
	from := b.sides[at.side].slice(at.lo, at.hi)
	if at.even {
		use(from.codes, from.payload)
		return
	}
	room := par.Get(b.rooms)
	if n := at.size(); len(room.sorted.codes) < n {
		*room = bucketRoom[C, P]{pairs[C, P]{make([]C, n), make([]P, n)}, pairs[C, P]{make([]C, n), make([]P, n)}}
	}
	to := room.sorted.slice(0, at.size())
	sortSolo(to, from, room.scratch)
	use(to.codes, to.payload)
	par.Put(b.rooms, room)
}

// source is where pairs come from: a slice, or a function.
type source[C Code, P any] struct {
	pairs[C, P]
	span func(lo, hi int, codes []C, payload []P) ([]C, []P)
	room int
}

// each calls do with pairs [lo, hi), some at a time.
func (s *source[C, P]) each(lo, hi int, do func(pairs[C, P])) {
	if s.span == nil {
		do(s.slice(lo, hi))
		return
	}
	room, step := pairs[C, P]{}, hi-lo
	if s.room > 0 {
		room, step = pairs[C, P]{make([]C, s.room), make([]P, s.room)}, s.room
	}
	for ; lo < hi; lo += step {
		codes, payload := s.span(lo, min(lo+step, hi), room.codes, room.payload)
		do(pairs[C, P]{codes, payload})
	}
}

// differ returns the bits in which not all of n codes agree.
func (s *source[C, P]) differ(n, workers int) C {
	parts := partsOf(n, workers)
	type extent struct{ some, differing C }
	found := make([]extent, parts)
	par.Run(workers, parts, par.Func(func(i int) {
		lo, hi := partOf(n, parts, i)
		first := true
		s.each(lo, hi, func(p pairs[C, P]) {
			if first {
				found[i].some, first = p.codes[0], false
			}
			found[i].differing |= differSolo(found[i].some, p.codes)
		})
	}))
	d := C(0)
	for i, f := range found {
		if lo, hi := partOf(n, parts, i); lo < hi {
			d |= f.differing | (f.some ^ found[0].some)
		}
	}
	return d
}
