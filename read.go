package pando

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"

	"github.com/pando-index/pando/internal/index"
)

// Read makes an index of the bytes that Save or WriteTo has written, from any
// reader: a network connection, a decompressor, an archive. It reads the bytes
// of the index, and none behind them.
//
// The documentation of Open holds, except that the index is a copy in memory of
// its own, which MemoryLimit bounds: the source may be closed or changed
// afterwards. Errors name the source where Open's name the file.
func Read[K Key, V any](r io.Reader, opts ...Option) (*Frozen[K, V], error) {
	return read[K, V]("the stream", r, -1, opts)
}

// ReadAt makes an index of the size bytes of r, as Read does: of a file in an
// object store, say, or of a part of a larger file by an io.SectionReader.
func ReadAt[K Key, V any](r io.ReaderAt, size int64, opts ...Option) (*Frozen[K, V], error) {
	return read[K, V]("the source", io.NewSectionReader(r, 0, size), size, opts)
}

// ReadBytes makes an index of the bytes that Save or WriteTo has written, as Read
// does: of a file that the program has embedded, say.
func ReadBytes[K Key, V any](b []byte, opts ...Option) (*Frozen[K, V], error) {
	return read[K, V]("the bytes", bytes.NewReader(b), int64(len(b)), opts)
}

// ReadFS makes an index of a file in a file system, as Read does: of an embed.FS,
// a zip archive, or any other fs.FS. For files of the operating system Open is
// faster, since it copies nothing.
func ReadFS[K Key, V any](fsys fs.FS, name string, opts ...Option) (*Frozen[K, V], error) {
	file, size, err := regular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read[K, V](name, file, size, opts)
}

// regular opens a file of a file system, and returns its size.
func regular(fsys fs.FS, name string) (fs.File, int64, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("pando: cannot open the file: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("pando: cannot open the file: %w", err)
	}
	if !info.Mode().IsRegular() {
		file.Close()
		return nil, 0, fmt.Errorf("%w: %s: not a regular file", ErrFile, name)
	}
	return file, info.Size(), nil
}

func read[K Key, V any](name string, r io.Reader, size int64, opts []Option) (*Frozen[K, V], error) {
	return open[K, V](func() (*index.File, error) { return index.ReadFile(name, r, size) }, opts)
}
