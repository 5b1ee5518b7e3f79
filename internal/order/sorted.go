package order

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/par"
)

// checkPiece is the number of codes that a worker checks before it looks
// whether another has found the slice unsorted: some 50 µs of work. Slices no
// longer than that are checked without allocating.
const checkPiece = 1 << 16

// Sorted reports whether codes never decrease. It stops soon after it finds a
// place where they do.
func Sorted[C Code](codes []C, workers int) bool {
	if len(codes) <= checkPiece {
		return rising(codes)
	}
	return allSorted(len(codes), workers, func(lo, hi int) bool {
		return rising(codes[lo:hi])
	})
}

// SortedKeys reports what Sorted reports for the codes of keys, without
// allocating a slice for them all.
func SortedKeys[K Key, C Code](c Codec[K, C], keys []K, workers int) bool {
	if c.Identity() {
		return Sorted(c.EncodeSlice(nil, keys), workers)
	}
	if len(keys) <= checkPiece {
		return risingKeys(c, keys)
	}
	return allSorted(len(keys), workers, func(lo, hi int) bool {
		return risingKeys(c, keys[lo:hi])
	})
}

// allSorted calls check for every piece of [0, n) until one call returns
// false. Pieces overlap by one, so that each pair of neighbors lies in a
// piece.
func allSorted(n, workers int, check func(lo, hi int) bool) bool {
	var unsorted atomic.Bool
	par.Run(workers, (n+checkPiece-1)/checkPiece, par.Func(func(piece int) {
		lo := piece * checkPiece
		if !unsorted.Load() && !check(lo, min(lo+checkPiece+1, n)) {
			unsorted.Store(true)
		}
	}))
	return !unsorted.Load()
}

func rising[C Code](codes []C) bool {
	if len(codes) == 0 {
		return true
	}
	last := codes[0]
	for _, c := range codes {
		if c < last {
			return false
		}
		last = c
	}
	return true
}

func risingKeys[K Key, C Code](c Codec[K, C], keys []K) bool {
	var buf [512]C
	var last C
	for len(keys) > 0 {
		codes := c.EncodeSlice(buf[:], keys[:min(len(buf), len(keys))])
		if codes[0] < last || !rising(codes) {
			return false
		}
		last = codes[len(codes)-1]
		keys = keys[len(codes):]
	}
	return true
}
