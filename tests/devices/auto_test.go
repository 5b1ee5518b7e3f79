package devices_test

import (
	"errors"
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
