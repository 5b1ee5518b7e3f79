package simd

import (
	"math"
	"math/bits"
	"unsafe"
)

// NumberKind is the type of the values of a run.
type NumberKind uint8

const (
	Int32 NumberKind = iota
	Uint32
	Float32
	Int64
	Uint64
	Float64
)

// Bytes returns the size of a value.
func (k NumberKind) Bytes() int {
	if k < Int64 {
		return 4
	}
	return 8
}

// IsFloat reports whether values are floating-point numbers.
func (k NumberKind) IsFloat() bool { return k == Float32 || k == Float64 }

const (
	// BlockValues is the most values that Summarize takes.
	BlockValues = 1024
	// Lanes is the number of sums in which a block of floats is added up.
	Lanes = 32
)

// Block is the summary of a block of values.
type Block struct {
	// Low and High are the sum of integers, exactly, in two's complement. The
	// sum of floats is in Low, the bits of a float64.
	Low, High uint64
	// Min and Max are the least and the greatest as Ordered has them; of no value,
	// the greatest and the least int64.
	Min, Max int64
}

// Summarize adds up a block of n values, at most BlockValues, and finds the
// least and the greatest.
//
// The sum of floats is a float64, and defined to the last bit: lane j, of 32, is
// 0 plus value j, plus value j+32, and so on, in this order; then lane j becomes
// lane j plus lane j+16, for j below 16, then plus lane j+8, j+4, j+2, j+1. Each
// is one addition of float64s, rounded to nearest even; a float32 becomes a
// float64 first, which is exact. Which NaN a sum is, is not defined.
func Summarize(k NumberKind, at unsafe.Pointer, n int) Block {
	var s lanes
	done := 0
	if groups := n / Lanes; active != Go && groups > 0 {
		summarizeAsm(k, (*byte)(at), groups, bytes(&s))
		done = groups * Lanes
	} else {
		s.clear(k)
	}
	if done < n { // a pointer must not point behind its memory
		s.add(k, unsafe.Add(at, done*k.Bytes()), n-done)
	}
	return s.block(k, n)
}

// lanes is a block that is being summarized. The assembly writes the fields at
// fixed offsets; vector_test.go checks them.
type lanes struct {
	sum  [Lanes]uint64 // of integers, modulo 2^64, or bits of float64s
	high [Lanes]uint64 // of the upper halves of integers of 64 bits, counted from the least
	// The least and the greatest, as Ordered has them: of 8 lanes of 64 bits or 16
	// of 32.
	min, max [8]int64
}

func (s *lanes) clear(k NumberKind) {
	least, greatest := int64(math.MinInt64), int64(math.MaxInt64)
	if k.Bytes() == 4 {
		least, greatest = -0x7fffffff_80000000, 0x7fffffff_7fffffff // the same in both halves
	}
	for i := range s.min {
		s.min[i], s.max[i] = greatest, least
	}
}

// add adds n values, the first of them to lane 0.
func (s *lanes) add(k NumberKind, at unsafe.Pointer, n int) {
	switch k {
	case Int32:
		addIntegers(s, unsafe.Slice((*int32)(at), n), k)
	case Uint32:
		addIntegers(s, unsafe.Slice((*uint32)(at), n), k)
	case Int64:
		addIntegers(s, unsafe.Slice((*int64)(at), n), k)
	case Uint64:
		addIntegers(s, unsafe.Slice((*uint64)(at), n), k)
	case Float32:
		addFloats(s, unsafe.Slice((*float32)(at), n), k)
	case Float64:
		addFloats(s, unsafe.Slice((*float64)(at), n), k)
	}
}

func addIntegers[T int32 | uint32 | int64 | uint64](s *lanes, vals []T, k NumberKind) {
	bias := uint64(0)
	if k == Int64 {
		bias = 1 << 63
	}
	for _, v := range vals {
		s.sum[0] += uint64(v)
		s.high[0] += (uint64(v) ^ bias) >> 32
		s.extremes(k, Ordered(k, uint64(v)))
	}
}

func addFloats[T float32 | float64](s *lanes, vals []T, k NumberKind) {
	for i, v := range vals {
		lane := &s.sum[i%Lanes]
		*lane = math.Float64bits(math.Float64frombits(*lane) + float64(v))
		s.extremes(k, Ordered(k, bitsOf(v)))
	}
}

// bitsOf returns the bits of a float.
func bitsOf[T float32 | float64](v T) uint64 {
	if unsafe.Sizeof(v) == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(float64(v))
}

// extremes takes a value into account for the least and the greatest.
func (s *lanes) extremes(k NumberKind, code int64) {
	if k.Bytes() == 8 {
		s.min[0], s.max[0] = min(s.min[0], code), max(s.max[0], code)
		return
	}
	least, greatest := (*int32)(unsafe.Pointer(&s.min)), (*int32)(unsafe.Pointer(&s.max))
	*least, *greatest = min(*least, int32(code)), max(*greatest, int32(code))
}

// block returns the summary of the lanes of n values.
func (s *lanes) block(k NumberKind, n int) Block {
	b := Block{Min: math.MaxInt64, Max: math.MinInt64}
	if n == 0 {
		return b
	}
	if k.Bytes() == 8 {
		for i := range s.min {
			b.Min, b.Max = min(b.Min, s.min[i]), max(b.Max, s.max[i])
		}
	} else {
		least, greatest := (*[16]int32)(unsafe.Pointer(&s.min)), (*[16]int32)(unsafe.Pointer(&s.max))
		for i := range least {
			b.Min, b.Max = min(b.Min, int64(least[i])), max(b.Max, int64(greatest[i]))
		}
	}
	if k.IsFloat() {
		b.Low = math.Float64bits(addLanes((*[Lanes]float64)(unsafe.Pointer(&s.sum))))
		return b
	}
	sum, high := uint64(0), uint64(0)
	for i := range s.sum {
		sum += s.sum[i]
		high += s.high[i]
	}
	b.Low, b.High = sum, UpperWord(k, sum, high, n)
	return b
}

// UpperWord returns the upper 64 bits of the sum of n integers, less than 2^32, by
// its lower ones, and for integers of 64 bits by the sum of their upper halves,
// counted from the least integer.
func UpperWord(k NumberKind, sum, high uint64, n int) uint64 {
	switch k {
	case Uint32:
		return 0
	case Int32:
		return uint64(int64(sum) >> 63)
	case Int64: // each was counted 2^63 too much
		sum += uint64(n) << 63
	}
	lower := sum - high<<32 // the sum of lower halves, which has less than 64 bits
	_, carry := bits.Add64(lower, high<<32, 0)
	upper := high>>32 + carry
	if k == Int64 {
		_, borrow := bits.Sub64(sum, uint64(n)<<63, 0)
		upper -= uint64(n)>>1 + borrow
	}
	return upper
}

// addLanes adds up lanes in their order.
func addLanes(lanes *[Lanes]float64) float64 {
	for half := Lanes / 2; half > 0; half /= 2 {
		for j := range half {
			lanes[j] += lanes[j+half]
		}
	}
	return lanes[0]
}

// Ordered returns a value, by its bits, as a signed integer in the same order.
// Floats are in the order of Go's min and max, -0 below 0, with NaNs at either
// end, above the infinities.
func Ordered(k NumberKind, v uint64) int64 {
	switch k {
	case Int32:
		return int64(int32(v))
	case Uint32:
		return int64(int32(v ^ 1<<31))
	case Float32:
		return int64(int32(v) ^ int32(uint32(int32(v)>>31)>>1))
	case Uint64:
		return int64(v ^ 1<<63)
	case Float64:
		return int64(v) ^ int64(uint64(int64(v)>>63)>>1)
	}
	return int64(v)
}

// Unordered returns the bits of the value that Ordered has made a code of.
func Unordered(k NumberKind, code int64) uint64 {
	switch k {
	case Int32:
		return uint64(uint32(code))
	case Uint32:
		return uint64(uint32(code) ^ 1<<31)
	case Float32:
		return uint64(uint32(int32(code) ^ int32(uint32(int32(code)>>31)>>1)))
	case Uint64:
		return uint64(code) ^ 1<<63
	case Float64:
		return uint64(code ^ int64(uint64(code>>63)>>1))
	}
	return uint64(code)
}

// Within sets bit i%32 of out[i/32] to whether value i, of n, is at least lo and
// at most hi, which are bits of values. A NaN is not. Bits behind the last value
// are 0.
func Within(k NumberKind, at unsafe.Pointer, n int, lo, hi uint64, out []uint32) {
	groups := n / Lanes
	_ = out[:(n+Lanes-1)/Lanes]
	if active == Go {
		groups = 0
	}
	if groups > 0 {
		withinAsm(k, (*byte)(at), groups, lo, hi, &out[0])
	}
	if n == groups*Lanes {
		return
	}
	at, n, out = unsafe.Add(at, groups*Lanes*k.Bytes()), n-groups*Lanes, out[groups:]
	switch k {
	case Int32:
		withinGo(unsafe.Slice((*int32)(at), n), int32(lo), int32(hi), out)
	case Uint32:
		withinGo(unsafe.Slice((*uint32)(at), n), uint32(lo), uint32(hi), out)
	case Float32:
		withinGo(unsafe.Slice((*float32)(at), n), math.Float32frombits(uint32(lo)), math.Float32frombits(uint32(hi)), out)
	case Int64:
		withinGo(unsafe.Slice((*int64)(at), n), int64(lo), int64(hi), out)
	case Uint64:
		withinGo(unsafe.Slice((*uint64)(at), n), lo, hi, out)
	case Float64:
		withinGo(unsafe.Slice((*float64)(at), n), math.Float64frombits(lo), math.Float64frombits(hi), out)
	}
}

// withinGo is Within in plain Go.
func withinGo[T int32 | uint32 | float32 | int64 | uint64 | float64](vals []T, lo, hi T, out []uint32) {
	for len(vals) > 0 {
		group := vals[:min(Lanes, len(vals))]
		mask := uint32(0)
		for i, v := range group {
			if v >= lo && v <= hi {
				mask |= 1 << i
			}
		}
		out[0] = mask
		vals, out = vals[len(group):], out[1:]
	}
}
