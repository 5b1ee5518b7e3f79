package text

import (
	"testing"

	"github.com/pando-index/pando/bench/contest/contesttest"
)

// Runs lookups of strings at sizes around a line, a page and a group.
func TestStringsAtSmallSizes(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 255, 257, 4097} {
		s := contesttest.Session(t, uint64(n))
		s.Sizes, s.Rounds, s.Queries = []int{n}, 2, 70
		if err := stringsExp.Run(s); err != nil {
			t.Fatalf("n %d: %v", n, err)
		}
		if len(s.Rows) == 0 {
			t.Errorf("n %d: no rows; left out %q", n, s.Skipped)
		}
	}
}
