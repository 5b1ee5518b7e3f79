package packed

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// Kind is the layout's name.
const Kind layout.Name = "compressed"

// The format of a tree in a file. Keys that are all equal take no room but
// their page's row in the table: 256 of them 16 bytes.
var (
	inFile = &files.Format{
		Number: 6, Name: "compressed", Version: 2, MostPerPage: 16 * files.Page,
		Sections: []files.SectionKind{layout.SectionInner, layout.SectionLeaves, pageTable, packedKeys},
	}
	pageTable  = files.SectionKind{Number: 9, Name: "page table"}   // least key, place and width of each page
	packedKeys = files.SectionKind{Number: 10, Name: "packed keys"} // the pages
)

// Layout is packed pages as a layout of numbers.
type Layout[C simd.Code] struct{}

// Kind returns the layout's name.
func (Layout[C]) Name() layout.Name { return Kind }

// Formats lists the formats of trees in files.
func (Layout[C]) Formats() []*files.Format { return []*files.Format{inFile} }

// Settle reports whether the layout is asked for by its name. Values are apart.
func (Layout[C]) Settle(asked layout.Name, _, _ int) (pairs, ok bool) { return false, asked == Kind }

// Need returns the bytes that a tree of n keys takes if no page can be packed.
func (Layout[C]) Need(n int, cfg layout.Config) (int64, error) {
	width := uint64(8 * keyBytes[C]())
	plan, err := Plan[C](n, countOf(n)*8*int(wordsOf(width))+tailBytes, implicit.ConfigOf(cfg))
	if err != nil {
		return 0, err
	}
	return arena.Need(plan.Sizes, pageMode(plan.Sizes, cfg.Pages))
}

// Least returns the bytes that a tree of n keys takes if those of a page are
// all equal.
func (Layout[C]) Least(n int, cfg layout.Config) (int64, error) {
	plan, err := Plan[C](n, tailBytes, implicit.ConfigOf(cfg))
	if err != nil {
		return 0, err
	}
	return arena.Need(plan.Sizes, pageMode(plan.Sizes, cfg.Pages))
}

// Survey returns the bytes that a tree of these sorted keys takes: the first
// and the last key of each page tell.
func (Layout[C]) Survey(src layout.Source[C], cfg layout.Config) (int64, error) {
	return Survey(src, implicit.ConfigOf(cfg))
}

// Build makes a tree.
func (Layout[C]) Build(src layout.Source[C], cfg layout.Config) (layout.Tree[C], error) {
	t, err := Build(src, implicit.ConfigOf(cfg))
	return as(t, err)
}

// as returns a tree as the interface that it implements, and nil where there is an error.
func as[C simd.Code](t *Tree[C], err error) (layout.Tree[C], error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// configOf is how a tree in a file was built.
func configOf(in layout.InFile) implicit.Config {
	c := implicit.Config{ValSize: in.ValSize, Fanout: in.Fanout}
	if c.Fanout == 0 { // 0 would mean the default
		c.Fanout = -1
	}
	return c
}

// Outline returns the segments that a tree in a file must have.
func (Layout[C]) Outline(n int, in layout.InFile) (layout.Outline, error) {
	return Plan[C](n, int(in.Sections[3]), configOf(in))
}

// Open makes a tree over a block that holds one.
func (Layout[C]) Open(n int, in layout.InFile, b *arena.Block) (layout.Tree[C], error) {
	t, err := Open[C](n, configOf(in), b)
	return as(t, err)
}

// Format returns the format of the tree in a file.
func (t *Tree[C]) Format() *files.Format { return inFile }

// Shape returns the tree's shape for a file's header.
func (t *Tree[C]) Shape() layout.Shape {
	return layout.Shape{Fanout: t.top.Shape().Fanout, Levels: t.Depth()}
}
