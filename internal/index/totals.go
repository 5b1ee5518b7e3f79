package index

import "math"

// Numeric is the type of values that vector operations work on.
type Numeric interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// BitsOf returns the bits of a number, as wide as it is computed with.
func BitsOf[V Numeric](n Number, v V) uint64 {
	switch {
	case !n.IsFloat() && n.Bytes() == 4:
		return uint64(uint32(int64(v)))
	case !n.IsFloat():
		return uint64(int64(v))
	case n.Bytes() == 4:
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(float64(v))
}

// withBits returns the number with these bits.
func withBits[V Numeric](n Number, bits uint64) V {
	switch {
	case !n.IsFloat():
		return V(bits)
	case n.Bytes() == 4:
		return V(math.Float32frombits(uint32(bits)))
	}
	return V(math.Float64frombits(bits))
}

// TotalsOf returns the sum, the least and the greatest of the values that were summed up,
// with their type. Without values all are zero.
func TotalsOf[V Numeric](n Number, s *Summary) (sum, least, greatest V) {
	switch {
	case s.Count == 0:
		return 0, 0, 0
	case !n.IsFloat():
		sum = V(s.Low)
	default:
		sum = V(s.Sum)
	}
	if s.HasNaN {
		return sum, V(math.NaN()), V(math.NaN())
	}
	return sum, withBits[V](n, s.Min), withBits[V](n, s.Max)
}
