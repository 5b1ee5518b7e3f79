package partial

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// fewKeys is the number of strings below which comparing them is the fastest
// way to sort them.
const fewKeys = 4 << 10

// Order returns the order in which strings are sorted, equal ones in the
// order they come in; nil where they are sorted already. Strings are sorted by
// partial keys, as numbers; those whose partial keys are equal again by others
// made for them, until they are few.
func Order(keys []string, workers int) []int {
	if inOrder(keys, workers) {
		return nil
	}
	rows := make([]int, len(keys))
	if len(keys) < fewKeys || uint64(len(keys)) > math.MaxUint32 {
		for i := range rows {
			rows[i] = i
		}
		byString(keys, rows)
		return rows
	}
	small := make([]uint32, len(keys))
	for i := range small {
		small[i] = uint32(i)
	}
	s := &sorter{keys: keys, workers: par.Workers(workers)}
	s.sort(small, 0)
	for i, r := range small {
		rows[i] = int(r)
	}
	return rows
}

// inOrder reports whether strings are sorted.
func inOrder(keys []string, workers int) bool {
	const piece = 16 << 10
	var no atomic.Bool
	par.Run(par.Workers(workers), (len(keys)+piece-1)/piece, par.Func(func(p int) {
		lo, hi := max(p*piece-1, 0), min((p+1)*piece, len(keys))
		if !no.Load() && !slices.IsSorted(keys[lo:hi]) {
			no.Store(true)
		}
	}))
	return !no.Load()
}

// byString sorts rows by their strings, then by themselves.
func byString[R int | uint32](keys []string, rows []R) {
	slices.SortFunc(rows, func(a, b R) int {
		if c := strings.Compare(keys[a], keys[b]); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
}

// sorter sorts rows by their strings.
type sorter struct {
	keys    []string
	workers int
}

// maxRounds bounds the partial keys that a string is sorted by: strings that
// are alike for longer are compared.
const maxRounds = 16

// sort sorts rows, which are in order where their strings are equal.
func (s *sorter) sort(rows []uint32, round int) {
	if len(rows) < fewKeys || round == maxRounds {
		byString(s.keys, rows)
		return
	}
	codes := s.codes(rows)
	if codes == nil { // equal, or NULs behind the end are all that differs
		byString(s.keys, rows)
		return
	}
	codes, sorted := order.Sort(codes, make([]uint64, len(rows)), slices.Clone(rows), make([]uint32, len(rows)), s.workers)
	copy(rows, sorted)
	var small []span
	for lo := 0; lo < len(rows); {
		hi := lo + 1
		for hi < len(rows) && codes[hi] == codes[lo] {
			hi++
		}
		switch {
		case hi-lo >= fewKeys:
			s.sort(rows[lo:hi], round+1)
		case hi-lo > 1:
			small = append(small, span{lo, hi})
		}
		lo = hi
	}
	const piece = 64
	par.Run(s.workers, (len(small)+piece-1)/piece, par.Func(func(p int) {
		for _, r := range small[p*piece : min((p+1)*piece, len(small))] {
			byString(s.keys, rows[r.lo:r.hi])
		}
	}))
}

// span is rows from lo to hi.
type span struct{ lo, hi int }

// codes returns the partial keys of rows by the first bits in which any of them
// differs from the first; nil if there are none.
func (s *sorter) codes(rows []uint32) []uint64 {
	program := s.program(rows)
	if program.Mask[0] == 0 {
		return nil
	}
	codes := make([]uint64, len(rows))
	s.pieces(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			codes[i] = program.Partial(s.keys[rows[i]])
		}
	})
	return codes
}

// program is that of strings which are not sorted.
func (s *sorter) program(rows []uint32) (p simd.Program) {
	first := s.keys[rows[0]]
	var mu sync.Mutex
	from := len(first)
	s.pieces(len(rows), func(lo, hi int) {
		least := len(first)
		for _, r := range rows[lo:hi] {
			if k := s.keys[r]; k != first {
				least = min(least, commonPrefix(first, k))
			}
		}
		mu.Lock()
		from = min(from, least)
		mu.Unlock()
	})
	if from > simd.MaxWindow {
		return p
	}
	var all masks
	s.pieces(len(rows), func(lo, hi int) {
		var some masks
		for _, r := range rows[lo:hi] {
			allBits(first, s.keys[r], from, &some)
		}
		mu.Lock()
		for i, m := range some {
			all[i] |= m
		}
		mu.Unlock()
	})
	return Chooser{Bits: 64}.assemble(all, from)
}

// pieces cuts [0, n) and calls do for each piece, on all workers.
func (s *sorter) pieces(n int, do func(lo, hi int)) {
	const piece = 16 << 10
	par.Run(s.workers, (n+piece-1)/piece, par.Func(func(p int) { do(p*piece, min((p+1)*piece, n)) }))
}
