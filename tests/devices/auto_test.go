package devices_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pando-index/pando"
)

// An index that is over its limit is compressed, if that is enough.
func TestAutoCompressesUnderALimit(t *testing.T) {
	keys := make([]uint64, 50_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	for limit, want := range map[int64]pando.LayoutKind{0: pando.Apart, 1 << 20: pando.Apart, 200 << 10: pando.Compressed} {
		f, err := pando.Freeze[uint64, struct{}](keys, nil, pando.MemoryLimit(limit))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Stats().Layout; got != want {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
		f.Close()
	}
	if _, err := pando.Freeze[uint64, struct{}](keys, nil, pando.MemoryLimit(20<<10)); !errors.Is(err, pando.ErrMemoryLimit) {
		t.Errorf("far too little: %v", err)
	}
}

// The same where keys are to be sorted first: what that takes counts, and the
// layout is decided when they are.
func TestAutoCompressesUnsortedInputUnderALimit(t *testing.T) {
	const n = 30_000
	keys, far := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(n - i)
		far[i] = uint64(n-i) << 45
	}
	build := func(keys []uint64, scratch, room int64) (layout pando.LayoutKind, err error) {
		f, err := pando.Freeze[uint64, struct{}](keys, nil, pando.MemoryLimit(scratch+room), pando.Workers(1))
		if err != nil {
			return 0, err
		}
		defer f.Close()
		if f.Rank(keys[0]) != n-1 || f.Rank(keys[n-1]) != 0 || f.Rank(0) != 0 {
			t.Errorf("%v: other keys", f.Stats().Layout)
		}
		return f.Stats().Layout, nil
	}
	const scratch = 16*n + 4096 // codes, twice
	for room, want := range map[int64]pando.LayoutKind{300_000: pando.Apart, 250_000: pando.Compressed, 60_000: pando.Compressed} {
		if got, err := build(keys, scratch, room); err != nil || got != want {
			t.Errorf("limit with room for %d bytes: %v, %v, want %v", room, got, err, want)
		}
	}
	for room, keys := range map[int64][]uint64{20_000: keys, 250_000: far, -1000: keys} { // not enough, too far apart, no room to sort
		if got, err := build(keys, scratch, room); !errors.Is(err, pando.ErrMemoryLimit) {
			t.Errorf("limit with room for %d bytes: %v, %v", room, got, err)
		}
	}
	f, err := pando.Freeze(keys, keys, pando.MemoryLimit(2*scratch+400_000))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	vals := make([]uint64, n)
	if hits := f.GetBatch(keys, vals, nil); f.Stats().Layout != pando.Compressed || hits != n || !slices.Equal(vals, keys) {
		t.Errorf("with values: %v, %d of %d hits", f.Stats().Layout, hits, n)
	}
}
