package index

import (
	"errors"
	"io"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/strlist"
)

// Open makes an index of a file. The file may be closed afterwards.
func Open(f *File, key KeyType, val *ValueType, cfg Config, codec *Codec) (*Index, error) {
	if err := suits(f, key, val, codec); err != nil {
		return nil, err
	}
	if cfg.Verified && f.rest == nil {
		if err := files.Verify(f.File, f.Header); err != nil {
			return nil, f.fail(err)
		}
	}
	block, err := f.mapped(cfg.Bound())
	if err != nil {
		return nil, f.fail(err)
	}
	if cfg.Verified && f.File == nil {
		if err := f.verifyLoaded(block); err != nil {
			block.Release()
			return nil, f.fail(err)
		}
	}
	ix := newIndex(int(f.Entries), key, val, cfg, codec)
	if cfg.Note == "" {
		ix.note = f.Note
	}
	if err := ix.open(f, block, cfg); err != nil {
		block.Release()
		return nil, err
	}
	return ix, nil
}

// suits returns an error for a file that holds other keys or values.
func suits(f *File, key KeyType, val *ValueType, codec *Codec) error {
	value := val.Name()
	switch {
	case f.Key != key.Name || f.Value != value:
		return Problem(ErrType, "%s has keys of type %s and values of type %s; it was opened for %s and %s", f.Path, f.Key, f.Value, key.Name, value)
	case f.ValSize != val.fileSize():
		return Problem(ErrType, "%s has values of type %s with %d bytes each; on this machine they have %d", f.Path, f.Value, f.ValSize, val.fileSize())
	case codec == nil && !val.free:
		return Problem(ErrValues, "%s has values of type %s; give Open the option Values", f.Path, f.Value)
	}
	return nil
}

// open makes the index over the mapped file.
func (ix *Index) open(f *File, block *arena.Block, cfg Config) error {
	e, kind, err := f.engine(block, ix.key, cfg)
	if err != nil {
		return f.fail(err)
	}
	if tree := e.Body().Stats().Kind; cfg.Layout != layout.Auto && cfg.Layout != kind && cfg.Layout != tree && !f.servesStrings(cfg.Layout) {
		return Problem(ErrLayout, "%s has layout %v, not %v; leave Layout out", f.Path, f.Format, cfg.Layout)
	}
	ix.use(e)
	if ix.holder == nil {
		ix.values.mapped(f, block, ix.codec)
		ix.values.fetchedBy(ix.Engine.Body())
	}
	ix.describe(cfg)
	s := &ix.stats
	s.Pages, s.HeapBytes, s.TotalBytes = arena.Small, 0, f.Size
	s.ValueBytes += f.valueBytes()
	if cfg.Device.Kind == Auto {
		s.Device, s.Reason = OnCPU, reasonFile
		return nil
	}
	return ix.run(cfg)
}

// engine makes an engine over the mapped file, and returns its layout's name.
func (f *File) engine(block *arena.Block, key KeyType, cfg Config) (Engine, layout.Name, error) {
	switch f.KeyBits {
	case 32:
		tree, err := openNumbers[uint32](f, block)
		if err != nil {
			return nil, "", err
		}
		return newNumbers(tree, key.Type, f.tree().ValSize, cfg), NumbersIn[uint32](f.Format).Name(), nil
	case 64:
		tree, err := openNumbers[uint64](f, block)
		if err != nil {
			return nil, "", err
		}
		return newNumbers(tree, key.Type, f.tree().ValSize, cfg), NumbersIn[uint64](f.Format).Name(), nil
	}
	tree, err := f.openStrings(block)
	if err != nil {
		return nil, "", err
	}
	return newTexts(tree, cfg), StringsIn(f.Format).Name(), nil
}

// servesStrings reports whether strings of a layout that is asked for lie as
// those of the file do: it has more than one name.
func (f *File) servesStrings(asked layout.Name) bool {
	return f.Format.Strings && StringsIn(f.Format).Serves(asked)
}

// mapped makes the values those of a file: as they lie there, or by a codec. As
// many as there are entries, also where a value takes no memory.
func (s *Values) mapped(f *File, block *arena.Block, codec *Codec) {
	if k := f.index(files.ValueOffsets); k >= 0 {
		list := strlist.Open(block.Segment(k), block.Segment(k+1), block)
		if codec.plain {
			s.list = list
		} else {
			s.coded = &coded{list: list, decode: codec.Decode, path: f.Path}
		}
	} else if k := f.index(files.Rows); k >= 0 {
		s.rows = s.Part(s.columnIn(block.Segment(k)), 0, int(f.Entries))
	} else {
		s.rows = s.Zeros(int(f.Entries))
	}
}

// valueBytes returns the size of values outside of the tree.
func (f *File) valueBytes() (n int64) {
	for _, s := range f.Sections {
		switch s.Kind {
		case files.Rows, files.ValueOffsets, files.ValueBytes:
			n += s.Bytes
		}
	}
	return n
}

// WriteTo writes the index as a file.
func (ix *Index) WriteTo(w io.Writer) (int64, error) {
	body := ix.Engine.Body()
	if body.Format() == nil { // its memory is not that of a file
		own, err := ix.Compact(Config{Device: OnCPU, Layout: layout.Auto, Workers: ix.workers}, ix.codec)
		if err != nil {
			return 0, err
		}
		defer own.Release()
		return own.WriteTo(w)
	}
	shape := body.Shape()
	h := files.Header{
		Format: body.Format(), KeyBits: uint32(ix.key.Bits()), Entries: int64(ix.n),
		Fanout: uint32(shape.Fanout), Levels: uint32(shape.Levels), PageLevels: uint32(shape.PageLevels),
		Key: ix.key.Name, Value: ix.values.Name(), ValSize: ix.values.fileSize(), Note: ix.note,
	}
	var parts []files.Part
	kinds := append(h.Format.Sections[:len(h.Format.Sections):len(h.Format.Sections)], files.Column)
	for i, b := range body.Segments() {
		parts = append(parts, files.Memory(kinds[i], b))
	}
	if ix.holder == nil {
		more, err := ix.values.parts(ix.codec)
		if err != nil {
			return 0, err
		}
		parts = append(parts, more...)
	}
	n, err := files.Write(w, h, parts)
	if errors.Is(err, files.ErrChanged) {
		err = Problem(ErrValues, "%w: encode must give the same bytes each time", err)
	}
	return n, err
}
