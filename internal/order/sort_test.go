package order

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// distributions fill codes of 64 bits. A uint32 takes the high half of one, so
// that it keeps as much of the shape as fits.
var distributions = []struct {
	name string
	fill func(r *rand.Rand, codes []uint64)
}{
	{"random", each(func(r *rand.Rand, i, n int) uint64 { return r.Uint64() })},
	{"sorted", each(func(r *rand.Rand, i, n int) uint64 { return uint64(i) << 32 })},
	{"reversed", each(func(r *rand.Rand, i, n int) uint64 { return uint64(n-i) << 32 })},
	{"all equal", each(func(r *rand.Rand, i, n int) uint64 { return 7 << 32 })},
	{"few distinct", each(func(r *rand.Rand, i, n int) uint64 { return r.Uint64N(5) * 0x1234567890abcdef })},
	{"narrow range", each(func(r *rand.Rand, i, n int) uint64 { return 1<<63 - 1000<<32 + r.Uint64N(2000<<32) })},
	{"low bits", each(func(r *rand.Rand, i, n int) uint64 { return r.Uint64N(1<<10) | r.Uint64N(1<<10)<<32 })},
	{"high bits", each(func(r *rand.Rand, i, n int) uint64 { return r.Uint64() << 50 })},
	{"both ends", each(func(r *rand.Rand, i, n int) uint64 { return r.Uint64() & 0xff0000ff_000000ff })},
	{"powers", each(func(r *rand.Rand, i, n int) uint64 { return r.Uint64() >> r.IntN(64) })},
	{"floats", each(func(r *rand.Rand, i, n int) uint64 { return encode64(r.NormFloat64()) })},
	{"extremes", each(func(r *rand.Rand, i, n int) uint64 { return -(r.Uint64() & 1) })},
	{"zipf", func(r *rand.Rand, codes []uint64) {
		z := rand.NewZipf(r, 1.1, 1, math.MaxUint32)
		for i := range codes {
			codes[i] = z.Uint64() << 20
		}
	}},
	{"one outlier", func(r *rand.Rand, codes []uint64) {
		for i := range codes {
			codes[i] = r.Uint64N(1 << 44)
		}
		if len(codes) > 0 {
			codes[r.IntN(len(codes))] = math.MaxUint64
		}
	}},
	{"heavy below outlier", func(r *rand.Rand, codes []uint64) { // the equal ones have a bucket of their own, on either side
		for i := range codes {
			if codes[i] = 0; r.IntN(3) == 0 {
				codes[i] = 1<<50 | r.Uint64N(1<<51)
			}
		}
		if len(codes) > 0 {
			codes[r.IntN(len(codes))] = math.MaxUint64
		}
	}},
	{"outlier at each level", func(r *rand.Rand, codes []uint64) {
		for i := range codes {
			codes[i] = r.Uint64N(4)
		}
		for i := range min(64, len(codes)) {
			codes[r.IntN(len(codes))] = 1 << i
		}
	}},
}

func each(f func(r *rand.Rand, i, n int) uint64) func(*rand.Rand, []uint64) {
	return func(r *rand.Rand, codes []uint64) {
		for i := range codes {
			codes[i] = f(r, i, len(codes))
		}
	}
}

// model is codes, and the rows in the order that a stable sort must produce.
type model[C Code] struct {
	codes []C
	rows  []int
}

func newModel[C Code](codes []C) model[C] {
	rows := make([]int, len(codes))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(codes[a], codes[b]) })
	return model[C]{codes, rows}
}

func high(codes []uint64) []uint32 {
	half := make([]uint32, len(codes))
	for i, c := range codes {
		half[i] = uint32(c >> 32)
	}
	return half
}

// check sorts the model's codes with their rows as payload. As rows differ, an
// unstable sort is detected.
func check[P Code, C Code](t *testing.T, m model[C], workers int) {
	t.Helper()
	n := len(m.codes)
	payload := make([]P, n)
	for i := range payload {
		payload[i] = P(i)
	}
	codes, rows := Sort(slices.Clone(m.codes), make([]C, n), payload, make([]P, n), workers)
	if len(codes) != n || len(rows) != n {
		t.Fatalf("%d codes and %d payloads from %d pairs", len(codes), len(rows), n)
	}
	for i, row := range m.rows {
		if codes[i] != m.codes[row] || rows[i] != P(row) {
			t.Fatalf("n %d, workers %d: at %d code %#x of row %d, want %#x of row %d",
				n, workers, i, codes[i], rows[i], m.codes[row], row)
		}
	}
}

func checkCodesOnly[C Code](t *testing.T, m model[C], workers int) {
	t.Helper()
	codes, payload := Sort[C, uint64](slices.Clone(m.codes), make([]C, len(m.codes)), nil, nil, workers)
	if payload != nil || len(codes) != len(m.codes) {
		t.Fatalf("%d codes and %d payloads from %d codes", len(codes), len(payload), len(m.codes))
	}
	for i, row := range m.rows {
		if codes[i] != m.codes[row] {
			t.Fatalf("n %d, workers %d: at %d code %#x, want %#x", len(codes), workers, i, codes[i], m.codes[row])
		}
	}
}

func checkAllTypes(t *testing.T, codes []uint64, workers int) {
	t.Helper()
	wide, narrow := newModel(codes), newModel(high(codes))
	check[uint64](t, wide, workers)
	check[uint32](t, wide, workers)
	check[uint64](t, narrow, workers)
	check[uint32](t, narrow, workers)
	checkCodesOnly(t, wide, workers)
	checkCodesOnly(t, narrow, workers)
}

func TestSortSmall(t *testing.T) {
	r := seed.Rand(t)
	for _, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			for n := range 301 {
				codes := make([]uint64, n)
				d.fill(r, codes)
				checkAllTypes(t, codes, 1+r.IntN(8))
			}
		})
	}
}

func TestSortAroundSoloMax(t *testing.T) {
	r := seed.Rand(t)
	for _, n := range []int{soloMax, soloMax + 1 + r.IntN(soloMax)} {
		codes := make([]uint64, n)
		for _, d := range distributions {
			d.fill(r, codes)
			checkAllTypes(t, codes, 1+r.IntN(8))
		}
	}
}

func TestSortLarge(t *testing.T) {
	r := seed.Rand(t)
	for _, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			codes := make([]uint64, 100_000)
			d.fill(r, codes)
			m := newModel(codes)
			for workers := 1; workers <= 8; workers++ {
				if !seed.Long() && workers%3 != 2 && (workers > 1 || seed.RaceDetector) {
					continue
				}
				check[uint64](t, m, workers)
			}
		})
	}
}

func TestSortMillion(t *testing.T) {
	million := seed.Size(150_000, 1_000_000)
	r := seed.Rand(t)
	for i, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			codes := make([]uint64, million)
			d.fill(r, codes)
			checkAlone(t, codes, 1+i%4)
		})
	}
}

// checkAlone checks without a model, which would take most of the time. If
// each row has its own code, and code and row together rise strictly, then all
// rows are there and no other order is right.
func checkAlone(t *testing.T, input []uint64, workers int) {
	t.Helper()
	n := len(input)
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	codes, rows := Sort(slices.Clone(input), make([]uint64, n), rows, make([]uint32, n), workers)
	for i, row := range rows {
		if codes[i] != input[row] {
			t.Fatalf("workers %d: at %d code %#x with row %d of %#x", workers, i, codes[i], row, input[row])
		}
		if i > 0 && (codes[i-1] > codes[i] || codes[i-1] == codes[i] && rows[i-1] >= row) {
			t.Fatalf("workers %d: at %d code %#x of row %d after %#x of row %d",
				workers, i, codes[i], row, codes[i-1], rows[i-1])
		}
	}
}

func TestSortPanicsOnUnequalLengths(t *testing.T) {
	three, two := make([]uint64, 3), make([]uint64, 2)
	mustPanic(t, func() { Sort(three, two, three, three, 1) })
	mustPanic(t, func() { Sort(three, three, two, three, 1) })
	mustPanic(t, func() { Sort(three, three, three, two, 1) })
	mustPanic(t, func() { Sort(three, three, three, nil, 1) })
	mustPanic(t, func() { Sort(three, three, nil, three, 1) })
}

func TestSortSmallAllocatesNothing(t *testing.T) {
	a, b, p, q := make([]uint64, 1000), make([]uint64, 1000), make([]uint32, 1000), make([]uint32, 1000)
	for i := range a {
		a[i] = uint64(-i)
	}
	if allocs := testing.AllocsPerRun(50, func() { Sort(a, b, p, q, 2) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// Sort allocates no more than SortNeed says, whatever the codes are and however
// many workers there are.
func TestSortNeed(t *testing.T) {
	rng := seed.Rand(t)
	n := 5*soloMax + rng.IntN(soloMax)
	a, b, p, q := make([]uint64, n), make([]uint64, n), make([]uint32, n), make([]uint32, n)
	for _, d := range distributions {
		for _, workers := range []int{1, 3, 1000} {
			d.fill(rng, a)
			need := SortNeed(n, 12, workers)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			Sort(a, b, p, q, workers)
			runtime.ReadMemStats(&after)
			if took := int64(after.TotalAlloc - before.TotalAlloc); took > need+need/8+int64(n)*12/100+16<<10 { // Go rounds sizes up
				t.Errorf("%s, %d workers: %d bytes, not %d", d.name, workers, took, need)
			}
		}
	}
}

// FuzzSort makes n codes from the words in data, one after the other, with
// random bits where mask has ones.
func FuzzSort(f *testing.F) {
	f.Add([]byte{}, uint32(100), uint64(math.MaxUint64), uint8(1))
	f.Add([]byte("two wordsto begin"), uint32(60_000), uint64(0xff00), uint8(2))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x80"), uint32(40_000), uint64(1), uint8(8))
	f.Fuzz(func(t *testing.T, data []byte, n uint32, mask uint64, workers uint8) {
		words := []uint64{0}
		for ; len(data) >= 8; data = data[8:] {
			words = append(words, binary.LittleEndian.Uint64(data))
		}
		codes := make([]uint64, n%(2*soloMax))
		r := rand.New(rand.NewPCG(uint64(n), mask))
		for i := range codes {
			codes[i] = words[i%len(words)] ^ r.Uint64()&mask
		}
		checkAlone(t, codes, 1+int(workers%8))
	})
}

func ExampleSort() {
	ages := []uint32{41, 7, 41, 19}
	rows := []uint32{0, 1, 2, 3}
	ages, rows = Sort(ages, make([]uint32, 4), rows, make([]uint32, 4), 1)
	fmt.Println(ages, rows)
	// Output: [7 19 41 41] [1 3 0 2]
}
