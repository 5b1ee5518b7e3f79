package order

import (
	"cmp"
	"math"
)

// Least returns the code of the least key of type t that is not below p, a key of
// type of; where above is true, that is above it. Numbers are compared exactly,
// across types: above 2.5 the least integer is 3. It returns false if all keys of
// type t are below. Neither type may be a string's.
func Least(t Type, p Probe, of Type, above bool) (code uint64, ok bool) {
	if t == of {
		return next(t, p.Code, above)
	}
	x := numberOf(of, p.Code)
	if x.nan() {
		return next(t, 0, above && t.kind == floating) // NaN is below all but NaN
	}
	fits := func(c uint64) bool {
		order := compare(numberOf(t, c), x)
		return order > 0 || order == 0 && !above
	}
	code = guess(t, x)
	for code > 0 && fits(code-1) {
		code--
	}
	for !fits(code) {
		if code == t.maxCode() {
			return 0, false
		}
		code++
	}
	return code, true
}

// Greatest returns the code of the greatest key of type t that is not above p;
// where below is true, that is below it.
func Greatest(t Type, p Probe, of Type, below bool) (code uint64, ok bool) {
	if code, ok = Least(t, p, of, !below); !ok { // all are below
		return t.maxCode(), true
	}
	return code - 1, code > 0
}

// next returns a code, or the one above it.
func next(t Type, code uint64, above bool) (uint64, bool) {
	if !above {
		return code, true
	}
	return code + 1, code < t.maxCode()
}

// maxCode returns the code of the greatest key: that of positive infinity where
// keys are floats.
func (t Type) maxCode() uint64 {
	switch {
	case t.kind == floating && t.size == 4:
		return uint64(encode32(float32(math.Inf(1))))
	case t.kind == floating:
		return encode64(math.Inf(1))
	}
	return math.MaxUint64 >> (64 - 8*t.size)
}

// number is the value of a key of any type of fixed width.
type number struct {
	float    bool
	negative bool    // of an integer
	size     uint64  // magnitude of an integer
	f        float64 // of a float
}

func (x number) nan() bool { return x.float && x.f != x.f }

// numberOf returns the value of a code.
func numberOf(t Type, code uint64) number {
	switch {
	case t.kind == floating && t.size == 4:
		return number{float: true, f: float64(decode32(uint32(code)))}
	case t.kind == floating:
		return number{float: true, f: decode64(code)}
	case t.kind == unsigned || code >= t.flip():
		return number{size: code - t.flip()}
	}
	return number{negative: true, size: t.flip() - code}
}

// guess returns the code of a key of type t that is as near to x as a conversion
// comes.
func guess(t Type, x number) uint64 {
	if t.kind == floating {
		f := x.f
		if !x.float {
			f = x.rounded()
		}
		if t.size == 4 {
			return uint64(encode32(float32(f)))
		}
		return encode64(f)
	}
	if x.float {
		x = truncated(x.f)
	}
	if x.negative {
		return t.flip() - min(x.size, t.flip())
	}
	return t.flip() + min(x.size, t.maxCode()-t.flip())
}

// rounded returns an integer as the float next to it.
func (x number) rounded() float64 {
	if x.negative {
		return -float64(x.size)
	}
	return float64(x.size)
}

// truncated returns a float's integer part, or the nearest integer to it.
func truncated(f float64) number {
	x := number{negative: f < 0}
	if size := math.Trunc(math.Abs(f)); size >= 1<<64 {
		x.size = math.MaxUint64
	} else {
		x.size = uint64(size)
	}
	return x
}

// compare compares two numbers as they are, without rounding. Only floats of both
// sides may be NaN.
func compare(a, b number) int {
	switch {
	case a.float && b.float:
		return cmp.Compare(a.f, b.f)
	case a.float:
		return -compareFloat(b, a.f)
	case b.float:
		return compareFloat(a, b.f)
	case a.negative && b.negative:
		return cmp.Compare(b.size, a.size)
	case a.negative:
		return -cmp.Compare(a.size|b.size, 0) // 0 is no negative number, but to be sure
	case b.negative:
		return cmp.Compare(a.size|b.size, 0)
	}
	return cmp.Compare(a.size, b.size)
}

// compareFloat compares an integer with a float.
func compareFloat(a number, f float64) int {
	switch {
	case f != f:
		return 1 // NaN is below all
	case f >= 1<<64:
		return -1
	case f <= -(1 << 64):
		return 1
	}
	whole := math.Trunc(f)
	if order := compare(a, truncated(whole)); order != 0 {
		return order
	}
	return cmp.Compare(whole, f)
}
