package packed

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Check walks through the whole tree and returns an error for the first thing
// that is not as it must be: table, order, separators, padding, top tree.
// Values can be anything.
func (t *Tree[C]) Check() error {
	words := uint64(0)
	last := C(0) // greatest key so far
	for p, e := range t.table() {
		if e.At>>8 != words {
			return fmt.Errorf("page %d begins at word %d, want %d", p, e.At>>8, words)
		}
		width := e.At & 0xff
		if width != simd.PackedWidth[C](e.At) {
			return fmt.Errorf("page %d has keys of %d bits", p, width)
		}
		if words += wordsOf(width); words > t.pages.End {
			return fmt.Errorf("page %d ends at word %d of %d", p, words, t.pages.End)
		}
		greatest, err := t.checkPage(p, e, last)
		if err != nil {
			return err
		}
		last = greatest
	}
	if words != t.pages.End {
		return fmt.Errorf("pages end at word %d of %d", words, t.pages.End)
	}
	if err := allZero(t.block.Segment(3)[8*words:]); err != nil {
		return fmt.Errorf("behind the last page: %w", err)
	}
	return t.checkTop()
}

// checkPage looks at the keys of a page; last is the greatest before them.
func (t *Tree[C]) checkPage(p int, e simd.PackedEntry, last C) (greatest C, err error) {
	if uint64(C(e.Min)) != e.Min {
		return 0, fmt.Errorf("page %d: the least key, %d, is beyond any key", p, e.Min)
	}
	if t.length == 0 && e.Min != 0 {
		return 0, fmt.Errorf("the page of an empty tree has key %d", e.Min)
	}
	var keys [simd.PackedPage]C
	simd.Unpack(&t.pages, keys[:], p*simd.PackedPage)
	if C(e.Min) < last || keys[0] != C(e.Min) {
		return 0, fmt.Errorf("page %d begins with key %d, its least is %d, the one before has %d", p, keys[0], e.Min, last)
	}
	for i := 1; i < len(keys); i++ {
		if keys[i] < keys[i-1] { // a sum that wraps around is out of order too
			return 0, fmt.Errorf("keys %d and %d of page %d are out of order: %d, %d", i-1, i, p, keys[i-1], keys[i])
		}
	}
	greatest = keys[len(keys)-1]
	if want := widthOf(uint64(greatest) - e.Min); e.At&0xff != want {
		return 0, fmt.Errorf("page %d has keys of %d bits, want %d", p, e.At&0xff, want)
	}
	if n := t.length - p*simd.PackedPage; n > 0 && n < len(keys) && keys[n-1] != greatest {
		return 0, fmt.Errorf("the last page is padded with %d, want %d", greatest, keys[n-1])
	}
	return greatest, t.checkRest(p, e, &keys)
}

// checkRest looks at the separators of a page, and at the bytes behind its keys.
func (t *Tree[C]) checkRest(p int, e simd.PackedEntry, keys *[simd.PackedPage]C) error {
	width := e.At & 0xff
	page := t.block.Segment(3)[e.At>>8*8:][:wordsOf(width)*8]
	if width == 0 {
		return nil
	}
	for g := range simd.PackedGroups {
		got := C(e.Min + simd.Difference(unsafe.Pointer(&page[0]), width, g))
		if want := keys[g*simd.PackedGroup+simd.PackedGroup-1]; got != want {
			return fmt.Errorf("page %d: separator %d is %d, want %d", p, g, got, want)
		}
	}
	const all = simd.PackedPage + simd.PackedGroups
	if err := allZero(page[all*width/8:]); err != nil { // whole bytes: 272 is a multiple of 8
		return fmt.Errorf("behind the keys of page %d: %w", p, err)
	}
	return nil
}

func allZero(b []byte) error {
	for i, v := range b {
		if v != 0 {
			return fmt.Errorf("byte %d is %d, want 0", i, v)
		}
	}
	return nil
}

// checkTop compares the top tree with the pages.
func (t *Tree[C]) checkTop() error {
	if err := t.top.Check(); err != nil {
		return fmt.Errorf("top tree: %w", err)
	}
	for p := range t.count {
		if got, want := t.top.Key(p), t.Key((p+1)*simd.PackedPage-1); got != want {
			return fmt.Errorf("top tree: key %d is %d, page %d ends with %d", p, got, p, want)
		}
	}
	return nil
}
