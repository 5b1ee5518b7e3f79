package index

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/strlist"
)

// File is an open file whose header is good.
type File struct {
	*os.File
	*snapshot.Header
	Path  string
	slack int       // bytes that must be readable behind it
	rest  io.Reader // all of it, where it is not the system's to map; read once
}

// OpenFile opens a file and checks all that can be known from its header.
func OpenFile(path string) (*File, error) {
	// To open a pipe may take forever: look first.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("pando: cannot open the file: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, Problem(ErrFile, "%s: not a regular file", path)
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pando: cannot open the file: %w", err)
	}
	f := &File{File: opened, Path: path}
	if err := f.readHeader(); err != nil {
		opened.Close()
		return nil, f.fail(err)
	}
	return f, nil
}

func (f *File) readHeader() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.takeHeader(f.File, info.Size())
}

// takeHeader reads the header of a file of size bytes, below 0 where that is not
// known.
func (f *File) takeHeader(r io.ReaderAt, size int64) (err error) {
	if f.Header, err = snapshot.Read(r, size, Formats()); err != nil {
		return err
	}
	if f.Size > math.MaxInt || f.Entries > math.MaxInt {
		return Problem(ErrTooLarge, "%d entries in %d bytes are more than this machine can address", f.Entries, f.Size)
	}
	if bits := keyCodeBits(f.Key); bits != int(f.KeyBits) {
		return snapshot.Bad(fmt.Sprintf("the header is damaged: keys of type %q with codes of %d bits", f.Key, f.KeyBits))
	}
	return f.checkShape()
}

// Verify reads the whole file: every checksum must be right, and keys, nodes
// and offsets must be in order.
func (f *File) Verify() error {
	if err := snapshot.Verify(f, f.Header); err != nil {
		return f.fail(err)
	}
	block, err := f.mapped(0)
	if err != nil {
		return f.fail(err)
	}
	defer block.Release()
	if err := f.checkKeys(block); err != nil {
		return f.fail(snapshot.Bad("the keys are not as they must be: " + err.Error()))
	}
	if k := f.index(snapshot.ValueOffsets); k >= 0 {
		if err := strlist.Open(block.Segment(k), block.Segment(k+1), block).Check(false); err != nil {
			return f.fail(snapshot.Bad("the values are not as they must be: " + err.Error()))
		}
	}
	return nil
}

// checkKeys checks the structure of the layout that holds the keys.
func (f *File) checkKeys(block *arena.Block) error {
	switch f.KeyBits {
	case 32:
		return checkNumbers[uint32](f, block)
	case 64:
		return checkNumbers[uint64](f, block)
	}
	tree, err := f.openStrings(block)
	if err != nil {
		return err
	}
	return tree.Check()
}

func checkNumbers[C order.Code](f *File, block *arena.Block) error {
	tree, err := openNumbers[C](f, block)
	if err != nil {
		return err
	}
	if err := tree.Check(); err != nil || f.Entries == 0 {
		return err
	}
	// Narrow types leave the upper bits of their codes alone.
	if last := uint64(tree.Key(int(f.Entries) - 1)); last>>keyWidth(f.Key) != 0 {
		return fmt.Errorf("the greatest has code %#x, too much for type %s", last, f.Key)
	}
	for _, g := range order.Gaps(f.Key) {
		first, _ := tree.Seek(C(g.First))
		if first < int(f.Entries) && uint64(tree.Key(first)) <= g.Last {
			return fmt.Errorf("entry %d has code %#x, which no key of type %s has", first, tree.Key(first), f.Key)
		}
	}
	return nil
}

// tree is how the file describes the tree in it.
func (f *File) tree() layout.InFile {
	in := layout.InFile{Format: f.Format, Shape: layout.Shape{Fanout: int(f.Fanout), Levels: int(f.Levels), PageLevels: int(f.PageLevels)}}
	if f.Format.Pairs || f.index(snapshot.Column) >= 0 {
		in.ValSize = int(f.ValSize)
	}
	for _, s := range f.Sections {
		in.Sections = append(in.Sections, s.Bytes)
	}
	return in
}

// checkShape compares the sections of a tree with those that entries and format
// demand.
func (f *File) checkShape() (err error) {
	var plan layout.Outline
	in, n := f.tree(), int(f.Entries)
	switch f.KeyBits {
	case 32:
		plan, err = NumbersIn[uint32](f.Format).Outline(n, in)
	case 64:
		plan, err = NumbersIn[uint64](f.Format).Outline(n, in)
	default:
		plan, err = StringsIn(f.Format).Outline(n, in)
	}
	if err != nil {
		return snapshot.Bad("the header is damaged: " + err.Error())
	}
	if in.Shape != plan.Shape {
		return snapshot.Bad(fmt.Sprintf("the header is damaged: %d levels of fanout %d for %d entries", f.Levels, f.Fanout, f.Entries))
	}
	for i, size := range plan.Sizes {
		if s := f.Sections[i]; size >= 0 && s.Bytes != int64(size) {
			return snapshot.Bad(fmt.Sprintf("the section table is damaged: section %v has %d bytes, it must have %d", s.Kind, s.Bytes, size))
		}
	}
	f.slack = plan.Slack
	return nil
}

// openNumbers makes a tree over the file's sections.
func openNumbers[C order.Code](f *File, block *arena.Block) (layout.Tree[C], error) {
	tree, err := NumbersIn[C](f.Format).Open(int(f.Entries), f.tree(), block)
	if err != nil {
		return nil, snapshot.Bad(err.Error())
	}
	return tree, nil
}

// openStrings makes a tree of the strings that the file holds.
func (f *File) openStrings(block *arena.Block) (layout.StringTree, error) {
	tree, err := StringsIn(f.Format).Open(int(f.Entries), f.tree(), block)
	if err != nil {
		return nil, snapshot.Bad(err.Error())
	}
	return tree, nil
}

// index returns the number of the section of a kind, or -1.
func (f *File) index(k snapshot.Kind) int {
	for i, s := range f.Sections {
		if s.Kind == k {
			return i
		}
	}
	return -1
}

// mapped maps the file, or reads it from where it comes: each section is a
// segment.
func (f *File) mapped(limit int64) (*arena.Block, error) {
	var parts []arena.Part
	for _, s := range f.Sections {
		parts = append(parts, arena.Part{Offset: int(s.Offset), Size: int(s.Bytes)})
	}
	if f.rest != nil {
		return f.load(parts, limit)
	}
	return arena.Map(f.File, f.Size, parts, f.slack, limit)
}

// fail adds the file's name and the cause to an error.
func (f *File) fail(err error) error {
	var bad snapshot.Bad
	var newer snapshot.Newer
	switch {
	case errors.As(err, &bad):
		return Problem(ErrFile, "%s: %w", f.Path, err)
	case errors.As(err, &newer):
		return Problem(ErrVersion, "%s: %w; use a newer Pando", f.Path, err)
	case CauseOf(err) != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return fmt.Errorf("pando: %s: %w", f.Path, err)
}
