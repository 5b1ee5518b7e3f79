package simd

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

func TestMergeRegular(t *testing.T) {
	t.Run("32", mergeAlike[uint32])
	t.Run("64", mergeAlike[uint64])
}

// mergeAlike merges leaves of every kind on every path.
func mergeAlike[C Code](t *testing.T) {
	rng := seed.Rand(t)
	line := LineBytes / int(unsafe.Sizeof(C(0)))
	room := new(MergeRoom[C])
	for range seed.Times(400, 20_000) {
		space := []uint64{4, 600, 1 << 20, 1 << 32}[rng.IntN(4)]
		base := []C{0, C(rng.Uint64()), ^C(0) - C(space-1)}[rng.IntN(3)]
		draw := func(most int) []C {
			keys := make([]C, rng.IntN(most+1))
			for i := range keys {
				keys[i] = base + C(rng.Uint64N(space))
			}
			slices.Sort(keys)
			return slices.Compact(keys)
		}
		have, put := draw(RegularFanout*line/2), draw([]int{1, 12, 100, mergeMost, 700}[rng.IntN(5)])
		haveVals, putVals := make([]C, len(have)), make([]C, len(put))
		for i := range haveVals {
			haveVals[i] = C(rng.Uint64())
		}
		for i := range putVals {
			putVals[i] = C(rng.Uint64())
		}
		merged := func(f func(keys, vals, have, haveVals []C) int) ([]C, []C) {
			all := len(have) + len(put) + line
			keys, vals := make([]C, all), make([]C, all)
			n := f(keys, vals, append(make([]C, 0, len(have)+line), have...), append(make([]C, 0, len(have)+line), haveVals...))
			return keys[:n], vals[:n]
		}
		keys, vals := merged(func(keys, vals, have, haveVals []C) int {
			return mergeRegularGo(keys, vals, have, haveVals, put, putVals)
		})
		for _, path := range Paths() {
			undo := Use(path)
			gotKeys, gotVals := merged(func(keys, vals, have, haveVals []C) int {
				return MergeRegular(keys, vals, have, haveVals, put, putVals, room)
			})
			undo()
			if !slices.Equal(gotKeys, keys) || !slices.Equal(gotVals, vals) {
				t.Fatalf("%v: %d entries and %d pairs from %d on become %v, not %v", path, len(have), len(put), base, gotKeys, keys)
			}
		}
	}
}

func BenchmarkMergeRegular(b *testing.B) {
	rng := seed.Rand(b)
	for _, m := range []int{12, 45, 180} {
		for _, path := range Paths() {
			b.Run(path.String()+map[int]string{12: "/12", 45: "/45", 180: "/180"}[m], func(b *testing.B) {
				defer Use(path)()
				room := new(MergeRoom[uint64])
				const n, sets = 180, 128
				keys, vals := make([]uint64, n+m+8), make([]uint64, n+m+8)
				var have, put [sets][]uint64
				for s := range sets {
					for range n {
						have[s] = append(have[s], rng.Uint64())
					}
					for range m {
						put[s] = append(put[s], rng.Uint64())
					}
					slices.Sort(have[s])
					slices.Sort(put[s])
					have[s] = slices.Grow(have[s], 8)
				}
				haveVals := make([]uint64, n+8)
				for i := 0; b.Loop(); i = (i + 1) % sets {
					MergeRegular(keys, vals, have[i], haveVals[:n], put[i], put[i], room)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m), "ns/pair")
			})
		}
	}
}

// The assembly finds the parts of a MergeRoom where the generator says.
func TestMergeRoom(t *testing.T) {
	mergeRoomAt[uint32](t)
	mergeRoomAt[uint64](t)
}

func mergeRoomAt[C Code](t *testing.T) {
	var r MergeRoom[C]
	row := uintptr(528) * unsafe.Sizeof(C(0))
	got := []uintptr{unsafe.Offsetof(r.keys), unsafe.Offsetof(r.vals), unsafe.Offsetof(r.flags), unsafe.Offsetof(r.pivots), unsafe.Offsetof(r.spare)}
	want := []uintptr{0, row, 2 * row, 2*row + 1024, 2*row + 1024 + 32*unsafe.Sizeof(C(0))}
	if !slices.Equal(got, want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
}
