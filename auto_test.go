package pando

import (
	"errors"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// AutoLayout compresses where that makes an index much smaller, whether its
// input is sorted or not, and leaves alone what would hardly shrink.
func TestAutoCompresses(t *testing.T) {
	old := autoPackEntries
	autoPackEntries = 1000
	defer func() { autoPackEntries = old }()
	rng := seed.Rand(t)
	const n = 20_000
	dense, sparse := make([]uint64, n), make([]uint64, n)
	for i := range n {
		dense[i], sparse[i] = 1<<50+uint64(i)*3, rng.Uint64()
	}
	mixed := append([]uint64(nil), dense...)
	rng.Shuffle(n, func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	layoutOf := func(keys []uint64, opts ...Option) LayoutKind {
		f, err := Freeze[uint64, struct{}](keys, nil, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		least, _, _ := f.Min()
		for _, k := range keys[:100] {
			if least > k {
				t.Fatalf("the least key is %d, but %d is there", least, k)
			}
			if _, ok := f.Get(k); !ok {
				t.Fatalf("key %d is gone", k)
			}
		}
		return f.Stats().Layout
	}
	for what, c := range map[string]struct {
		got, want LayoutKind
	}{
		"dense":              {layoutOf(dense), Compressed},
		"dense, unsorted":    {layoutOf(mixed), Compressed},
		"dense, under limit": {layoutOf(mixed, MemoryLimit(1<<30)), Compressed},
		"dense, as asked":    {layoutOf(dense, Layout(Implicit)), Apart},
		"dense, few":         {layoutOf(dense[:999]), Apart},
		"random, unsorted":   {layoutOf(sparse), Apart},
		"all equal":          {layoutOf(make([]uint64, n)), Compressed},
		"random, as asked":   {layoutOf(sparse, Layout(Compressed)), Compressed},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
}

// An index that is over its limit is compressed, if that is enough.
func TestAutoCompressesUnderALimit(t *testing.T) {
	keys := make([]uint64, 50_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	for limit, want := range map[int64]LayoutKind{0: Apart, 1 << 20: Apart, 200 << 10: Compressed} {
		f, err := Freeze[uint64, struct{}](keys, nil, MemoryLimit(limit))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Stats().Layout; got != want {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
		f.Close()
	}
	if _, err := Freeze[uint64, struct{}](keys, nil, MemoryLimit(20<<10)); !errors.Is(err, ErrMemoryLimit) {
		t.Errorf("far too little: %v", err)
	}
}
