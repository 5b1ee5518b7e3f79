package pando

import "github.com/pando-index/pando/internal/index"

// Open makes an index of a file that Save has written. The file is the index:
// it is mapped read-only and nothing of it is copied, so that Open takes the
// same short time for a file of any size, and programs that open the same file
// share its memory. Header and section table are always checked, against the
// file's size too; Verified checks all the rest.
//
// K and V must be the types the index was made with, by kind and width (int is int64; a named
// type counts as its underlying type), or Open returns ErrType. Values that hold pointers and do
// not marshal themselves need the option Values. Open returns ErrFile for a file that is damaged
// or not one of Pando's, and ErrVersion for one of a later version.
//
// A file whose sections are damaged, opened without Verified, returns wrong
// answers, or panics over a value that cannot be decoded, but reads nothing
// outside itself. A bool among the values may then be neither true nor false.
//
// The file may be replaced (by Save, or by a rename) or removed while it is
// open: the index stays as it was until Close. It must not be overwritten or
// cut short in place: a read behind its new end ends the program.
//
// Of the options, On, Workers, ResponseTime and Values mean what they mean for
// Freeze. But Auto stays on the CPU, since a copy to a GPU takes longer the larger the
// file is. MemoryLimit is not touched by a mapped file, whose memory is the
// system's to take back at any time; HugePages does nothing. Layout, if given,
// must be the file's. On systems without mmap (Windows) the file is read into
// memory, within MemoryLimit; all else is the same.
func Open[K Key, V any](path string, opts ...Option) (*Frozen[K, V], error) {
	return open[K, V](func() (*index.File, error) { return index.OpenFile(path) }, opts)
}

func open[K Key, V any](file func() (*index.File, error), opts []Option) (*Frozen[K, V], error) {
	return frozen[K, V](openFile(index.KeyTypeOf[K](), index.ValueTypeOf[V](), file, opts))
}

// openFile makes an index of the file that file returns.
func openFile(key index.KeyType, val *index.ValueType, file func() (*index.File, error), opts []Option) (*index.Index, error) {
	c, err := configure(index.Opening, opts)
	if err != nil {
		return nil, err
	}
	return index.OpenAs(key, val, c, file)
}

// Verified makes Open read the whole file and check every checksum first. OpenTree
// does that in any case.
func Verified() Option {
	return func(c *config) { c.Verified, c.Given = true, c.Given|index.OptVerified }
}
