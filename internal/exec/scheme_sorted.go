package exec

import "github.com/pando-index/pando/internal/order"

// sorting is what a lot needs beside codes to sort them: room for as many, and
// the place of each in the caller's order.
type sorting[C order.Code] struct {
	codes         []C
	places, spare []uint32
}

// sorted answers a portion in the order of its keys: neighbours share most of
// their way. Unlike the buffered scheme, it takes memory in every portion, as
// order.Sort does.
func (v *visit[K, C]) sorted() (hits int) {
	l, s := v.lot, v.spaces.Get().(*space[C])
	l.codes = grown(l.codes, v.n)
	o := &l.sorting
	o.codes, o.places, o.spare = grown(o.codes, v.n), grown(o.places, v.n), grown(o.spare, v.n)
	if v.batch.found != nil {
		l.found = grown(l.found, v.n)
	}
	for lo := 0; lo < v.n; lo += maxBucket {
		hi := min(lo+maxBucket, v.n)
		copy(l.codes[lo:hi], v.encoded(lo, hi, s))
		for i := range o.places[lo:hi] {
			o.places[lo+i] = uint32(lo + i)
		}
	}
	codes, places := order.Sort(l.codes, o.codes, o.places, o.spare, 1)
	if &codes[0] == &o.codes[0] { // the sorted ones in l, what is free in o
		l.codes, o.codes = o.codes, l.codes
		o.places, o.spare = o.spare, o.places
	}
	for lo := 0; lo < v.n; lo += maxBucket {
		hits += v.searchAll(l.codes[lo:min(lo+maxBucket, v.n)], lo, s)
	}
	v.scatter(places)
	if v.batch.ask == findEach {
		hits = v.hand(s)
	}
	v.spaces.Put(s)
	return hits
}

// scatter puts answers back at their places, or in order where a sink takes
// them.
func (v *visit[K, C]) scatter(places []uint32) {
	l, b, codes := v.lot, v.batch, v.lot.codes[:len(places)]
	switch b.ask {
	case getPairs:
		vals := b.vals[v.lo:]
		for i, p := range places {
			vals[p] = codes[i]
		}
		if b.found != nil {
			found := b.found[v.lo:]
			for i, p := range places {
				found[p] = l.found[i]
			}
		}
	case findEach:
		inOrder := l.sorting.codes
		for i, p := range places {
			inOrder[p] = codes[i]
		}
	default:
		ranks := b.ranks[v.lo:]
		for i, p := range places {
			ranks[p] = int(codes[i])
		}
	}
}

// hand gives places that are in order to the sink.
func (v *visit[K, C]) hand(s *space[C]) (hits int) {
	for lo := 0; lo < v.n; lo += few {
		ranks := s.ranks[:min(few, v.n-lo)]
		for i := range ranks {
			ranks[i] = placeOf(v.lot.sorting.codes[lo+i])
		}
		hits += v.take(v.lo+lo, ranks)
	}
	return hits
}
