package pando

import (
	"errors"
	"fmt"
	"os"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/text"
)

// FileInfo is what a file says of itself in its header.
type FileInfo struct {
	Path     string        `json:"path"`
	Version  int           `json:"version"` // of the format
	Key      string        `json:"key"`     // type of keys, by kind and width: "int64", "float32", "string"
	Value    string        `json:"value"`   // type of values: "uint64", "struct{uint32,float32}", "none", "encoded string"
	Len      int           `json:"len"`     // entries
	Layout   string        `json:"layout"`  // "pairs", "apart", "text", "blocked-pairs", "blocked-apart", "compressed" or "words"
	Levels   int           `json:"levels"`  // inner levels of the tree; 0 for strings
	Fanout   int           `json:"fanout"`  // children of an inner node; 0 for strings
	Bytes    int64         `json:"bytes"`   // size of the file
	Sections []FileSection `json:"sections"`
}

// FileSection is a part of a file: docs/format.md says which there are.
type FileSection struct {
	Name     string `json:"name"`
	Offset   int64  `json:"offset"`
	Bytes    int64  `json:"bytes"`
	Checksum uint32 `json:"checksum"` // CRC-32C
}

// Inspect reads the header of a file, and checks what Open would check of it
// for any type of key and value.
func Inspect(path string) (FileInfo, error) {
	f, err := openFile(path)
	if err != nil {
		return FileInfo{}, err
	}
	defer f.Close()
	info := FileInfo{
		Path: path, Version: int(f.Version), Key: f.Key, Value: f.Value, Len: int(f.Entries), Layout: f.Layout.String(),
		Levels: int(f.Levels), Fanout: int(f.Fanout), Bytes: f.Size,
	}
	for _, s := range f.Sections {
		info.Sections = append(info.Sections, FileSection{s.Kind.String(), s.Offset, s.Bytes, s.Checksum})
	}
	return info, nil
}

// Verify reads a whole file: every checksum must be right, and keys, nodes and
// offsets must be in order. It needs no types.
func Verify(path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := snapshot.Verify(f, f.Header); err != nil {
		return f.fail(err)
	}
	block, err := f.Map(0)
	if err != nil {
		return f.fail(err)
	}
	defer block.Release()
	if err := f.checkKeys(block); err != nil {
		return f.fail(snapshot.Bad("the keys are not as they must be: " + err.Error()))
	}
	if k := f.index(snapshot.ValueOffsets); k >= 0 {
		if err := text.Open(block.Segment(k), block.Segment(k+1), block).Check(false); err != nil {
			return f.fail(snapshot.Bad("the values are not as they must be: " + err.Error()))
		}
	}
	return nil
}

// checkKeys checks the structure of whatever holds the keys.
func (f *file) checkKeys(block *arena.Block) error {
	switch f.KeyBits {
	case 32:
		return checkTree[uint32](f, block)
	case 64:
		return checkTree[uint64](f, block)
	}
	keys, err := f.openList(block)
	if err != nil {
		return err
	}
	return keys.Check()
}

func checkTree[C order.Code](f *file, block *arena.Block) error {
	tree, err := openTree[C](int(f.Entries), f.treeConfig(), block)
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
	return nil
}

// file is an open file whose header is good.
type file struct {
	*os.File
	*snapshot.Header
	path  string
	slack int // bytes that must be readable behind it
}

// openFile opens a file and checks all that can be known from its header.
func openFile(path string) (*file, error) {
	// To open a pipe may take forever: look first.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("pando: cannot open the file: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s: not a regular file", ErrFile, path)
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pando: cannot open the file: %w", err)
	}
	f := &file{File: opened, path: path}
	if err := f.readHeader(); err != nil {
		opened.Close()
		return nil, f.fail(err)
	}
	return f, nil
}

func (f *file) readHeader() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if f.Header, err = snapshot.Read(f, info.Size()); err != nil {
		return err
	}
	if bits := keyCodeBits(f.Key); bits != int(f.KeyBits) {
		return snapshot.Bad(fmt.Sprintf("the header is damaged: keys of type %q with codes of %d bits", f.Key, f.KeyBits))
	}
	return f.checkShape()
}

// index gives the number of the section of a kind, or -1.
func (f *file) index(k snapshot.Kind) int {
	for i, s := range f.Sections {
		if s.Kind == k {
			return i
		}
	}
	return -1
}

// Map maps the file: each section is a segment.
func (f *file) Map(limit int64) (*arena.Block, error) {
	var parts []arena.Part
	for _, s := range f.Sections {
		parts = append(parts, arena.Part{Offset: int(s.Offset), Size: int(s.Bytes)})
	}
	return arena.Map(f.File, f.Size, parts, f.slack, limit)
}

// fail gives an error its public name and the file's.
func (f *file) fail(err error) error {
	var bad snapshot.Bad
	var newer snapshot.Newer
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("%w: %s: %w", ErrFile, f.path, err)
	case errors.As(err, &newer):
		return fmt.Errorf("%w: %s: %w; use a newer Pando", ErrVersion, f.path, err)
	}
	return fmt.Errorf("pando: %s: %w", f.path, translate(err))
}
