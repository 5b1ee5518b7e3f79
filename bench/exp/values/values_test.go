package values

import (
	"testing"

	"github.com/pando-index/pando/bench/contest/contesttest"
)

// Runs both experiments with few entries.
func TestAtSmallSizes(t *testing.T) {
	for _, n := range []int{1, 5000} {
		for _, e := range Experiments {
			s := contesttest.Session(t, uint64(n))
			s.Sizes, s.Rounds, s.Queries = []int{n}, 2, 300
			if err := e.Run(s); err != nil {
				t.Fatalf("%s, n %d: %v", e.Name, n, err)
			}
			if len(s.Rows) == 0 {
				t.Errorf("%s, n %d: no rows; left out %q", e.Name, n, s.Skipped)
			}
		}
	}
}
