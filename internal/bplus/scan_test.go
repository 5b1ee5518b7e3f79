package bplus

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// A rank in a closed tree, whose memory may be anything by now, is found at once:
// side links of zeros lead from leaf 0 to leaf 0.
func TestRankAfterClose(t *testing.T) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5000) {
		tree.Set(i, i)
	}
	tree.Close()
	tree.Rank(4000, true)
	tree.At(4000)
}

// plus adds one to values.
type plus struct{}

func (plus) Value(v uint64) uint64 { return v + 1 }

func (plus) Lines(at unsafe.Pointer, lines, width int) {
	for j := range lines {
		half := unsafe.Add(at, j*simd.LineBytes+simd.LineBytes/2)
		for i := 0; i < simd.LineBytes/2; i += width {
			if width == 4 {
				*(*uint32)(unsafe.Add(half, i))++
			} else {
				*(*uint64)(unsafe.Add(half, i))++
			}
		}
	}
}

func TestScanAndTransform(t *testing.T) {
	t.Run("64 bits", scanAndTransform[uint64])
	t.Run("32 bits", scanAndTransform[uint32])
}

// scanAndTransform compares scans and changes of ranges, of the tree and of its
// snapshots, with sorted slices.
func scanAndTransform[C Code](t *testing.T) {
	rng := seed.Rand(t)
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	var keys, vals []C
	for range 6000 {
		k := C(rng.Uint64N(20_000))
		if _, had, _ := tree.Set(k, k); !had {
			keys = append(keys, k)
		}
	}
	for _, k := range []C{0, ^C(0), ^C(0) - 1} {
		if _, had, _ := tree.Set(k, k); !had {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	vals = slices.Clone(keys)
	for range 60 {
		first, end := rng.IntN(len(keys)), 1+rng.IntN(len(keys))
		lo, hi := keys[first], keys[end-1]
		if first == 0 && rng.IntN(2) == 0 {
			lo = 0
		}
		moment, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		was := slices.Clone(vals)
		for i := first; i < end; i++ {
			vals[i]++
		}
		var cuts []C
		if end-first > 10 {
			cuts = []C{keys[first+3], keys[(first+end)/2], keys[end-2]}
		}
		if n, err := tree.Transform(lo, hi, cuts, end-first, plus{}, 2); n != max(0, end-first) || err != nil {
			t.Fatalf("%d changed, %v; want %d", n, err, end-first)
		}
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
		var ks, vs, only []C
		tree.Scan(lo, hi, true, func(k, v []C) { ks, vs = append(ks, k...), append(vs, v...) })
		tree.Scan(lo, hi, false, func(_, v []C) { only = append(only, v...) })
		from := min(first, end)
		if !slices.Equal(ks, keys[from:end]) || !slices.Equal(vs, vals[from:end]) || !slices.Equal(only, vs) {
			t.Fatalf("a scan from %d to %d has %d keys, %d and %d values; want %d", lo, hi, len(ks), len(vs), len(only), end-from)
		}
		view, err := moment.View(1)
		if err != nil {
			t.Fatal(err)
		}
		ks, vs = nil, nil
		view.Scan(from, end-from, true, func(k, v []C) { ks, vs = append(ks, k...), append(vs, v...) })
		if !slices.Equal(ks, keys[from:end]) || !slices.Equal(vs, was[from:end]) {
			t.Fatalf("a scan of the snapshot has %d keys, %d values; want %d", len(ks), len(vs), end-from)
		}
		view.Release()
	}
}
