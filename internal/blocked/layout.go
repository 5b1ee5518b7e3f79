package blocked

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
)

// Kind is the layout's name.
const Kind layout.Kind = "blocked"

// The format of a tree in a file.
var (
	filePairs = &snapshot.Format{Number: 4, Name: "blocked", Version: 2, Sections: sections, Pairs: true, Paged: true}
	fileApart = &snapshot.Format{Number: 5, Name: "blocked", Version: 2, Sections: sections, Paged: true}
	sections  = []snapshot.Kind{layout.SectionInner, layout.SectionLeaves}
)

// Layout is the blocked tree as a layout of numbers.
type Layout[C simd.Code] struct{}

// Kind returns the layout's name.
func (Layout[C]) Kind() layout.Kind { return Kind }

// Formats lists the formats of trees in files.
func (Layout[C]) Formats() []*snapshot.Format { return []*snapshot.Format{filePairs, fileApart} }

// Settle reports whether the layout is asked for by its name, and how it holds
// values: beside their keys wherever both are equally wide.
func (Layout[C]) Settle(asked layout.Kind, n, valSize int) (pairs, ok bool) {
	return implicit.PairsUnder[C](n, valSize), asked == Kind
}

// config translates a layout's configuration to this package's.
func config(cfg layout.Config) Config { return Config{Config: implicit.ConfigOf(cfg)} }

// Need returns the bytes that a tree of n keys takes.
func (Layout[C]) Need(n int, cfg layout.Config) (int64, error) { return Need[C](n, config(cfg)) }

// Build makes a tree.
func (Layout[C]) Build(src layout.Source[C], cfg layout.Config) (layout.Tree[C], error) {
	t, err := Build(src, config(cfg))
	return as(t, err)
}

// as returns a tree as the interface that it implements, and nil where there is an error.
func as[C simd.Code](t *Tree[C], err error) (layout.Tree[C], error) {
	switch {
	case err != nil:
		return nil, err
	case t.leaves.Leaf() == implicit.Pairs:
		return Paired[C]{t}, nil
	}
	return t, nil
}

// inFile is how a tree in a file was built.
func inFile(in layout.InFile) Config {
	c := Config{Config: implicit.Config{ValSize: in.ValSize}, Geometry: Geometry{P: in.PageLevels}}
	if c.P == 0 { // 0 would mean the default
		c.P = -1
	}
	if in.Format.Pairs {
		c.Leaves = implicit.Pairs
	}
	return c
}

// Outline returns the segments that a tree in a file must have.
func (Layout[C]) Outline(n int, in layout.InFile) (layout.Outline, error) {
	return Plan[C](n, inFile(in))
}

// Open makes a tree over a block that holds one.
func (Layout[C]) Open(n int, in layout.InFile, b *arena.Block) (layout.Tree[C], error) {
	t, err := Open[C](n, inFile(in), b)
	return as(t, err)
}

// Format returns the format of the tree in a file.
func (t *Tree[C]) Format() *snapshot.Format {
	if t.leaves.Leaf() == implicit.Pairs {
		return filePairs
	}
	return fileApart
}

// Shape returns the tree's shape for a file's header.
func (t *Tree[C]) Shape() layout.Shape {
	return layout.Shape{Fanout: 1 << t.geo.L, Levels: len(t.steps), PageLevels: t.geo.P}
}
