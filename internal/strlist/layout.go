package strlist

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/snapshot"
)

// The format of a tree in a file.
var (
	inFile = &snapshot.Format{
		Number: 3, Name: "apart", Version: 1, Strings: true,
		Sections: []snapshot.Kind{SectionOffsets, layout.SectionKeyBytes},
	}
	// SectionOffsets is where each string begins, and where the last ends.
	SectionOffsets = snapshot.Kind{Number: 5, Name: "key offsets"}
)

// Layout is the sorted list as a layout of strings.
type Layout struct{}

// Kind returns the layout's name: values lie apart from keys.
func (Layout) Kind() layout.Kind { return layout.Apart }

// Formats lists the formats of lists in files.
func (Layout) Formats() []*snapshot.Format { return []*snapshot.Format{inFile} }

// Serves reports whether the layout is asked for: by its name, as the layout
// that is nothing but its keys in order, or as one that holds whatever others
// cannot.
func (Layout) Serves(asked layout.Kind) bool {
	return asked == layout.Apart || asked == "implicit" || asked == layout.Auto
}

// Need returns the bytes that a list of these strings takes.
func (Layout) Need(keys []string, _ layout.Config) (int64, error) { return Need(keys), nil }

// Build makes a list.
func (Layout) Build(keys []string, order []int, _ layout.Config) (layout.StringTree, error) {
	return Tree{Build(keys, order)}, nil
}

// Outline returns the segments that a list in a file must have.
func (Layout) Outline(n int, _ layout.InFile) (layout.Outline, error) {
	return layout.Outline{Sizes: []int{8 * (n + 1), -1}}, nil
}

// Open makes a list over a block that holds one.
func (Layout) Open(_ int, _ layout.InFile, b *arena.Block) (layout.StringTree, error) {
	return Tree{Open(b.Segment(0), b.Segment(1), b)}, nil
}

// Tree is a sorted list that is searched by halving.
type Tree struct{ *List }

// Find sets ranks[i] to the first string that is keys[i], or -1.
func (t Tree) Find(keys []string, ranks []int) {
	for i, k := range keys {
		r, equal := t.Seek(k)
		if !equal {
			r = -1
		}
		ranks[i] = r
	}
}

// Rank sets ranks[i] to the number of strings below keys[i].
func (t Tree) Rank(keys []string, ranks []int) {
	for i, k := range keys {
		ranks[i], _ = t.Seek(k)
	}
}

// Stats says how large the list is.
func (t Tree) Stats() layout.Stats {
	return layout.Stats{Kind: layout.Apart, LeafBytes: t.Bytes(), TotalBytes: t.Bytes(), OnHeap: t.mem == nil}
}

// Format returns the format of the list in a file.
func (t Tree) Format() *snapshot.Format { return inFile }

// Shape is that of strings: the header says nothing of them.
func (t Tree) Shape() layout.Shape { return layout.Shape{} }

// Segments returns the memory of offsets and strings.
func (t Tree) Segments() [][]byte {
	offsets, data := t.List.Segments()
	return [][]byte{offsets, data}
}

// Check returns an error for the first string that is not as it must be.
func (t Tree) Check() error { return t.List.Check(true) }
