package radix

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// fewAges makes ages come to their end all the time.
func fewAges(t *testing.T) {
	old := ageHalf
	ageHalf = 16
	t.Cleanup(func() { ageHalf = old })
}

// Snapshots keep what they have, and nothing that is not theirs is kept, when ages
// are dealt out anew.
func TestAgesEnd(t *testing.T) {
	fewAges(t)
	rounds := 200
	if !seed.Long() {
		rounds = 40
	}
	for name, draw := range keyMakers {
		t.Run(name, func(t *testing.T) {
			rng := seed.Rand(t)
			tree, m := New(0), model{}
			var snaps []*Snapshot
			var kept []model
			for range rounds {
				for range rng.IntN(20) {
					step1(t, rng, tree, m, draw)
				}
				if rng.IntN(2) == 0 { // a fork, if there is a snapshot
					o, _, _ := drawOps(rng, rng.IntN(10), m, draw)
					if err := tree.Apply(o); err != nil {
						t.Fatal(err)
					}
				}
				snaps, kept = append(snaps, mustSnapshot(t, tree)), append(kept, maps.Clone(m))
				mustCheck(t, tree)
				for len(snaps) > rng.IntN(7) {
					i := rng.IntN(len(snaps))
					compare(t, rng, snaps[i], kept[i], draw)
					snaps[i].Close()
					snaps, kept = slices.Delete(snaps, i, i+1), slices.Delete(kept, i, i+1)
				}
			}
			for _, s := range snaps {
				s.Close()
			}
			if tree.Kept() != 0 {
				t.Errorf("%d bytes kept for no snapshot", tree.Kept())
			}
			empty(t, tree, m)
			tree.Close()
		})
	}
}

// There may be only so many snapshots at a time.
func TestTooManySnapshots(t *testing.T) {
	fewAges(t)
	tree := New(0)
	defer tree.Close()
	tree.Set("a", 1)
	for i := range ageHalf {
		s, err := tree.Snapshot()
		if (err == nil) != (i < ageHalf/2) || err != nil && !errors.Is(err, op.ErrLimit) {
			t.Fatalf("snapshot %d: %v", i, err)
		}
		if err == nil {
			defer s.Close()
		}
	}
	mustCheck(t, tree)
}
