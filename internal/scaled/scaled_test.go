package scaled_test

import (
	"testing"

	"github.com/pando-index/pando/internal/scaled"
)

// Counts are read as people write them.
func TestParse(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "5": 5, "16M": 16e6, "1G": 1e9, "1.5k": 1500, "2T": 2e12, "1_000": 1000, "9007199254740993": 9007199254740993} {
		if n, err := scaled.Parse(text, 1000); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if n, err := scaled.Parse("2GiB", 1024); err != nil || n != 2<<30 {
		t.Errorf("2GiB: %d, %v", n, err)
	}
	for _, text := range []string{"", "M", "-5", "x", "1e30", "5 M", "NaN", "InfG"} {
		if n, err := scaled.Parse(text, 1000); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
}
