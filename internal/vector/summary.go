package vector

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Summary is the result of Summarize.
type Summary struct {
	Count int
	// Low and High are the sum of integers, exactly, in two's complement; Sum is
	// that of floats.
	Low, High uint64
	Sum       float64
	// Min and Max are the bits of the least and the greatest value; meaningless
	// without values, and where HasNaN is true.
	Min, Max uint64
	HasNaN   bool
	Mean     float64 // 0 without values
}

// Summarize sums up the values of a source.
func Summarize(src Source, t Type, workers int) Summary {
	if d, ok := src.(Summarizer); ok {
		if s, ok := d.Summarize(t); ok {
			return s
		}
	}
	if src.Pieces() == 1 { // without an allocation, for many small ranges
		r := par.Get(readers)
		sums := r.own.sums[:0]
		r.own = newTally(t.NumberKind)
		r.own.sums = sums
		r.read(src, 0, t, &r.own)
		s := r.own.summary()
		par.Put(readers, r)
		return s
	}
	parts := make([]tally, src.Pieces())
	each(src, t, workers, func(p int) sink {
		parts[p] = newTally(t.NumberKind)
		return &parts[p]
	})
	all := newTally(t.NumberKind)
	for i := range parts {
		all.add(&parts[i])
	}
	return all.summary()
}

// tally is a summary on its way.
type tally struct {
	kind      simd.NumberKind
	count     int
	low, high uint64
	sums      []float64 // of the blocks of floats
	min, max  int64
}

func newTally(k simd.NumberKind) tally { return tally{kind: k, min: math.MaxInt64, max: math.MinInt64} }

func (t *tally) block(at unsafe.Pointer, n int) {
	b := simd.Summarize(t.kind, at, n)
	t.count += n
	t.min, t.max = min(t.min, b.Min), max(t.max, b.Max)
	if t.kind.IsFloat() {
		t.sums = append(t.sums, math.Float64frombits(b.Low))
		return
	}
	t.addInteger(b.Low, b.High)
}

func (t *tally) addInteger(low, high uint64) {
	var carry uint64
	t.low, carry = bits.Add64(t.low, low, 0)
	t.high, _ = bits.Add64(t.high, high, carry)
}

// add adds the values that follow in order.
func (t *tally) add(next *tally) {
	t.count += next.count
	t.min, t.max = min(t.min, next.min), max(t.max, next.max)
	t.sums = append(t.sums, next.sums...)
	t.addInteger(next.low, next.high)
}

func (t *tally) summary() Summary {
	s := Summary{Count: t.count, Low: t.low, High: t.high}
	if t.count == 0 {
		return s
	}
	s.Min, s.Max = simd.Unordered(t.kind, t.min), simd.Unordered(t.kind, t.max)
	if !t.kind.IsFloat() {
		s.Mean = float64Of(t.low, t.high) / float64(t.count)
		if t.kind == simd.Uint32 || t.kind == simd.Uint64 {
			s.Mean = unsignedOf(t.low, t.high) / float64(t.count)
		}
		return s
	}
	s.HasNaN = t.max > infinity(t.kind, 1) || t.min < infinity(t.kind, -1)
	if s.Sum = addBlocks(t.sums); s.Sum != s.Sum {
		s.Sum = math.NaN()
	}
	if s.Mean = s.Sum / float64(t.count); s.Mean != s.Mean {
		s.Mean = math.NaN()
	}
	return s
}

// addBlocks adds up the sums of blocks, as the package comment has it.
func addBlocks(sums []float64) float64 {
	for len(sums) > 1 {
		for i := 0; i*Block < len(sums); i++ {
			part := sums[i*Block : min((i+1)*Block, len(sums))]
			sums[i] = math.Float64frombits(simd.Summarize(simd.Float64, unsafe.Pointer(&part[0]), len(part)).Low)
		}
		sums = sums[:(len(sums)+Block-1)/Block]
	}
	if len(sums) == 0 {
		return 0
	}
	return sums[0]
}

// infinity returns an infinity in the order of a kind.
func infinity(k simd.NumberKind, sign int) int64 {
	if k == simd.Float32 {
		return simd.Ordered(k, uint64(math.Float32bits(float32(math.Inf(sign)))))
	}
	return simd.Ordered(k, math.Float64bits(math.Inf(sign)))
}

// float64Of returns the float nearest to an integer of 128 bits in two's
// complement.
func float64Of(low, high uint64) float64 {
	if int64(high) >= 0 {
		return unsignedOf(low, high)
	}
	var borrow uint64
	low, borrow = bits.Sub64(0, low, 0)
	high, _ = bits.Sub64(0, high, borrow)
	return -unsignedOf(low, high)
}

func unsignedOf(low, high uint64) float64 {
	if high == 0 {
		return float64(low)
	}
	return float64(high)*0x1p64 + float64(low)
}
