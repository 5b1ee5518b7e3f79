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

// SortedKeys reports what Sorted reports for the codes of keys, without a
// slice to hold them all.
func SortedKeys[C Code](k Keys, workers int) bool {
	if k.identity() {
		return Sorted(Codes[C](k, nil), workers)
	}
	if k.n <= checkPiece {
		return risingKeys[C](k)
	}
	return allSorted(k.n, workers, func(lo, hi int) bool {
		return risingKeys[C](k.Slice(lo, hi))
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

func risingKeys[C Code](k Keys) bool {
	var buf [512]C
	var last C
	for lo := 0; lo < k.n; lo += len(buf) {
		codes := Codes(k.Slice(lo, min(lo+len(buf), k.n)), buf[:])
		if codes[0] < last || !rising(codes) {
			return false
		}
		last = codes[len(codes)-1]
	}
	return true
}
