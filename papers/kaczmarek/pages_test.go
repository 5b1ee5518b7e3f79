package kaczmarek

import (
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ascending returns n keys that are a step apart, and values.
func ascending[C simd.Code](n int, step uint64) (keys, vals []C) {
	for i := range n {
		keys, vals = append(keys, C(uint64(i)*step)), append(vals, C(i)<<1|1)
	}
	return keys, vals
}

// TestPages tests Kaczmarek's tree against a map, for pages smaller and larger
// than the block: after every launch, all entries, lookups, and the sum.
func TestPages(t *testing.T) {
	t.Run("uint32", func(t *testing.T) { pages[uint32](t) })
	t.Run("uint64", func(t *testing.T) { pages[uint64](t) })
}

func pages[C simd.Code](t *testing.T) {
	start := seed.Of(t)
	for i, shape := range []struct{ order, threads int }{{3, 32}, {4, 96}, {7, 64}, {100, 32}, {64, 64}} {
		for j := range uint64(seed.Count(2)) {
			d := ptx.New(ptx.Seed(start+uint64(100*i)+j), ptx.Steps(1<<26))
			p, err := NewPages[C](d, shape.order, 512, shape.threads)
			must(t, err)
			p.Blocks = 3
			pagesRounds(t, p, start+j)
			pagesLoads(t, p)
			must(t, p.Close())
			must(t, d.Close())
		}
	}
}

func pagesRounds[C simd.Code](t *testing.T, p *Pages[C], s uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(s, 5))
	want := map[C]C{}
	for _, n := range []int{1, 1, 40, 60} {
		keys, vals := make([]C, n), make([]C, n)
		for i := range keys {
			keys[i], vals[i] = C(rng.Uint64N(150)), C(rng.Uint64())
		}
		keys[0] = ^C(0)
		was := append([]C(nil), vals...)
		outcomes, err := p.Insert(keys, was)
		must(t, err)
		for i, k := range keys {
			old, there := want[k]
			if there != (outcomes[i] == Found) || there && old != was[i] {
				t.Fatalf("order %d, seed %d: insert of %d: %d, %d; want %v, %d", p.Tree.Order, s, k, outcomes[i], was[i], there, old)
			}
			want[k] = vals[i]
		}
		pagesCompare(t, p, want)
		must(t, p.Add(7))
		for k := range want {
			want[k] += 7
		}
	}
	pagesLookups(t, p, want)
}

// pagesLoads loads trees of sizes around the borders of pages, and inserts into
// them.
func pagesLoads[C simd.Code](t *testing.T, p *Pages[C]) {
	t.Helper()
	for _, fill := range []int{max(2, int(p.Tree.Order)*3/4), int(p.Tree.Order)} {
		for _, n := range []int{0, 1, fill, fill + 1, 3*fill - 1, min(150, fill*fill+1)} {
			keys, vals := ascending[C](n, 3)
			must(t, p.Load(keys, vals, fill))
			want := map[C]C{}
			for i, k := range keys {
				want[k] = vals[i]
			}
			pagesCompare(t, p, want)
			more := []C{^C(0), 1, C(3*n) + 1, C(n)}
			_, err := p.Insert(more, []C{1, 2, 3, 4})
			must(t, err)
			for i, k := range more {
				want[k] = C(i) + 1
			}
			pagesCompare(t, p, want)
		}
	}
}

// pagesCompare compares all entries, and their sum.
func pagesCompare[C simd.Code](t *testing.T, p *Pages[C], want map[C]C) {
	t.Helper()
	keys, vals, err := p.Check()
	must(t, err)
	if len(keys) != len(want) {
		t.Fatalf("order %d: %d entries, want %d", p.Tree.Order, len(keys), len(want))
	}
	total := uint64(0)
	for i, k := range keys {
		if v, ok := want[k]; !ok || v != vals[i] {
			t.Fatalf("order %d: key %d has %d, want %d", p.Tree.Order, k, vals[i], v)
		}
		total += uint64(vals[i])
	}
	sum, err := p.Sum()
	must(t, err)
	if sum != total {
		t.Fatalf("order %d: sum %d, want %d", p.Tree.Order, sum, total)
	}
}

func pagesLookups[C simd.Code](t *testing.T, p *Pages[C], want map[C]C) {
	t.Helper()
	var keys []C
	for k := C(0); k < 160; k++ {
		keys = append(keys, k)
	}
	keys = append(keys, ^C(0), ^C(0)-1)
	vals := make([]C, len(keys))
	outcomes, err := p.Get(keys, vals)
	must(t, err)
	for i, k := range keys {
		if v, ok := want[k]; ok != (outcomes[i] == Found) || v != vals[i] {
			t.Fatalf("order %d: get %d: %d, %d; want %d, %v", p.Tree.Order, k, outcomes[i], vals[i], v, ok)
		}
	}
}

// TestPagesFull tests that a tree without memory says so and stays what it is.
func TestPagesFull(t *testing.T) {
	rng := seed.Rand(t)
	d := ptx.New(ptx.Steps(1 << 26))
	defer d.Close()
	p, err := NewPages[uint64](d, 4, 6, 32)
	must(t, err)
	defer p.Close()
	want := map[uint64]uint64{}
	missing := 0
	for range 3 {
		keys, vals := make([]uint64, 20), make([]uint64, 20)
		for i := range keys {
			keys[i], vals[i] = rng.Uint64N(200), rng.Uint64()
		}
		was := append([]uint64(nil), vals...)
		outcomes, err := p.Insert(keys, was)
		must(t, err)
		for i, k := range keys {
			if outcomes[i] == NoRoom {
				missing++
			} else {
				want[k] = vals[i]
			}
		}
		pagesCompare(t, p, want)
	}
	if missing == 0 {
		t.Error("60 pairs fit in 6 pages of 4")
	}
}
