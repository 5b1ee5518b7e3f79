package table

import (
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table/cols"
)

// TestKinds tests that a number of any kind is the same after it was text, and that
// kinds are after they were names.
func TestKinds(t *testing.T) {
	rng := seed.Rand(t)
	for _, name := range []string{"date", "timestamp[s]", "timestamp[ms]", "timestamp[us,utc]", "timestamp[ns]", "decimal[0]", "decimal[2]", "decimal[18]"} {
		kind, kept, err := ParseKind(name)
		if err != nil || kind.String() != name {
			t.Fatalf("%s: %v, %v", name, kind, err)
		}
		for range 2000 {
			v := int64(rng.Uint64()) >> rng.IntN(64)
			switch {
			case kept == Int32:
				v = v % 700_000 // years of four digits
			case kind.Of == cols.Timestamp && kind.Unit > 1:
				v %= 60_000_000_000 * int64(time.Second/kind.Unit)
			}
			text := string(appendKind(nil, kind, v))
			if got, err := ParseNumber(kind, text); err != nil || got != v {
				t.Fatalf("%s: %d is %s, which is %d, %v", name, v, text, got, err)
			}
		}
	}
	for text, name := range map[string]string{"2020-02-30": "date", "1.005": "decimal[2]", "1.-5": "decimal[2]", "": "decimal[2]", "12:00": "timestamp[us]",
		"2020-01-01T00:00:00.0001": "timestamp[ms]", "99999999999999999999": "decimal[0]", "9999-01-01": "timestamp[ns]"} {
		kind, _, _ := ParseKind(name)
		if v, err := ParseNumber(kind, text); err == nil {
			t.Errorf("%q is %s %d", text, name, v)
		}
	}
	for _, name := range []string{"", "day", "decimal", "decimal[19]", "decimal[-1]", "timestamp[h]"} {
		if k, _, err := ParseKind(name); err == nil {
			t.Errorf("%q is %v", name, k)
		}
	}
}
