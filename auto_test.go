package pando

import (
	"errors"
	"testing"
)

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
