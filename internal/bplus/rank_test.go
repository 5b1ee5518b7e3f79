package bplus

import (
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// Goroutines that ask for ranks at the same time, while nobody writes, all get
// the right ones: none looks at counts that another is just bringing up to date.
func TestRanksAtOnce(t *testing.T) {
	rng := seed.Rand(t)
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	n := 0
	for range 60 {
		for range 2000 {
			if _, had, err := tree.Set(rng.Uint64()>>1, 1); err != nil {
				t.Fatal(err)
			} else if !had {
				n++
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if got := tree.Rank(1<<63, false); got != n {
					t.Errorf("rank %d of %d", got, n)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}
