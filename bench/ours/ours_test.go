package ours

import (
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/contest/contesttest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// Ratios are relative to the layout and the pages that Pando uses by default.
func TestReferenceIsTheDefault(t *testing.T) {
	s := contesttest.Session(t, 31)
	d, err := data.NewDataset[uint64](s, 1<<18)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []peers.Maker[uint64]{Layouts[uint64]()[0], Pages[uint64]()[0]} {
		plain, err := Make[uint64](contest.Pando).Build(d)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := m.Build(d)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := plain.(FrozenMap[uint64]).Ix.Stats(), ref.(FrozenMap[uint64]).Ix.Stats(); a != b {
			t.Errorf("%s is not what Pando does by itself: %+v, %+v", m.Name, b, a)
		}
		plain.Close()
		ref.Close()
	}
}
