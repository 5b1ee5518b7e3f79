package typed

import (
	"math"
	"math/big"

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

// Divide sets bounds to those between n bins of equal width, from the least to the
// greatest of a summary: n-1 of them, or fewer where integers are close together.
func (s *Summary) Divide(n int, bounds *cols.Column) {
	kindOf(s.Min.Type).(numberKind).divide(s, n, bounds)
}
