package radix

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// A tree never takes more than its limit, whatever is done to it, by one writer or several.
func TestLimitHolds(t *testing.T) {
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) { limitHolds(t, 1, draw) })
	}
}

func TestLimitHoldsBesideOthers(t *testing.T) {
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) { limitHolds(t, 3, draw) })
	}
}

func limitHolds(t *testing.T, writers int, draw func(*rand.Rand) string) {
	s := seed.Of(t)
	const limit = 60_000
	tree := New(limit)
	defer tree.Close()
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(s, uint64(g)))
			for step := range 6000 {
				if err := anyChange(tree, rng, draw); err != nil && !errors.Is(err, op.ErrLimit) {
					t.Errorf("step %d: %v", step, err)
				}
				if n := tree.Bytes(); n > limit {
					t.Errorf("step %d: %d bytes of %d", step, n, limit)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
	mustCheck(t, tree)
}

// anyChange does one change, or a batch of them.
func anyChange(tree *Tree, rng *rand.Rand, draw func(*rand.Rand) string) (err error) {
	switch what := rng.IntN(200); {
	case what < 125:
		_, _, err = tree.Set(draw(rng), 1)
	case what < 185:
		_, _, err = tree.Delete(draw(rng))
	case what < 195:
		o, _, _ := drawOps(rng, rng.IntN(40), model{}, draw)
		err = tree.Apply(o)
	case what < 199:
		_, _, _, err = tree.Pop(rng.IntN(2) == 0)
	case rng.IntN(10) == 0:
		_, err = tree.DeleteRange(draw(rng), draw(rng), nil)
	}
	return err
}
