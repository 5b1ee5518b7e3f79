package vector

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// runs is a source that hands its values over in runs of odd lengths.
type runs struct {
	vals []float64
	len  int
}

func (s runs) Pieces() int { return Pieces(len(s.vals)) }

func (s runs) Read(piece int, r *Reader) {
	part := s.vals[piece*Piece : min((piece+1)*Piece, len(s.vals))]
	for run := range slices.Chunk(part, s.len) {
		r.Take(unsafe.Pointer(&run[0]), len(run))
	}
}

var float64s, _ = TypeOf(reflect.TypeFor[float64]())

// However values come, and however many workers there are, they are summed up in
// one order.
func TestOneOrder(t *testing.T) {
	rng := seed.Rand(t)
	vals := make([]float64, 2*Piece+12_345)
	for i := range vals {
		vals[i] = rng.NormFloat64()
	}
	want := Summarize(runs{vals, len(vals)}, float64s, 1)
	for _, n := range []int{1, 31, 180, 1024, 5000} {
		for workers := 1; workers <= 8; workers++ {
			if got := Summarize(runs{vals, n}, float64s, workers); got != want {
				t.Fatalf("runs of %d, %d workers: %+v, want %+v", n, workers, got, want)
			}
		}
	}
}

// onDevice is a source that has been summed up elsewhere, or has not.
type onDevice struct {
	runs
	ok bool
}

func (d onDevice) Summarize(Type) (Summary, bool) { return Summary{Count: -1}, d.ok }

func TestSummarizer(t *testing.T) {
	src := onDevice{runs{[]float64{1, 2}, 1}, true}
	if got := Summarize(src, float64s, 1); got.Count != -1 {
		t.Fatalf("the device is not asked: %+v", got)
	}
	src.ok = false
	if got := Summarize(src, float64s, 1); got.Sum != 3 {
		t.Fatalf("the CPU does not answer for the device: %+v", got)
	}
}

// Bounds beyond which nothing is, and none at which something is.
func TestHistogramOfManyBounds(t *testing.T) {
	inf := math.Inf(1)
	var bounds []uint64
	for i := range 2 * compareAll {
		v := float64(i - compareAll)
		if i == 0 {
			v = -inf
		}
		bounds = append(bounds, math.Float64bits(v))
	}
	bounds = append(bounds, math.Float64bits(inf))
	vals := []float64{math.NaN(), -inf, inf, math.Copysign(0, -1), 0, 0.5, -1e300, math.Float64frombits(0xfff8000000000001)}
	counts := make([]int, len(bounds)+1)
	Histogram(runs{vals, 3}, float64s, bounds, counts, 1)
	want := make([]int, len(counts))
	want[0], want[1], want[len(want)-1] = 2, 2, 1
	want[compareAll+1] = 3
	if !slices.Equal(counts, want) {
		t.Fatalf("%v, want %v", counts, want)
	}
}

func TestCodesOfEnds(t *testing.T) {
	for k, ends := range map[simd.NumberKind][2]uint64{
		simd.Int32:  {1 << 31, math.MaxInt32},
		simd.Uint32: {0, math.MaxUint32},
		simd.Int64:  {1 << 63, math.MaxInt64},
		simd.Uint64: {0, math.MaxUint64},
	} {
		bounds := make([]uint64, compareAll+1) // all of them the least
		for i := range bounds {
			bounds[i] = ends[0]
		}
		bounds[compareAll] = ends[1]
		b := bins{kind: k, bounds: bounds, counts: make([]int, len(bounds)+1)}
		var s sink = &b
		if k.Bytes() == 4 {
			r := newRanked[uint32](k, bounds)
			defer r.tree.Release()
			s = r.sink()
		} else {
			r := newRanked[uint64](k, bounds)
			defer r.tree.Release()
			s = r.sink()
		}
		narrow, wide := []uint32{uint32(ends[0]), uint32(ends[1]), 5}, []uint64{ends[0], ends[1], 5}
		at := unsafe.Pointer(&wide[0])
		if k.Bytes() == 4 {
			at = unsafe.Pointer(&narrow[0])
		}
		b.block(at, 3)
		s.block(at, 3)
		if got := s.(interface{ counted() []int }).counted(); !slices.Equal(got, b.counts) {
			t.Errorf("kind %d: %v by rank, %v by comparing", k, got, b.counts)
		}
	}
}
