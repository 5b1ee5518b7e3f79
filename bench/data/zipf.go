package data

import (
	"math"
	"math/rand/v2"

	"github.com/pando-index/pando/bench/contest"
)

// zipf draws ranks below n with probabilities that fall as 1/(rank+1)^s, s below
// 1, by the method of Gray et al. (SIGMOD 1994), as YCSB does.
type zipf struct {
	n, s, alpha, eta, zeta, two float64
}

// NewZipf returns the distribution of n ranks.
func NewZipf(n int, s float64) *zipf {
	z := &zipf{n: float64(n), s: s, alpha: 1 / (1 - s), zeta: zetaTo(n, s), two: zetaTo(min(n, 2), s)}
	z.eta = (1 - math.Pow(2/z.n, 1-s)) / (1 - z.two/z.zeta)
	return z
}

func (z *zipf) Draw(rng *rand.Rand) int {
	u := rng.Float64()
	switch uz := u * z.zeta; {
	case uz < 1 || z.n < 3:
		return 0
	case uz < z.two:
		return 1
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}

// zetaTo returns the sum of 1/i^s for i from 1 to n. Behind the first million the
// sum is as good as the integral.
func zetaTo(n int, s float64) (sum float64) {
	const exact = contest.Mega
	for i := 1; i <= min(n, exact); i++ {
		sum += math.Pow(float64(i), -s)
	}
	if n > exact {
		sum += (math.Pow(float64(n)+0.5, 1-s) - math.Pow(exact+0.5, 1-s)) / (1 - s)
	}
	return sum
}
