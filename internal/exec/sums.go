package exec

import (
	"sync"

	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/vector"
)

// sums is how a GPU sums up values: one call at a time, since each takes all of
// its memory's speed.
type sums struct {
	sync.Mutex
	on     vector.OnDevice
	params kernel.Params
	closed bool
}

// Summarize sums up ranges of values that the GPU holds, and reports whether it
// could.
func (g *GPU[C]) Summarize(t vector.Type, ranges []vector.Range, out []vector.Summary) bool {
	tree, can := g.image.Resident.(layout.ValueAdder)
	if !can || !g.Whole() || t.Size != g.image.ValSize {
		return false
	}
	s := &g.sums
	s.Lock()
	defer s.Unlock()
	if s.closed || g.given() {
		return false
	}
	if err := g.summarize(tree, t, ranges, out); err != nil {
		g.fail(err)
		return false
	}
	return true
}

// summarize does so with everything to itself.
func (g *GPU[C]) summarize(tree layout.ValueAdder, t vector.Type, ranges []vector.Range, out []vector.Summary) (err error) {
	s := &g.sums
	if s.on.Stream == nil {
		s.on.Device, s.on.Source = g.dev, kernel.FrozenVectors
		if s.on.Stream, err = g.dev.NewStream(); err != nil {
			return err
		}
	}
	return s.on.Sum(t, ranges, func(set *kernel.Set, k simd.Kind, u *kernel.Units, to kernel.Parts) error {
		return tree.SumValues(&layout.ValueSum{Set: set, Stream: s.on.Stream, Params: &s.params, Kind: k, Units: u, To: to})
	}, out)
}

// close waits for what is under way; nothing begins later.
func (s *sums) close() {
	s.Lock()
	s.closed = true
	s.Unlock()
}
