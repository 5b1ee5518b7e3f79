package simd

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// The offsets of lanes are those that the generator has.
func TestLanesOffsets(t *testing.T) {
	var s lanes
	got := []uintptr{unsafe.Offsetof(s.sum), unsafe.Offsetof(s.high), unsafe.Offsetof(s.min), unsafe.Offsetof(s.max)}
	if want := []uintptr{0, 256, 512, 576}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("fields at %v, the assembly has them at %v", got, want)
	}
}

var kinds = []NumberKind{Int32, Uint32, Float32, Int64, Uint64, Float64}

// oddBits are the bits of values at which something may break.
var oddBits = map[NumberKind][]uint64{
	Float32: {0, 1 << 31, 0x7f800000, 0xff800000, 1, 0x80000001, 0x7f7fffff, 0xff7fffff},
	Float64: {0, 1 << 63, 0x7ff0000000000000, 0xfff0000000000000, 1, 1<<63 | 1, 0x7fefffffffffffff},
}

// someValue returns the bits of a value of a kind: from anywhere, odd, or near 0.
func someValue(k NumberKind, nan bool, rng *rand.Rand) uint64 {
	odd := append([]uint64{0, 1, math.MaxUint64, math.MaxInt64, 1 << 63, math.MaxUint32, math.MaxInt32, 1 << 31}, oddBits[k]...)
	for {
		v := rng.Uint64()
		switch rng.IntN(8) {
		case 0:
			v = odd[rng.IntN(len(odd))]
		case 1, 2:
			v = uint64(rng.IntN(100))
			if k == Float64 {
				v = math.Float64bits(float64(v) / 7)
			} else if k == Float32 {
				v = uint64(math.Float32bits(float32(v) / 7))
			}
		}
		if k.Bytes() == 4 {
			v = uint64(uint32(v))
		}
		if isNaN := k.IsFloat() && floatOf(k, v) != floatOf(k, v); !isNaN || nan {
			return v
		}
	}
}

func floatOf(k NumberKind, v uint64) float64 {
	if k == Float32 {
		return float64(math.Float32frombits(uint32(v)))
	}
	return math.Float64frombits(v)
}

// valuesOf puts values into memory, some bytes off any alignment but their own.
func valuesOf(k NumberKind, vals []uint64, off int) unsafe.Pointer {
	mem := make([]uint64, len(vals)+off+1)
	at := unsafe.Add(unsafe.Pointer(&mem[0]), off*k.Bytes())
	for i, v := range vals {
		if k.Bytes() == 4 {
			*(*uint32)(unsafe.Add(at, 4*i)) = uint32(v)
		} else {
			*(*uint64)(unsafe.Add(at, 8*i)) = v
		}
	}
	return at
}

// integerOf returns an integer value.
func integerOf(k NumberKind, v uint64) *big.Int {
	switch k {
	case Int32:
		return big.NewInt(int64(int32(v)))
	case Int64:
		return big.NewInt(int64(v))
	}
	return new(big.Int).SetUint64(v)
}

// checkBlock compares a block with what is defined, computed in the plainest way.
func checkBlock(k NumberKind, vals []uint64, b Block) error {
	least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
	sum, lanes := new(big.Int), [Lanes]float64{}
	for i, v := range vals {
		least, greatest = min(least, Ordered(k, v)), max(greatest, Ordered(k, v))
		if k.IsFloat() {
			lanes[i%Lanes] += floatOf(k, v)
		} else {
			sum.Add(sum, integerOf(k, v))
		}
	}
	if b.Min != least || b.Max != greatest {
		return fmt.Errorf("from %d to %d, want %d to %d", b.Min, b.Max, least, greatest)
	}
	if k.IsFloat() {
		for half := 16; half > 0; half /= 2 {
			for j := range half {
				lanes[j] = lanes[j] + lanes[j+half]
			}
		}
		if got := math.Float64frombits(b.Low); got != lanes[0] && (got == got || lanes[0] == lanes[0]) || b.Low>>63 != math.Float64bits(lanes[0])>>63 && got == got {
			return fmt.Errorf("sum %v (%#x), want %v", got, b.Low, lanes[0])
		}
		return nil
	}
	got := new(big.Int).Lsh(big.NewInt(int64(b.High)), 64)
	if got.Add(got, new(big.Int).SetUint64(b.Low)); got.Cmp(sum) != 0 {
		return fmt.Errorf("sum %v, want %v", got, sum)
	}
	return nil
}

// Every path finds what is defined, at every length around the vector width and
// that of a block.
func TestSummarize(t *testing.T) {
	rng := seed.Rand(t)
	for _, k := range kinds {
		for _, p := range Paths() {
			undo := Use(p)
			for n := 0; n <= BlockValues; n++ {
				if n > 4*Lanes && n < BlockValues-3 && n%61 != 0 {
					continue
				}
				vals := make([]uint64, n)
				for i := range vals {
					vals[i] = someValue(k, n%3 == 0, rng)
					if n%5 == 0 { // sums far from 0
						vals[i] = []uint64{math.MaxUint64, 1 << 63, math.MaxInt64, 0x7fe0000000000000}[n%4]
						if k.Bytes() == 4 {
							vals[i] >>= 32
						}
					}
				}
				if err := checkBlock(k, vals, Summarize(k, valuesOf(k, vals, n%5), n)); err != nil {
					t.Fatalf("%v, kind %d, %d values: %v", p, k, n, err)
				}
			}
			undo()
		}
	}
}

func TestOrdered(t *testing.T) {
	rng := seed.Rand(t)
	for _, k := range kinds {
		for range 2000 {
			a, b := someValue(k, true, rng), someValue(k, true, rng)
			if got := Unordered(k, Ordered(k, a)); got != a {
				t.Fatalf("kind %d: %#x comes back as %#x", k, a, got)
			}
			below := integerOf(k, a).Cmp(integerOf(k, b)) < 0
			if k.IsFloat() {
				x, y := floatOf(k, a), floatOf(k, b)
				if x != x || y != y {
					continue
				}
				below = x < y || x == 0 && y == 0 && math.Signbit(x) && !math.Signbit(y)
			}
			if below != (Ordered(k, a) < Ordered(k, b)) {
				t.Fatalf("kind %d: %#x below %#x is %v", k, a, b, below)
			}
		}
	}
}

func TestWithin(t *testing.T) {
	rng := seed.Rand(t)
	for _, k := range kinds {
		for n := range 4*Lanes + 1 {
			vals := make([]uint64, n)
			for i := range vals {
				vals[i] = someValue(k, true, rng)
			}
			lo, hi := someValue(k, false, rng), someValue(k, false, rng)
			if Ordered(k, lo) > Ordered(k, hi) && n%4 > 0 {
				lo, hi = hi, lo
			}
			for _, p := range Paths() {
				undo := Use(p)
				out := make([]uint32, (n+31)/32)
				Within(k, valuesOf(k, vals, n%3), n, lo, hi, out)
				undo()
				for i, v := range vals {
					want := Ordered(k, v) >= Ordered(k, lo) && Ordered(k, v) <= Ordered(k, hi)
					if k.IsFloat() {
						want = floatOf(k, v) >= floatOf(k, lo) && floatOf(k, v) <= floatOf(k, hi)
					}
					if got := out[i/32]>>(i%32)&1 == 1; got != want {
						t.Fatalf("%v, kind %d, %d values: %#x within %#x and %#x is %v", p, k, n, v, lo, hi, got)
					}
				}
				if n%32 > 0 && out[n/32]>>(n%32) != 0 {
					t.Fatalf("%v, kind %d: bits behind %d values are %#x", p, k, n, out[n/32])
				}
			}
		}
	}
}

func TestUnpackRegular(t *testing.T) {
	rng := seed.Rand(t)
	for range 200 {
		unpackBoth[uint32](t, rng)
		unpackBoth[uint64](t, rng)
	}
}

// unpackBoth compares what a leaf's lines were made of with what comes out.
func unpackBoth[C Code](t *testing.T, rng *rand.Rand) {
	half := LineBytes / 2 / int(unsafe.Sizeof(C(0)))
	mem := make([]uint64, (RegularBlock+RegularPilot[C]())/8)
	block := unsafe.Pointer(&mem[0])
	pilot := unsafe.Add(block, RegularBlock)
	seps, low, bounded := RegularSeps[C](pilot), C(rng.IntN(3)), rng.IntN(2) == 0
	var keys, vals []C
	var starts [RegularFanout + 1]int // number of entries before each line
	at := low
	for j := range seps {
		line, m := unsafe.Slice((*C)(unsafe.Add(block, j*LineBytes)), 2*half), rng.IntN(half+1)
		lo := at
		for i := range m {
			at += 1 + C(rng.IntN(3))
			line[i], line[half+i] = at, C(rng.Uint64())
			keys, vals = append(keys, at), append(vals, line[half+i])
		}
		seps[j] = at + C(rng.IntN(2))
		for i := m; i < half && m > 0; i++ {
			line[i], line[half+i] = line[m-1], line[half+m-1]
		}
		if m == 0 {
			outside := seps[j] + 1
			if (j > 0 || bounded) && rng.IntN(2) == 0 {
				outside = lo
			}
			for i := range half {
				line[i] = outside
			}
		}
		at, starts[j+1] = seps[j], len(keys)
	}
	first := rng.IntN(RegularFanout)
	end := first + 1 + rng.IntN(RegularFanout-first)
	for _, p := range Paths() {
		undo := Use(p)
		ks, vs, only := make([]C, RegularRoom[C]()), make([]C, RegularRoom[C]()), make([]C, RegularRoom[C]())
		n, m := UnpackRegular(pilot, block, low, bounded, ks, vs), UnpackRegular(pilot, block, low, bounded, nil, only)
		undo()
		if n != len(keys) || m != n || fmt.Sprint(ks[:n], vs[:n], only[:n]) != fmt.Sprint(keys, vals, vals) {
			t.Fatalf("%v: %d and %d entries, want %d:\n%v\n%v", p, n, m, len(keys), ks[:n], keys)
		}
		undo = Use(p)
		room := UnpackRoom[C](end - first)
		n = UnpackLines(pilot, block, low, bounded, first, end, ks[:room:room], vs[:room:room])
		undo()
		if lo, hi := starts[first], starts[end]; fmt.Sprint(ks[:n], vs[:n]) != fmt.Sprint(keys[lo:hi], vals[lo:hi]) {
			t.Fatalf("%v: lines %d to %d have %v, want %v", p, first, end, ks[:n], keys[lo:hi])
		}
	}
}

func TestCopyHalves(t *testing.T) {
	rng := seed.Rand(t)
	for _, lines := range []int{0, 1, 2, 3, 255, 256, 257, 600} {
		src := make([]byte, (lines+1)*LineBytes)
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		var want []byte
		for i := range lines {
			want = append(want, src[i*LineBytes+32:(i+1)*LineBytes]...)
		}
		for _, p := range Paths() {
			undo := Use(p)
			got := make([]byte, lines*32)
			CopyHalves(got, unsafe.Pointer(&src[32]))
			undo()
			if string(got) != string(want) {
				t.Fatalf("%v: %d half lines are not what they were", p, lines)
			}
		}
	}
}
