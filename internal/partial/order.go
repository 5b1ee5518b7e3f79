package partial

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/op"
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
func Order(keys []string, workers int) ([]int, error) { return OrderUntil(keys, workers, nil) }

// OrderUntil is Order that gives up when stop returns true, as order.SortUntil does, and
// then returns op.ErrStopped.
func OrderUntil(keys []string, workers int, stop func() bool) ([]int, error) {
	workers = par.Workers(workers)
	if Sorted(keys, workers) {
		return nil, nil
	}
	if byComparing(len(keys)) {
		rows := make([]int, len(keys))
		for i := range rows {
			rows[i] = i
		}
		byString(keys, rows)
		return rows, nil
	}
	return byPartials(keys, workers, stop)
}

// byComparing reports whether n strings are sorted by comparing them alone.
func byComparing(n int) bool { return n < fewKeys || uint64(n) > math.MaxUint32 }

// Need returns the bytes that Order takes for n strings that are not sorted: the
// most at a time, and those of them on the heap, which are the order itself and
// a round's garbage. Later rounds leave less, if there are any.
func Need(n, workers int) (most, heap int64, err error) {
	heap = 8 * int64(n)
	if byComparing(n) {
		return heap, heap, nil
	}
	rows, err := arena.Need(rowSizes(n), scratchPages(n))
	if err != nil {
		return 0, 0, err
	}
	round, err := arena.Need(roundSizes(n), scratchPages(n))
	sorting := order.SortNeed(n, 12, par.Workers(workers))
	heap += sorting
	return rows + max(round+sorting, heap), heap, err
}

// The scratch space of a sort by partial keys: the rows being sorted, and the
// memory of a round.
func rowSizes(n int) []int   { return []int{4 * n} }
func roundSizes(n int) []int { return []int{8 * n, 8 * n, 4 * n} }

func scratchPages(n int) arena.Pages {
	if n < 1<<20 {
		return arena.Small
	}
	return arena.HugeAll
}

// byPartials sorts strings by partial keys. Its scratch space is off the heap,
// so that it is given back at once, and a round's before the result is made.
func byPartials(keys []string, workers int, stop func() bool) ([]int, error) {
	n := len(keys)
	block, err := arena.New(rowSizes(n), 0, scratchPages(n), 0)
	if err != nil {
		return nil, err
	}
	defer block.Release()
	round, err := arena.New(roundSizes(n), 0, scratchPages(n), 0)
	if err != nil {
		return nil, err
	}
	rows := arena.As[uint32](block.Segment(0))
	for i := range rows {
		rows[i] = uint32(i)
	}
	s := &sorter{
		keys: keys, workers: workers, stop: stop,
		codes: arena.As[uint64](round.Segment(0)), codesTmp: arena.As[uint64](round.Segment(1)), rowsTmp: arena.As[uint32](round.Segment(2)),
	}
	s.sort(rows, 0)
	round.Release()
	if s.stopped() {
		return nil, op.ErrStopped
	}
	out := make([]int, n)
	for i, r := range rows {
		out[i] = int(r)
	}
	return out, nil
}

// Sorted reports whether strings are sorted.
func Sorted(keys []string, workers int) bool {
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
	// The scratch space of a round, for all rows. The next round has the same:
	// a round is done with it before another begins.
	codes, codesTmp []uint64
	rowsTmp         []uint32

	stop func() bool // nil never stops
}

// stopped reports whether the sort is given up.
func (s *sorter) stopped() bool { return s.stop != nil && s.stop() }

// maxRounds bounds the partial keys that a string is sorted by: strings that
// are alike for longer are compared.
const maxRounds = 16

// sort sorts rows, which are in order where their strings are equal.
func (s *sorter) sort(rows []uint32, round int) {
	if len(rows) < fewKeys || round == maxRounds {
		byString(s.keys, rows)
		return
	}
	for _, r := range s.round(rows) {
		if s.stopped() {
			return
		}
		s.sort(rows[r.lo:r.hi], round+1)
	}
}

// round sorts rows by a partial key each, and by their strings where few have
// the same one. It returns the spans in which many have.
func (s *sorter) round(rows []uint32) (many []span) {
	n := len(rows)
	codes := s.codes[:n]
	if !s.partials(codes, rows) { // equal, or NULs behind the end are all that differs
		byString(s.keys, rows)
		return nil
	}
	codes, sorted := order.SortUntil(codes, s.codesTmp[:n], rows, s.rowsTmp[:n], s.workers, s.stop)
	if &sorted[0] != &rows[0] {
		par.Copy(rows, sorted, s.workers)
	}
	var mu sync.Mutex
	s.pieces(n, func(lo, hi int) {
		for lo > 0 && lo < hi && codes[lo] == codes[lo-1] { // of the piece before
			lo++
		}
		for lo < hi {
			end := lo + 1
			for end < n && codes[end] == codes[lo] {
				end++
			}
			switch {
			case end-lo >= fewKeys:
				mu.Lock()
				many = append(many, span{lo, end})
				mu.Unlock()
			case end-lo > 1:
				byString(s.keys, rows[lo:end])
			}
			lo = end
		}
	})
	return many
}

// span is rows from lo to hi.
type span struct{ lo, hi int }

// partials sets codes to the partial keys of rows by the first bits in which any
// of them differs from the first. It returns false if there are none.
func (s *sorter) partials(codes []uint64, rows []uint32) bool {
	program := s.program(rows)
	if program.Mask[0] == 0 {
		return false
	}
	s.pieces(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			codes[i] = program.Partial(s.keys[rows[i]])
		}
	})
	return true
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
				least = min(least, simd.CommonPrefix(first, k))
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
	par.Run(s.workers, (n+piece-1)/piece, par.Func(func(p int) {
		if !s.stopped() {
			do(p*piece, min((p+1)*piece, n))
		}
	}))
}
