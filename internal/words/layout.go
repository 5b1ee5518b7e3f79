package words

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/snapshot"
)

// Kind is the layout's name, which it shares with that of compressed numbers.
const Kind layout.Kind = "compressed"

// The format of a tree in a file.
var (
	inFile = &snapshot.Format{
		Number: 7, Name: "compressed", Version: 2, Strings: true,
		Sections: []snapshot.Kind{layout.SectionInner, layout.SectionLeaves, directorySection, pageSection, layout.SectionKeyBytes},
	}
	directorySection = snapshot.Kind{Number: 11, Name: "directory"}  // programs and links above the pages
	pageSection      = snapshot.Kind{Number: 12, Name: "word pages"} // partial keys and offsets
)

// Layout is strings by partial keys as a layout of strings.
type Layout struct{}

// Kind returns the layout's name.
func (Layout) Kind() layout.Kind { return Kind }

// Formats lists the formats of trees in files.
func (Layout) Formats() []*snapshot.Format { return []*snapshot.Format{inFile} }

// Serves reports whether the layout is asked for: by its name, or as the best.
func (Layout) Serves(asked layout.Kind) bool { return asked == Kind || asked == layout.Auto }

func config(cfg layout.Config) Config {
	return Config{Pages: cfg.Pages, Limit: cfg.Limit, Beside: cfg.Beside, Workers: cfg.Workers, Stop: cfg.Stop}
}

// Need returns the bytes that a tree of these strings takes at least.
func (Layout) Need(keys []string, cfg layout.Config) (int64, error) { return Need(keys, config(cfg)) }

// Build makes a tree.
func (Layout) Build(keys []string, order []int, cfg layout.Config) (layout.StringTree, error) {
	t, err := Build(keys, order, config(cfg))
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Outline returns what the memory of a tree in a file must be like: how large
// the directory and its tree are shows when it is opened.
func (Layout) Outline(n int, _ layout.InFile) (layout.Outline, error) {
	return layout.Outline{Sizes: []int{-1, -1, -1, pagesFor(n) * pageBytes, -1}}, nil
}

// Open makes a tree over a block that holds one.
func (Layout) Open(n int, _ layout.InFile, b *arena.Block) (layout.StringTree, error) {
	t, err := Open(n, b)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Format returns the format of the tree in a file.
func (t *Tree) Format() *snapshot.Format { return inFile }

// Shape is that of strings: the header says nothing of them.
func (t *Tree) Shape() layout.Shape { return layout.Shape{} }
