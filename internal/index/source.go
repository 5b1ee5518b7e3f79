package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
)

// ReadFile makes a File of the bytes of r: size bytes, or, where size is below
// 0, as many as the header says. name stands for it in errors. Checks and
// errors are those of OpenFile. Nothing behind the end of the file is read.
func ReadFile(name string, r io.Reader, size int64) (*File, error) {
	f := &File{Path: name}
	page := make([]byte, files.Page)
	n, err := io.ReadFull(r, page)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("pando: cannot read %s: %w", name, err)
	}
	if err := f.takeHeader(bytes.NewReader(page[:n]), size); err != nil {
		return nil, f.fail(err)
	}
	f.rest = io.MultiReader(bytes.NewReader(page), r)
	return f, nil
}

// load reads the file into memory.
func (f *File) load(parts []arena.Part, limit int64) (*arena.Block, error) {
	block, err := arena.Load(f.rest, f.Size, parts, f.slack, limit)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, files.Bad(fmt.Sprintf("cut short: the header says %d bytes", f.Size))
	}
	return block, err
}

// verifyLoaded compares the checksums of a file that was read into memory.
func (f *File) verifyLoaded(block *arena.Block) error {
	if len(f.Sections) == 0 {
		return nil
	}
	return files.Verify(behindHeader(block.Memory()), f.Header)
}

// behindHeader is the bytes of a file behind its header: a block has no others.
type behindHeader []byte

func (b behindHeader) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(b).ReadAt(p, at-files.Page)
}
