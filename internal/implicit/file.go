package implicit

import (
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/simd"
)

// Outline is what the memory of a tree must be like.
type Outline struct {
	Sizes  []int // of its segments: inner nodes, leaves and, if values have one, their column
	Slack  int   // bytes that must be readable behind them
	Fanout int
	Levels int
}

// Plan gives the outline of a tree of n keys.
func Plan[C simd.Code](n int, cfg Config) (Outline, error) {
	t, err := shape[C](n, cfg)
	if err != nil {
		return Outline{}, err
	}
	sizes := t.segments()
	return Outline{Sizes: sizes, Slack: t.slack(sizes), Fanout: t.cfg.Fanout, Levels: t.Levels}, nil
}

// Open makes a tree of n keys over a block that holds one already, whose first
// segments are as Plan has them; the tree is released with it. Nothing of it
// is read: whatever the bytes are, no search leaves the block. Check says
// whether they are a tree.
func Open[C simd.Code](n int, cfg Config, b *arena.Block) (*Tree[C], error) {
	t, err := shape[C](n, cfg)
	if err != nil {
		return nil, err
	}
	for i, size := range t.segments() {
		if got := len(b.Segment(i)); got != size {
			return nil, fmt.Errorf("segment %d of a tree of %d keys has %d bytes, want %d", i, n, got, size)
		}
	}
	t.point(b)
	return t, nil
}

// Segments gives the memory of inner nodes, leaves and, if values have one,
// their column.
func (t *Tree[C]) Segments() [][]byte {
	var out [][]byte
	for i := range t.segments() {
		out = append(out, t.block.Segment(i))
	}
	return out
}
