package implicit

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// The format of a tree in a file.
var (
	filePairs = &files.Format{Number: 1, Name: "pairs", Version: 1, Sections: sections, Pairs: true}
	fileApart = &files.Format{Number: 2, Name: "apart", Version: 1, Sections: sections}
	sections  = []files.SectionKind{layout.SectionInner, layout.SectionLeaves}
)

// Format returns the format of the tree in a file.
func (t *Tree[C]) Format() *files.Format {
	if t.cfg.Leaves == Pairs {
		return filePairs
	}
	return fileApart
}

// Shape returns the tree's shape for a file's header.
func (t *Tree[C]) Shape() layout.Shape {
	return layout.Shape{Fanout: t.cfg.Fanout, Levels: t.Levels}
}

// Plan returns the outline of a tree of n keys.
func Plan[C simd.Code](n int, cfg Config) (layout.Outline, error) {
	t, err := shape[C](n, cfg)
	if err != nil {
		return layout.Outline{}, err
	}
	return t.outline(), nil
}

// outline returns the segments that the tree must have.
func (t *Tree[C]) outline() layout.Outline {
	sizes := t.segments()
	return layout.Outline{Sizes: sizes, Slack: t.slack(sizes), Shape: t.Shape()}
}

// Open makes a tree of n keys over a block that holds one already, whose first
// segments are as Plan has them; the tree is released with it. Nothing of it is
// read: even if the bytes are damaged, no search leaves the block. Check
// reports whether they are a tree.
func Open[C simd.Code](n int, cfg Config, b *arena.Block) (*Tree[C], error) {
	t, err := shape[C](n, cfg)
	if err != nil {
		return nil, err
	}
	plan := t.outline()
	if err := plan.CheckSegments(b); err != nil {
		return nil, err
	}
	t.point(b)
	return t, nil
}

// Segments returns the memory of inner nodes, leaves and, if values have one,
// their column.
func (t *Tree[C]) Segments() [][]byte {
	var out [][]byte
	for i := range t.segments() {
		out = append(out, t.block.Segment(i))
	}
	return out
}
