package implicit

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Kind is the layout's name: a tree of it calls itself pairs or apart.
const Kind layout.Name = "implicit"

// Layout is the implicit tree as a layout of numbers.
type Layout[C simd.Code] struct{}

// Kind returns the layout's name.
func (Layout[C]) Name() layout.Name { return Kind }

// Formats lists the formats of trees in files.
func (Layout[C]) Formats() []*files.Format { return []*files.Format{filePairs, fileApart} }

// Settle reports whether the layout serves the request, and how it holds
// values: beside their keys wherever both are equally wide.
func (Layout[C]) Settle(asked layout.Name, n, valSize int) (pairs, ok bool) {
	fit := PairsUnder[C](n, valSize)
	switch asked {
	case layout.Auto, Kind:
		return fit, true
	case layout.Pairs:
		return true, fit
	case layout.Apart:
		return false, true
	}
	return false, false
}

// PairsUnder reports whether n keys can lie beside their values of valSize
// bytes.
func PairsUnder[C simd.Code](n, valSize int) bool { return valSize == keyBytes[C]() && PairsFit[C](n) }

// ConfigOf translates a layout's configuration to this package's.
func ConfigOf(cfg layout.Config) Config {
	c := Config{ValSize: cfg.ValSize, Pages: cfg.Pages, Limit: cfg.Limit, Workers: cfg.Workers, Stop: cfg.Stop}
	if cfg.Pairs {
		c.Leaves = Pairs
	}
	return c
}

// Need returns the bytes that a tree of n keys takes.
func (Layout[C]) Need(n int, cfg layout.Config) (int64, error) { return Need[C](n, ConfigOf(cfg)) }

// Build makes a tree.
func (Layout[C]) Build(src layout.Source[C], cfg layout.Config) (layout.Tree[C], error) {
	t, err := Build(src, ConfigOf(cfg))
	return as(t, err)
}

// as returns a tree as the interface that it implements, and nil where there is an error.
func as[C simd.Code](t *Tree[C], err error) (layout.Tree[C], error) {
	switch {
	case err != nil:
		return nil, err
	case t.cfg.Leaves == Pairs:
		return Paired[C]{t}, nil
	}
	return t, nil
}

// inFile is how a tree in a file was built.
func inFile(in layout.InFile) Config {
	c := Config{ValSize: in.ValSize, Fanout: in.Fanout}
	if c.Fanout == 0 { // 0 would mean the default
		c.Fanout = -1
	}
	if in.Format.Pairs {
		c.Leaves = Pairs
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
