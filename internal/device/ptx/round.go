package ptx

import (
	"math"
	"math/big"
)

// rounding is the direction in which inexact results are rounded.
type rounding uint8

const (
	nearest rounding = iota // to even
	toZero
	down
	up
)

// arith is an operation whose exact result must be rounded.
type arith uint8

const (
	sum        arith = iota // a+b
	difference              // a-b
	product                 // a*b
	fused                   // a*b+c
	quotient                // a/b
	reciprocal              // 1/a
	root                    // the square root of a
)

// reduced rewrites an operation as one of sum, product, fused, quotient, root.
func reduced[F float32 | float64](o arith, a, b, c F) (arith, F, F, F) {
	switch o {
	case difference:
		return sum, a, -b, c
	case reciprocal:
		return quotient, 1, a, c
	}
	return o, a, b, c
}

// round32 returns the exact result of o, rounded once.
func round32(o arith, m rounding, a, b, c float32) float32 {
	o, a, b, c = reduced(o, a, b, c)
	var v float32
	switch o {
	case sum:
		v = a + b
	case product:
		v = a * b
	case fused:
		v = fma32(a, b, c)
	case quotient:
		v = a / b
	case root:
		v = float32(math.Sqrt(float64(a)))
	}
	if m == nearest || v != v {
		return v
	}
	x, y, z := float64(a), float64(b), float64(c)
	e := errorSign(o, x, y, z, float64(v))
	if e == 0 {
		return float32(zeroSign(o, m, x, y, z, float64(v)))
	}
	return step32(v, e, m)
}

// round64 is round32 for float64.
func round64(o arith, m rounding, a, b, c float64) float64 {
	o, a, b, c = reduced(o, a, b, c)
	var v float64
	switch o {
	case sum:
		v = a + b
	case product:
		v = a * b
	case fused:
		v = math.FMA(a, b, c)
	case quotient:
		v = a / b
	case root:
		v = math.Sqrt(a)
	}
	if m == nearest || v != v {
		return v
	}
	e := errorSign(o, a, b, c, v)
	if e == 0 {
		return zeroSign(o, m, a, b, c, v)
	}
	return step64(v, e, m)
}

// fma32 rounds once: the product is exact in float64, and a sum rounded to odd
// if it is inexact rounds to float32 as the exact one would.
func fma32(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	back := s - p
	lost := (p - (s - back)) + (q - back)
	if n := math.Float64bits(s); lost != 0 && n&1 == 0 {
		if (lost > 0) == (s > 0) {
			n++
		} else {
			n--
		}
		s = math.Float64frombits(n)
	}
	return float32(s)
}

// step32 moves the nearest result n to its neighbor if the mode requires it; e
// is the sign of the exact result less n.
func step32(n float32, e int, m rounding) float32 {
	return float32(stepBy(float64(n), e, m, func(to float64) float64 {
		return float64(math.Nextafter32(n, float32(to)))
	}))
}

// step64 is step32 for float64.
func step64(n float64, e int, m rounding) float64 {
	return stepBy(n, e, m, func(to float64) float64 { return math.Nextafter(n, to) })
}

func stepBy(n float64, e int, m rounding, next func(float64) float64) float64 {
	switch {
	case e < 0 && (m == down || m == toZero && n > 0):
		return next(math.Inf(-1))
	case e > 0 && (m == up || m == toZero && n < 0):
		return next(math.Inf(1))
	}
	return n
}

// errorSign returns the sign of the exact result less v.
func errorSign(o arith, a, b, c, v float64) int {
	exactInf := math.IsInf(a, 0) || o != root && math.IsInf(b, 0) || o == fused && math.IsInf(c, 0) ||
		o == quotient && b == 0
	if exactInf {
		return 0
	}
	if math.IsInf(v, 0) { // an overflow: the exact result is nearer to zero
		if v > 0 {
			return -1
		}
		return 1
	}
	x, y, z, w := exactly(a), exactly(b), exactly(c), exactly(v)
	e := exactly(0)
	switch o {
	case sum:
		return e.Sub(e.Add(x, y), w).Sign()
	case product:
		return e.Sub(e.Mul(x, y), w).Sign()
	case fused:
		return e.Sub(e.Add(e.Mul(x, y), z), w).Sign()
	case quotient: // a/b - v has the sign of (a - v*b)/b
		return e.Sub(x, e.Mul(w, y)).Sign() * y.Sign()
	}
	return e.Sub(x, e.Mul(w, w)).Sign()
}

// exactBits is enough for every sum of a product of two doubles and a third:
// the exponents span less.
const exactBits = 4500

func exactly(v float64) *big.Float {
	if math.IsInf(v, 0) || v != v {
		v = 0 // an operand that the operation does not have
	}
	return new(big.Float).SetPrec(exactBits).SetFloat64(v)
}

// zeroSign returns v, or -0 for a sum of opposite terms that is exactly zero
// and rounds down.
func zeroSign(o arith, m rounding, a, b, c, v float64) float64 {
	if v != 0 || m != down || o != sum && o != fused {
		return v
	}
	if o == fused {
		a, b = a*b, c
	}
	if math.Signbit(a) != math.Signbit(b) {
		return math.Copysign(0, -1)
	}
	return v
}
