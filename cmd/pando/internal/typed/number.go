package typed

import (
	"math"
	"math/big"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table/cols"
)

// Summary is the result of Summarize: Sum, Min and Max are columns of one cell.
type Summary struct {
	Count         int
	Sum, Min, Max cols.Column
	Mean          float64
	Wrapped       bool // the sum does not fit the type of the values
}

// Total returns the sum of integers, exactly, also where it does not fit their type.
// There it has wrapped around, and the mean tells how often: its error is far less than
// half of a round.
func (s *Summary) Total() *big.Int {
	sum, round := new(big.Int), new(big.Float).SetInt64(1<<32)
	switch s.Sum.Type {
	case cols.Int64:
		sum.SetInt64(s.Sum.Int64[0])
		round.Mul(round, round)
	case cols.Uint64:
		sum.SetUint64(s.Sum.Uint64[0])
		round.Mul(round, round)
	case cols.Int32:
		sum.SetInt64(int64(s.Sum.Int32[0]))
	case cols.Uint32:
		sum.SetInt64(int64(s.Sum.Uint32[0]))
	}
	about := new(big.Float).SetPrec(200).SetFloat64(s.Mean)
	about.Mul(about, new(big.Float).SetInt64(int64(s.Count)))
	about.Sub(about, new(big.Float).SetInt(sum))
	about.Quo(about, round)
	rounds, _ := about.Add(about, big.NewFloat(math.Copysign(0.5, float64(about.Sign())))).Int(nil)
	one, _ := round.Int(nil)
	return sum.Add(sum, rounds.Mul(rounds, one))
}

func (ix *index[K, V]) Summarize(lo, hi *cols.Column) (Summary, bool) {
	return summarizeAs[K](ix.f, lo, hi)
}

// summarizeAs is Summarize for an index of any values: it is compiled for a type
// of keys, and not for a pair.
func summarizeAs[K pando.Key](f any, lo, hi *cols.Column) (Summary, bool) {
	switch f := f.(type) {
	case *pando.Frozen[K, int64]:
		return summarize(f, lo, hi), true
	case *pando.Frozen[K, uint64]:
		return summarize(f, lo, hi), true
	case *pando.Frozen[K, int32]:
		return summarize(f, lo, hi), true
	case *pando.Frozen[K, uint32]:
		return summarize(f, lo, hi), true
	case *pando.Frozen[K, float64]:
		return summarize(f, lo, hi), true
	case *pando.Frozen[K, float32]:
		return summarize(f, lo, hi), true
	}
	return Summary{}, false
}

func summarize[K pando.Key, V pando.Number](f *pando.Frozen[K, V], lo, hi *cols.Column) (out Summary) {
	from, to := ends(f, lo, hi)
	s := pando.Aggregate(f, from, to)
	out.Count, out.Mean = s.Count, s.Mean
	for c, v := range map[*cols.Column]V{&out.Sum: s.Sum, &out.Min: s.Min, &out.Max: s.Max} {
		room[V](c, 1)[0] = v
	}
	about := s.Mean * float64(s.Count)
	out.Wrapped = V(1)/2 == 0 && math.Abs(about-float64(s.Sum)) > 1e-9*math.Abs(about)+1
	return out
}

// ends returns the keys of a range; a nil bound is open.
func ends[K pando.Key, V any](f *pando.Frozen[K, V], lo, hi *cols.Column) (from, to K) {
	from, _, _ = f.Min()
	to, _, _ = f.Max()
	if lo != nil {
		from = keysOf[K](lo)[0]
	}
	if hi != nil {
		to = keysOf[K](hi)[0]
	}
	return from, to
}

func (ix *index[K, V]) Histogram(lo, hi, bounds *cols.Column, counts []int) bool {
	return histogramAs[K](ix.f, lo, hi, bounds, counts)
}

func histogramAs[K pando.Key](f any, lo, hi, bounds *cols.Column, counts []int) bool {
	switch f := f.(type) {
	case *pando.Frozen[K, int64]:
		return histogram(f, lo, hi, bounds, counts)
	case *pando.Frozen[K, uint64]:
		return histogram(f, lo, hi, bounds, counts)
	case *pando.Frozen[K, int32]:
		return histogram(f, lo, hi, bounds, counts)
	case *pando.Frozen[K, uint32]:
		return histogram(f, lo, hi, bounds, counts)
	case *pando.Frozen[K, float64]:
		return histogram(f, lo, hi, bounds, counts)
	case *pando.Frozen[K, float32]:
		return histogram(f, lo, hi, bounds, counts)
	}
	return false
}

func histogram[K pando.Key, V pando.Number](f *pando.Frozen[K, V], lo, hi, bounds *cols.Column, counts []int) bool {
	from, to := ends(f, lo, hi)
	pando.Histogram(f, from, to, *cells[V](bounds), counts)
	return true
}

// Divide sets bounds to those between n bins of equal width, from the least to the
// greatest of a summary: n-1 of them, or fewer where integers are close together.
func (s *Summary) Divide(n int, bounds *cols.Column) {
	switch s.Min.Type {
	case cols.Int64:
		divide[int64](s, n, bounds)
	case cols.Uint64:
		divide[uint64](s, n, bounds)
	case cols.Int32:
		divide[int32](s, n, bounds)
	case cols.Uint32:
		divide[uint32](s, n, bounds)
	case cols.Float64:
		divide[float64](s, n, bounds)
	case cols.Float32:
		divide[float32](s, n, bounds)
	}
}

func divide[V pando.Number](s *Summary, n int, bounds *cols.Column) {
	least, greatest := (*cells[V](&s.Min))[0], (*cells[V](&s.Max))[0]
	out := room[V](bounds, max(0, n-1))[:0]
	last := least
	for i := 1; i < n; i++ {
		// The part of each end is taken by itself: their distance may not fit.
		part := float64(i) / float64(n)
		b := V(float64(least)*(1-part) + float64(greatest)*part)
		if b > last && b <= greatest {
			out = append(out, b)
			last = b
		}
	}
	*cells[V](bounds) = out
}
