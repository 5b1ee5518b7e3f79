package words

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
)

// Segments returns the memory of the list: inner nodes and leaves of the root's
// tree, directory, pages, bytes.
func (t *Tree) Segments() [][]byte {
	return append(t.root.Segments(), t.memory, t.pages, t.bytes)
}

// Open makes a list of n strings over a block whose first segments hold one.
// Nothing is read but the first line of the directory: even if the bytes are
// damaged, no search leaves the block. Check says whether they are a list.
func Open(n int, block *arena.Block) (*Tree, error) {
	t := &Tree{n: n, count: pagesFor(n), pages: block.Segment(3), bytes: block.Segment(4), blocks: []*arena.Block{block}}
	if want := t.count * pageBytes; len(t.pages) != want {
		return nil, fmt.Errorf("pages of %d strings have %d bytes, want %d", n, len(t.pages), want)
	}
	d, distinct, ok := readDirectory(block.Segment(2), t.count)
	if !ok {
		return nil, fmt.Errorf("the directory of %d pages is not one", t.count)
	}
	t.directory = d
	root, err := implicit.Open[uint64](distinct, rootConfig(0), block)
	if err != nil {
		return nil, err
	}
	t.root = root
	t.aim()
	return t, nil
}

// Check returns an error for the first thing that is not as Build makes it of
// the strings there.
func (t *Tree) Check() error {
	if err := t.checkBytes(); err != nil {
		return err
	}
	keys := make([]string, t.n)
	for i := range keys {
		keys[i] = t.view(i)
	}
	if !slices.IsSorted(keys) {
		return errors.New("the strings are not in order")
	}
	again, err := Build(keys, nil, Config{})
	if err != nil {
		return err
	}
	defer again.Release()
	names := []string{"inner nodes", "leaves", "directory", "pages", "bytes"}
	for i, want := range again.Segments() {
		if got := t.Segments()[i]; !bytes.Equal(got, want) {
			return fmt.Errorf("the %s differ from what the strings make, from byte %d on", names[i], firstDifference(got, want))
		}
	}
	return nil
}

// checkBytes reports whether the pages' strings follow each other from the first
// byte to the last.
func (t *Tree) checkBytes() error {
	end := uint64(0)
	for p := range t.count {
		pg := t.page(p)
		if pg.Base != end || pg.offsets[0] != 0 {
			return fmt.Errorf("page %d begins at byte %d, want %d", p, pg.Base+uint64(pg.offsets[0]), end)
		}
		if !slices.IsSorted(pg.offsets[:]) || pg.End < pg.offsets[pageEntries-1] {
			return fmt.Errorf("offsets of page %d are not in order", p)
		}
		if end += uint64(pg.End); end > uint64(len(t.bytes)) {
			return fmt.Errorf("page %d ends at byte %d of %d", p, end, len(t.bytes))
		}
	}
	if end != uint64(len(t.bytes)) {
		return fmt.Errorf("the last string ends at byte %d of %d", end, len(t.bytes))
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
