// Package sum sums up and counts values that are decimals, for all protocols that a server speaks.
package sum

import (
	"math"
	"slices"

	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// Sum sums up numbers. Integers are summed as such, as long as they fit.
type Sum struct {
	Count          int
	Sum, Low, High float64
	Whole          bool  // all are integers, and their sum fits
	Exact          int64 // their sum then
}

// Add adds a number, which val is the text of.
func (s *Sum) Add(val []byte, x float64) {
	if s.Count == 0 {
		s.Low, s.High, s.Whole = x, x, true
	}
	s.Count++
	s.Sum += x
	s.Low, s.High = min(s.Low, x), max(s.High, x)
	n, isInt := resp.ParseInt(val)
	if s.Whole = s.Whole && isInt && !(n > 0 && s.Exact > math.MaxInt64-n) && !(n < 0 && s.Exact < math.MinInt64-n); s.Whole {
		s.Exact += n
	}
}

// Mean returns the mean, 0 of no numbers.
func (s *Sum) Mean() float64 { return s.Sum / max(1, float64(s.Count)) }

// Bin returns how many bounds, which ascend, are not above x.
func Bin(bounds []float64, x float64) int {
	at, found := slices.BinarySearch(bounds, x)
	for found && at < len(bounds) && bounds[at] == x {
		at++
	}
	return at
}
